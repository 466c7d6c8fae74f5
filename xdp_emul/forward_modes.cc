// Hot path: programs that do to a frame what dpdk-testpmd's forwarding modes do. Frames may be cut short or in pieces:
// what is not there is left alone, and only a frame without an Ethernet header is aborted.
#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <string.h>

#include <algorithm>

#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

constexpr auto kAborted = static_cast<uint8_t>(XdpAction::kAborted);
constexpr auto kDrop = static_cast<uint8_t>(XdpAction::kDrop);
constexpr uint8_t kIcmp = 1;
constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;
constexpr uint32_t kLongestHeader = 60;

// Calls `change` with `length` (up to 64) bytes at `offset`: in place where they lie in one segment, else with a copy
// that is written back. False, with nothing done, where the frame is shorter.
template <typename Change>
bool Edit(rte_mbuf* frame, uint32_t offset, uint32_t length, Change change) {
  uint8_t scratch[64];
  const uint8_t* bytes = FrameBytes(frame, offset, length, scratch);
  if (bytes == nullptr) return false;
  change(const_cast<uint8_t*>(bytes));
  if (__builtin_expect(bytes != scratch, 1)) return true;
  rte_mbuf* segment = frame;
  for (; offset >= segment->data_len; segment = segment->next) offset -= segment->data_len;
  for (uint32_t done = 0; done < length; segment = segment->next, offset = 0) {
    const uint32_t here = std::min<uint32_t>(length - done, segment->data_len - offset);
    memcpy(rte_pktmbuf_mtod_offset(segment, uint8_t*, offset), scratch + done, here);
    done += here;
  }
  return true;
}

template <uint32_t kLength>
void SwapHalves(uint8_t* bytes) {
  uint8_t first[kLength];
  memcpy(first, bytes, kLength);
  memcpy(bytes, bytes + kLength, kLength);
  memcpy(bytes + kLength, first, kLength);
}

void Store16(uint8_t* bytes, uint16_t value) {
  memcpy(bytes, &value, sizeof(value));
}

bool SetAddresses(rte_mbuf* frame, const uint8_t* addresses) {
  if (rte_pktmbuf_data_len(frame) < RTE_ETHER_HDR_LEN) return false;
  memcpy(rte_pktmbuf_mtod(frame, uint8_t*), addresses, 2 * RTE_ETHER_ADDR_LEN);
  return true;
}

void WriteIpv4Checksum(rte_mbuf* frame, const PacketHeaders& headers) {
  constexpr uint32_t kField = 10;
  uint8_t scratch[1];
  const uint8_t* first = FrameBytes(frame, headers.network_offset, 1, scratch);
  const uint32_t length = std::min((*first & 15u) * 4, kLongestHeader);
  Edit(frame, headers.network_offset, length, [length](uint8_t* ip) {
    Store16(ip + kField, 0);
    Store16(ip + kField, static_cast<uint16_t>(~rte_raw_cksum(ip, length)));
  });
}

// The sum of what is no part of the transport header: addresses, protocol, length.
uint32_t PseudoSum(const rte_mbuf* frame, const PacketHeaders& headers, uint32_t length) {
  const bool ipv6 = headers.ip_version == 6;
  uint8_t scratch[32];
  const uint32_t bytes = ipv6 ? 32 : 8;
  const uint8_t* addresses = FrameBytes(frame, headers.network_offset + (ipv6 ? 8 : 12), bytes, scratch);
  return uint32_t{rte_raw_cksum(addresses, bytes)} + rte_cpu_to_be_16(headers.protocol) +
         rte_cpu_to_be_16(static_cast<uint16_t>(length));
}

// Bytes of the transport header and what follows it, as the IP header says.
uint32_t TransportLength(const rte_mbuf* frame, const PacketHeaders& headers) {
  const bool ipv6 = headers.ip_version == 6;
  uint8_t scratch[2];
  const uint8_t* field = FrameBytes(frame, headers.network_offset + (ipv6 ? 4 : 2), 2, scratch);
  const uint32_t end = headers.network_offset + Load16(field) + (ipv6 ? sizeof(rte_ipv6_hdr) : 0);
  return end > headers.transport_offset ? end - headers.transport_offset : 0;
}

// A datagram whose checksum says 0 has none. A length of its own that ends before the packet does is what counts.
void WriteTransportChecksum(rte_mbuf* frame, const PacketHeaders& headers) {
  const bool udp = headers.protocol == kUdp;
  if (!headers.whole || (!udp && headers.protocol != kTcp)) return;
  // Segments that are still to be cut get theirs when they are.
  if ((frame->ol_flags & (RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG)) != 0) return;
  const uint32_t at = headers.transport_offset;
  const uint32_t header = udp ? 8 : 20;
  const uint32_t field = at + (udp ? 6 : 16);
  uint32_t length = TransportLength(frame, headers);
  uint8_t scratch[4];
  if (udp) {
    const uint8_t* datagram = FrameBytes(frame, at + 4, 4, scratch);  // length, checksum
    if (datagram == nullptr || Load16(datagram) > length || Load16(datagram + 2) == 0) return;
    length = Load16(datagram);
  }
  if (length < header || at + length > rte_pktmbuf_pkt_len(frame)) return;
  Edit(frame, field, 2, [](uint8_t* checksum) { Store16(checksum, 0); });
  uint32_t sum = PseudoSum(frame, headers, length) + SumBytes(frame, at, length);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  const auto checksum = static_cast<uint16_t>(~sum);
  Edit(frame, field, 2, [checksum](uint8_t* bytes) { Store16(bytes, checksum == 0 ? uint16_t{0xffff} : checksum); });
}

bool WriteChecksums(rte_mbuf* frame, const uint8_t* addresses) {
  if (!SetAddresses(frame, addresses)) return false;
  PacketHeaders headers;
  ParseHeaders(frame, &headers);
  if (headers.ip_version == 4) WriteIpv4Checksum(frame, headers);
  if (headers.transport_offset != 0) WriteTransportChecksum(frame, headers);
  return true;
}

// Addresses that change places leave all sums as they are.
bool SwapFiveTuple(rte_mbuf* frame) {
  if (!SwapAddresses(frame)) return false;
  PacketHeaders headers;
  ParseHeaders(frame, &headers);
  if (headers.ip_version == 4) Edit(frame, headers.network_offset + 12, 8, SwapHalves<4>);
  if (headers.ip_version == 6) Edit(frame, headers.network_offset + 8, 32, SwapHalves<16>);
  if (headers.has_ports && (headers.protocol == kTcp || headers.protocol == kUdp)) {
    Edit(frame, headers.transport_offset, 4, SwapHalves<2>);
  }
  return true;
}

// A request about an IPv4 address becomes our reply, whoever was asked for. False: it is none.
bool AnswerArp(rte_mbuf* frame, const PacketHeaders& headers, const uint8_t* own) {
  constexpr uint8_t kRequest[] = {0, 1, 8, 0, 6, 4, 0, 1};  // Ethernet, IPv4, their lengths, request
  constexpr uint32_t kSender = 8;  // hardware and protocol address, 10 bytes, then the target's
  bool request = false;
  Edit(frame, headers.network_offset, sizeof(rte_arp_hdr), [&](uint8_t* arp) {
    request = memcmp(arp, kRequest, sizeof(kRequest)) == 0;
    if (!request) return;
    arp[7] = 2;
    SwapHalves<10>(arp + kSender);
    memcpy(arp + kSender, own, RTE_ETHER_ADDR_LEN);
  });
  return request;
}

void AnswerFrom(uint8_t* ip) {
  SwapHalves<4>(ip + 12);
  if ((ip[12] & 0xf0) != 0xe0) return;
  // Nobody answers as a group: another host of the asker's four does, as testpmd has it (which knows 224.0.0.0/8 only).
  memcpy(ip + 12, ip + 16, 4);
  ip[15] = static_cast<uint8_t>((ip[15] & ~3) | ((ip[15] & 3) == 1 ? 2 : 1));
}

// False: no whole echo request.
bool AnswerEcho(rte_mbuf* frame, const PacketHeaders& headers) {
  if (headers.ip_version != 4 || headers.protocol != kIcmp || !headers.whole) return false;
  bool request = false;
  Edit(frame, headers.transport_offset, 8, [&](uint8_t* icmp) {
    request = icmp[0] == 8 && icmp[1] == 0;
    if (!request) return;
    icmp[0] = 0;
    // One word of the sum is 0 now and was 0x0800 (RFC 1624, equation 3).
    const uint32_t sum = (~Load16(icmp + 2) & 0xffffu) + 0xf7ffu;
    Store16(icmp + 2, rte_cpu_to_be_16(static_cast<uint16_t>(~((sum & 0xffff) + (sum >> 16)))));
  });
  if (!request) return false;
  bool to_group = false;
  Edit(frame, headers.network_offset, sizeof(rte_ipv4_hdr), [&](uint8_t* ip) {
    to_group = (ip[16] & 0xf0) == 0xe0;
    AnswerFrom(ip);
  });
  if (to_group) WriteIpv4Checksum(frame, headers);
  return true;
}

// What becomes of the frame: `verdict` where it was answered.
uint8_t Answer(rte_mbuf* frame, const uint8_t* addresses, uint8_t verdict) {
  const uint8_t* const own = addresses + RTE_ETHER_ADDR_LEN;
  PacketHeaders headers;
  if (rte_pktmbuf_data_len(frame) < RTE_ETHER_HDR_LEN || !ParseHeaders(frame, &headers)) return kAborted;
  const bool arp = headers.ethertype == RTE_ETHER_TYPE_ARP;
  if (!(arp ? AnswerArp(frame, headers, own) : AnswerEcho(frame, headers))) return kDrop;
  SwapAddresses(frame);
  if (arp) memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t*, RTE_ETHER_ADDR_LEN), own, RTE_ETHER_ADDR_LEN);
  return verdict;
}

uint8_t Forward(ForwardMode mode, rte_mbuf* frame, const uint8_t* addresses, uint8_t verdict) {
  bool whole = false;
  switch (mode) {
    case ForwardMode::kMac:
      whole = SetAddresses(frame, addresses);
      break;
    case ForwardMode::kMacswap:
      whole = SwapAddresses(frame);
      break;
    case ForwardMode::kCsum:
      whole = WriteChecksums(frame, addresses);
      break;
    case ForwardMode::kFiveTupleSwap:
      whole = SwapFiveTuple(frame);
      break;
    case ForwardMode::kIcmpecho:
      return Answer(frame, addresses, verdict);
  }
  return whole ? verdict : kAborted;
}

}  // namespace

int Program::RunForward(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*) {
  const uint8_t* const addresses = verdicts->from->leaving;
  for (uint16_t i = 0; i < n; ++i) {
    verdicts->action[i] = Forward(program.config_.mode, frames[i], addresses, program.action_);
    verdicts->target[i] = program.target_;
  }
  return verdicts->Alike(n);
}

}  // namespace halfpage
