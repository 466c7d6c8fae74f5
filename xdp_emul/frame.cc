// Hot path: moving a frame's ends within its buffers.
#include "xdp_emul/frame.h"

#include <cstring>

namespace halfpage {

bool FrameView::AdjustHead(int32_t delta) {
  const int64_t start = static_cast<int64_t>(frame_->data_off) + delta;
  const int64_t length = static_cast<int64_t>(frame_->data_len) - delta;
  if (start < metadata_ || length < kLeastData || start + length > frame_->buf_len) return false;
  if (metadata_ != 0) std::memmove(data_meta() + delta, data_meta(), metadata_);
  frame_->data_off = static_cast<uint16_t>(start);
  frame_->data_len = static_cast<uint16_t>(length);
  frame_->pkt_len = static_cast<uint32_t>(frame_->pkt_len - delta);
  return true;
}

bool FrameView::AdjustMetadata(int32_t delta) {
  const int64_t length = static_cast<int64_t>(metadata_) - delta;
  if (length < 0 || length > kLongestMetadata || length % 4 != 0 || length > frame_->data_off) return false;
  metadata_ = static_cast<uint16_t>(length);
  return true;
}

bool FrameView::AdjustTail(int32_t delta) {
  if (delta >= 0) {
    rte_mbuf* last = rte_pktmbuf_lastseg(frame_);
    const auto more = static_cast<uint32_t>(delta);
    if (more > rte_pktmbuf_tailroom(last)) return false;
    std::memset(rte_pktmbuf_mtod_offset(last, uint8_t*, last->data_len), 0, more);
    last->data_len = static_cast<uint16_t>(last->data_len + more);
    frame_->pkt_len += more;
    return true;
  }
  const int64_t length = static_cast<int64_t>(frame_->pkt_len) + delta;
  if (length < kLeastData) return false;
  auto left = static_cast<uint32_t>(length);
  rte_mbuf* last = frame_;
  uint16_t segments = 1;
  while (left > last->data_len) {
    left -= last->data_len;
    last = last->next;
    ++segments;
  }
  rte_mbuf* rest = last->next;
  last->data_len = static_cast<uint16_t>(left);
  last->next = nullptr;
  frame_->nb_segs = segments;
  frame_->pkt_len = static_cast<uint32_t>(length);
  if (rest != nullptr) rte_pktmbuf_free(rest);
  return true;
}

}  // namespace halfpage
