// Hot path: frames that do not go as they are: too long, marked for segmentation, or bound for a driver with its own
// mind. What the kernel does in validate_xmit_skb().
#include "xdp_emul/transmit.h"

#include "xdp_emul/free_frames.h"
#include "xdp_emul/gso.h"

namespace halfpage {
namespace {

constexpr uint64_t kSegmentationMark = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG;
constexpr uint64_t kTransmitMarks = RTE_MBUF_F_TX_OFFLOAD_MASK;
constexpr uint32_t kVlanTag = 4;

// Frames on their way, sent together as long as nothing comes between them.
struct Outgoing {
  Transmit& to;
  const uint16_t queue;
  const uint16_t bulk;
  SendResult result = {};
  uint16_t waiting = 0;
  rte_mbuf* frames[kMaxBurst] = {};
};

void Refuse(Outgoing& out, rte_mbuf* frame, Refusal reason) {
  rte_pktmbuf_free(frame);
  ++out.result.refused[static_cast<int>(reason)];
  out.to.refused[static_cast<int>(reason)].Add(1);
}

// Gives how many the device took; the others are freed.
uint16_t Transfer(const Outgoing& out, rte_mbuf** frames, uint16_t n) {
  uint16_t sent = 0;
  for (uint16_t begin = 0; begin < n; begin += out.bulk) {
    const uint16_t want = n - begin < out.bulk ? n - begin : out.bulk;
    const uint16_t taken = rte_eth_tx_burst(out.to.port, out.queue, frames + begin, want);
    sent += taken;
    if (taken != want) FreeFrames(frames + begin + taken, want - taken);
  }
  out.to.sent.Add(sent);
  return sent;
}

void Flush(Outgoing& out) {
  const uint16_t n = out.waiting;
  out.waiting = 0;
  if (n == 0) return;
  const uint16_t sent = Transfer(out, out.frames, n);
  out.result.sent += sent;
  out.result.refused[static_cast<int>(Refusal::kRingFull)] += n - sent;
  out.to.refused[static_cast<int>(Refusal::kRingFull)].Add(n - sent);
}

// A copy in one buffer in place of the frame. Null, with the frame as it was, where there is no buffer or none that is
// large enough: `reason` says which.
rte_mbuf* Gather(Transmit& to, rte_mbuf* frame, Refusal* reason) {
  rte_mbuf* copy = to.spare == nullptr ? nullptr : rte_pktmbuf_copy(frame, to.spare, 0, UINT32_MAX);
  if (copy == nullptr || copy->nb_segs != 1) {
    *reason = copy == nullptr ? Refusal::kNoBuffer : Refusal::kFragsUnsupported;
    rte_pktmbuf_free(copy);
    return nullptr;
  }
  rte_pktmbuf_free(frame);
  to.gathered.Add(1);
  return copy;
}

// Gathers segments for a driver that sends no chains, keeping order. Gives how many there are now; others are freed.
uint16_t GatherSegments(Transmit& to, rte_mbuf** segments, uint16_t n) {
  uint16_t kept = 0;
  for (uint16_t i = 0; i < n; ++i) {
    Refusal reason;
    rte_mbuf* copy = Gather(to, segments[i], &reason);
    if (copy == nullptr) {
      rte_pktmbuf_free(segments[i]);
    } else {
      segments[kept++] = copy;
    }
  }
  return kept;
}

void SendSegments(Outgoing& out, rte_mbuf* frame) {
  Flush(out);  // keeps the order
  rte_mbuf* segments[kMaxGsoSegments];
  Refusal reason = Refusal::kGsoUnsupported;
  const uint16_t made = SegmentFrame(frame, out.to.spare, segments, &reason);
  if (made == 0) {
    Refuse(out, frame, reason);
    return;
  }
  rte_pktmbuf_free(frame);  // the segments hold its data
  const uint16_t n = out.to.sends_chains ? made : GatherSegments(out.to, segments, made);
  const uint16_t sent = Transfer(out, segments, n);
  if (sent == 0) {
    reason = n == 0 ? Refusal::kNoBuffer : Refusal::kRingFull;
    ++out.result.refused[static_cast<int>(reason)];
    out.to.refused[static_cast<int>(reason)].Add(1);
    return;
  }
  ++out.result.sent;
  out.to.segmented.Add(1);
  out.to.segments.Add(sent);
  out.to.segments_lost.Add(made - sent);
}

bool HasVlanTag(const rte_mbuf* frame) {
  if (frame->data_len < RTE_ETHER_HDR_LEN) return false;
  const rte_be16_t type = rte_pktmbuf_mtod(frame, const rte_ether_hdr*)->ether_type;
  return type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type == RTE_BE16(RTE_ETHER_TYPE_QINQ);
}

void SendOne(Outgoing& out, rte_mbuf* frame) {
  const Transmit& to = out.to;
  const bool marked = (frame->ol_flags & kSegmentationMark) != 0;
  uint32_t limit = to.frame_limit;
  if (to.real) limit = HasVlanTag(frame) ? to.real_limit : to.real_limit - kVlanTag;
  if (frame->pkt_len > limit && !(marked && to.takes_gso)) {
    if (marked) {
      SendSegments(out, frame);
    } else {
      Refuse(out, frame, Refusal::kMtu);
    }
    return;
  }
  if (to.real) {
    frame->ol_flags &= ~kTransmitMarks;  // nothing is left for a device to do; a driver would take them for orders
    if (frame->nb_segs != 1 && !to.sends_chains) {
      Refusal reason;
      rte_mbuf* copy = Gather(out.to, frame, &reason);
      if (copy == nullptr) {
        Refuse(out, frame, reason);
        return;
      }
      frame = copy;
    }
  }
  out.frames[out.waiting++] = frame;
}

}  // namespace

SendResult RefuseAll(Transmit& to, rte_mbuf** frames, uint16_t n, int reason) {
  SendResult result;
  result.refused[reason] = n;
  to.refused[reason].Add(n);
  FreeFrames(frames, n);
  return result;
}

SendResult SendFitted(Transmit& to, uint16_t queue, rte_mbuf** frames, uint16_t n, uint16_t bulk) {
  if (to.closed != Transmit::kOpen) return RefuseAll(to, frames, n, to.closed);
  Outgoing out{to, static_cast<uint16_t>(queue + to.first_queue), bulk};
  for (uint16_t i = 0; i < n; ++i) SendOne(out, frames[i]);
  Flush(out);
  return out.result;
}

}  // namespace halfpage
