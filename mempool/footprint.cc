#include "mempool/footprint.h"

#include <algorithm>

#include "mempool/page_layout.h"

namespace halfpage {
namespace {

constexpr uint64_t kObjectHeader = 64;  // struct rte_mempool_objhdr in a whole cache line
constexpr uint64_t kMbuf = 128;         // sizeof(struct rte_mbuf)
constexpr uint64_t kSystemPage = 4096;
constexpr uint64_t kLcores = 128;            // RTE_MAX_LCORE
constexpr uint64_t kLcoreCacheBytes = 8256;  // sizeof(struct rte_mempool_cache)
constexpr uint64_t kPageMetadataShare = 64;  // one byte of metadata for so many bytes of pages

uint64_t CeilDiv(uint64_t n, uint64_t by) {
  return (n + by - 1) / by;
}

}  // namespace

uint64_t PktmbufObjectBytes(uint32_t data_room) {
  return CeilDiv(kObjectHeader + kMbuf + data_room, kCacheLine) * kCacheLine;
}

PoolFootprint ComputePoolFootprint(const PktmbufPoolConfig& config, const FootprintTerms& terms) {
  PoolFootprint footprint;
  footprint.object_bytes = PktmbufObjectBytes(config.data_room);
  if (config.ops == "page_frag") {
    const auto layout =
        LayOutPage(static_cast<uint32_t>(footprint.object_bytes), config.page_frag.page_size, config.page_frag.colour);
    if (!layout.has_value()) return footprint;
    footprint.page_bytes = layout->page_size();
    footprint.objects_per_page = layout->objects;
    footprint.pages = CeilDiv(config.size, layout->objects) + terms.workers;
    footprint.buffer_bytes = footprint.pages * footprint.page_bytes;
    footprint.other_bytes = CeilDiv(footprint.buffer_bytes, kPageMetadataShare);
  } else if (terms.hugepages) {
    footprint.buffer_bytes = config.size * footprint.object_bytes;
  } else {
    const uint64_t per_page = kSystemPage / footprint.object_bytes;
    footprint.page_bytes = kSystemPage;
    footprint.objects_per_page = static_cast<uint32_t>(per_page);
    footprint.pages =
        per_page > 0 ? CeilDiv(config.size, per_page) : config.size * CeilDiv(footprint.object_bytes, kSystemPage);
    footprint.buffer_bytes = footprint.pages * kSystemPage;
  }
  if (config.cache > 0) footprint.cache_bytes = kLcores * kLcoreCacheBytes;
  return footprint;
}

uint32_t LargestPoolSize(const PktmbufPoolConfig& config, const FootprintTerms& terms, uint64_t available) {
  PktmbufPoolConfig trial = config;
  uint32_t fits = 0;
  uint32_t too_many = UINT32_MAX;
  // The footprint never falls as the size grows, so halving finds the edge.
  while (too_many - fits > 1) {
    trial.size = fits + (too_many - fits) / 2;
    (ComputePoolFootprint(trial, terms).total() <= available ? fits : too_many) = trial.size;
  }
  return fits;
}

}  // namespace halfpage
