// Hot path: the two callbacks of the mempool handler that packets go through.
#include "mempool/page_frag_ops.h"

#include "mempool/page_frag_pool.h"

namespace halfpage {

int PageFragEnqueue(rte_mempool* mempool, void* const* objects, unsigned n) noexcept {
  auto* pool = static_cast<PageFragPool*>(mempool->pool_data);
  if (unlikely(pool->token != OwnToken())) return EnqueueOther(mempool, objects, n);
  Lane* lane = pool->OwnLane();
  if (unlikely(lane == nullptr)) return EnqueueShared(pool, objects, n);
  LaneCall call(*lane);
  pool->Give(*lane, objects, n);
  return 0;
}

int PageFragDequeue(rte_mempool* mempool, void** objects, unsigned n) noexcept {
  auto* pool = static_cast<PageFragPool*>(mempool->pool_data);
  if (unlikely(pool->token != OwnToken())) return DequeueOther(mempool, objects, n);
  Lane* lane = pool->OwnLane();
  if (unlikely(lane == nullptr)) return DequeueShared(pool, objects, n);
  LaneCall call(*lane);
  return pool->Take(*lane, objects, n);
}

}  // namespace halfpage
