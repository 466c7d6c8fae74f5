// Hot path: the headers of a frame as far as verdicts need them, read with bounds checked, over segments where need be.
#pragma once

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <string.h>

#include <bit>
#include <cstdint>

namespace halfpage {

inline constexpr uint16_t kNoVlan = UINT16_MAX;

// What was found. A field that the frame does not have stays 0, its flag off.
struct PacketHeaders {
  uint16_t ethertype = 0;  // behind at most two VLAN tags, host byte order
  uint8_t protocol = 0;    // IPv4 protocol or last IPv6 next header
  bool has_protocol = false;
  bool has_ports = false;  // TCP, UDP or SCTP, and not a later fragment
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint16_t vlan = kNoVlan;  // id of the outermost tag
  uint8_t ip_version = 0;   // 4 or 6 where the whole fixed header is there
  // The transport header and all behind it are in this packet (no fragment), for the address in the IP header.
  bool whole = false;
  uint32_t network_offset = 0;    // of the header behind EtherType and tags
  uint32_t transport_offset = 0;  // of the header that `protocol` names; 0: none, or a later fragment
};

// Reads at most `length` (up to 64) bytes at `offset` of a frame: a pointer into the frame where they lie in one
// segment, else into `scratch`, null where the frame is shorter.
inline const uint8_t* FrameBytes(const rte_mbuf* frame, uint32_t offset, uint32_t length, uint8_t* scratch) {
  if (offset + length <= rte_pktmbuf_data_len(frame)) {
    return rte_pktmbuf_mtod_offset(frame, const uint8_t*, offset);
  }
  return static_cast<const uint8_t*>(rte_pktmbuf_read(frame, offset, length, scratch));
}

// Swaps source and destination MAC address. False, with nothing changed, where the first buffer has no whole Ethernet
// header. Of its 14 bytes the addresses are the first 12: two overlapping words, each with its half where it goes.
inline bool SwapAddresses(rte_mbuf* frame) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kAddress = (uint64_t{1} << 48) - 1;
  if (rte_pktmbuf_data_len(frame) < RTE_ETHER_HDR_LEN) return false;
  auto* const bytes = rte_pktmbuf_mtod(frame, uint8_t*);
  uint64_t front;  // destination, two bytes of source
  uint64_t back;   // source, EtherType
  memcpy(&front, bytes, 8);
  memcpy(&back, bytes + 6, 8);
  const uint64_t new_front = (back & kAddress) | front << 48;
  const uint64_t new_back = (back & ~kAddress) | (front & kAddress);
  memcpy(bytes, &new_front, 8);
  memcpy(bytes + 6, &new_back, 8);
  return true;
}

inline uint16_t Load16(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

// The Internet checksum's sum (RFC 1071) of `length` bytes from `offset` on, folded, not inverted, as it stands in
// memory; of what there is where the frame is shorter. Not rte_raw_cksum_mbuf(): where a buffer ends at an odd byte,
// that swaps the next one's sum before its carries are folded in, and loses them.
uint16_t SumBytes(const rte_mbuf* frame, uint32_t offset, uint32_t length);

// Walks Ethernet, VLAN (802.1Q, 802.1ad), IPv4 with options or IPv6 with extension headers, and the first four bytes of
// TCP, UDP or SCTP. Gives false for a frame without a whole Ethernet header; a frame cut short further on gives what
// there is of it.
bool ParseHeaders(const rte_mbuf* frame, PacketHeaders* headers);

// What rules mostly ask for, in one word: EtherType (bits 0 to 15), protocol (16), whether there are protocol (24) and
// ports (25), destination port (32), source port (48).
inline constexpr uint64_t kKeyHasProtocol = uint64_t{1} << 24;
inline constexpr uint64_t kKeyHasPorts = uint64_t{1} << 25;

inline uint64_t KeyOf(const PacketHeaders& headers) {
  return headers.ethertype | uint64_t{headers.protocol} << 16 | (headers.has_protocol ? kKeyHasProtocol : 0) |
         (headers.has_ports ? kKeyHasPorts : 0) | uint64_t{headers.destination_port} << 32 |
         uint64_t{headers.source_port} << 48;
}

// The key of a TCP or UDP packet over IPv4 without tag, options or fragment offset, read in place. False for all other
// frames: those take ParseHeaders().
inline bool QuickKey(const rte_mbuf* frame, uint64_t* key) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint32_t kPorts = 34;
  if (rte_pktmbuf_data_len(frame) < kPorts + 4) return false;
  const uint8_t* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
  uint32_t type;      // EtherType, version and header length
  uint32_t fragment;  // flags and offset, TTL, protocol
  uint32_t ports;
  memcpy(&type, bytes + 12, 4);
  memcpy(&fragment, bytes + 20, 4);
  memcpy(&ports, bytes + kPorts, 4);
  const uint32_t protocol = fragment >> 24;
  if ((((type ^ 0x450008) & 0xffffff) | (fragment & 0xff1f)) != 0 || ((protocol != 17) & (protocol != 6))) return false;
  *key = uint64_t{rte_be_to_cpu_32(ports)} << 32 | kKeyHasPorts | kKeyHasProtocol | uint64_t{protocol} << 16 | 0x0800u;
  return true;
}

}  // namespace halfpage
