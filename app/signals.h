// Signals as a flag.
#pragma once

namespace halfpage {

// SIGINT and SIGTERM set a flag, the second SIGINT or SIGTERM ends the process at once (130 or 143), SIGPIPE is ignored
// so that a reader who goes away is an error of the write. Main thread, before any other is started.
void CatchSignals();

// Whether a signal asked to stop. Any thread.
bool StopRequested();

}  // namespace halfpage
