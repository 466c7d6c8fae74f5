// What `--plan` says, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan.h"
#include "app/plan_machine.h"

namespace halfpage {

// The first pool that is over one of the machine's limits; nothing where all hold.
struct MachineOverrun {
  MemoryLimit limit;
  PlanOverrun pool;
};
std::optional<MachineOverrun> FindMachineOverrun(const Config& config, const MemoryPlan& plan,
                                                 const std::vector<MemoryLimit>& limits);

// One line for standard error: what is needed, what there is, and the largest pool that fits.
std::string MachineFault(const MemoryPlan& plan, const MachineOverrun& overrun);

// A line for each pool whose socket is none of `sockets`; none where these are not known.
std::vector<std::string> SocketFaults(const MemoryPlan& plan, const std::vector<int>& sockets);

// Tables and sentences; ends with a newline.
std::string PlanText(const MemoryPlan& plan, const std::vector<MemoryLimit>& limits);

// The same numbers, all in bytes; ends with a newline.
std::string PlanJson(const MemoryPlan& plan, const std::vector<MemoryLimit>& limits);

}  // namespace halfpage
