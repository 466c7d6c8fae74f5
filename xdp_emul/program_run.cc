// Hot path: the built-in programs.
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

// Frames that no rule has decided yet.
constexpr uint64_t kUndecided = UINT64_MAX;

// Notes `number` for those undecided frames that match the rule, and gives how many. Loops over keys without a branch,
// for the compiler to do several at once.
inline uint64_t Decide(const CompiledRule& rule, uint64_t number, const uint64_t* keys, uint64_t* decided, uint16_t n) {
  const uint64_t mask = rule.mask;
  const uint64_t value = rule.value;
  uint64_t count = 0;
  if (rule.key_decides) {
    for (uint16_t i = 0; i < n; ++i) {
      const bool first = (((keys[i] ^ value) & mask) == 0) & (decided[i] == kUndecided);
      decided[i] = first ? number : decided[i];
      count += first;
    }
    return count;
  }
  const uint64_t source = rule.source_first;
  const uint64_t sources = rule.source_last - source;
  const uint64_t destination = rule.destination_first;
  const uint64_t destinations = rule.destination_last - destination;
  for (uint16_t i = 0; i < n; ++i) {
    const bool ranges =
        ((keys[i] >> 48) - source <= sources) & ((keys[i] >> 32 & 0xffff) - destination <= destinations);
    const bool first = (((keys[i] ^ value) & mask) == 0) & (decided[i] == kUndecided) & ranges;
    decided[i] = first ? number : decided[i];
    count += first;
  }
  return count;
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
  const CompiledRule* rules = program.rules_.data();
  const size_t rule_count = program.rules_.size();
  uint64_t keys[kMaxBurst];
  uint64_t decided[kMaxBurst];
  uint16_t headless = 0;  // without a whole Ethernet header
  for (uint16_t i = 0; i < n; ++i) {
    decided[i] = kUndecided;
    if (__builtin_expect(QuickKey(frames[i], &keys[i]), 1)) continue;
    PacketHeaders headers;
    const bool whole = ParseHeaders(frames[i], &headers);
    keys[i] = KeyOf(headers);
    decided[i] = whole ? kUndecided : rule_count + 1;
    headless = static_cast<uint16_t>(headless + !whole);
  }
  uint64_t left = n - headless;
  for (size_t r = 0; r < rule_count && left != 0; ++r) {
    const uint64_t count = Decide(rules[r], r, keys, decided, n);
    hits[r].Add(count);
    left -= count;
    if (count == n) return program.Agree(rules[r].action, rules[r].target, frames, n, verdicts);
  }
  hits[rule_count].Add(left);
  if (left == n) return program.Agree(program.action_, program.target_, frames, n, verdicts);

  rte_mbuf* sent_back[kMaxBurst];
  uint16_t sent_backs = 0;
  uint32_t seen = 0;  // a bit for each verdict
  for (uint16_t i = 0; i < n; ++i) {
    const bool by_rule = decided[i] < rule_count;
    const CompiledRule* rule = by_rule ? &rules[decided[i]] : nullptr;
    uint8_t action = by_rule ? rule->action : program.action_;
    verdicts->target[i] = by_rule ? rule->target : program.target_;
    const bool short_head = rte_pktmbuf_data_len(frames[i]) < sizeof(rte_ether_hdr);
    action = (decided[i] == rule_count + 1) | (short_head & (action == kTx)) ? kAborted : action;
    verdicts->action[i] = action;
    seen |= 1u << action;
    sent_back[sent_backs] = frames[i];
    sent_backs = static_cast<uint16_t>(sent_backs + (action == kTx));
  }
  for (uint16_t i = 0; i < sent_backs; ++i) SwapAddresses(sent_back[i]);
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
