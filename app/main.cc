#include <cstdio>

#include "app/config.h"
#include "app/options.h"
#include "app/process.h"
#include "app/run.h"
#include "app/version.h"

namespace {

void PrintFaults(const std::vector<halfpage::ConfigFault>& faults, const char* kind) {
  for (const halfpage::ConfigFault& fault : faults) {
    std::fprintf(stderr, "%s%s\n", kind, fault.ToString().c_str());
  }
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
  if (options->action == Action::kHelp || options->action == Action::kVersion) {
    std::fputs(options->action == Action::kHelp ? halfpage::HelpText().c_str() : HALFPAGE_VERSION_TEXT, stdout);
    return std::fflush(stdout) == 0 ? halfpage::kExitGood : halfpage::kExitFailed;
  }
  const halfpage::LoadedConfig loaded = halfpage::LoadConfig(options->config, options->overrides);
  PrintFaults(loaded.warnings, "warning: ");
  PrintFaults(loaded.faults, "");
  if (!loaded.faults.empty()) return halfpage::kExitUsage;
  switch (options->action) {
    case Action::kCheck:
      std::printf("%s: good\n", loaded.config.file.c_str());
      return halfpage::kExitGood;
    case Action::kPrintConfig:
      std::fputs(halfpage::PrintConfig(loaded.config).c_str(), stdout);
      return std::fflush(stdout) == 0 ? halfpage::kExitGood : halfpage::kExitFailed;
    default:
      return halfpage::RunJob(loaded.config);
  }
}
