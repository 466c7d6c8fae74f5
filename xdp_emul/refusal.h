// Why a frame was not delivered: one counter per reason, one table for the names.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace halfpage {

enum class Refusal : uint8_t {
  kRingFull,          // the peer's receive ring had no slot
  kMtu,               // longer than the peer's MTU + 14 + 4 (kernel: is_skb_forwardable, veth_xdp_xmit)
  kFragsUnsupported,  // a chained frame where single buffers only are taken: by a program, by a driver
  kNoBuffer,          // its segments, or its copy, found no buffer in the pool
  kGsoUnsupported,    // marked for segmentation, and not TCP over IPv4
  kPeerNoXdp,         // XDP_TX or redirect to a peer with neither program nor GRO (kernel: ENXIO, for the whole bulk)
  kPeerDown,          // one of the pair's ends is down
  kAdjustHead,        // a program wanted more room in front of a frame, or less frame, than there is
  kAdjustTail,        // the same at its end
  kBadTarget,         // redirected to a device that is not there
  kProgramFault,      // a program did what it may not do
  kDevmapDrop,        // the program behind a devmap's entry said drop
  kDevmapAborted,     // it said what is neither pass nor drop (kernel: xdp_exception)
};
inline constexpr int kRefusals = 13;

// "ring_full", "mtu", "frags_unsupported", ...
absl::string_view RefusalName(Refusal refusal);

}  // namespace halfpage
