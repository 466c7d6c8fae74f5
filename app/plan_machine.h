// What memory the machine has left for a plan: free hugepages, the control group's limit, available memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfpage {

struct MemoryLimit {
  std::string name;    // "free hugepages of 2MiB", "cgroup memory limit"
  std::string source;  // file it was read from
  uint64_t bytes = 0;  // that can still be taken
};

// Reads the limits that hold for this process; what the machine does not tell is left out. With `hugepages` the free
// hugepages of every size that has any reserved (none at all: one entry of 0 bytes), else the control group's limit
// (version 2 and 1, the tightest on the way up) and the kernel's MemAvailable. `root` stands in front of /proc and
// /sys; empty on a real machine.
std::vector<MemoryLimit> ReadMemoryLimits(bool hugepages, const std::string& root = "");

// The machine's NUMA nodes, ascending; none where it does not tell.
std::vector<int> ReadSockets(const std::string& root = "");

}  // namespace halfpage
