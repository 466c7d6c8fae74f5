// Hot path: the pages that one lcore keeps at hand, last in first out, in front of the shared ring and the arena.
#pragma once

#include <atomic>
#include <cstdint>

#include "mempool/counter.h"
#include "mempool/page_arena.h"
#include "mempool/page_frag_settings.h"

namespace halfpage {

// Counted as the kernel's page_pool counts (ethtool's rx_pp_*), per lane of a pool. A lane writes its own only. The two
// that every page would touch, alloc_fast and recycle_cached, follow from what the lane opens and closes.
struct PageCounters {
  Counter alloc_slow;            // pages taken from the arena, 4 KiB
  Counter alloc_slow_ho;         // the same, larger than 4 KiB
  Counter alloc_empty;           // times that cache and ring were empty
  Counter alloc_refill;          // times that the cache was refilled from the ring
  Counter alloc_waive;           // pages taken that lie on another socket than the lcore; they are used all the same
  Counter recycle_cache_full;    // times that the cache was full and its older half moved on
  Counter recycle_ring;          // whole pages put into the ring
  Counter recycle_ring_full;     // pages that the ring had no slot for: given to the arena
  Counter recycle_released_ref;  // page bits merged while objects of the page were still out
};

// Whole pages of one class, of one lcore. All pools of the lcore with this class share it; only its lcore touches it
// (the lane for threads without an lcore id is guarded by a lock of the pool's owner).
class PageCache {
 public:
  static constexpr uint32_t kSlots = 128;  // as the kernel's PP_ALLOC_CACHE_SIZE
  static constexpr uint32_t kRefill = 64;  // as PP_ALLOC_CACHE_REFILL
  static constexpr uint32_t kStage = 16;   // pages of other lcores on their way to the ring

  void Init(PageArena* arena, uint32_t page_class) {
    arena_ = arena;
    page_class_ = page_class;
  }

  uint32_t size() const { return size_.load(std::memory_order_relaxed); }

  // The page put last. There must be one.
  char* Pop() {
    const uint32_t size_now = size() - 1;
    size_.store(size_now, std::memory_order_relaxed);
    return slots_[size_now];
  }

  // The page that will be popped as number `below` from now, 1 to size().
  const char* Peek(uint32_t below) const { return slots_[size() - below]; }

  // Puts a whole page that this lcore carved.
  void PutOwn(char* page, PageCounters& counters) {
    if (__builtin_expect(size() == kSlots, 0)) MakeRoom(counters);
    const uint32_t size_now = size();
    slots_[size_now] = page;
    size_.store(size_now + 1, std::memory_order_relaxed);
  }

  // Puts a whole page that goes to whoever needs it next.
  void PutShared(char* page, PageCounters& counters) {
    const uint32_t staged = staged_.load(std::memory_order_relaxed);
    stage_[staged] = page;
    staged_.store(staged + 1, std::memory_order_relaxed);
    if (__builtin_expect(staged + 1 == kStage, 0)) FlushStage(counters);
  }

  // Top the cache up until it holds at least `need` (at most kSlots) pages and give whether it does. They take locks:
  // named slow paths. The ring gives up to kRefill pages more than asked; the arena gives no more than asked, so that
  // memory follows use. With less than `keep` pages the ring gives none.
  bool RefillFromRing(uint32_t need, RecycleMode mode, uint32_t keep, PageCounters& counters);
  bool RefillFromArena(uint32_t need, PageCounters& counters);

  // Moves everything to the arena.
  void Flush();

  // Calls `visit(page, argument)` for each page in it. Its lcore must be held (PageArena::PauseLanes).
  void ForEach(void (*visit)(char* page, void* argument), void* argument) const;

  uint32_t pages() const { return size() + staged_.load(std::memory_order_relaxed); }

 private:
  void CountElsewhere(uint32_t from, PageCounters& counters) const;
  void MakeRoom(PageCounters& counters);
  void FlushStage(PageCounters& counters);
  void PutToRing(char* const* pages, uint32_t n, PageCounters& counters);

  std::atomic<uint32_t> size_{0};
  std::atomic<uint32_t> staged_{0};
  uint32_t page_class_ = 0;
  PageArena* arena_ = nullptr;
  char* slots_[kSlots];
  char* stage_[kStage];
};

}  // namespace halfpage
