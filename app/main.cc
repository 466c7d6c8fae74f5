#include <algorithm>
#include <cstdio>
#include <string>

#include "app/config.h"
#include "app/doctor.h"
#include "app/launch.h"
#include "app/option_table.h"
#include "app/options.h"
#include "app/plan_run.h"
#include "app/process.h"
#include "app/run.h"
#include "app/version.h"

namespace {

void PrintFaults(const std::vector<halfpage::ConfigFault>& faults, const char* kind) {
  for (const halfpage::ConfigFault& fault : faults) {
    std::fprintf(stderr, "%s%s\n", kind, fault.ToString().c_str());
  }
}

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? halfpage::kExitGood : halfpage::kExitFailed;
}

// Where the plan goes as JSON: where --json says. A report file that the configuration itself names is the run's.
std::string PlanFile(const halfpage::Options& options, const halfpage::Config& config) {
  const auto asked = [](const halfpage::ConfigOverride& setting) { return setting.origin == "--json"; };
  const bool wanted = std::any_of(options.overrides.begin(), options.overrides.end(), asked);
  return wanted ? config.report.json : "";
}

}  // namespace

int main(int argc, char** argv) {
  halfpage::OpenStandardStreams();
  const auto options = halfpage::ParseOptions(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "halfpage: %s\n", std::string(options.status().message()).c_str());
    return halfpage::kExitUsage;
  }
  using Action = halfpage::Options::Action;
  if (options->action == Action::kHelp) return Print(halfpage::HelpText());
  if (options->action == Action::kMan) return Print(halfpage::ManualPage());
  if (options->action == Action::kVersion) return Print(HALFPAGE_VERSION_TEXT);
  if (options->action == Action::kDoctor && options->config.empty()) {
    return halfpage::RunDoctor(halfpage::FilePrefixOf(options->launch.eal), options->remove_stale);
  }
  if (options->action == Action::kXdpTest) return halfpage::RunXdpTest(options->xdp_test);
  const halfpage::LoadedConfig loaded =
      options->config.empty() ? halfpage::LoadConfigText(options->launch_text, "command line", options->overrides)
                              : halfpage::LoadConfig(options->config, options->overrides);
  PrintFaults(loaded.warnings, "warning: ");
  const bool plan_only = options->action == Action::kPlan && loaded.only_too_large;
  if (plan_only) {
    // The table first: it tells where the memory of the fault's sentence goes.
    const int code = halfpage::RunPlan(loaded, PlanFile(*options, loaded.config));
    PrintFaults(loaded.faults, "");
    return code;
  }
  PrintFaults(loaded.faults, "");
  if (!loaded.faults.empty()) return halfpage::kExitUsage;
  switch (options->action) {
    case Action::kDoctor:
      return halfpage::RunDoctor(loaded.config.eal.file_prefix, options->remove_stale);
    case Action::kCheck:
      std::printf("%s: good\n", loaded.config.file.c_str());
      return halfpage::kExitGood;
    case Action::kPlan:
      return halfpage::RunPlan(loaded, PlanFile(*options, loaded.config));
    case Action::kPrintConfig:
      return Print(halfpage::PrintConfig(loaded.config));
    default:
      return halfpage::RunJob(loaded.config, options->prompt);
  }
}
