// What a page_frag pool can be asked for, by its creator (pool config pointer) or by the environment (unmodified apps).
#pragma once

#include <cstdint>

namespace halfpage {

// Where a page goes when all of its objects are free.
enum class RecycleMode : uint8_t {
  kLifo,  // own pages to the lcore's cache (last in, first out), others' to the shared ring
  kRing,  // all through the shared ring
  kOff,   // back to the arena under its lock, so that the worth of recycling can be measured
};

// Passed as `pool_config` of rte_mempool_set_ops_byname(); read while the pool is populated, not kept.
struct PageFragSettings {
  uint32_t page_size = 0;  // bytes, a power of two from 4 KiB to 128 KiB; 0: chosen from the object's size
  RecycleMode recycle = RecycleMode::kLifo;
  // Pages that stay in the shared ring before one is taken out of it; until then the arena gives new ones. Where two
  // lcores share no cache, lines that were freed long ago have left the other lcore's. At most the pages that all of
  // the pool's buffers fill; pools of one page size share the ring.
  uint32_t rotation = 0;
  // Every buffer's state is written down, so that a free of one that is not out (double) or that is not the pool's
  // (foreign) is refused and told at once. Costs an atomic a buffer.
  bool debug = false;
  bool exact = false;  // buffers of any size (ExactFrag); the pool's room is only what plain allocations get
  bool colour = true;  // shift objects by the page's number, so that pages do not collide in one cache set
};

}  // namespace halfpage
