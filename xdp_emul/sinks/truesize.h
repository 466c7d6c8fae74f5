// Hot path: what a frame in a socket's queue is charged with: the memory that it keeps from others, not its length.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>

#include "xdp_emul/sinks/accounting.h"

namespace halfpage {

namespace truesize {

constexpr uint32_t kLine = 64;
constexpr uint32_t kSkb = 256;         // struct sk_buff, rounded as SKB_TRUESIZE() does
constexpr uint32_t kHeadroom = 256;    // XDP_PACKET_HEADROOM
constexpr uint32_t kSharedInfo = 320;  // skb_shared_info with 17 fragments
constexpr uint32_t kPage = 4096;

constexpr uint32_t ToLine(uint32_t bytes) {
  return (bytes + kLine - 1) & ~(kLine - 1);
}

}  // namespace truesize

// The fragment that the kernel copies `length` bytes of a frame's head into: a page from 1473 bytes on, where two would
// not share one. What a page's last fragment gets of the remainder is left out: it depends on who came before.
constexpr uint32_t KernelFragment(uint32_t length) {
  using namespace truesize;
  const uint32_t wanted = kHeadroom + ToLine(length) + kSharedInfo;
  return 2 * wanted > kPage ? kPage : wanted;
}

// A buffer cut to size (mempool/exact_frag.h): mbuf and room, no header in front.
constexpr uint32_t ExactTruesize(uint32_t length) {
  return truesize::ToLine(static_cast<uint32_t>(sizeof(rte_mbuf)) + length);
}

// `exact`: the pool whose buffers have no header, or null.
inline uint32_t SegmentTruesize(const rte_mbuf* segment, const rte_mempool* exact) {
  const uint32_t header = segment->pool == exact ? 0 : segment->pool->header_size;
  return header + static_cast<uint32_t>(sizeof(rte_mbuf)) + segment->priv_size + segment->buf_len;
}

// The kernel charges the page fragments behind a head with the bytes in them.
inline uint32_t Truesize(const rte_mbuf* frame, Accounting accounting, const rte_mempool* exact) {
  if (accounting == Accounting::kKernel) {
    return truesize::kSkb + KernelFragment(frame->data_len) + (frame->pkt_len - frame->data_len);
  }
  uint32_t bytes = 0;
  for (const rte_mbuf* segment = frame; segment != nullptr; segment = segment->next) {
    bytes += SegmentTruesize(segment, exact);
  }
  return bytes;
}

}  // namespace halfpage
