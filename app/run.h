// The main job: a checked configuration, run from EAL's start to its end.
#pragma once

#include "app/config.h"
#include "app/prompt/prompt_options.h"

namespace halfpage {

// Exit codes of the program, as --help lists them.
inline constexpr int kExitGood = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitImbalance = 3;
inline constexpr int kExitExpectation = 4;

// Runs `config` until its duration or count is reached, its sources end, or a signal asks to stop; prints statistics
// and the report on standard output, errors on standard error. With a prompt, its commands say when frames flow; what
// ends it ends the run. Gives the exit code. Main thread, once per process.
int RunJob(const Config& config, const PromptOptions& prompt);

}  // namespace halfpage
