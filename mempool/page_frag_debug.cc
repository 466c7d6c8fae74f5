// The ways through a pool that are not the usual one: exact pools, lanes that somebody asked for, and the debug
// setting, which finds misuse at the free.
#include <rte_log.h>

#include "mempool/page_frag_pool.h"

extern int page_frag_logtype;

namespace halfpage {

int PageFragPool::TakeSpecial(Lane& lane, void** objects, uint32_t n) {
  if ((lane.special.load(std::memory_order_relaxed) & kAsked) != 0) arena->LendLane(lane);
  if (exact) return TakeExact(lane, objects, n);
  const int result = TakeObjects(lane, objects, n);
  if (result != 0 || !debug) return result;
  for (uint32_t i = 0; i < n; ++i) {
    PageMeta* meta = Chunk::Of(objects[i])->MetaOf(objects[i]);
    meta->out_bits.fetch_or(BitOf(static_cast<char*>(objects[i])), std::memory_order_relaxed);
  }
  return 0;
}

// Refuses objects one by one: the others of the burst are freed as they should be.
void PageFragPool::GiveSpecial(Lane& lane, void* const* objects, uint32_t n) {
  if ((lane.special.load(std::memory_order_relaxed) & kAsked) != 0) arena->LendLane(lane);
  if (exact) return GiveExact(lane, objects, n);
  if (!debug) return GiveObjects(lane, objects, n);
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

}  // namespace halfpage
