// Hot path: rings by which a worker hands frames to another one (kernel: CPUMAP).
#pragma once

#include <cstdint>

#include "mempool/counter.h"
#include "xdp_emul/burst_facts.h"
#include "xdp_emul/program.h"

struct rte_ring;

namespace halfpage {

struct ReceiveQueue;

// What such a ring holds, 16 bytes: a frame, and where it was received.
struct RemoteFrame {
  rte_mbuf* frame;
  DeviceIndex device;
  uint16_t queue;
  uint32_t unused;
};

// One sending worker's way into a lane. The ring takes several senders.
struct CpuLane {
  rte_ring* ring = nullptr;
  Counter sent;
};

// Puts as many of the frames as there is room for, in their order, and gives how many. The caller keeps the others.
// Hot; the worker that owns `lane`.
uint16_t PutRemote(CpuLane& lane, DeviceIndex device, uint16_t queue, rte_mbuf* const* frames, uint16_t n);

// Frees the frames that a ring still holds and gives how many. Nobody else may use the ring meanwhile.
uint64_t FreeRemote(rte_ring* ring);

// The receiving end, on its worker. What comes from device d is judged as by `queues[d]`, whose counters, program, sink
// and ways are those of this lane; it has no port. Verdict tx ends as an error there, bad_target: a program away from
// its device cannot send back through it (the kernel drops).
struct CpuQueue {
  rte_ring* ring = nullptr;
  uint16_t budget = kMaxBurst;
  ReceiveQueue* queues = nullptr;  // by DeviceIndex
};

// One poll: as Poll(), for frames that another worker sent. Hot; the worker that owns `from`.
uint16_t PollRemote(CpuQueue& from);

}  // namespace halfpage
