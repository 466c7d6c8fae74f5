// What a worker has of an object's program: private to object_program*.cc.
#pragma once

#include <atomic>

#include "mempool/counter.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/object_program.h"

namespace halfpage {

// The worker writes all of it.
struct alignas(64) ObjectProgram::Lane {
  bpf::RunState state;
  uint32_t bursts = 0;
  Counter runs;
  Counter verdicts[kXdpActions];
  Counter unknown;
  Counter faults;
  // Of every 64th burst: runs, and time stamp counts that they took.
  Counter timed_runs;
  Counter timed_cycles;
  // The first fault, written once, `has_fault` last.
  bpf::Fault fault;
  std::atomic<bool> has_fault{false};
};

}  // namespace halfpage
