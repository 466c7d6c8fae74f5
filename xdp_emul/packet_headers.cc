// Hot path: the walk over a frame's headers.
#include "xdp_emul/packet_headers.h"

#include <rte_ip.h>

#include <algorithm>

namespace halfpage {
namespace {

constexpr uint32_t kEthernetHeader = 14;
constexpr uint32_t kVlanTag = 4;
constexpr uint16_t kVlan = 0x8100;
constexpr uint16_t kServiceVlan = 0x88a8;
constexpr uint16_t kIpv4 = 0x0800;
constexpr uint16_t kIpv6 = 0x86dd;
constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;
constexpr uint8_t kSctp = 132;
// IPv6 extension headers that are walked over (RFC 8200), and how many of them at most.
constexpr uint8_t kHopByHop = 0;
constexpr uint8_t kRouting = 43;
constexpr uint8_t kFragment = 44;
constexpr uint8_t kDestination = 60;
constexpr int kMaxExtensions = 8;

void ParsePorts(const rte_mbuf* frame, uint32_t offset, PacketHeaders* headers) {
  headers->transport_offset = offset;
  if (headers->protocol != kTcp && headers->protocol != kUdp && headers->protocol != kSctp) return;
  uint8_t scratch[4];
  const uint8_t* ports = FrameBytes(frame, offset, 4, scratch);
  if (ports == nullptr) return;
  headers->source_port = Load16(ports);
  headers->destination_port = Load16(ports + 2);
  headers->has_ports = true;
}

void ParseIpv4(const rte_mbuf* frame, uint32_t offset, PacketHeaders* headers) {
  uint8_t scratch[20];
  const uint8_t* ip = FrameBytes(frame, offset, 20, scratch);
  if (ip == nullptr || (ip[0] >> 4) != 4 || (ip[0] & 15) < 5) return;
  headers->ip_version = 4;
  headers->protocol = ip[9];
  headers->has_protocol = true;
  const uint16_t fragment = Load16(ip + 6) & 0x3fff;  // more of them, offset
  if ((fragment & 0x1fff) != 0) return;
  headers->whole = fragment == 0;
  ParsePorts(frame, offset + (ip[0] & 15u) * 4, headers);
}

void ParseIpv6(const rte_mbuf* frame, uint32_t offset, PacketHeaders* headers) {
  uint8_t scratch[40];
  const uint8_t* ip = FrameBytes(frame, offset, 40, scratch);
  if (ip == nullptr || (ip[0] >> 4) != 6) return;
  headers->ip_version = 6;
  bool whole = true;
  uint8_t next = ip[6];
  offset += 40;
  for (int i = 0; i < kMaxExtensions; ++i) {
    const bool fragment = next == kFragment;
    if (!fragment && next != kHopByHop && next != kRouting && next != kDestination) break;
    const uint8_t* extension = FrameBytes(frame, offset, 8, scratch);
    if (extension == nullptr) return;
    // Segments left: the checksum is about another address. Offset and "more": a part of a packet.
    if (next == kRouting && extension[3] != 0) whole = false;
    if (fragment && (Load16(extension + 2) & 0xfff9) != 0) whole = false;
    next = extension[0];
    offset += fragment ? 8 : (extension[1] + 1u) * 8;
    if (fragment && (Load16(extension + 2) & 0xfff8) != 0) {
      headers->protocol = next;
      headers->has_protocol = true;
      return;
    }
  }
  headers->protocol = next;
  headers->has_protocol = true;
  headers->whole = whole;
  ParsePorts(frame, offset, headers);
}

}  // namespace

bool ParseHeaders(const rte_mbuf* frame, PacketHeaders* headers) {
  uint8_t scratch[kEthernetHeader];
  const uint8_t* ethernet = FrameBytes(frame, 0, kEthernetHeader, scratch);
  if (ethernet == nullptr) return false;
  uint16_t ethertype = Load16(ethernet + 12);
  uint32_t offset = kEthernetHeader;
  for (int tags = 0; tags < 2 && (ethertype == kVlan || ethertype == kServiceVlan); ++tags) {
    const uint8_t* tag = FrameBytes(frame, offset, kVlanTag, scratch);
    if (tag == nullptr) break;
    if (tags == 0) headers->vlan = Load16(tag) & 0xfff;
    ethertype = Load16(tag + 2);
    offset += kVlanTag;
  }
  headers->ethertype = ethertype;
  headers->network_offset = offset;
  if (ethertype == kIpv4) {
    ParseIpv4(frame, offset, headers);
  } else if (ethertype == kIpv6) {
    ParseIpv6(frame, offset, headers);
  }
  return true;
}

uint16_t SumBytes(const rte_mbuf* frame, uint32_t offset, uint32_t length) {
  uint32_t sum = 0;
  for (uint32_t done = 0; done < length && frame != nullptr; frame = frame->next) {
    if (offset >= frame->data_len) {
      offset -= frame->data_len;
      continue;
    }
    const uint32_t here = std::min(length - done, frame->data_len - offset);
    const uint16_t part = rte_raw_cksum(rte_pktmbuf_mtod_offset(frame, const uint8_t*, offset), here);
    sum += done % 2 == 0 ? part : rte_bswap16(part);
    done += here;
    offset = 0;
  }
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>((sum & 0xffff) + (sum >> 16));
}

}  // namespace halfpage
