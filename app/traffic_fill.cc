// Hot path: TrafficSource::Fill(), a burst of buffers with the next frames in them.
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstddef>

#include "app/frame_copy.h"
#include "app/traffic_source.h"
#include "mempool/raw_buffers.h"
#include "xdp_emul/gso.h"

namespace halfpage {
namespace {

constexpr uint16_t kMaxFill = 64;

}  // namespace

// As many of `n` buffers as there are, for the next frames in their order.
uint16_t TrafficSource::GetBuffers(rte_mbuf** frames, uint16_t n) {
  if (classes_ == nullptr) return GetSomeRaw(pool_, frames, n);
  if (only_class_ != nullptr && GetRaw(only_class_, frames, n)) return n;
  uint32_t lengths[kMaxFill];
  LengthsAhead(lengths, n);
  return classes_->TakeBulk(frames, lengths, n);
}

void TrafficSource::LengthsAhead(uint32_t* lengths, uint16_t n) const {
  size_t at = next_;
  for (uint16_t i = 0; i < n; ++i) {
    lengths[i] = templates_[at].length;
    if (++at == templates_.size()) at = 0;
  }
}

void TrafficSource::GiveBack(rte_mbuf** frames, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) PutRaw(frames[i]->pool, frames + i, 1);
}

// Allocates and copies: the buffers come with all their fields written. One bulk from each long frame to the next.
uint16_t TrafficSource::FillExact(rte_mbuf** frames, uint16_t n) {
  constexpr ExactRoom kRoom = {RTE_PKTMBUF_HEADROOM, 0};
  uint32_t lengths[kMaxFill];
  LengthsAhead(lengths, n);
  uint16_t got = 0;
  while (got < n) {
    uint16_t fit = got;
    while (fit < n && lengths[fit] <= room_) ++fit;
    const auto wanted = static_cast<uint16_t>(fit - got);
    const uint16_t given = wanted == 0 ? uint16_t{0} : exact_->AllocBulk(frames + got, lengths + got, wanted, kRoom);
    got = static_cast<uint16_t>(got + given);
    if (given != wanted) break;
    if (got == n) break;
    frames[got] = exact_->Alloc(lengths[got], kRoom);
    if (frames[got] == nullptr) break;
    ++got;
  }
  return got;
}

void TrafficSource::CopyInto(rte_mbuf* first, const Template& frame, const uint8_t* head) {
  if (first->nb_segs == 1) {
    CopyFrame(FrameStart(first), head, frame.tail, frame.length);
    return;
  }
  uint32_t at = 0;
  for (rte_mbuf* segment = first; segment != nullptr; segment = segment->next) {
    CopyPart(rte_pktmbuf_mtod(segment, uint8_t*), head, frame.tail, at, segment->data_len);
    at += segment->data_len;
  }
}

uint16_t TrafficSource::Due(uint64_t now, uint16_t most) {
  const size_t size = times_.size();
  uint64_t lap = filled_ / size * lap_;
  if (!clock_started_) {
    clock_ = now - lap - times_[next_];
    clock_started_ = true;
  }
  uint16_t due = 0;
  for (size_t at = next_; due < most && static_cast<int64_t>(now - clock_ - lap - times_[at]) >= 0; ++due) {
    if (++at == size) {
      at = 0;
      lap += lap_;
    }
  }
  return due;
}

uint16_t TrafficSource::Fill(rte_mbuf** frames, uint16_t n) {
  if (n == 0 || filled_ >= limit_) return 0;
  const uint64_t left = limit_ - filled_;
  const uint16_t wanted = left < n ? static_cast<uint16_t>(left) : n;
  const bool exact = exact_.has_value();
  uint16_t got = exact ? FillExact(frames, wanted) : GetBuffers(frames, wanted);

  const Template* const templates = templates_.data();
  const size_t size = templates_.size();
  const uint32_t room = room_;
  const uint32_t longest_unmarked = longest_unmarked_;
  size_t next = next_;
  uint32_t flow = flow_;
  uint16_t filled = 0;
  for (; filled < got; ++filled) {
    const Template& frame = templates[next];
    const uint8_t* head = frame.head + static_cast<size_t>(flow) * frame.stride;
    rte_mbuf* first = frames[filled];
    if (exact) {
      CopyInto(first, frame, head);
    } else if (frame.length <= room) {
      StartBuffer(first, RTE_PKTMBUF_HEADROOM, 1, frame.length, static_cast<uint16_t>(frame.length));
      CopyFrame(FrameStart(first), head, frame.tail, frame.length);
    } else if (!chains_->Fill(first, head, next, got - filled - 1u)) {
      // The buffers kept for later frames of this burst may be the very ones that are short.
      GiveBack(frames + filled + 1, static_cast<uint16_t>(got - filled - 1));
      chains_->PutBack();
      got = static_cast<uint16_t>(filled + 1);
      if (!chains_->Fill(first, head, next, 0)) {
        GiveBack(&first, 1);
        break;
      }
    }
    if (__builtin_expect(frame.length > longest_unmarked, 0)) MarkForSegmentation(first, gso_);
    ++flow;
    if (++next == size) {
      next = 0;
      flow += skew_;
    }
    if (flow >= flows_) flow -= flows_;
  }
  if (__builtin_expect(chains_ != nullptr, 0)) chains_->PutBack();
  next_ = next;
  flow_ = flow;
  filled_ += filled;
  nobuf_ += static_cast<uint64_t>(wanted - filled);
  return filled;
}

}  // namespace halfpage
