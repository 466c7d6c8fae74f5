// Hot path: the built-in programs.
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <bit>

#include "xdp_emul/burst_mask.h"
#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

// A burst that rules are asked about one by one. A byte of `undecided` is 0xff until a rule has decided the frame, one
// of `matching` is 0xff where the last rule wants the frame, else 0. Arrays are worked on in whole blocks.
struct Asked {
  size_t padded;
  uint64_t keys[kMaxBurst];
  alignas(kMaskBlock) uint8_t undecided[kMaxBurst];
  alignas(kMaskBlock) uint8_t matching[kMaxBurst];
};

// Without a branch for a frame, for the compiler to do several at once.
template <typename Wanted>
inline void Match(Asked& asked, Wanted wanted) {
  const uint64_t* __restrict keys = asked.keys;
  uint8_t* __restrict matching = asked.matching;
  const size_t padded = asked.padded;
  for (size_t i = 0; i < padded; ++i) matching[i] = wanted(keys[i]) ? 0xff : 0;
}

// The frames that the rule wants, decided ones too.
inline BurstMask Match(const CompiledRule& rule, Asked& asked, uint16_t n) {
  const uint64_t mask = rule.mask;
  const uint64_t value = rule.value;
  if (rule.key_decides) {
    Match(asked, [=](uint64_t key) { return ((key ^ value) & mask) == 0; });
  } else {
    const uint64_t source = rule.source_first;
    const uint64_t sources = rule.source_last - source;
    const uint64_t destination = rule.destination_first;
    const uint64_t destinations = rule.destination_last - destination;
    Match(asked, [=](uint64_t key) {
      return (((key ^ value) & mask) == 0) & ((key >> 48) - source <= sources) &
             ((key >> 32 & 0xffff) - destination <= destinations);
    });
  }
  return FramesWith(asked.matching, 0xff, n);
}

// Writes the action of the last rule to the undecided frames that it wants.
inline void Decide(Asked& asked, uint8_t rule_action, uint8_t* __restrict action) {
  uint8_t* __restrict undecided = asked.undecided;
  const uint8_t* __restrict matching = asked.matching;
  const size_t padded = asked.padded;
  for (size_t i = 0; i < padded; ++i) {
    const uint8_t first = matching[i] & undecided[i];
    undecided[i] ^= first;
    action[i] = static_cast<uint8_t>((action[i] & ~first) | (rule_action & first));
  }
}

// Fills in keys; gives the frames without a whole Ethernet header, which have none and are decided.
BurstMask Ask(Asked& asked, rte_mbuf* const* frames, uint16_t n) {
  BurstMask headless = 0;
  __builtin_memset(asked.undecided, 0xff, sizeof(asked.undecided));
  for (uint16_t i = 0; i < n; ++i) {
    if (__builtin_expect(QuickKey(frames[i], &asked.keys[i]), 1)) continue;
    PacketHeaders headers;
    if (!ParseHeaders(frames[i], &headers)) {
      headless |= BurstMask{1} << i;
      asked.undecided[i] = 0;
    }
    asked.keys[i] = KeyOf(headers);
  }
  asked.padded = n;
  for (; asked.padded % kMaskBlock != 0; ++asked.padded) asked.keys[asked.padded] = 0;
  return headless;
}

// A program that cannot read the header it needs aborts, as the kernel's bounds checks make programs do.
constexpr auto kAborted = static_cast<uint8_t>(XdpAction::kAborted);
constexpr auto kTx = static_cast<uint8_t>(XdpAction::kTx);
constexpr auto kRedirect = static_cast<uint8_t>(XdpAction::kRedirect);

}  // namespace

int Program::RunConstant(const Program& program, rte_mbuf* const*, uint16_t, Verdicts*, Counter*) {
  return program.action_;
}

int Program::RunRedirect(const Program& program, rte_mbuf* const*, uint16_t n, Verdicts* verdicts, Counter*) {
  for (uint16_t i = 0; i < n; ++i) verdicts->target[i] = program.target_;
  return kRedirect;
}

int Program::RunTransmit(const Program&, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*) {
  uint16_t whole = 0;
  while (whole < n && SwapAddresses(frames[whole])) ++whole;
  if (__builtin_expect(whole == n, 1)) return kTx;
  for (uint16_t i = 0; i < n; ++i) {
    const bool swapped = i < whole || (i > whole && SwapAddresses(frames[i]));
    verdicts->action[i] = swapped ? kTx : kAborted;
    verdicts->target[i] = kNoDevice;
  }
  return -1;
}

// Rule by rule over the whole burst, not frame by frame over the rules: each rule is one comparison of words.
int Program::RunFilter(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter* hits) {
  const size_t rule_count = program.rules_.size();
  Asked asked;
  const BurstMask headless = Ask(asked, frames, n);
  const BurstMask all = FirstFrames(n);
  BurstMask left = all & ~headless;
  BurstMask sent_back = 0;
  uint32_t seen = 0;  // a bit for each verdict
  const auto note = [&](BurstMask which, uint8_t action, DeviceIndex target) {
    seen |= 1u << action;
    if (action == kTx) sent_back |= which;
    if (action == kRedirect) ForEachFrame(which, [&](uint16_t i) { verdicts->target[i] = target; });
  };
  __builtin_memset(verdicts->action, program.action_, sizeof(verdicts->action));
  for (size_t r = 0; r < rule_count && left != 0; ++r) {
    const CompiledRule& rule = program.rules_[r];
    const BurstMask first = Match(rule, asked, n) & left;
    if (first == 0) continue;
    hits[r].Add(static_cast<uint64_t>(std::popcount(first)));
    if (first == all) return program.Agree(rule.action, rule.target, frames, n, verdicts);
    Decide(asked, rule.action, verdicts->action);
    left ^= first;
    note(first, rule.action, rule.target);
  }
  hits[rule_count].Add(static_cast<uint64_t>(std::popcount(left)));
  if (left == all) return program.Agree(program.action_, program.target_, frames, n, verdicts);
  if (left != 0) note(left, program.action_, program.target_);

  const auto abort = [&](uint16_t i) {
    verdicts->action[i] = kAborted;
    seen |= 1u << kAborted;
  };
  ForEachFrame(headless, abort);
  ForEachFrame(sent_back, [&](uint16_t i) {
    if (!SwapAddresses(frames[i])) abort(i);
  });
  return (seen & (seen - 1)) == 0 ? __builtin_ctz(seen) : -1;
}

// What a filter says of a burst that one rule decides.
int Program::Agree(uint8_t action, DeviceIndex target, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts) const {
  if (action == kTx) return RunTransmit(*this, frames, n, verdicts, nullptr);
  if (action == kRedirect) {
    for (uint16_t i = 0; i < n; ++i) verdicts->target[i] = target;
  }
  return action;
}

}  // namespace halfpage
