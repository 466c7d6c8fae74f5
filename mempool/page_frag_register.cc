// The handler "page_frag" in DPDK's terms: making and ending pools, and entering the callbacks into DPDK's table.
//
// The sequence of rte_pktmbuf_pool_create_by_ops() is what this rests on: the private area (room, private size) is
// filled before alloc(); populate() then announces all objects without making any, so elt_list stays empty and nothing
// is initialised or freed object by object. Headers are written when a page is first carved for the pool.
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "mempool/page_frag.h"
#include "mempool/page_frag_environment.h"
#include "mempool/page_frag_ops.h"
#include "mempool/page_frag_pool.h"

RTE_LOG_REGISTER(page_frag_logtype, pmd.mempool.page_frag, NOTICE);

namespace halfpage {
namespace {

static_assert(sizeof(rte_mbuf) == kMbufBytes, "page_layout.h knows no DPDK");

constexpr char kOpsName[] = "page_frag";
constexpr uint64_t kRingToken = 0x70616765'72696e67;  // of a pool served as a plain ring, in any process

// A pool that is no packet-buffer pool: its objects stay where DPDK puts them, free ones wait in a ring.
struct RingPool {
  uint64_t token;
  rte_ring* ring;
};

bool IsPageFrag(const rte_mempool* mempool) {
  return mempool->pool_data != nullptr && static_cast<PageFragPool*>(mempool->pool_data)->token == OwnToken();
}

bool IsRing(const rte_mempool* mempool) {
  return mempool->pool_data != nullptr && static_cast<RingPool*>(mempool->pool_data)->token == kRingToken;
}

// Only pools whose objects are a mbuf, its private area and its room (in words of 8 bytes, as rte_mempool rounds up)
// and nothing else can be carved: what else an application puts into its objects, it does through obj_init callbacks
// that carved objects never see.
bool IsPacketPool(const rte_mempool* mempool) {
  if (mempool->private_data_size < sizeof(rte_pktmbuf_pool_private)) return false;
  const auto* area =
      static_cast<const rte_pktmbuf_pool_private*>(rte_mempool_get_priv(const_cast<rte_mempool*>(mempool)));
  return area->flags == 0 && area->mbuf_data_room_size != 0 &&
         mempool->elt_size ==
             RTE_ALIGN_CEIL(sizeof(rte_mbuf) + area->mbuf_priv_size + area->mbuf_data_room_size, sizeof(uint64_t));
}

int AllocRing(rte_mempool* mempool) {
  char name[RTE_RING_NAMESIZE];
  const int length = std::snprintf(name, sizeof(name), RTE_MEMPOOL_MZ_FORMAT, mempool->name);
  if (length < 0 || length >= static_cast<int>(sizeof(name))) return -ENAMETOOLONG;
  unsigned flags = RING_F_EXACT_SZ;
  if ((mempool->flags & RTE_MEMPOOL_F_SP_PUT) != 0) flags |= RING_F_SP_ENQ;
  if ((mempool->flags & RTE_MEMPOOL_F_SC_GET) != 0) flags |= RING_F_SC_DEQ;
  auto* pool = static_cast<RingPool*>(rte_zmalloc_socket("page_frag_ring", sizeof(RingPool), 0, mempool->socket_id));
  if (pool == nullptr) return -ENOMEM;
  pool->token = kRingToken;
  pool->ring = rte_ring_create(name, std::max(mempool->size, 1u), mempool->socket_id, flags);
  if (pool->ring == nullptr) {
    const int error = rte_errno;
    rte_free(pool);
    return -error;
  }
  mempool->pool_data = pool;
  return 0;
}

int64_t CreditBatch(const rte_mempool* mempool) {
  // With a mempool cache above, calls are rare and large: claims go straight to the pool, and every object stays within
  // every lcore's reach. Without one, lanes together hide at most a quarter of the pool from each other.
  if (mempool->cache_size != 0) return 0;
  const int64_t batch = std::min<int64_t>(1024, mempool->size / (8 * (rte_lcore_count() + 1)));
  return batch < 32 ? 0 : batch;
}

int Alloc(rte_mempool* mempool) noexcept {
  if (!IsPacketPool(mempool)) return AllocRing(mempool);
  PageFragSettings settings;
  uint64_t limit = UINT64_MAX;  // as it is
  if (mempool->pool_config != nullptr) {
    settings = *static_cast<const PageFragSettings*>(mempool->pool_config);
  } else {
    const char* fault = ReadPageFragEnvironment(&settings);
    if (fault == nullptr) fault = ReadPageFragLimit(&limit);
    if (fault != nullptr) {
      rte_log(RTE_LOG_ERR, page_frag_logtype, "page_frag: %s\n", fault);
      return -EINVAL;
    }
  }
  const uint32_t object_size = mempool->header_size + mempool->elt_size;
  const absl::optional<PageLayout> layout = LayOutPage(object_size, settings.page_size, settings.colour);
  if (!layout.has_value()) {
    rte_log(
        RTE_LOG_ERR, page_frag_logtype,
        "page_frag: pool %s: an object of %u bytes does not fit a page of %u bytes; page sizes are powers of two from "
        "4096 to 131072 (PAGE_FRAG_PAGE_SIZE), 0 chooses\n",
        mempool->name, object_size, settings.page_size);
    return -EINVAL;
  }
  PageArena* arena = PageArena::ForSocket(mempool->socket_id);
  void* memory = arena == nullptr
                     ? nullptr
                     : rte_zmalloc_socket("page_frag_pool", sizeof(PageFragPool), kCacheLine, mempool->socket_id);
  if (memory == nullptr) return -ENOMEM;
  if (limit != UINT64_MAX) arena->SetLimit(limit / kChunkBytes);
  auto* pool = new (memory) PageFragPool();
  pool->token = OwnToken();
  pool->layout = *layout;
  pool->header_size = mempool->header_size;
  pool->page_class = layout->page_shift - kMinPageShift;
  pool->tag = arena->NewTag();
  pool->recycle = settings.recycle;
  pool->rotation =
      std::min({settings.rotation, PageRing::kSlots / 2, (mempool->size + layout->objects - 1) / layout->objects});
  pool->exact = settings.exact;
  pool->debug = settings.debug && !settings.exact;
  // The other modes are there to show what whole pages do.
  pool->magazine = settings.recycle == RecycleMode::kLifo ? Lane::kMagazine : 0;
  pool->first_data = sizeof(rte_mbuf) + rte_pktmbuf_priv_size(mempool) + RTE_PKTMBUF_HEADROOM;
  pool->largest_exact = LargestExactBytes(layout->page_size());
  pool->credit_batch = CreditBatch(mempool);
  pool->arena = arena;
  pool->mempool = mempool;
  pool->budget.store(mempool->size, std::memory_order_relaxed);
  rte_spinlock_init(&pool->partial_lock);
  if (pool->MakeLane(kSharedLane) == nullptr) {
    rte_free(pool);
    return -ENOMEM;
  }
  arena->AddPool(pool);
  mempool->pool_data = pool;
  return 0;
}

void FreePool(PageFragPool* pool) {
  // What the mempool's own per-lcore caches hold is nobody's: most applications free a pool without emptying them.
  for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
    rte_mempool_cache* cache = rte_mempool_default_cache(pool->mempool, lcore);
    if (cache != nullptr) rte_mempool_cache_flush(cache, pool->mempool);
  }
  pool->arena->RemovePool(pool);
  pool->Flush();
  const uint32_t out = pool->mempool->size - pool->Available();
  if (out != 0) {
    // Whoever holds them may still write to them: their pages stay out of circulation rather than serve two masters.
    rte_log(RTE_LOG_WARNING, page_frag_logtype,
            "page_frag: pool %s freed with %u objects out; their pages are not used again\n", pool->mempool->name, out);
  }
  for (auto& lane : pool->lanes) rte_free(lane.load(std::memory_order_relaxed));
  pool->token = 0;
  rte_free(pool);
}

void Free(rte_mempool* mempool) noexcept {
  if (IsPageFrag(mempool)) {
    FreePool(static_cast<PageFragPool*>(mempool->pool_data));
  } else if (IsRing(mempool)) {
    auto* pool = static_cast<RingPool*>(mempool->pool_data);
    rte_ring_free(pool->ring);
    rte_free(pool);
  }
  mempool->pool_data = nullptr;
}

unsigned GetCount(const rte_mempool* mempool) noexcept {
  if (IsPageFrag(mempool)) return static_cast<const PageFragPool*>(mempool->pool_data)->Available();
  if (IsRing(mempool)) return rte_ring_count(static_cast<const RingPool*>(mempool->pool_data)->ring);
  return 0;
}

// One cache line announces any number of objects; the pages come from the arena when they are needed.
ssize_t CalcMemSize(const rte_mempool* mempool, uint32_t objects, uint32_t page_shift, size_t* min_chunk_size,
                    size_t* align) noexcept {
  if (!IsPageFrag(mempool)) {
    return rte_mempool_op_calc_mem_size_default(mempool, objects, page_shift, min_chunk_size, align);
  }
  *min_chunk_size = kCacheLine;
  *align = kCacheLine;
  return kCacheLine;
}

int Populate(rte_mempool* mempool, unsigned max_objects, void* address, rte_iova_t iova, size_t length,
             rte_mempool_populate_obj_cb_t* callback, void* argument) noexcept {
  if (!IsPageFrag(mempool)) {
    return rte_mempool_op_populate_default(mempool, max_objects, address, iova, length, callback, argument);
  }
  mempool->populated_size += max_objects;
  return static_cast<int>(max_objects);
}

}  // namespace

namespace internal {
// The time of loading and the process number: two processes that share a pool's memory never agree on it.
const uint64_t kOwnToken = (static_cast<uint64_t>(getpid()) << 40) ^ rte_rdtsc() ^ 0x706167656672'6167;
}  // namespace internal

int EnqueueShared(PageFragPool* pool, void* const* objects, unsigned n) {
  pool->Give(*pool->EnterSharedLane(), objects, n);
  pool->LeaveSharedLane();
  return 0;
}

int DequeueShared(PageFragPool* pool, void** objects, unsigned n) {
  const int result = pool->Take(*pool->EnterSharedLane(), objects, n);
  pool->LeaveSharedLane();
  return result;
}

int EnqueueOther(rte_mempool* mempool, void* const* objects, unsigned n) {
  if (!IsRing(mempool)) return -EPERM;
  rte_ring* ring = static_cast<RingPool*>(mempool->pool_data)->ring;
  return rte_ring_enqueue_bulk(ring, objects, n, nullptr) == 0 ? -ENOBUFS : 0;
}

int DequeueOther(rte_mempool* mempool, void** objects, unsigned n) {
  if (!IsRing(mempool)) return -EPERM;
  rte_ring* ring = static_cast<RingPool*>(mempool->pool_data)->ring;
  return rte_ring_dequeue_bulk(ring, objects, n, nullptr) == 0 ? -ENOBUFS : 0;
}

absl::optional<PageFragStats> ReadPageFragStats(const rte_mempool* mempool) {
  if (!IsPageFrag(mempool)) return absl::nullopt;
  const auto* pool = static_cast<const PageFragPool*>(mempool->pool_data);
  PageFragStats stats;
  uint64_t opened = 0;
  uint64_t closed = 0;
  uint64_t others = 0;  // closed, and not into the lane's cache
  for (const auto& entry : pool->lanes) {
    const Lane* lane = entry.load(std::memory_order_acquire);
    if (lane == nullptr) continue;
    // Closed before opened: a page that is opened and closed between the two reads must not count as closed twice over.
    closed += lane->pages_closed.Read();
    opened += lane->pages_opened.Read();
    stats.alloc_slow += lane->counters.alloc_slow.Read();
    stats.alloc_slow_ho += lane->counters.alloc_slow_ho.Read();
    stats.alloc_empty += lane->counters.alloc_empty.Read();
    stats.alloc_refill += lane->counters.alloc_refill.Read();
    stats.alloc_waive += lane->counters.alloc_waive.Read();
    others += lane->pages_shared.Read() + lane->pages_given.Read();
    stats.recycle_cache_full += lane->counters.recycle_cache_full.Read();
    stats.recycle_ring += lane->counters.recycle_ring.Read();
    stats.recycle_ring_full += lane->counters.recycle_ring_full.Read();
    stats.recycle_released_ref += lane->counters.recycle_released_ref.Read();
    stats.nobuf += lane->nobuf.Read();
  }
  stats.misuses = pool->misuses.load(std::memory_order_relaxed);
  stats.alloc_fast = opened;
  stats.recycle_cached = closed > others ? closed - others : 0;
  stats.pages_inflight = opened > closed ? opened - closed : 0;
  stats.objects_out = mempool->size - pool->Available();
  stats.page_size = pool->layout.page_size();
  stats.objects_per_page = pool->layout.objects;
  stats.bytes_resident = pool->arena->Stats().chunks * kChunkBytes;
  return stats;
}

int SetPageFragRecycle(rte_mempool* mempool, RecycleMode mode) {
  if (!IsPageFrag(mempool)) return -ENOTSUP;
  auto* pool = static_cast<PageFragPool*>(mempool->pool_data);
  pool->recycle.store(mode, std::memory_order_relaxed);
  pool->magazine.store(mode == RecycleMode::kLifo ? Lane::kMagazine : 0, std::memory_order_relaxed);
  return 0;
}

void FlushPageFragPool(rte_mempool* mempool) {
  if (IsPageFrag(mempool)) static_cast<PageFragPool*>(mempool->pool_data)->Flush();
}

uint64_t TrimPageFragArena(rte_mempool* mempool) {
  if (!IsPageFrag(mempool)) return 0;
  auto* pool = static_cast<PageFragPool*>(mempool->pool_data);
  for (uint32_t lane = 0; lane < kLanes; ++lane) pool->arena->FlushCaches(lane);
  pool->arena->FlushRings();
  return pool->arena->Trim();
}

}  // namespace halfpage

extern "C" int page_frag_register(void) {
  for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; ++i) {
    if (std::strcmp(rte_mempool_ops_table.ops[i].name, halfpage::kOpsName) == 0) return static_cast<int>(i);
  }
  rte_mempool_ops ops = {};
  std::snprintf(ops.name, sizeof(ops.name), "%s", halfpage::kOpsName);
  ops.alloc = halfpage::Alloc;
  ops.free = halfpage::Free;
  ops.enqueue = halfpage::PageFragEnqueue;
  ops.dequeue = halfpage::PageFragDequeue;
  ops.get_count = halfpage::GetCount;
  ops.calc_mem_size = halfpage::CalcMemSize;
  ops.populate = halfpage::Populate;
  const int index = rte_mempool_register_ops(&ops);
  return index;
}
