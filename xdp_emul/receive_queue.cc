// Hot path: a burst is received at once, looked over once, judged at once, and leaves by verdict.
#include "xdp_emul/receive_queue.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "mempool/buffer_stamp.h"
#include "xdp_emul/burst_mask.h"
#include "xdp_emul/map_redirect.h"

namespace halfpage {
namespace {

constexpr int kAborted = static_cast<int>(XdpAction::kAborted);
constexpr int kDrop = static_cast<int>(XdpAction::kDrop);
constexpr int kPass = static_cast<int>(XdpAction::kPass);
constexpr int kTx = static_cast<int>(XdpAction::kTx);
constexpr int kRedirect = static_cast<int>(XdpAction::kRedirect);

void Stamp(const ReceiveQueue& queue, rte_mbuf** frames, uint16_t n, uint32_t stage) {
  if (__builtin_expect(queue.owners != nullptr, 0)) StampBurst(frames, n, stage, rte_rdtsc());
}

uint32_t RingStage(const ReceiveQueue& queue, DeviceIndex device) {
  return __builtin_expect(queue.owners != nullptr, 0) ? queue.owners->ring[device] : 0;
}

void CountErrors(Counter* errors, const SendResult& result, uint16_t n) {
  if (__builtin_expect(result.sent == n, 1)) return;
  for (int reason = 0; reason < kRefusals; ++reason) errors[reason].Add(result.refused[reason]);
}

SendResult SendXdp(ReceiveQueue& queue, Transmit& to, uint16_t tx_queue, rte_mbuf** frames, uint16_t n,
                   const BurstFacts& facts) {
  if (__builtin_expect(to.xdp_closed != Transmit::kOpen, 0)) return RefuseAll(to, frames, n, to.xdp_closed);
  return Send(to, tx_queue, frames, n, queue.bulk, facts);
}

void TransmitBack(ReceiveQueue& queue, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  if (__builtin_expect(queue.remote, 0)) {
    queue.counters.tx_errors[static_cast<int>(Refusal::kBadTarget)].Add(n);
    FreeBurst(frames, n, facts);
    return;
  }
  Stamp(queue, frames, n, RingStage(queue, queue.device));
  Transmit& to = queue.transmit[queue.device];
  const SendResult result = SendXdp(queue, to, queue.queue, frames, n, facts);
  queue.counters.tx_sent.Add(result.sent);
  CountErrors(queue.counters.tx_errors, result, n);
}

void SendToTarget(ReceiveQueue& queue, DeviceIndex target, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  if (__builtin_expect(target >= kFirstSinkTarget, 0)) {
    RedirectByMap(queue, target, frames, n, facts);
  } else {
    RedirectToDevice(queue, target, frames, n, facts);
  }
}

// Frames of one target leave together, in their order; targets in the order of their first frames.
void Redirect(ReceiveQueue& queue, rte_mbuf** frames, DeviceIndex* targets, uint16_t n, const BurstFacts& facts) {
  uint32_t different = 0;
  for (uint16_t i = 1; i < n; ++i) different |= targets[i] ^ targets[0];
  if (__builtin_expect(different == 0, 1)) {
    SendToTarget(queue, targets[0], frames, n, facts);
    return;
  }
  rte_mbuf* same[kMaxBurst];
  while (n != 0) {
    const DeviceIndex target = targets[0];
    uint16_t taken = 0;
    uint16_t rest = 0;
    for (uint16_t i = 0; i < n; ++i) {
      if (targets[i] == target) {
        same[taken++] = frames[i];
      } else {
        frames[rest] = frames[i];
        targets[rest++] = targets[i];
      }
    }
    SendToTarget(queue, target, same, taken, facts);
    n = rest;
  }
}

// A program that takes single buffers never sees a chained frame: the kernel would not have let it in.
uint16_t RefuseChained(ReceiveQueue& queue, rte_mbuf** frames, uint16_t n) {
  uint16_t kept = 0;
  for (uint16_t i = 0; i < n; ++i) {
    if (frames[i]->nb_segs == 1) {
      frames[kept++] = frames[i];
    } else {
      rte_pktmbuf_free(frames[i]);
    }
  }
  queue.counters.refused[static_cast<int>(Refusal::kFragsUnsupported)].Add(n - kept);
  return kept;
}

// Gives how many frames are left.
uint16_t MakePrivate(ReceiveQueue& queue, rte_mbuf** frames, uint16_t n) {
  const uint16_t kept = queue.converter->Convert(frames, n);
  queue.counters.refused[static_cast<int>(Refusal::kNoBuffer)].Add(n - kept);
  Stamp(queue, frames, kept, queue.owners != nullptr ? queue.owners->poll : 0);
  return kept;
}

// For the control loop, which logs.
void RecordFaults(ReceiveQueue& queue, const ProgramFaults& faults) {
  for (int r = 0; r < kRefusals; ++r) queue.counters.faults[r].Add(faults.by_cause[r]);
  if (queue.counters.fault_program.load(std::memory_order_relaxed) != nullptr) return;
  queue.counters.fault_cause.store(static_cast<int>(faults.first.cause), std::memory_order_relaxed);
  queue.counters.fault_asked.store(faults.first.asked, std::memory_order_relaxed);
  queue.counters.fault_available.store(faults.first.available, std::memory_order_relaxed);
  queue.counters.fault_program.store(faults.first_program, std::memory_order_release);
}

void NoteWaiting(ReceiveQueue& queue, uint16_t n) {
  uint64_t waited = n;
  if (n == queue.budget && queue.ring != nullptr) waited += rte_ring_count(queue.ring);
  const uint64_t before = queue.counters.high_water.Read();
  if (waited > before) queue.counters.high_water.Add(waited - before);
}

// Programs write headers, so the burst's facts (lengths, holders, segments) outlive their run.
void ActAlike(ReceiveQueue& queue, int action, rte_mbuf** frames, DeviceIndex* targets, uint16_t n,
              const BurstFacts& facts) {
  queue.counters.verdicts[action].Add(n);
  switch (action) {
    case kPass:
      Stamp(queue, frames, n, queue.owners != nullptr ? queue.owners->sink : 0);
      Consume(*queue.sink, queue.queue, frames, n, facts);
      break;
    case kTx:
      TransmitBack(queue, frames, n, facts);
      break;
    case kRedirect:
      Redirect(queue, frames, targets, n, facts);
      break;
    default:
      FreeBurst(frames, n, facts);
      break;
  }
}

// Sorts without a branch on the verdict: which way a frame goes is what a branch predictor cannot know.
void ActMixed(ReceiveQueue& queue, rte_mbuf** frames, const Verdicts& verdicts, uint16_t n, const BurstFacts& facts) {
  BurstMask left = FirstFrames(n);
  for (int action = 0; action < kXdpActions && left != 0; ++action) {
    const BurstMask those = FramesWith(verdicts.action, static_cast<uint8_t>(action), n);
    if (those == 0) continue;
    left ^= those;
    rte_mbuf* sorted[kMaxBurst];
    DeviceIndex targets[kMaxBurst];
    uint16_t count = 0;
    ForEachFrame(those, [&](uint16_t i) { sorted[count++] = frames[i]; });
    if (action == kRedirect) {
      count = 0;
      ForEachFrame(those, [&](uint16_t i) { targets[count++] = verdicts.target[i]; });
    }
    // The sink counts bytes, so it wants facts of its own frames; for the rest those of the whole burst hold.
    ActAlike(queue, action, sorted, targets, count, action == kPass ? Survey(sorted, count) : facts);
  }
}

}  // namespace

void RedirectToDevice(ReceiveQueue& queue, DeviceIndex target, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  Transmit& to = queue.transmit[target];
  Stamp(queue, frames, n, RingStage(queue, target));
  const uint16_t tx_queue = queue.queue % to.queues;
  const SendResult result = SendXdp(queue, to, tx_queue, frames, n, facts);
  queue.counters.redirect_sent.Add(result.sent);
  if (queue.xmit != nullptr) {
    queue.xmit[target][tx_queue].sent.Add(result.sent);
    queue.xmit[target][tx_queue].errors.Add(n - result.sent);
  }
  CountErrors(queue.counters.redirect_errors, result, n);
}

uint16_t Poll(ReceiveQueue& queue) {
  rte_mbuf* frames[kMaxBurst];
  queue.counters.polls.Add(1);
  // An empty ring is seen without a call of the driver.
  const bool waiting = queue.ring == nullptr || rte_ring_count(queue.ring) != 0;
  const uint16_t n = waiting ? rte_eth_rx_burst(queue.port, queue.queue, frames, queue.budget) : 0;
  if (n == 0) {
    queue.counters.empty_polls.Add(1);
    return 0;
  }
  const BurstFacts facts = Survey(frames, n);
  queue.counters.packets.Add(n);
  queue.counters.bytes.Add(facts.bytes);
  NoteWaiting(queue, n);
  Stamp(queue, frames, n, queue.owners != nullptr ? queue.owners->poll : 0);
  Judge(queue, frames, n, facts);
  return n;
}

void Judge(ReceiveQueue& queue, rte_mbuf** frames, uint16_t n, BurstFacts facts) {
  if (queue.program == nullptr) {
    ActAlike(queue, kPass, frames, nullptr, n, facts);
    return;
  }
  if (__builtin_expect((!facts.simple | queue.look_at_simple) && queue.converter != nullptr, 0)) {
    n = MakePrivate(queue, frames, n);
    if (n == 0) return;
    facts = Survey(frames, n);
  }
  if (__builtin_expect(facts.chained && !queue.program->frags(), 0)) {
    n = RefuseChained(queue, frames, n);
    if (n == 0) return;
    facts = Survey(frames, n);
  }
  Verdicts verdicts;
  verdicts.faults.total = 0;
  verdicts.from = &queue.origin;
  verdicts.has_metadata = false;
  const int alike = queue.program->Run(frames, n, &verdicts, queue.hits);
  if (__builtin_expect(verdicts.faults.total != 0, 0)) RecordFaults(queue, verdicts.faults);
  if (__builtin_expect(queue.reshapes, 0)) facts = Survey(frames, n);
  if (alike >= 0) {
    ActAlike(queue, alike, frames, verdicts.target, n, facts);
  } else {
    ActMixed(queue, frames, verdicts, n, facts);
  }
}

}  // namespace halfpage
