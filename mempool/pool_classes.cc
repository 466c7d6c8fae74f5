// Hot path: one buffer of the right class for each frame of a burst.
#include "mempool/pool_classes.h"

#include <rte_branch_prediction.h>
#include <rte_mempool.h>

#include <algorithm>

#include "mempool/raw_buffers.h"

namespace halfpage {

// What a block of frames has got so far: by class, `got` buffers for the `wanted` frames of that class.
struct PoolClasses::Hand {
  uint16_t wanted[kMostClasses] = {};
  uint16_t got[kMostClasses] = {};
  uint16_t own[kMostClasses] = {};  // of `got`, from the class itself; these come first
  rte_mbuf* buffers[kMostClasses][kBlock];
};

uint16_t PoolClasses::TakeBulk(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n) {
  uint16_t taken = 0;
  while (taken < n) {
    const auto block = std::min<uint16_t>(kBlock, static_cast<uint16_t>(n - taken));
    const uint16_t got = TakeBlock(buffers + taken, lengths + taken, block);
    taken = static_cast<uint16_t>(taken + got);
    if (unlikely(got != block)) break;
  }
  return taken;
}

uint16_t PoolClasses::TakeBlock(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n) {
  Hand hand;
  uint8_t classes[kBlock];
  for (uint16_t i = 0; i < n; ++i) {
    classes[i] = static_cast<uint8_t>(ClassOf(lengths[i]));
    ++hand.wanted[classes[i]];
  }
  bool enough = true;
  for (size_t c = 0; c < size_; ++c) {
    const uint16_t wanted = hand.wanted[c];
    if (wanted == 0) continue;
    hand.got[c] = hand.own[c] = GetSomeRaw(classes_[c].pool, hand.buffers[c], wanted);
    enough &= hand.got[c] == wanted;
  }
  if (unlikely(!enough)) return DealShort(hand, buffers, classes, n);
  uint16_t dealt[kMostClasses] = {};
  for (uint16_t i = 0; i < n; ++i) {
    const uint8_t c = classes[i];
    buffers[i] = hand.buffers[c][dealt[c]++];
  }
  return n;
}

// After every class has got what its own frames need: nobody borrows what the block itself wants.
void PoolClasses::Borrow(Hand& hand) {
  for (size_t c = 0; c < size_; ++c) {
    for (size_t larger = c + 1; larger < size_ && hand.got[c] < hand.wanted[c]; ++larger) {
      const auto missing = static_cast<uint16_t>(hand.wanted[c] - hand.got[c]);
      hand.got[c] = static_cast<uint16_t>(hand.got[c] +
                                          GetSomeRaw(classes_[larger].pool, hand.buffers[c] + hand.got[c], missing));
    }
  }
}

// Deals up to the first frame without a buffer and puts back what is left.
uint16_t PoolClasses::DealShort(Hand& hand, rte_mbuf** buffers, const uint8_t* classes, uint16_t n) {
  if (borrow_) Borrow(hand);
  uint16_t dealt[kMostClasses] = {};
  uint16_t given = 0;
  while (given < n && dealt[classes[given]] < hand.got[classes[given]]) {
    const uint8_t c = classes[given];
    buffers[given++] = hand.buffers[c][dealt[c]++];
  }
  for (uint16_t i = given; i < n; ++i) classes_[classes[i]].nobuf.Add(1);
  for (size_t c = 0; c < size_; ++c) {
    if (dealt[c] > hand.own[c]) classes_[c].borrowed.Add(static_cast<uint64_t>(dealt[c] - hand.own[c]));
    for (uint16_t i = dealt[c]; i < hand.got[c]; ++i) PutRaw(hand.buffers[c][i]->pool, &hand.buffers[c][i], 1);
  }
  return given;
}

uint16_t PoolClasses::AllocBulk(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n) {
  uint16_t fit = 0;
  while (fit < n && lengths[fit] <= longest()) ++fit;
  const uint16_t given = TakeBulk(buffers, lengths, fit);
  for (uint16_t i = 0; i < given; ++i) {
    rte_pktmbuf_reset(buffers[i]);
    buffers[i]->data_len = static_cast<uint16_t>(lengths[i]);
    buffers[i]->pkt_len = lengths[i];
  }
  return given;
}

rte_mbuf* PoolClasses::Alloc(uint32_t length) {
  rte_mbuf* first = nullptr;
  uint32_t piece = std::min(length, longest());
  if (AllocBulk(&first, &piece, 1) == 0) return nullptr;
  rte_mempool* last_pool = classes_[size_ - 1].pool;
  const uint32_t room = longest() + RTE_PKTMBUF_HEADROOM;
  for (rte_mbuf* last = first; first->pkt_len < length; last = last->next) {
    const uint32_t rest = length - first->pkt_len;
    rte_mbuf* segment = rest > room ? nullptr : rte_pktmbuf_alloc(classes_[EndClassOf(rest)].pool);
    if (segment == nullptr) segment = rte_pktmbuf_alloc(last_pool);
    if (unlikely(segment == nullptr)) {
      classes_[size_ - 1].nobuf.Add(1);
      rte_pktmbuf_free(first);
      return nullptr;
    }
    piece = std::min(rest, room);
    segment->data_off = 0;
    segment->data_len = static_cast<uint16_t>(piece);
    last->next = segment;
    ++first->nb_segs;
    first->pkt_len += piece;
  }
  return first;
}

}  // namespace halfpage
