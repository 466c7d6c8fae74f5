// How many buffers a run can hold at once, pool by pool: what `size: auto` chooses and what a given size is held
// against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/config.h"

namespace halfpage {

// Places in which buffers of one pool can be at the same time, in buffers. Only `segments` is not 0 for a pool that no
// source uses.
struct BufferNeeds {
  uint32_t segments = 1;  // buffers of the longest frame that can be sent from the pool
  uint64_t rings = 0;     // of every pair and port that its frames can reach
  uint64_t caches = 0;    // 1.5 times the mempool cache of every worker
  uint64_t bursts = 0;    // in the hands of sources, polls and flushes

  uint64_t sum() const { return rings + caches + bursts; }
};

// rte_mempool flushes a cache at 1.5 times its size (CALC_CACHE_FLUSHTHRESH), and refuses a pool below that.
inline uint64_t CacheHolds(uint32_t cache) {
  return uint64_t{cache} * 3 / 2;
}

// Of pool `pool` of a filled-in configuration; references that lead nowhere hold nothing.
BufferNeeds NeedsOf(const Config& config, size_t pool);

// The size that `auto` stands for: NeedsOf().sum(), at least what rte_mempool wants for the cache, rounded up to a
// whole number of caches (of 32 where there is no cache), so that no buffer is left that no cache is ever filled with.
uint32_t AutoSize(const Config& config, size_t pool);

// Gives every pool whose size is 0 the one that `auto` stands for.
void ResolveSizes(Config& config);

}  // namespace halfpage
