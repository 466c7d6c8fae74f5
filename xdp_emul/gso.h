// Hot path: cutting a frame that is marked for segmentation into frames that a device takes.
//
// Such a frame has ol_flags RTE_MBUF_F_TX_TCP_SEG and RTE_MBUF_F_TX_IPV4, its header lengths and tso_segsz set, as for
// a device with TCP segmentation; its own checksums need not be right.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "xdp_emul/gso_limits.h"
#include "xdp_emul/refusal.h"

namespace halfpage {

// Marks `frame`, TCP over IPv4 without options or tags in front, for segments of at most `segment` bytes of payload.
inline void MarkForSegmentation(rte_mbuf* frame, uint16_t segment) {
  frame->ol_flags |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM;
  frame->tx_offload = rte_mbuf_tx_offload(14, 20, 20, segment, 0, 0, 0);
}

// Cuts `frame` by librte_gso: each segment is a buffer with the headers and, behind it, buffers attached to the frame's
// own data, all from `pool`. Their checksums are right. Gives their number; the frame stays the caller's, to be freed.
// 0, with nothing taken: `reason` says why. Hot; any worker.
uint16_t SegmentFrame(rte_mbuf* frame, rte_mempool* pool, rte_mbuf* (&segments)[kMaxGsoSegments], Refusal* reason);

}  // namespace halfpage
