// Hot path: frames on their way from one worker to another.
#include "xdp_emul/cpu_ring.h"

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "xdp_emul/receive_queue.h"

namespace halfpage {
namespace {

constexpr unsigned kElement = sizeof(RemoteFrame);

// Judges a run of frames of one device and queue.
void JudgeRun(ReceiveQueue& queue, uint16_t number, rte_mbuf** frames, uint16_t n) {
  const BurstFacts facts = Survey(frames, n);
  queue.queue = number;
  queue.origin.queue = number;
  queue.counters.packets.Add(n);
  queue.counters.bytes.Add(facts.bytes);
  Judge(queue, frames, n, facts);
}

}  // namespace

uint16_t PutRemote(CpuLane& lane, DeviceIndex device, uint16_t queue, rte_mbuf* const* frames, uint16_t n) {
  RemoteFrame remote[kMaxBurst];
  for (uint16_t i = 0; i < n; ++i) remote[i] = {frames[i], device, queue, 0};
  const auto taken = static_cast<uint16_t>(rte_ring_enqueue_burst_elem(lane.ring, remote, kElement, n, nullptr));
  lane.sent.Add(taken);
  return taken;
}

uint16_t PollRemote(CpuQueue& from) {
  RemoteFrame remote[kMaxBurst];
  const auto n = static_cast<uint16_t>(rte_ring_dequeue_burst_elem(from.ring, remote, kElement, from.budget, nullptr));
  for (uint16_t begin = 0; begin < n;) {
    const RemoteFrame& first = remote[begin];
    rte_mbuf* frames[kMaxBurst];
    uint16_t run = 0;
    do {
      frames[run] = remote[begin + run].frame;
      ++run;
    } while (begin + run < n && remote[begin + run].device == first.device && remote[begin + run].queue == first.queue);
    JudgeRun(from.queues[first.device], first.queue, frames, run);
    begin = static_cast<uint16_t>(begin + run);
  }
  return n;
}

uint64_t FreeRemote(rte_ring* ring) {
  uint64_t freed = 0;
  for (RemoteFrame remote; rte_ring_dequeue_elem(ring, &remote, kElement) == 0; ++freed) {
    rte_pktmbuf_free(remote.frame);
  }
  return freed;
}

}  // namespace halfpage
