// The mempool handler "page_frag" as applications see it: registration, statistics, giving back.
//
// Most applications need none of this: they load librte_mempool_page_frag.so (EAL option -d) and name the handler with
// --mbuf-pool-ops-name=page_frag or rte_pktmbuf_pool_create_by_ops().
#pragma once

#include <cstdint>

#include "absl/types/optional.h"
#include "mempool/page_frag_settings.h"

struct rte_mempool;

// Enters the handler into DPDK's table, once, whoever calls and how often: DPDK itself takes a second handler of the
// same name without a word. Gives the handler's index, or -ENOSPC when all of DPDK's 16 slots are taken. Before
// rte_eal_init() or after it; control threads only. Loading the shared library calls it.
extern "C" int page_frag_register(void);

namespace halfpage {

// What one page_frag pool has done and holds. Names as in the kernel's page_pool statistics where it has them.
struct PageFragStats {
  uint64_t alloc_fast = 0;
  uint64_t alloc_slow = 0;
  uint64_t alloc_slow_ho = 0;
  uint64_t alloc_empty = 0;
  uint64_t alloc_refill = 0;
  uint64_t alloc_waive = 0;  // pages from another socket than the lcore's
  uint64_t recycle_cached = 0;
  uint64_t recycle_cache_full = 0;
  uint64_t recycle_ring = 0;
  uint64_t recycle_ring_full = 0;
  uint64_t recycle_released_ref = 0;
  uint64_t nobuf = 0;           // requests that found too few objects or pages
  uint64_t misuses = 0;         // double and foreign frees that the debug setting refused
  uint64_t pages_inflight = 0;  // pages the pool holds: carved, out, or waiting for their last object
  uint64_t objects_out = 0;     // objects in hands above the handler (mempool caches included)
  uint32_t page_size = 0;       // bytes
  uint32_t objects_per_page = 0;
  uint64_t bytes_resident = 0;  // of the arena that all pools of the socket share
};

// Reads a pool's statistics while it is in use; nothing for a pool of another handler, of another process, or one that
// page_frag serves as a plain ring. Any thread.
absl::optional<PageFragStats> ReadPageFragStats(const rte_mempool* pool);

// Changes where whole pages of the pool go, while lcores go on: each follows within its next call. What caches and
// rings hold stays theirs. Gives 0, -ENOTSUP for a pool of another handler. Control threads.
int SetPageFragRecycle(rte_mempool* pool, RecycleMode mode);

// What the arena of one socket has of EAL's memory, in bytes.
struct PageFragArenaUse {
  uint64_t bytes = 0;
  uint64_t peak_bytes = 0;      // the most it has had at once
  uint64_t limit_bytes = 0;     // 0: none
  uint64_t limit_refusals = 0;  // times that the limit kept it from growing; what came of it, pools count as nobuf
};
PageFragArenaUse ReadPageFragArena(int socket);

// Keeps the arena of `socket` (-1: that of pools for any socket) at `bytes` or less, in whole chunks of 2 MiB; 0 lifts
// the limit. Pools that find no page then refuse (nobuf). What the arena has above it stays until it is given back.
// Gives 0, -EINVAL for less than a chunk, -ENOMEM where EAL has no memory for the arena itself. Control threads.
int LimitPageFragArena(int socket, uint64_t bytes);

// While lcores go on: takes back what idle lcores hold (FlushIdlePageFragLanes), sends the pages in the socket's shared
// rings home and gives extents without a page in use back to EAL. Gives the bytes returned. The cache of an lcore that
// is at work (up to 144 pages) keeps its pages, and with them their extents. Control threads.
uint64_t ShrinkPageFragArena(int socket);

// The most bytes that the arena of `socket` (-1: that of pools for any socket) has had at once; 0 where there is none.
uint64_t PageFragPeakBytes(int socket);

// While lcores go on: takes back what each lcore holds in the socket's pools that has not used them since this was
// called last (freed objects that wait for their neighbours, the page it carved from, its cache of pages), so that
// others can have it. Gives how many lanes had something. An lcore that finds no buffer does the same, at most once in
// 10 ms. Needs membarrier(2), and does nothing without. Any thread; some microseconds, and an interrupt on each CPU
// that runs a thread of the process.
uint32_t FlushIdlePageFragLanes(int socket);

// Calls `visit(object, argument)` for each object that is out of the pool, while lcores go on: those that call on a
// pool of its socket wait until it is done, about a millisecond for 10 000 objects. An object in a mempool cache counts
// as out: the handler does not see those. `visit` may not call on a pool. Gives 0, -EAGAIN when an lcore stayed in a
// call (or membarrier(2) is missing), -ENOTSUP for pools of other handlers, and of an ExactFrag, whose buffers are only
// counted. Control threads.
int ForEachPageFragObjectOut(rte_mempool* pool, void (*visit)(void* object, void* argument), void* argument);

// Takes home the pages of all objects that are out, for good: nobody may touch one any more, free it least of all. For
// the end of a pool whose holders are gone; the pool may then only be freed. Gives how many pages. No thread may use
// the pool meanwhile; others of its socket may be in use. 0 for pools of other handlers, whose memory goes as a whole.
uint64_t ReclaimPageFragPool(rte_mempool* pool);

// Takes back what lanes hold of this pool and sends whole pages home, so that `pages_inflight` counts pages with
// objects really out. No thread may use the pool meanwhile. No effect on pools of other handlers.
void FlushPageFragPool(rte_mempool* pool);

// Sends the pages in all lcores' caches of the pool's socket home and gives extents without a page in use back to EAL.
// No thread may use any page_frag pool of the socket meanwhile. Gives the bytes returned.
uint64_t TrimPageFragArena(rte_mempool* pool);

}  // namespace halfpage
