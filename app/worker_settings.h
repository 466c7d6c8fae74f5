// What may change of a worker while frames flow: taken over by the worker itself, between two rounds.
//
// The control thread publishes a whole set, the worker copies it into its own plain fields and acknowledges. So the hot
// path reads no more than before, but for one load a round; and what a set no longer names is out of use as soon as
// every worker has acknowledged.
#pragma once

#include <cstdint>
#include <vector>

#include "xdp_emul/egress_program.h"
#include "xdp_emul/receive_queue.h"
#include "xdp_emul/sinks/pace.h"

namespace halfpage {

struct Worker;

// Of a receive queue.
struct QueueSettings {
  const Program* program = nullptr;
  Counter* hits = nullptr;
  Converter* converter = nullptr;
  bool look_at_simple = false;
  bool reshapes = false;
  bool stopped = false;  // its port is
  LeavingAddresses leaving = {};
};

// Of a program behind entries of devmaps.
struct EgressSettings {
  const Program* program = nullptr;
  Counter* hits = nullptr;
};

// Of the way into a device.
struct WaySettings {
  uint32_t frame_limit = 0;
  uint32_t real_limit = 0;
  bool takes_gso = false;
  bool sends_chains = true;
  int xdp_closed = Transmit::kOpen;
  int closed = Transmit::kOpen;
};

// Of a source.
struct SourceSettings {
  uint16_t burst = 32;
  uint64_t ticks = 0;  // TSC ticks a frame, 0: no limit
  bool timed = false;  // made when they are due by the capture's own times
  bool check_lengths = false;
};

struct WorkerSettings {
  std::vector<QueueSettings> queues;                // as Worker::queues
  std::vector<std::vector<QueueSettings>> remotes;  // as Worker::remote_queues, each by DeviceIndex
  std::vector<WaySettings> ways;                    // by DeviceIndex
  std::vector<EgressSettings> egress;               // as Worker::egress
  std::vector<LeavingAddresses> leaving;            // by DeviceIndex
  std::vector<SourceSettings> sources;              // as Worker::generators
  uint16_t budget = 64;
  uint16_t bulk = 16;
};

// Takes `settings` over. The worker itself, or the control thread while it does not run.
void Adopt(Worker& worker, const WorkerSettings& settings);

}  // namespace halfpage
