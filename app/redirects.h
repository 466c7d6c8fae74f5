// Where the redirects of a configuration may lead: by name, before anything is built.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/config.h"

namespace halfpage {

// A slot of a cpumap that leads to a worker: a ring in which frames wait for it.
struct LaneOf {
  const RedirectMapConfig* map = nullptr;
  const MapSlotConfig* slot = nullptr;
  std::string Name() const;  // "cpus[0]"
};

// The lanes of a configuration by number: slots of all cpumaps in their order.
std::vector<LaneOf> ListLanes(const Config& config);

// Where frames of a program may go by redirect or XDP_TX.
struct RedirectEnds {
  std::vector<std::string> devices;
  std::vector<std::string> sinks;
  std::vector<LaneOf> lanes;
  size_t most_copies = 0;  // of one frame, beside itself
  bool back = false;       // by XDP_TX, through the device that received them
};

// Of a program by name, and of the links of a chain. Names may be there twice, or lead nowhere in a configuration with
// faults.
RedirectEnds RedirectsOf(const Config& config, const std::string& program);

}  // namespace halfpage
