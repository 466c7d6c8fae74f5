// Hot path: a frame as an XDP program sees it: data, data_end and data_meta, moved within what the buffer really has.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

namespace halfpage {

// The view of one frame while a program runs on it, by the worker that owns the frame. The view changes the mbuf at
// once. Metadata lies right in front of the data, and its length lives as long as the view: whoever reads it behind
// PASS, TX or REDIRECT knows the length by agreement with the program.
//
// Rules are those of bpf_xdp_adjust_head, _meta and _tail (net/core/filter.c), but for one: a mbuf's own description
// is not kept in the headroom, so all of it may be used.
class FrameView {
 public:
  static constexpr uint32_t kLeastData = 14;         // Ethernet header: what the first buffer always keeps
  static constexpr uint16_t kLongestMetadata = 252;  // kernel: a multiple of 4 that fits skb_shared_info.meta_len

  // `metadata`: bytes in front of the data that an earlier program of the same run left.
  explicit FrameView(rte_mbuf* frame, uint16_t metadata = 0) : frame_(frame), metadata_(metadata) {}

  // Of the first buffer; a byte is there if data() <= byte < data_end(), or data_meta() <= byte < data().
  uint8_t* data() const { return rte_pktmbuf_mtod(frame_, uint8_t*); }
  uint8_t* data_end() const { return data() + rte_pktmbuf_data_len(frame_); }
  uint8_t* data_meta() const { return data() - metadata_; }
  uint16_t metadata() const { return metadata_; }

  // Of all buffers.
  uint32_t length() const { return rte_pktmbuf_pkt_len(frame_); }
  uint16_t frags() const { return static_cast<uint16_t>(frame_->nb_segs - 1); }

  // By how much the frame can be moved at most: to grow in front and at its end, to shrink at either, and bytes that
  // metadata may have in all.
  uint32_t head_room() const { return frame_->data_off - metadata_; }
  uint32_t tail_room() const { return rte_pktmbuf_tailroom(rte_pktmbuf_lastseg(frame_)); }
  uint32_t head_spare() const { return Above(rte_pktmbuf_data_len(frame_)); }
  uint32_t tail_spare() const { return Above(length()); }
  uint32_t metadata_room() const {
    return frame_->data_off < kLongestMetadata ? frame_->data_off / 4 * 4u : kLongestMetadata;
  }

  // Moves the data's start by `delta` bytes: below 0 the frame grows in front (what is there then is not said), above 0
  // it shrinks. Metadata moves along. False, with nothing changed, past the headroom or if fewer than 14 bytes of the
  // first buffer would be left.
  bool AdjustHead(int32_t delta);

  // Moves the frame's end by `delta` bytes: above 0 the frame grows by zeros in its last buffer, below 0 it shrinks and
  // buffers that become empty are freed. False, with nothing changed, past the tailroom or if fewer than 14 bytes would
  // be left.
  bool AdjustTail(int32_t delta);

  // Moves the metadata's start by `delta` bytes, below 0 for more of it. False, with nothing changed, past the headroom
  // or for a length that is no multiple of 4 or above kLongestMetadata.
  bool AdjustMetadata(int32_t delta);

 private:
  static uint32_t Above(uint32_t length) { return length > kLeastData ? length - kLeastData : 0; }

  rte_mbuf* frame_;
  uint16_t metadata_;
};

}  // namespace halfpage
