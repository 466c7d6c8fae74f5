// Hot path: redirects that end elsewhere than in one device: slots of maps, a user's rings, other workers.
#pragma once

#include "xdp_emul/cpu_ring.h"
#include "xdp_emul/egress_program.h"
#include "xdp_emul/maps.h"
#include "xdp_emul/receive_queue.h"

namespace halfpage {

// One worker's ways beyond devices. Fixed while workers run, but for the counters.
struct MapWays {
  const RedirectMaps* maps = nullptr;
  SinkLane* const* sinks = nullptr;  // by number of the sink
  CpuLane* lanes = nullptr;          // by number of the lane
  uint32_t first_sink_stage = 0;     // owner stamps: of sink 0, the others follow
  uint32_t first_lane_stage = 0;     // of lane 0's ring
  rte_mempool* copies = nullptr;     // buffers for what is sent to several devices
  EgressProgram* egress = nullptr;   // behind entries of devmaps, by number
  uint32_t egress_programs = 0;
  const LeavingAddresses* leaving = nullptr;  // by DeviceIndex
  uint32_t devices = 0;
  Counter* routed = nullptr;  // frames redirected, by target - kFirstMapTarget
};

// Sends a burst to `target`, a number that is no device's: frames as in Send(). Counts in the queue's counters:
// frames + copies = redirect_sent + redirect_errors. Hot; the queue's worker.
void RedirectByMap(ReceiveQueue& queue, DeviceIndex target, rte_mbuf** frames, uint16_t n, const BurstFacts& facts);

// The same to a device.
void RedirectToDevice(ReceiveQueue& queue, DeviceIndex target, rte_mbuf** frames, uint16_t n, const BurstFacts& facts);

}  // namespace halfpage
