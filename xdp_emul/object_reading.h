// What can be told of an object's program: how it is run, and what its runs have come to.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "xdp_emul/xdp_action.h"

namespace halfpage {

// Sums over all workers: runs = verdicts[all] + unknown, and the aborted contain the faults.
struct ObjectReading {
  std::string name;
  std::string object;
  std::string program;       // its name in the object
  std::string run_by;        // "LLVM", "interpreter"
  std::string not_compiled;  // why, where compiling was tried
  uint64_t instructions = 0;
  bool frags = false;
  uint64_t runs = 0;
  std::array<uint64_t, kXdpActions> verdicts = {};
  uint64_t unknown = 0;  // numbers that are no verdict: aborted, as in the kernel
  uint64_t faults = 0;
  std::string fault;              // the first, in words
  double ns_per_run = 0;          // of every 64th burst; 0: none was timed
  std::vector<std::string> maps;  // "filter_ports (percpu_array)"
};

}  // namespace halfpage
