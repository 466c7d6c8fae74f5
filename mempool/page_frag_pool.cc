#include "mempool/page_frag_pool.h"

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "mempool/spin_locked.h"

// Without it gcc makes a read prefetch of __builtin_prefetch(p, 1), and the line comes over shared. The instruction is
// a hint that every x86-64 CPU takes, if only as a no-op.
#ifdef RTE_ARCH_X86_64
#define HALFPAGE_PREFETCHW __attribute__((target("prfchw")))
#else
#define HALFPAGE_PREFETCHW
#endif

namespace halfpage {

Lane* PageFragPool::MakeLane(uint32_t index) {
  PageCache* cache = arena->CacheFor(index, page_class);
  if (cache == nullptr) return nullptr;
  void* memory = rte_malloc_socket("page_frag_lane", sizeof(Lane), kCacheLine, arena->socket());
  if (memory == nullptr) return nullptr;
  Lane* lane = new (memory) Lane();
  lane->index = index;
  lane->cache = cache;
  lane->special.store(exact || debug ? kSpecialPool : 0, std::memory_order_relaxed);
  arena->PublishLane(&lanes[index], lane);
  return lane;
}

Lane* PageFragPool::EnterSharedLane() {
  rte_spinlock_lock(arena->shared_lane_lock());
  return lanes[kSharedLane].load(std::memory_order_relaxed);
}

void PageFragPool::LeaveSharedLane() {
  rte_spinlock_unlock(arena->shared_lane_lock());
}

uint32_t PageFragPool::Available() const {
  int64_t available = budget.load(std::memory_order_relaxed);
  for (const auto& entry : lanes) {
    const Lane* lane = entry.load(std::memory_order_acquire);
    if (lane != nullptr) available += lane->credit.load(std::memory_order_relaxed);
  }
  return static_cast<uint32_t>(std::clamp<int64_t>(available, 0, mempool->size));
}

// What follows the open page's objects: `per_page` of them on each page of the cache, `header` behind its colour.
struct NextObjects {
  uint32_t stride;
  uint32_t per_page;
  uint32_t header;
  uint32_t page_shift;
  uint32_t colour_mask;
  uint32_t data;  // from an object's start to the packet's first line; 0: that is not asked for

  const char* FirstOf(const char* page) const {
    const auto number = static_cast<uint32_t>((reinterpret_cast<uintptr_t>(page) & (kChunkBytes - 1)) >> page_shift);
    return page + (number & colour_mask) * kCacheLine + header;
  }
};

// The lines of each mbuf have to come over from the lcore that freed it, and that they do is nearly all that handing
// over costs: so the next bursts' are asked for, to be written, while this one is worked on. `object` is the next of
// `left` on the open page.
HALFPAGE_PREFETCHW static void PrefetchMbufs(const PageCache& cache, const char* object, uint32_t left,
                                             const NextObjects& next) {
  constexpr uint32_t kAhead = 64;
  uint32_t below = 0;
  for (uint32_t asked = 0; asked < kAhead; ++asked, --left, object += next.stride) {
    if (left == 0) {
      if (below == cache.size()) return;
      object = next.FirstOf(cache.Peek(++below));
      left = next.per_page;
    }
    __builtin_prefetch(object, 1);
    __builtin_prefetch(object + kCacheLine, 1);
    if (next.data != 0) __builtin_prefetch(object + next.data, 1);
  }
}

// With the first line of the packet: who allocates a buffer writes a header into it.
void PageFragPool::PrefetchNext(const Lane& lane) const {
  PrefetchMbufs(*lane.cache, lane.next, lane.left,
                {layout.stride, layout.objects, header_size, layout.page_shift, layout.colour_mask, first_data});
}

void PageFragPool::PrefetchNextExact(const Lane& lane, uint32_t bytes) const {
  const auto left = static_cast<uint32_t>(lane.exact.end - lane.exact.next) / bytes;
  PrefetchMbufs(*lane.cache, lane.exact.next, left, {bytes, layout.page_size() / bytes, 0, layout.page_shift, 0, 0});
}

// What is missing may lie with an lcore that has gone idle; a later request finds it then.
int PageFragPool::NoBuffer(Lane& lane) {
  lane.nobuf.Add(1);
  arena->LookForIdleLanes();
  return -ENOBUFS;
}

// Claims go from the pool to a lane in batches, so that the shared counter is touched once in a batch; what a lane has
// too much goes back. An exact rest is given out to the last object.
bool PageFragPool::Borrow(Lane& lane, uint32_t n) {
  const int64_t have = lane.credit.load(std::memory_order_relaxed);
  const int64_t need = n - have;
  int64_t rest = budget.load(std::memory_order_relaxed);
  int64_t granted = 0;
  do {
    if (rest < need) return false;
    granted = std::min(rest, std::max(need, credit_batch));
  } while (!budget.compare_exchange_weak(rest, rest - granted, std::memory_order_relaxed));
  lane.credit.store(have + granted, std::memory_order_relaxed);
  return true;
}

uint32_t PageFragPool::BorrowUpTo(Lane& lane, uint32_t n) {
  if (Borrow(lane, n)) return n;
  const int64_t have = lane.credit.load(std::memory_order_relaxed);
  int64_t rest = budget.load(std::memory_order_relaxed);
  while (rest > 0 && !budget.compare_exchange_weak(rest, 0, std::memory_order_relaxed)) {
  }
  const int64_t all = have + std::max<int64_t>(rest, 0);
  lane.credit.store(all, std::memory_order_relaxed);
  return static_cast<uint32_t>(std::min<int64_t>(n, all));
}

void PageFragPool::Repay(Lane& lane) {
  const int64_t surplus = lane.credit.load(std::memory_order_relaxed) - credit_batch;
  lane.credit.store(credit_batch, std::memory_order_relaxed);
  budget.fetch_add(surplus, std::memory_order_relaxed);
}

// Brings `n` objects within the lane's reach: whole pages from the ring, then free objects of partial pages, then new
// pages, and last the objects in the lane's own table, which may be the only free ones there are.
bool PageFragPool::Reserve(Lane& lane, uint32_t n) {
  for (;;) {
    const uint64_t have = WithinReach(lane);
    if (have >= n) return true;
    if (lane.cache->size() == PageCache::kSlots) {
      while (lane.cache->size() != 0) lane.reserved.Push(lane.cache->Pop());
      continue;
    }
    const uint64_t missing = (n - have + layout.objects - 1) / layout.objects;
    const auto want = static_cast<uint32_t>(std::min<uint64_t>(lane.cache->size() + missing, PageCache::kSlots));
    lane.cache->RefillFromRing(want, recycle, rotation, lane.counters);
    if (WithinReach(lane) > have) {
      lane.prefetch = true;
      continue;
    }
    if (TakeBackPartial(lane)) continue;
    lane.cache->RefillFromArena(want, lane.counters);
    if (WithinReach(lane) > have) continue;
    if (rotation != 0) lane.cache->RefillFromRing(want, recycle, 0, lane.counters);
    if (WithinReach(lane) > have) continue;
    FlushTable(lane);
    if (TakeBackPartial(lane) || WithinReach(lane) > have) continue;
    while (lane.reserved.head != nullptr) {
      char* page = lane.reserved.Pop();
      arena->Give(page_class, &page, 1);
    }
    return false;
  }
}

// Takes the free objects of one partial page. Gives whether anything was won.
bool PageFragPool::TakeBackPartial(Lane& lane) {
  if (lane.stash_size + layout.objects > Lane::kStashSlots) return false;
  char* page = nullptr;
  if (lane.partial.head != nullptr) {
    page = lane.partial.Pop();
  } else {
    rte_spinlock_lock(&partial_lock);
    if (partial.head != nullptr) page = partial.Pop();
    rte_spinlock_unlock(&partial_lock);
  }
  if (page == nullptr) return false;
  PageMeta* meta = Chunk::Of(page)->MetaOf(page);
  // Off the list before its mark goes: from here on a freer may list the page again.
  uint64_t bits = meta->free_bits.exchange(0, std::memory_order_acq_rel) & ~kListed;
  if (bits == layout.full_mask) {
    Recycle(lane, page);
    return true;
  }
  lane.counters.recycle_released_ref.Add(1);
  char* first = page + layout.FirstOffset(NumberOf(page)) + header_size;
  for (; bits != 0; bits &= bits - 1) {
    lane.stash[lane.stash_size++] = first + static_cast<size_t>(__builtin_ctzll(bits)) * layout.stride;
  }
  return true;
}

// Makes a lane's freed objects of one page known to all lanes. Who lists the page first, owns its link.
void PageFragPool::Publish(Lane& lane, char* page, uint64_t mask) {
  PageMeta* meta = Chunk::Of(page)->MetaOf(page);
  const uint64_t before = meta->free_bits.fetch_or(mask | kListed, std::memory_order_acq_rel);
  if ((before & kListed) != 0) return;
  if (lane.partial.size < Lane::kPartialPages) {
    lane.partial.Push(page);
    return;
  }
  rte_spinlock_lock(&partial_lock);
  partial.Push(page);
  rte_spinlock_unlock(&partial_lock);
}

void PageFragPool::FlushTable(Lane& lane) {
  for (FreedOnPage& slot : lane.table) {
    if (slot.page == nullptr) continue;
    Publish(lane, slot.page, slot.mask);
    slot.page = nullptr;
  }
}

void PageFragPool::WriteHeaders(char* first_object, PageMeta* meta) {
  const uintptr_t iova_offset = Chunk::Of(first_object)->iova_offset;
  char* object = first_object;
  for (uint32_t i = 0; i < layout.objects; ++i, object += layout.stride) {
    std::memset(object - header_size, 0, header_size);
    auto* header = reinterpret_cast<rte_mempool_objhdr*>(object - sizeof(rte_mempool_objhdr));
    header->mp = mempool;
    header->iova = reinterpret_cast<uintptr_t>(object) + iova_offset;
    rte_pktmbuf_init(mempool, nullptr, object, i);
  }
  meta->tag = tag;
}

uint64_t PageFragPool::BitOf(const char* object) const {
  const auto offset = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(object) & (layout.page_size() - 1));
  return uint64_t{1} << layout.IndexOf(offset - header_size);
}

void PageFragPool::FlushLane(Lane& lane) {
  if (exact) return FlushExact(lane);
  const uintptr_t page_mask = ~static_cast<uintptr_t>(layout.page_size() - 1);
  if (lane.left != 0) {
    char* page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(lane.next) & page_mask);
    const uint64_t handed_out = BitOf(lane.next) - 1;
    Publish(lane, page, layout.full_mask & ~handed_out);
    lane.left = 0;
  }
  while (lane.stash_size != 0) {
    char* object = static_cast<char*>(lane.stash[--lane.stash_size]);
    Publish(lane, reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(object) & page_mask), BitOf(object));
  }
  FlushTable(lane);
  while (lane.reserved.head != nullptr) {
    char* page = lane.reserved.Pop();
    arena->Give(page_class, &page, 1);
  }
  rte_spinlock_lock(&partial_lock);
  while (lane.partial.head != nullptr) partial.Push(lane.partial.Pop());
  rte_spinlock_unlock(&partial_lock);
  budget.fetch_add(lane.credit.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
}

void PageFragPool::GiveWholePartial(Lane& lane) {
  PageList whole;
  rte_spinlock_lock(&partial_lock);
  PageList still_partial;
  while (partial.head != nullptr) {
    char* page = partial.Pop();
    PageMeta* meta = Chunk::Of(page)->MetaOf(page);
    const bool all_free = meta->free_bits.load(std::memory_order_acquire) == (layout.full_mask | kListed);
    (all_free ? whole : still_partial).Push(page);
  }
  partial = still_partial;
  rte_spinlock_unlock(&partial_lock);
  while (whole.head != nullptr) {
    char* page = whole.Pop();
    Chunk::Of(page)->MetaOf(page)->free_bits.store(0, std::memory_order_relaxed);
    lane.pages_closed.Add(1);
    lane.pages_given.Add(1);
    arena->Give(page_class, &page, 1);
  }
}

void PageFragPool::Flush() {
  Locked locked(arena->lanes_lock());
  for (auto& entry : lanes) {
    if (Lane* lane = entry.load(std::memory_order_acquire)) FlushLane(*lane);
  }
  if (!exact) GiveWholePartial(*lanes[kSharedLane].load(std::memory_order_relaxed));
}

}  // namespace halfpage
