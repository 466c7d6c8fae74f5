// The mempool handler "page_frag" as applications see it: registration, statistics, giving back.
//
// Most applications need none of this: they load librte_mempool_page_frag.so (EAL option -d) and name the handler with
// --mbuf-pool-ops-name=page_frag or rte_pktmbuf_pool_create_by_ops().
#pragma once

#include <cstdint>

#include "absl/types/optional.h"

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

// While lcores go on: sends the pages in the socket's shared rings home and gives extents without a page in use back to
// EAL. Gives the bytes returned. An lcore's own cache (up to 144 pages) keeps its pages, and with them their extents.
// Control threads.
uint64_t ShrinkPageFragArena(int socket);

// The most bytes that the arena of `socket` (-1: that of pools for any socket) has had at once; 0 where there is none.
uint64_t PageFragPeakBytes(int socket);

// Calls `visit(object, argument)` for each object that is out. The pool must have been flushed (FlushPageFragPool) and
// nobody may use a page_frag pool of its socket meanwhile; pages in caches and rings are sent home first. Nothing for
// pools of other handlers, and of an ExactFrag, whose buffers are only counted.
void ForEachPageFragObjectOut(rte_mempool* pool, void (*visit)(void* object, void* argument), void* argument);

// Takes back what lanes hold of this pool and sends whole pages home, so that `pages_inflight` counts pages with
// objects really out. No thread may use the pool meanwhile. No effect on pools of other handlers.
void FlushPageFragPool(rte_mempool* pool);

// Sends the pages in all lcores' caches of the pool's socket home and gives extents without a page in use back to EAL.
// No thread may use any page_frag pool of the socket meanwhile. Gives the bytes returned.
uint64_t TrimPageFragArena(rte_mempool* pool);

}  // namespace halfpage
