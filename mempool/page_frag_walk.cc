// Walking a pool's buffers: which are out, and taking the pages back of those that nobody will free.
//
// A pool keeps no list of its buffers. What is out is what its pages have room for, less what is free: noted on the
// page, or held by a lane. A page belongs to the pool whose tag it has, if it is not home and not whole in a cache or a
// ring.
#include <cerrno>
#include <map>
#include <vector>

#include "mempool/page_frag.h"
#include "mempool/page_frag_ops.h"
#include "mempool/page_frag_pool.h"

namespace halfpage {
namespace {

constexpr double kPauseSeconds = 0.05;  // far more than a call takes: an lcore that lost its CPU in one gets it back

using Masks = std::map<char*, uint64_t>;  // free objects by page, besides those noted there

PageFragPool* OwnPool(rte_mempool* mempool) {
  auto* pool = static_cast<PageFragPool*>(mempool->pool_data);
  return pool == nullptr || pool->token != OwnToken() ? nullptr : pool;
}

class Walk {
 public:
  explicit Walk(PageFragPool* pool) : pool_(*pool) {
    pool_.arena->ForEachWholePage(
        pool_.page_class, [](char* page, void* masks) { (*static_cast<Masks*>(masks))[page] = UINT64_MAX; }, &free_);
    for (const auto& entry : pool_.lanes) {
      if (const Lane* lane = entry.load(std::memory_order_acquire)) AddLane(*lane);
    }
    pool_.arena->ForEachPageAway(
        pool_.page_class,
        [](char* page, void* walk) {
          if (Chunk::Of(page)->MetaOf(page)->tag == static_cast<Walk*>(walk)->pool_.tag) {
            static_cast<Walk*>(walk)->pages_.push_back(page);
          }
        },
        this);
  }

  // Pages with an object out, or of an exact pool: that are not whole.
  std::vector<char*> PagesOut() const {
    std::vector<char*> out;
    for (char* page : pages_) {
      if (pool_.exact ? !IsWhole(page) : ObjectsOut(page) != 0) out.push_back(page);
    }
    return out;
  }

  uint64_t ObjectsOut(char* page) const {
    const auto found = free_.find(page);
    const uint64_t held = found == free_.end() ? 0 : found->second;
    return pool_.layout.full_mask & ~Chunk::Of(page)->MetaOf(page)->free_bits.load(std::memory_order_acquire) & ~held;
  }

  void VisitObjects(char* page, void (*visit)(void* object, void* argument), void* argument) const {
    const auto number =
        static_cast<uint32_t>((reinterpret_cast<uintptr_t>(page) & (kChunkBytes - 1)) >> pool_.layout.page_shift);
    char* first = page + pool_.layout.FirstOffset(number) + pool_.header_size;
    for (uint64_t out = ObjectsOut(page); out != 0; out &= out - 1) {
      visit(first + static_cast<size_t>(__builtin_ctzll(out)) * pool_.layout.stride, argument);
    }
  }

 private:
  bool IsWhole(char* page) const { return free_.count(page) != 0; }

  char* PageOf(const void* object) const {
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(object) &
                                   ~static_cast<uintptr_t>(pool_.layout.page_size() - 1));
  }

  void AddLane(const Lane& lane) {
    for (const char* page = lane.reserved.head; page != nullptr; page = Chunk::Of(page)->MetaOf(page)->next) {
      free_[const_cast<char*>(page)] = UINT64_MAX;
    }
    if (pool_.exact) return;
    if (lane.left != 0) free_[PageOf(lane.next)] |= pool_.layout.full_mask & ~(pool_.BitOf(lane.next) - 1);
    for (uint32_t i = 0; i < lane.stash_size; ++i) {
      free_[PageOf(lane.stash[i])] |= pool_.BitOf(static_cast<const char*>(lane.stash[i]));
    }
    for (const FreedOnPage& slot : lane.table) {
      if (slot.page != nullptr) free_[slot.page] |= slot.mask;
    }
  }

  PageFragPool& pool_;
  Masks free_;
  std::vector<char*> pages_;
};

}  // namespace

int ForEachPageFragObjectOut(rte_mempool* mempool, void (*visit)(void* object, void* argument), void* argument) {
  PageFragPool* pool = OwnPool(mempool);
  if (pool == nullptr || pool->exact) return -ENOTSUP;
  if (!pool->arena->PauseLanes(kPauseSeconds)) return -EAGAIN;
  {
    const Walk walk(pool);
    for (char* page : walk.PagesOut()) walk.VisitObjects(page, visit, argument);
  }
  pool->arena->ResumeLanes();
  return 0;
}

uint64_t ReclaimPageFragPool(rte_mempool* mempool) {
  PageFragPool* pool = OwnPool(mempool);
  if (pool == nullptr) return 0;
  pool->Flush();
  if (!pool->arena->PauseLanes(kPauseSeconds)) return 0;
  const std::vector<char*> pages = Walk(pool).PagesOut();
  for (char* page : pages) {
    PageMeta* meta = Chunk::Of(page)->MetaOf(page);
    meta->free_bits.store(0, std::memory_order_relaxed);
    meta->out_bits.store(0, std::memory_order_relaxed);
    meta->tag = 0;  // its headers are no freed buffers'
    pool->arena->Give(pool->page_class, &page, 1);
  }
  pool->partial = {};
  Lane* lane = pool->lanes[kSharedLane].load(std::memory_order_relaxed);
  lane->pages_closed.Add(pages.size());
  lane->pages_given.Add(pages.size());
  pool->budget.store(mempool->size, std::memory_order_relaxed);
  pool->arena->ResumeLanes();
  return pages.size();
}

uint32_t FlushIdlePageFragLanes(int socket) {
  PageArena* arena = PageArena::Find(socket);
  return arena == nullptr ? 0 : arena->FlushIdleLanes();
}

}  // namespace halfpage
