// Hot path: the headers of a frame as far as verdicts need them, read with bounds checked, over segments where need be.
#pragma once

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include <cstdint>

namespace halfpage {

// What was found. A field that the frame does not have stays 0, its flag off.
struct PacketHeaders {
  uint16_t ethertype = 0;  // behind at most two VLAN tags, host byte order
  uint8_t protocol = 0;    // IPv4 protocol or last IPv6 next header
  bool has_protocol = false;
  bool has_ports = false;  // TCP, UDP or SCTP, and not a later fragment
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
};

// Reads at most `length` (up to 64) bytes at `offset` of a frame: a pointer into the frame where they lie in one
// segment, else into `scratch`, null where the frame is shorter.
inline const uint8_t* FrameBytes(const rte_mbuf* frame, uint32_t offset, uint32_t length, uint8_t* scratch) {
  if (offset + length <= rte_pktmbuf_data_len(frame)) {
    return rte_pktmbuf_mtod_offset(frame, const uint8_t*, offset);
  }
  return static_cast<const uint8_t*>(rte_pktmbuf_read(frame, offset, length, scratch));
}

inline uint16_t Load16(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

// Walks Ethernet, VLAN (802.1Q, 802.1ad), IPv4 with options or IPv6 with extension headers, and the first four bytes of
// TCP, UDP or SCTP. Gives false for a frame without a whole Ethernet header; a frame cut short further on gives what
// there is of it.
bool ParseHeaders(const rte_mbuf* frame, PacketHeaders* headers);

}  // namespace halfpage
