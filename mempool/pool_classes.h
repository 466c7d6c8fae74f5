// Short, long, jumbo: several pools of one caller, and for each frame the smallest buffer that it fits into.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mempool/counter.h"

namespace halfpage {

// The classes of one caller, by ascending room. The pools are shared with whoever else uses them; this object, counters
// included, belongs to one thread.
//
// A frame belongs to the first class with room - headroom >= its length; one that is longer than any belongs to the
// last, as a chain, whose end is in the smallest class with room for it (an end has no headroom), or in the last class
// while that is empty. While a class is empty and `borrow` is on, its frames take buffers of the next larger class that
// has some: a class that was made too small costs memory, not frames. Nobody borrows from a smaller class.
class PoolClasses {
 public:
  static constexpr size_t kMostClasses = 8;

  // Orders packet-buffer pools of any handler by room (equal rooms as given). They outlive the object. Errors:
  // InvalidArgument for none, for more than kMostClasses, for a null or repeated pool, and for one that is no packet
  // pool or has no room behind the headroom.
  static absl::StatusOr<PoolClasses> Create(absl::Span<rte_mempool* const> pools, bool borrow);

  PoolClasses(const PoolClasses& other);
  PoolClasses& operator=(const PoolClasses&) = delete;

  // Fills `buffers` with one buffer for each of `lengths`, in their order, and gives how many: fewer than `n` where a
  // frame found none, which ends it. The buffers are as their pools hold them (see raw_buffers.h): the caller writes
  // the fields. A frame past longest() gets the first buffer of its chain. Any thread, one at a time. Hot.
  uint16_t TakeBulk(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n);

  // The same with buffers reset, and data_len and pkt_len set. A length past longest() ends it too. Hot.
  uint16_t AllocBulk(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n);

  // One buffer, or a chain where `length` is past longest(); null when there are too few. Only the first segment has
  // headroom.
  rte_mbuf* Alloc(uint32_t length);

  size_t size() const { return size_; }
  rte_mempool* pool(size_t c) const { return classes_[c].pool; }
  // The class that a frame belongs to.
  size_t ClassOf(uint32_t length) const {
    size_t c = 0;
    for (size_t i = 0; i + 1 < size_; ++i) c += length > classes_[i].longest ? 1 : 0;
    return c;
  }
  // The class for the last `length` bytes of a chain: the first whose whole room holds them.
  size_t EndClassOf(uint32_t length) const {
    return ClassOf(length > RTE_PKTMBUF_HEADROOM ? length - RTE_PKTMBUF_HEADROOM : 0);
  }
  // The longest frame in one buffer.
  uint32_t longest() const { return classes_[size_ - 1].longest; }

  // Written by the owner, read by any thread. Buffers that frames of class `c` took from a larger one.
  const Counter& borrowed(size_t c) const { return classes_[c].borrowed; }
  // Frames of class `c` that were asked for and found no buffer; each time that they are asked for again.
  const Counter& nobuf(size_t c) const { return classes_[c].nobuf; }

 private:
  static constexpr uint16_t kBlock = 64;  // frames looked at in one go

  struct Class {
    rte_mempool* pool = nullptr;
    uint32_t longest = 0;
    Counter borrowed;
    Counter nobuf;
  };
  struct Hand;

  PoolClasses() = default;
  uint16_t TakeBlock(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n);
  void Borrow(Hand& hand);
  uint16_t DealShort(Hand& hand, rte_mbuf** buffers, const uint8_t* classes, uint16_t n);

  Class classes_[kMostClasses];
  size_t size_ = 0;
  bool borrow_ = true;
};

}  // namespace halfpage
