// Hot path: what a redirect's target means.
#include "xdp_emul/map_redirect.h"

#include <rte_cycles.h>

#include "mempool/buffer_stamp.h"

namespace halfpage {
namespace {

void Stamp(const ReceiveQueue& queue, rte_mbuf** frames, uint16_t n, uint32_t stage) {
  if (__builtin_expect(queue.owners != nullptr, 0)) StampBurst(frames, n, stage, rte_rdtsc());
}

void Refuse(ReceiveQueue& queue, Refusal reason, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  queue.counters.redirect_errors[static_cast<int>(reason)].Add(n);
  FreeBurst(frames, n, facts);
}

// A user's rings: whether they have room is counted by the sink.
void ToSink(ReceiveQueue& queue, uint32_t sink, rte_mbuf** frames, uint16_t n) {
  const MapWays& ways = *queue.ways;
  Stamp(queue, frames, n, ways.first_sink_stage + sink);
  queue.counters.redirect_sent.Add(n);
  queue.counters.redirect_to_sinks.Add(n);
  Consume(*ways.sinks[sink], queue.queue, frames, n, Survey(frames, n));
}

void ToLane(ReceiveQueue& queue, uint32_t lane, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  const MapWays& ways = *queue.ways;
  Stamp(queue, frames, n, ways.first_lane_stage + lane);
  const uint16_t taken = PutRemote(ways.lanes[lane], queue.device, queue.queue, frames, n);
  queue.counters.redirect_sent.Add(taken);
  queue.counters.redirect_to_lanes.Add(taken);
  if (__builtin_expect(taken != n, 0)) {
    Refuse(queue, Refusal::kRingFull, frames + taken, static_cast<uint16_t>(n - taken), facts);
  }
}

// `target` is a direct number.
void ToDirect(ReceiveQueue& queue, DeviceIndex target, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  if (target < kFirstSinkTarget) {
    RedirectToDevice(queue, target, frames, n, facts);
  } else if (target < kFirstLaneTarget) {
    ToSink(queue, target - kFirstSinkTarget, frames, n);
  } else if (target < kFirstEgressTarget) {
    ToLane(queue, target - kFirstLaneTarget, frames, n, facts);
  } else if (IsEgressTarget(target)) {
    RedirectThrough(queue, EgressProgramOf(target), ThroughDevice(target), frames, n, facts);
  } else {
    Refuse(queue, Refusal::kBadTarget, frames, n, facts);
  }
}

// Copies for one device more. Those that find no buffer are errors of their own.
void ToCopies(ReceiveQueue& queue, DeviceIndex target, rte_mbuf* const* frames, uint16_t n) {
  rte_mbuf* copies[kMaxBurst];
  uint16_t made = 0;
  for (uint16_t i = 0; i < n; ++i) {
    copies[made] = rte_pktmbuf_copy(frames[i], queue.ways->copies, 0, UINT32_MAX);
    made = static_cast<uint16_t>(made + (copies[made] != nullptr));
  }
  queue.counters.redirect_copies.Add(n);
  queue.counters.redirect_errors[static_cast<int>(Refusal::kNoBuffer)].Add(n - made);
  if (made != 0) ToDirect(queue, target, copies, made, Survey(copies, made));
}

// The last device gets the frames themselves, those before it copies, as in the kernel.
void ToAll(ReceiveQueue& queue, const RedirectMap& map, bool exclude_ingress, rte_mbuf** frames, uint16_t n,
           const BurstFacts& facts) {
  DeviceIndex last = kNoDevice;
  for (uint32_t key = 0; key < map.size(); ++key) {
    const DeviceIndex to = map.Read(key);
    if (to == kNoDevice || (exclude_ingress && ThroughDevice(to) == queue.device)) continue;
    queue.ways->routed[map.Slot(key) - kFirstMapTarget].Add(n);
    if (last != kNoDevice) ToCopies(queue, last, frames, n);
    last = to;
  }
  ToDirect(queue, last, frames, n, facts);
}

}  // namespace

void RedirectByMap(ReceiveQueue& queue, DeviceIndex target, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  const RedirectMap* map = queue.ways == nullptr ? nullptr : queue.ways->maps->Of(target);
  if (map == nullptr) {
    ToDirect(queue, queue.ways == nullptr ? kNoDevice : target, frames, n, facts);
    return;
  }
  if (map->IsSlotOfQueue(target)) target = map->Slot(queue.queue);
  if (target == kNoDevice) {
    ToDirect(queue, kNoDevice, frames, n, facts);
    return;
  }
  queue.ways->routed[target - kFirstMapTarget].Add(n);
  if (map->IsEverywhere(target)) {
    ToAll(queue, *map, map->ExcludesIngress(target), frames, n, facts);
  } else {
    ToDirect(queue, map->Read(map->KeyOf(target)), frames, n, facts);
  }
}

}  // namespace halfpage
