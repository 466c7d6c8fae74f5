// How many buffers a run can hold at once, pool by pool: what `size: auto` chooses and what a given size is held
// against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/config.h"
#include "mempool/footprint.h"

namespace halfpage {

// Places in which buffers of one pool can be at the same time, in buffers. Only `segments` is not 0 for a pool that no
// source uses. Of a generator's classes each is held by its share of the frames, and four standard deviations more,
// for rings are filled at random; of a capture's any may be all.
struct BufferNeeds {
  uint32_t segments = 1;  // buffers of the longest frame that can be sent from the pool
  uint64_t rings = 0;     // of every pair and port that its frames can reach
  uint64_t caches = 0;    // 1.5 times the mempool cache of every worker
  uint64_t bursts = 0;    // in the hands of sources, polls and flushes

  uint64_t sum() const { return rings + caches + bursts; }
};

// Bytes of the largest buffer that a frame of the source can be in, headroom included: of its pool, of its largest
// class, or of an exact pool's page. 0 where it names no pool that is there.
uint32_t LargestRoomOf(const Config& config, const TrafficConfig& traffic);

// The lengths of frames that go into one pool of a source's: past `above`, up to `up_to` in one buffer. The last class
// takes what is longer too, as chains; a smaller one takes their ends, past `end_above` up to `end_up_to` bytes.
struct ClassRange {
  uint32_t above = 0;
  uint32_t up_to = 0;
  bool last = true;
  // Where not the last.
  uint32_t end_above = 0;
  uint32_t end_up_to = 0;
  uint32_t last_up_to = 0;  // of the last class: in one buffer, and in each further one of a chain
  uint32_t last_room = 0;

  bool Holds(uint32_t length) const {
    if (last || length <= last_up_to) return length > above && (last || length <= up_to);
    const uint32_t end = (length - last_up_to - 1) % last_room + 1;
    return end > end_above && end <= end_up_to;
  }
};
ClassRange RangeOf(const Config& config, const TrafficConfig& traffic, const PktmbufPoolConfig& pool);

// The lengths that sources take from an exact pool, each source as often as any other. Of a capture, which is not read
// here, every frame counts as the longest that crosses the pair. Empty where no source takes exact buffers from it.
FrameMix ExactMixOf(const Config& config, const PktmbufPoolConfig& pool);

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
