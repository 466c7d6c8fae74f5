// Hot path: ChainFiller::Fill().
#include "app/chain_filler.h"

#include <rte_mempool.h>

#include "app/frame_copy.h"
#include "mempool/raw_buffers.h"

namespace halfpage {

// What the next `frames` want of each class.
void ChainFiller::Prepare(size_t position, uint32_t frames) {
  for (size_t c = 0; c <= last_; ++c) stocks_[c].wanted = 0;
  Stock& last = stocks_[last_];
  for (; frames != 0; --frames) {
    const FrameTemplate& frame = frames_[position];
    if (frame.length > room_) {
      last.wanted += frame.between;
      ++stocks_[frame.end_class].wanted;
    }
    if (++position == size_) position = 0;
  }
  prepared_ = true;
}

// All that the burst still wants of a class, as far as there is space for it, or else what makes `held` to `n`. False,
// with nothing taken, where the pool has not got them.
bool ChainFiller::Refill(Stock& stock, uint32_t n) {
  uint32_t got = RTE_MIN(RTE_MAX(stock.held + stock.wanted, n), stock.most) - stock.held;
  if (!GetRaw(stock.pool, stock.buffers + stock.held, got)) {
    got = n - stock.held;
    if (!GetRaw(stock.pool, stock.buffers + stock.held, got)) return false;
  }
  stock.held += got;
  stock.wanted -= RTE_MIN(stock.wanted, got);
  return true;
}

// `n` buffers, good until the next call; null, with nothing taken, where the pool has not got them.
inline rte_mbuf** ChainFiller::Take(Stock& stock, uint32_t n) {
  if (stock.held < n && !Refill(stock, n)) return nullptr;
  stock.held -= n;
  return stock.buffers + stock.held;
}

bool ChainFiller::Fill(rte_mbuf* first, const uint8_t* head, size_t position, uint32_t later) {
  if (!prepared_) Prepare(position, 1 + later);
  const FrameTemplate& frame = frames_[position];
  rte_mbuf* end = nullptr;
  if (frame.end_class != last_) {
    if (rte_mbuf** got = Take(stocks_[frame.end_class], 1)) end = *got;
  }
  const uint32_t taken = frame.between + (end == nullptr ? 1u : 0u);
  rte_mbuf** segments = Take(stocks_[last_], taken);
  if (segments == nullptr) {
    if (end != nullptr) PutRaw(end->pool, &end, 1);
    return false;
  }
  // What is copied meanwhile drives mbufs out of the first-level cache: each segment's lines are asked for ahead.
  for (uint32_t i = 0; i < taken; ++i) {
    __builtin_prefetch(segments[i], 1);
    __builtin_prefetch(&segments[i]->next, 1);
  }
  if (end != nullptr) __builtin_prefetch(end, 1);

  const uint32_t data_room = room_ + RTE_PKTMBUF_HEADROOM;  // further segments use all of it
  StartBuffer(first, RTE_PKTMBUF_HEADROOM, static_cast<uint16_t>(2 + frame.between), frame.length,
              static_cast<uint16_t>(room_));
  CopyPart(FrameStart(first), head, frame.tail, 0, room_);
  rte_mbuf* last = first;
  uint32_t at = room_;
  const auto append = [&](rte_mbuf* segment) {
    const uint32_t length = RTE_MIN(data_room, frame.length - at);
    StartBuffer(segment, 0, 1, length, static_cast<uint16_t>(length));
    CopyPart(static_cast<uint8_t*>(segment->buf_addr), head, frame.tail, at, length);
    at += length;
    last->next = segment;
    last = segment;
  };
  for (uint32_t i = 0; i < taken; ++i) append(segments[i]);
  if (end != nullptr) append(end);
  return true;
}

void ChainFiller::PutBack() {
  if (!prepared_) return;
  for (size_t c = 0; c <= last_; ++c) {
    PutRaw(stocks_[c].pool, stocks_[c].buffers, stocks_[c].held);
    stocks_[c].held = 0;
  }
  prepared_ = false;
}

}  // namespace halfpage
