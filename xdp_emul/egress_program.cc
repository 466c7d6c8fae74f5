// Hot path: frames of one flush before the device that they are to leave through.
#include "xdp_emul/egress_program.h"

#include <string.h>

#include "xdp_emul/map_redirect.h"

namespace halfpage {
namespace {

constexpr int kDropped = static_cast<int>(XdpAction::kDrop);
constexpr int kLetPass = static_cast<int>(XdpAction::kPass);

void CountError(ReceiveQueue& queue, Refusal reason, uint64_t n) {
  queue.counters.redirect_errors[static_cast<int>(reason)].Add(n);
}

// Frees all frames but those that `keep` says of, keeps their order, and gives how many are left.
template <typename Keep>
uint16_t KeepThose(rte_mbuf** frames, uint16_t n, Keep keep) {
  uint16_t kept = 0;
  for (uint16_t i = 0; i < n; ++i) {
    if (keep(i)) {
      frames[kept++] = frames[i];
    } else {
      rte_pktmbuf_free(frames[i]);
    }
  }
  return kept;
}

// What the program said, by action, and what it could not do.
void CountVerdicts(ReceiveQueue& queue, EgressProgram& egress, const uint16_t* said, const ProgramFaults& faults) {
  uint64_t others = 0;
  for (int action = 0; action < kXdpActions; ++action) {
    egress.verdicts[action].Add(said[action]);
    if (action != kLetPass && action != kDropped) others += said[action];
  }
  if (faults.total != 0) {
    for (int r = 0; r < kRefusals; ++r) queue.counters.redirect_errors[r].Add(faults.by_cause[r]);
    egress.faults.Add(faults.total);
  }
  CountError(queue, Refusal::kDevmapDrop, said[kDropped]);
  CountError(queue, Refusal::kDevmapAborted, others - faults.total);
}

// Gives how many frames may leave.
uint16_t JudgeLeaving(ReceiveQueue& queue, EgressProgram& egress, DeviceIndex device, rte_mbuf** frames, uint16_t n) {
  Origin from = queue.origin;
  from.egress = device + 1u;
  memcpy(from.leaving, queue.ways->leaving[device].data(), sizeof(from.leaving));
  Verdicts verdicts;
  verdicts.faults.total = 0;
  verdicts.from = &from;
  verdicts.has_metadata = false;
  const int alike = egress.program->Run(frames, n, &verdicts, egress.hits);
  if (__builtin_expect(alike == kLetPass, 1)) {
    egress.verdicts[kLetPass].Add(n);
    return n;
  }
  uint16_t said[kXdpActions] = {};
  if (alike >= 0) {
    said[alike] = n;
  } else {
    for (uint16_t i = 0; i < n; ++i) ++said[verdicts.action[i]];
  }
  CountVerdicts(queue, egress, said, verdicts.faults);
  return KeepThose(frames, n, [&](uint16_t i) { return alike < 0 && verdicts.action[i] == kLetPass; });
}

}  // namespace

void RedirectThrough(ReceiveQueue& queue, uint32_t program, DeviceIndex device, rte_mbuf** frames, uint16_t n,
                     const BurstFacts& facts) {
  const MapWays& ways = *queue.ways;
  EgressProgram* const egress = program < ways.egress_programs ? &ways.egress[program] : nullptr;
  if (egress == nullptr || egress->program == nullptr || device >= ways.devices) {
    CountError(queue, Refusal::kBadTarget, n);
    FreeBurst(frames, n, facts);
    return;
  }
  if (__builtin_expect(facts.chained && !egress->program->frags(), 0)) {
    const uint16_t whole = KeepThose(frames, n, [frames](uint16_t i) { return frames[i]->nb_segs == 1; });
    CountError(queue, Refusal::kFragsUnsupported, n - whole);
    if (whole == 0) return;
    n = whole;
  }
  n = JudgeLeaving(queue, *egress, device, frames, n);
  if (n == 0) return;
  RedirectToDevice(queue, device, frames, n, egress->program->reshapes() ? Survey(frames, n) : facts);
}

}  // namespace halfpage
