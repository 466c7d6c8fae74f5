// Real bytes of packet-buffer pools, before any of them is allocated. Arithmetic only: no DPDK call, any thread.
//
// A buffer costs more than its room: 64 bytes of mempool header and 128 of rte_mbuf stand before it, and what a page
// has no use for behind its last buffer is lost.
#pragma once

#include <cstdint>

#include "mempool/pktmbuf_pool.h"

namespace halfpage {

// What EAL takes of its own memory before the first pool (rings, ports, lcores, malloc's own), rounded up generously.
inline constexpr uint64_t kEalOwnBytes = 32ull << 20;

// What a pool's surroundings add to its needs.
struct FootprintTerms {
  bool hugepages = false;  // without them an object of a stock handler never crosses a 4 KiB page
  uint32_t workers = 1;    // each holds one page that it carves from
};

struct PoolFootprint {
  uint64_t object_bytes = 0;      // one buffer with header and mbuf, a multiple of 64
  uint64_t page_bytes = 0;        // 0: objects lie back to back, pages do not matter
  uint32_t objects_per_page = 0;  // 0 where one object takes several pages, or pages do not matter
  uint64_t pages = 0;
  uint64_t buffer_bytes = 0;  // of all pages, or of all objects
  uint64_t cache_bytes = 0;   // rte_mempool's per-lcore caches: all 128 lcores have one, used or not
  uint64_t other_bytes = 0;   // page_frag: metadata of its pages

  uint64_t total() const { return buffer_bytes + cache_bytes + other_bytes; }
};

// Bytes from one mempool object to the next: header, rte_mbuf and room, in whole cache lines.
uint64_t PktmbufObjectBytes(uint32_t data_room);

// What `config` costs. A page_frag pool whose page cannot hold one object has no footprint (all zero but
// `object_bytes`); such a pool is refused elsewhere.
PoolFootprint ComputePoolFootprint(const PktmbufPoolConfig& config, const FootprintTerms& terms);

// The most buffers that `config` may have (its own `size` does not matter) within `available` bytes; 0: not even one.
uint32_t LargestPoolSize(const PktmbufPoolConfig& config, const FootprintTerms& terms, uint64_t available);

}  // namespace halfpage
