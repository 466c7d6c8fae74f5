// Real bytes of packet-buffer pools, before any of them is allocated. Arithmetic only: no DPDK call, any thread.
//
// A buffer costs more than its room: 64 bytes of mempool header and 128 of rte_mbuf stand before it, and what a page
// has no use for behind its last buffer is lost. What is computed is the most that a pool takes, all its buffers out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mempool/pktmbuf_pool.h"

namespace halfpage {

// What EAL takes of its own memory before the first pool (ports, lcores, malloc's own), rounded up generously.
inline constexpr uint64_t kEalOwnBytes = 32ull << 20;

// What every mempool with a cache has for its 128 lcores, used or not: RTE_MAX_LCORE x sizeof(rte_mempool_cache).
inline constexpr uint64_t kMempoolCacheBytes = 128 * 8256;

// Bookkeeping besides pages, at most, with malloc's headers. A test holds each against the real thing.
inline constexpr uint64_t kMempoolBytes = 1024;     // struct rte_mempool, its private area and list entries
inline constexpr uint64_t kCarvedPoolBytes = 2048;  // page_frag: of the pool
inline constexpr uint64_t kLaneBytes = 5120;        // page_frag: of each lcore that uses the pool
inline constexpr uint64_t kPageCacheBytes = 2048;   // page_frag: of each lcore, for each page size
inline constexpr uint64_t kArenaBytes = 80 * 1024;  // page_frag: of each socket

// Lengths of frames, {bytes, weight}, that come in a random order.
using FrameMix = std::vector<std::pair<uint32_t, uint32_t>>;

// What a pool's surroundings add to its needs.
struct FootprintTerms {
  bool hugepages = false;  // without them an object of a stock handler never crosses a 4 KiB page
  uint32_t workers = 1;    // lcores that take buffers; each holds a page that it carves from
  // What exact pools are cut for, by name. One that is not here is taken to be cut for its own room.
  std::map<std::string, FrameMix> exact = {};
  uint64_t arena_limit = 0;  // bytes that an arena's chunks may have at most, 0: no limit
};

struct PoolFootprint {
  uint64_t object_bytes = 0;      // from one buffer to the next: header, mbuf, room, and what spreads memory channels
  uint64_t page_bytes = 0;        // no object crosses such a page
  uint32_t objects_per_page = 0;  // 0 where one object takes several pages; of an exact pool: on average, in whole ones
  uint64_t pages = 0;
  uint64_t buffer_bytes = 0;  // of all pages
  uint64_t cache_bytes = 0;   // rte_mempool's per-lcore caches
  uint64_t other_bytes = 0;   // the mempool itself and its ring of free objects, or its lanes

  uint64_t total() const { return buffer_bytes + cache_bytes + other_bytes; }
};

// The memory behind all page_frag pools of one socket, in chunks of 2 MiB.
struct ArenaFootprint {
  int socket = -1;
  std::vector<size_t> pools;  // by index
  uint64_t chunks = 0;
  uint64_t chunk_bytes = 0;   // taken from EAL: chunks of 2 MiB, each extent a page less
  uint64_t page_bytes = 0;    // of these, pages that pools hold
  uint64_t header_bytes = 0;  // of these, pages with the chunks' headers and metadata
  uint64_t other_bytes = 0;   // besides: the arena itself and the lcores' page caches
  uint64_t denied_bytes = 0;  // pages that the pools have buffers for and the limit has no room for

  uint64_t home_bytes() const { return chunk_bytes - page_bytes - header_bytes; }
  uint64_t total() const { return chunk_bytes + other_bytes; }
};

struct MemoryFootprint {
  std::vector<PoolFootprint> pools;    // in the order given
  std::vector<ArenaFootprint> arenas;  // by socket, ascending
  uint64_t total = 0;                  // what EAL must have: chunks in place of the pages in them
};

// How buffers of an exact pool fill its pages, on average: cut one behind the other, with the usual headroom, until the
// next one does not fit. By trial with a fixed seed, to well below 1 %. Frames past a page are chains.
struct ExactPacking {
  double buffer_bytes = 0;  // of one buffer, mbuf and headroom included
  double per_page = 0;      // buffers
};
ExactPacking PackExact(const FrameMix& mix, uint32_t page_bytes);

// Bytes of header, rte_mbuf and room in whole cache lines: what page_frag carves.
uint64_t PktmbufObjectBytes(uint32_t data_room);

// What `config` costs by itself, pages counted one by one. A page_frag pool whose page cannot hold one object has no
// footprint (all zero but `object_bytes`); such a pool is refused elsewhere.
PoolFootprint ComputePoolFootprint(const PktmbufPoolConfig& config, const FootprintTerms& terms);

// The same pool made by DPDK's own default handler.
PoolFootprint ComputeStockFootprint(const PktmbufPoolConfig& config, const FootprintTerms& terms);

// What all pools of a process cost together, taken in this order.
MemoryFootprint ComputeFootprint(const std::vector<PktmbufPoolConfig>& pools, const FootprintTerms& terms);

// The most buffers that pool `index` of `pools` may have (its own `size` does not matter) for all of them to stay
// within `available` bytes; 0: not even one.
uint32_t LargestPoolSize(std::vector<PktmbufPoolConfig> pools, size_t index, const FootprintTerms& terms,
                         uint64_t available);

// Where a pool's packing changes with its room. Rooms are values of `data_room`.
struct PackingCliff {
  uint32_t page_bytes = 0;  // 0: the pool has no cliff, all else is 0
  uint32_t objects_per_page = 0;
  uint32_t largest_room = 0;  // the largest that keeps `objects_per_page`
  uint32_t next_room = 0;     // the nearest smaller one with more objects per page, 0: none within 256 bytes
  uint32_t next_objects = 0;  // how many that are
};
PackingCliff FindPackingCliff(const PktmbufPoolConfig& config, const FootprintTerms& terms);

}  // namespace halfpage
