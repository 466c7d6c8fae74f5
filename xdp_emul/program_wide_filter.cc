// Hot path: filters with rules on VLAN ids or addresses, which the key of packet_headers.h has no room for.
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

constexpr auto kAborted = static_cast<uint8_t>(XdpAction::kAborted);
constexpr auto kTx = static_cast<uint8_t>(XdpAction::kTx);

bool Matches(const CompiledPrefix& prefix, const rte_mbuf* frame, const PacketHeaders& headers, uint32_t in_ipv4,
             uint32_t in_ipv6) {
  if (prefix.ip_version == 0) return true;
  if (prefix.ip_version != headers.ip_version) return false;
  const bool ipv6 = headers.ip_version == 6;
  const uint32_t length = ipv6 ? 16 : 4;
  uint8_t scratch[16];
  const uint8_t* address = FrameBytes(frame, headers.network_offset + (ipv6 ? in_ipv6 : in_ipv4), length, scratch);
  if (address == nullptr) return false;
  uint8_t different = 0;
  for (uint32_t i = 0; i < length; ++i) {
    different = static_cast<uint8_t>(different | ((address[i] & prefix.mask[i]) ^ prefix.value[i]));
  }
  return different == 0;
}

// Where IPv4 and IPv6 headers have the two addresses.
bool Matches(const CompiledAddresses& addresses, const rte_mbuf* frame, const PacketHeaders& headers) {
  return Matches(addresses.source, frame, headers, 12, 8) && Matches(addresses.destination, frame, headers, 16, 24);
}

bool Matches(const CompiledRule& rule, const PacketHeaders& headers) {
  if (rule.match_ethertype && rule.ethertype != headers.ethertype) return false;
  if (rule.match_protocol && (!headers.has_protocol || rule.protocol != headers.protocol)) return false;
  if (rule.match_vlan && rule.vlan != headers.vlan) return false;
  return !rule.match_ports ||
         (headers.has_ports && headers.source_port >= rule.source_first && headers.source_port <= rule.source_last &&
          headers.destination_port >= rule.destination_first && headers.destination_port <= rule.destination_last);
}

}  // namespace

int Program::RunWideFilter(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts,
                           Counter* hits) {
  const size_t rule_count = program.rules_.size();
  uint32_t seen = 0;  // a bit for each verdict
  for (uint16_t i = 0; i < n; ++i) {
    PacketHeaders headers;
    uint8_t action = kAborted;
    verdicts->target[i] = kNoDevice;
    if (ParseHeaders(frames[i], &headers)) {
      size_t rule = 0;
      while (rule < rule_count &&
             !(Matches(program.rules_[rule], headers) &&
               (!program.rules_[rule].match_addresses || Matches(program.addresses_[rule], frames[i], headers)))) {
        ++rule;
      }
      hits[rule].Add(1);
      action = rule < rule_count ? program.rules_[rule].action : program.action_;
      verdicts->target[i] = rule < rule_count ? program.rules_[rule].target : program.target_;
    }
    if (action == kTx) {
      Verdicts one;
      action = RunTransmit(program, frames + i, 1, &one, nullptr) == kTx ? kTx : kAborted;
    }
    verdicts->action[i] = action;
    seen |= 1u << action;
  }
  return (seen & (seen - 1)) == 0 ? __builtin_ctz(seen) : -1;
}

}  // namespace halfpage
