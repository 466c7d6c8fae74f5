#include "app/plan_run.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "app/output.h"
#include "app/plan.h"
#include "app/plan_machine.h"
#include "app/plan_report.h"
#include "app/process.h"
#include "app/run.h"

namespace halfpage {

int RunPlan(const LoadedConfig& loaded, const std::string& json) {
  CatchSignals();
  const Config& config = loaded.config;
  const MemoryPlan plan = PlanMemory(config);
  const std::vector<MemoryLimit> limits = ReadMemoryLimits(plan.terms.hugepages);
  bool good = true;
  if (!json.empty()) good = WriteFile(json, PlanJson(plan, limits), "the plan");
  if (json != "-") good = WriteOut(PlanText(plan, limits)) != Written::kFailed && good;
  // What does not fit into EAL's memory is a fault of the file, and told as such.
  std::optional<MachineOverrun> overrun;
  if (!plan.overrun.has_value()) overrun = FindMachineOverrun(config, plan, limits);
  if (overrun.has_value()) std::fprintf(stderr, "%s\n", MachineFault(plan, *overrun).c_str());
  const std::vector<std::string> missing = SocketFaults(plan, ReadSockets());
  for (const std::string& line : missing) std::fprintf(stderr, "%s\n", line.c_str());
  if (!good) return kExitFailed;
  return !missing.empty() || plan.overrun.has_value() || overrun.has_value() ? kExitUsage : kExitGood;
}

}  // namespace halfpage
