// Sizes that bound a frame and its buffer, for checks and plans that run before DPDK does.
#pragma once

#include <cstdint>

namespace halfpage {

inline constexpr uint32_t kMbufHeadroom = 128;  // RTE_PKTMBUF_HEADROOM of Debian's DPDK: what ports leave in front
inline constexpr uint32_t kEthernetHeader = 14;
inline constexpr uint32_t kVlanTag = 4;  // a tagged frame may be longer by so much (the kernel's is_skb_forwardable)
inline constexpr uint32_t kLongestFrame = 65535;  // what the program is made for

}  // namespace halfpage
