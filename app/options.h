// The command line: EAL's half before `--`, ours behind it (or all of it, where there is no `--`).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/config.h"
#include "app/launch.h"
#include "app/prompt/prompt_options.h"
#include "app/xdp_test.h"

namespace halfpage {

struct Options {
  enum class Action { kRun, kCheck, kPlan, kPrintConfig, kXdpTest, kHelp, kVersion, kMan, kDoctor };
  Action action = Action::kRun;
  std::string config;                     // file, "-" for standard input; empty: `launch_text` is it
  std::string launch_text;                // the configuration of a launch without a file
  std::vector<ConfigOverride> overrides;  // what options say of the configuration, in their order
  LaunchOptions launch;
  bool remove_stale = false;  // with kDoctor
  XdpTestOptions xdp_test;
  PromptOptions prompt;
};

// Parses the whole command line. Errors: InvalidArgument naming the option, what is wrong with it, and the nearest one
// that exists.
absl::StatusOr<Options> ParseOptions(int argc, char* const* argv);

}  // namespace halfpage
