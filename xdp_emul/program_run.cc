// Hot path: the built-in programs.
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

bool Matches(const CompiledRule& rule, const PacketHeaders& headers) {
  if (rule.match_ethertype && rule.ethertype != headers.ethertype) return false;
  if (rule.match_protocol && (!headers.has_protocol || rule.protocol != headers.protocol)) return false;
  return !rule.match_ports ||
         (headers.has_ports && headers.source_port >= rule.source_first && headers.source_port <= rule.source_last &&
          headers.destination_port >= rule.destination_first && headers.destination_port <= rule.destination_last);
}

// A program that cannot read the header it needs aborts, as the kernel's bounds checks make programs do.
constexpr auto kAborted = static_cast<uint8_t>(XdpAction::kAborted);
constexpr auto kTx = static_cast<uint8_t>(XdpAction::kTx);
constexpr auto kRedirect = static_cast<uint8_t>(XdpAction::kRedirect);

void SwapAddresses(rte_mbuf* frame) {
  auto* ethernet = rte_pktmbuf_mtod(frame, rte_ether_hdr*);
  const rte_ether_addr source = ethernet->src_addr;
  ethernet->src_addr = ethernet->dst_addr;
  ethernet->dst_addr = source;
}

}  // namespace

int Program::RunConstant(const Program& program, rte_mbuf* const*, uint16_t, Verdicts*, Counter*) {
  return program.action_;
}

int Program::RunRedirect(const Program& program, rte_mbuf* const*, uint16_t n, Verdicts* verdicts, Counter*) {
  for (uint16_t i = 0; i < n; ++i) verdicts->target[i] = program.target_;
  return kRedirect;
}

int Program::RunTransmit(const Program&, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*) {
  uint16_t runts = 0;
  for (uint16_t i = 0; i < n; ++i) {
    const bool runt = rte_pktmbuf_data_len(frames[i]) < sizeof(rte_ether_hdr);
    if (!runt) SwapAddresses(frames[i]);
    verdicts->action[i] = runt ? kAborted : kTx;
    verdicts->target[i] = kNoDevice;
    runts += runt;
  }
  return runts == 0 ? kTx : -1;
}

int Program::RunFilter(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter* hits) {
  const CompiledRule* rules = program.rules_.data();
  const size_t rule_count = program.rules_.size();
  for (uint16_t i = 0; i < n; ++i) {
    PacketHeaders headers;
    if (!ParseHeaders(frames[i], &headers)) {
      verdicts->action[i] = kAborted;
      verdicts->target[i] = kNoDevice;
      continue;
    }
    size_t rule = 0;
    while (rule < rule_count && !Matches(rules[rule], headers)) ++rule;
    hits[rule].Add(1);
    uint8_t action = rule < rule_count ? rules[rule].action : program.action_;
    verdicts->target[i] = rule < rule_count ? rules[rule].target : program.target_;
    if (action == kTx) {
      if (rte_pktmbuf_data_len(frames[i]) >= sizeof(rte_ether_hdr)) {
        SwapAddresses(frames[i]);
      } else {
        action = kAborted;
      }
    }
    verdicts->action[i] = action;
  }
  uint8_t different = 0;
  for (uint16_t i = 1; i < n; ++i) different |= verdicts->action[i] ^ verdicts->action[0];
  return different == 0 ? verdicts->action[0] : -1;
}

}  // namespace halfpage
