#include "mempool/page_cache.h"

#include <rte_lcore.h>

#include <algorithm>
#include <cstring>

namespace halfpage {

bool PageCache::RefillFromRing(uint32_t need, RecycleMode mode, uint32_t keep, PageCounters& counters) {
  uint32_t size_now = size();
  if (size_now >= need) return true;
  if (mode == RecycleMode::kOff || arena_->ring(page_class_).size() < keep) return false;
  // In ring mode a page must not be handed out again by the lcore that freed it before older ones were.
  const uint32_t wanted = std::min(std::max(need - size_now, kRefill), kSlots - size_now);
  const uint32_t taken = arena_->ring(page_class_).Take(slots_ + size_now, wanted);
  if (taken == 0) return false;
  counters.alloc_refill.Add(1);
  // The ring gives the oldest first; the cache hands out its last. Turn them, so that order survives.
  std::reverse(slots_ + size_now, slots_ + size_now + taken);
  size_now += taken;
  size_.store(size_now, std::memory_order_relaxed);
  CountElsewhere(size_now - taken, counters);
  return size_now >= need;
}

// Threads without an lcore id are on no socket.
void PageCache::CountElsewhere(uint32_t from, PageCounters& counters) const {
  const auto socket = static_cast<int>(rte_socket_id());
  if (socket < 0) return;
  uint32_t elsewhere = 0;
  for (uint32_t i = from; i < size(); ++i) elsewhere += Chunk::Of(slots_[i])->socket != socket ? 1 : 0;
  if (elsewhere != 0) counters.alloc_waive.Add(elsewhere);
}

bool PageCache::RefillFromArena(uint32_t need, PageCounters& counters) {
  uint32_t size_now = size();
  if (size_now >= need) return true;
  counters.alloc_empty.Add(1);
  const uint32_t wanted = need - size_now;
  const uint32_t taken = arena_->Take(page_class_, slots_ + size_now, wanted);
  (page_class_ == 0 ? counters.alloc_slow : counters.alloc_slow_ho).Add(taken);
  std::reverse(slots_ + size_now, slots_ + size_now + taken);
  size_now += taken;
  size_.store(size_now, std::memory_order_relaxed);
  CountElsewhere(size_now - taken, counters);
  return size_now >= need;
}

void PageCache::PutToRing(char* const* pages, uint32_t n, PageCounters& counters) {
  const uint32_t put = arena_->ring(page_class_).Put(pages, n);
  counters.recycle_ring.Add(put);
  if (put == n) return;
  counters.recycle_ring_full.Add(n - put);
  arena_->Give(page_class_, pages + put, n - put);
}

void PageCache::MakeRoom(PageCounters& counters) {
  counters.recycle_cache_full.Add(1);
  PutToRing(slots_, kRefill, counters);
  std::memmove(slots_, slots_ + kRefill, (kSlots - kRefill) * sizeof(slots_[0]));
  size_.store(kSlots - kRefill, std::memory_order_relaxed);
}

void PageCache::FlushStage(PageCounters& counters) {
  PutToRing(stage_, staged_.load(std::memory_order_relaxed), counters);
  staged_.store(0, std::memory_order_relaxed);
}

void PageCache::Flush() {
  arena_->Give(page_class_, slots_, size());
  size_.store(0, std::memory_order_relaxed);
  arena_->Give(page_class_, stage_, staged_.load(std::memory_order_relaxed));
  staged_.store(0, std::memory_order_relaxed);
}

void PageCache::ForEach(void (*visit)(char* page, void* argument), void* argument) const {
  for (uint32_t i = 0; i < size(); ++i) visit(slots_[i], argument);
  for (uint32_t i = 0; i < staged_.load(std::memory_order_relaxed); ++i) visit(stage_[i], argument);
}

}  // namespace halfpage
