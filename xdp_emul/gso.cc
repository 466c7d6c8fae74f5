// Hot path: segments by librte_gso, and the checksums that it leaves to a device.
#include "xdp_emul/gso.h"

#include <rte_ethdev.h>
#include <rte_gso.h>
#include <rte_ip.h>
#include <rte_mempool.h>
#include <rte_tcp.h>

#include <cerrno>

#include "xdp_emul/packet_headers.h"

namespace halfpage {
namespace {

constexpr uint64_t kTcpOverIpv4 = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_IPV4;

// The headers are in the first buffer, a copy that nobody else holds.
void WriteChecksums(rte_mbuf* segment, uint16_t l2, uint16_t l3) {
  auto* ip = rte_pktmbuf_mtod_offset(segment, rte_ipv4_hdr*, l2);
  ip->hdr_checksum = 0;
  ip->hdr_checksum = rte_ipv4_cksum(ip);
  const auto transport = static_cast<uint32_t>(l2 + l3);
  auto* tcp = rte_pktmbuf_mtod_offset(segment, rte_tcp_hdr*, transport);
  tcp->cksum = 0;
  const uint32_t both =
      uint32_t{SumBytes(segment, transport, segment->pkt_len - transport)} + rte_ipv4_phdr_cksum(ip, 0);
  tcp->cksum = static_cast<uint16_t>(~((both & 0xffff) + (both >> 16)));
}

}  // namespace

uint16_t SegmentFrame(rte_mbuf* frame, rte_mempool* pool, rte_mbuf* (&segments)[kMaxGsoSegments], Refusal* reason) {
  *reason = Refusal::kGsoUnsupported;
  const uint32_t headers = static_cast<uint32_t>(frame->l2_len + frame->l3_len + frame->l4_len);
  // Headers in one piece, and in a buffer of their own afterwards.
  if ((frame->ol_flags & kTcpOverIpv4) != kTcpOverIpv4 || frame->tso_segsz < kLeastGsoSegment || headers < 54 ||
      headers > frame->data_len || frame->pkt_len > UINT16_MAX) {
    return 0;
  }
  if (pool == nullptr || headers + RTE_PKTMBUF_HEADROOM > rte_pktmbuf_data_room_size(pool)) {
    *reason = Refusal::kNoBuffer;
    return 0;
  }
  rte_gso_ctx context = {};
  context.direct_pool = pool;
  context.indirect_pool = pool;
  context.gso_types = RTE_ETH_TX_OFFLOAD_TCP_TSO;
  context.gso_size = static_cast<uint16_t>(headers + frame->tso_segsz);
  const uint16_t l2 = frame->l2_len;
  const uint16_t l3 = frame->l3_len;
  const int n = rte_gso_segment(frame, &context, segments, kMaxGsoSegments);
  if (n <= 0) {
    if (n == -ENOMEM) *reason = Refusal::kNoBuffer;
    return 0;
  }
  for (int i = 0; i < n; ++i) {
    segments[i]->ol_flags &= ~RTE_MBUF_F_TX_OFFLOAD_MASK;
    WriteChecksums(segments[i], l2, l3);
  }
  return static_cast<uint16_t>(n);
}

}  // namespace halfpage
