// What segmentation can cut. No DPDK.
#pragma once

#include <cstdint>

namespace halfpage {

// The least payload of a segment, TCP's least MSS (RFC 9293), and how many such segments the longest frame gives.
inline constexpr uint16_t kLeastGsoSegment = 536;
inline constexpr uint16_t kMaxGsoSegments = 65535 / kLeastGsoSegment + 1;

// Ethernet, IPv4 and TCP without options: what every segment has in front of its payload.
inline constexpr uint32_t kGsoHeaderBytes = 14 + 20 + 20;

}  // namespace halfpage
