// Finding out who did what to a pool's buffers: misuse at the free, and what is still out at the end.
#include <rte_log.h>
#include <rte_malloc.h>

#include "mempool/buffer_stamp.h"
#include "mempool/page_frag.h"
#include "mempool/page_frag_ops.h"
#include "mempool/page_frag_pool.h"

extern int page_frag_logtype;

namespace halfpage {

int PageFragPool::TakeSpecial(Lane& lane, void** objects, uint32_t n) {
  if (exact) return TakeExact(lane, objects, n);
  const int result = TakeObjects(lane, objects, n);
  if (result != 0) return result;
  for (uint32_t i = 0; i < n; ++i) {
    PageMeta* meta = Chunk::Of(objects[i])->MetaOf(objects[i]);
    meta->out_bits.fetch_or(BitOf(static_cast<char*>(objects[i])), std::memory_order_relaxed);
  }
  return 0;
}

// Refuses objects one by one: the others of the burst are freed as they should be.
void PageFragPool::GiveSpecial(Lane& lane, void* const* objects, uint32_t n) {
  if (exact) return GiveExact(lane, objects, n);
  for (uint32_t i = 0; i < n; ++i) {
    if (IsMisuse(objects[i])) {
      misuses.fetch_add(1, std::memory_order_relaxed);
    } else {
      GiveObjects(lane, &objects[i], 1);
    }
  }
}

// Under the arena's lock: an object that is free may lie in an extent that is on its way back to EAL.
const char* PageFragPool::FindMisuse(void* object) {
  if (!arena->HoldsLocked(object)) return "is in none of its pages";
  Chunk* chunk = Chunk::Of(object);
  if (chunk->page_shift != layout.page_shift || chunk->MetaOf(object)->tag != tag) return "belongs to another pool";
  PageMeta* meta = chunk->MetaOf(object);
  const auto* page = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(object) &
                                                   ~static_cast<uintptr_t>(layout.page_size() - 1));
  const auto offset =
      static_cast<uint32_t>(static_cast<char*>(object) - page) - header_size - layout.FirstOffset(NumberOf(page));
  if (offset % layout.stride != 0 || offset / layout.stride >= layout.objects) return "is not the start of a buffer";
  const uint64_t bit = BitOf(static_cast<char*>(object));
  if ((meta->out_bits.fetch_and(~bit, std::memory_order_relaxed) & bit) != 0) return nullptr;
  return "is free already";
}

bool PageFragPool::IsMisuse(void* object) {
  arena->Lock();
  const char* what = FindMisuse(object);
  arena->Unlock();
  if (what == nullptr) return false;
  rte_log(RTE_LOG_ERR, static_cast<uint32_t>(page_frag_logtype), "page_frag: pool %s: free refused: object %p %s\n",
          mempool->name, object, what);
  return true;
}

namespace {

struct Visit {
  const PageFragPool* pool;
  void (*visit)(void* object, void* argument);
  void* argument;
};

void VisitPage(char* page, void* argument) {
  const auto& visit = *static_cast<Visit*>(argument);
  const PageFragPool& pool = *visit.pool;
  Chunk* chunk = Chunk::Of(page);
  const PageMeta* meta = chunk->MetaOf(page);
  if (meta->tag != pool.tag) return;
  const auto number =
      static_cast<uint32_t>((reinterpret_cast<uintptr_t>(page) & (kChunkBytes - 1)) >> pool.layout.page_shift);
  char* first = page + pool.layout.FirstOffset(number) + pool.header_size;
  uint64_t out = pool.layout.full_mask & ~meta->free_bits.load(std::memory_order_acquire);
  for (; out != 0; out &= out - 1) {
    visit.visit(first + static_cast<size_t>(__builtin_ctzll(out)) * pool.layout.stride, visit.argument);
  }
}

}  // namespace

void ForEachPageFragObjectOut(rte_mempool* mempool, void (*visit)(void* object, void* argument), void* argument) {
  auto* pool = static_cast<PageFragPool*>(mempool->pool_data);
  if (pool == nullptr || pool->token != OwnToken() || pool->exact) return;
  for (uint32_t lane = 0; lane < kLanes; ++lane) pool->arena->FlushCaches(lane);
  pool->arena->FlushRings();
  Visit each = {pool, visit, argument};
  pool->arena->ForEachPageAway(pool->page_class, VisitPage, &each);
}

}  // namespace halfpage
