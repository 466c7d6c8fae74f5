// What the process owes its starter: standard streams that are there, signals as a flag.
#pragma once

namespace halfpage {

// Puts /dev/null where standard input, output or error is closed. Otherwise the next file or socket to be opened, EAL's
// among them, would take its number and get what is meant for it. First thing in main().
void OpenStandardStreams();

// SIGINT and SIGTERM set a flag, the second SIGINT or SIGTERM ends the process at once (130 or 143), SIGPIPE is ignored
// so that a reader who goes away is an error of the write. Main thread, before any other is started.
void CatchSignals();

// Whether a signal asked to stop. Any thread.
bool StopRequested();

}  // namespace halfpage
