#include "mempool/footprint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "mempool/page_layout.h"

namespace halfpage {
namespace {

constexpr uint32_t kHeadroom = 128;     // RTE_PKTMBUF_HEADROOM
constexpr int kTrialPages = 4096;       // of an exact pool
constexpr int kTrialBuffers = 1 << 18;  // at most
constexpr uint64_t kObjectHeader = 64;  // struct rte_mempool_objhdr in a whole cache line
constexpr uint64_t kMbuf = 128;         // sizeof(struct rte_mbuf)
constexpr uint64_t kSystemPage = 4096;
constexpr uint64_t kHugepage = 2ull << 20;
constexpr uint64_t kRingHeader = 512;  // struct rte_ring with malloc's header
constexpr uint32_t kCliffReach = 256;  // how much smaller a room may be to be worth a word
constexpr uint32_t kMostRoom = 65535;
constexpr uint32_t kLeastRoom = 128;  // the headroom

uint64_t CeilDiv(uint64_t n, uint64_t by) {
  return (n + by - 1) / by;
}

bool IsCarved(const PktmbufPoolConfig& config) {
  return config.ops == "page_frag";
}

// rte_mempool spreads objects over four memory channels: an odd number of cache lines from one to the next.
uint64_t StockObjectBytes(uint32_t data_room) {
  return (PktmbufObjectBytes(data_room) / kCacheLine | 1) * kCacheLine;
}

absl::optional<PageLayout> LayoutOf(const PktmbufPoolConfig& config, uint32_t data_room, uint32_t page_size) {
  return LayOutPage(static_cast<uint32_t>(PktmbufObjectBytes(data_room)), page_size, config.page_frag.colour);
}

// As rte_mempool_op_calc_mem_size_helper(): the last page is taken as far as it is used.
uint64_t StockBufferBytes(uint64_t size, uint64_t object, uint64_t page) {
  const uint64_t per_page = page / object;
  if (size == 0) return 0;
  if (per_page == 0) return size * CeilDiv(object, page) * page;
  const uint64_t full = (size - 1) / per_page;
  return full * page + (size - full * per_page) * object;
}

const FrameMix& MixOf(const PktmbufPoolConfig& config, const FootprintTerms& terms, FrameMix* own_room) {
  const auto mix = terms.exact.find(config.name);
  if (mix != terms.exact.end()) return mix->second;
  *own_room = {{config.data_room - std::min<uint32_t>(config.data_room, kHeadroom), 1}};
  return *own_room;
}

// Pages that the arena expects the pool to fill: by its room, exact or not.
uint64_t AnnouncedPages(const PktmbufPoolConfig& config) {
  const auto layout = LayoutOf(config, config.data_room, config.page_frag.page_size);
  return layout.has_value() ? CeilDiv(config.size, layout->objects) : 0;
}

// An arena that grows as PageArena does, pool by pool.
class ArenaModel {
 public:
  // Announces a pool whose objects fill `pages` pages.
  void AddPool(uint32_t page_class, uint64_t pages) { fillable_[page_class] += pages; }

  explicit ArenaModel(uint64_t limit_bytes) : limit_(limit_bytes / kChunkBytes) {}

  void Take(uint32_t page_class, uint64_t pages) {
    while (home_[page_class] < pages) {
      if (free_whole_ + free_last_ == 0 && !Grow()) break;
      // The last chunk of an extent lies on top of those that are free.
      const bool last = free_last_ > 0;
      --(last ? free_last_ : free_whole_);
      const ChunkLayout layout = LayOutChunk(kMinPageShift + page_class, last);
      header_bytes_ += uint64_t{layout.first_page} << (kMinPageShift + page_class);
      home_[page_class] += layout.pages;
      pages_[page_class] += layout.pages;
    }
    const uint64_t taken = std::min(pages, home_[page_class]);
    taken_bytes_ += taken << (kMinPageShift + page_class);
    denied_bytes_ += (pages - taken) << (kMinPageShift + page_class);
    home_[page_class] -= taken;
  }

  void Write(ArenaFootprint* out) const {
    out->chunks = chunks_;
    out->chunk_bytes = chunks_ * kChunkBytes - extents_ * kExtentShortfall;
    out->page_bytes = taken_bytes_;
    out->header_bytes = header_bytes_;
    out->denied_bytes = denied_bytes_;
  }

 private:
  // False at the limit.
  bool Grow() {
    uint64_t missing = 0;
    for (uint32_t c = 0; c < kPageClasses; ++c) {
      if (fillable_[c] <= pages_[c]) continue;
      missing += CeilDiv(fillable_[c] - pages_[c], LayOutChunk(kMinPageShift + c, false).pages);
    }
    uint64_t chunks = NextExtentChunks(chunks_, missing);
    if (limit_ != 0) chunks = std::min(chunks, limit_ - chunks_);
    if (chunks == 0) return false;
    chunks_ += chunks;
    ++extents_;
    free_whole_ += chunks - 1;
    ++free_last_;
    return true;
  }

  uint64_t limit_ = 0;  // chunks, 0: none
  uint64_t denied_bytes_ = 0;

  uint64_t fillable_[kPageClasses] = {};
  uint64_t pages_[kPageClasses] = {};
  uint64_t home_[kPageClasses] = {};
  uint64_t taken_bytes_ = 0;
  uint64_t header_bytes_ = 0;
  uint64_t chunks_ = 0;
  uint64_t extents_ = 0;
  uint64_t free_whole_ = 0;
  uint64_t free_last_ = 0;
};

uint32_t ClassOf(const PoolFootprint& pool) {
  return static_cast<uint32_t>(std::countr_zero(pool.page_bytes)) - kMinPageShift;
}

ArenaFootprint ComputeArena(int socket, const std::vector<size_t>& members, const std::vector<PktmbufPoolConfig>& pools,
                            const MemoryFootprint& memory, const FootprintTerms& terms) {
  ArenaFootprint arena;
  arena.socket = socket;
  arena.pools = members;
  ArenaModel model(terms.arena_limit);
  std::set<uint32_t> classes;
  for (const size_t p : members) {
    const PoolFootprint& pool = memory.pools[p];
    model.AddPool(ClassOf(pool), AnnouncedPages(pools[p]));
    classes.insert(ClassOf(pool));
  }
  for (const size_t p : members) model.Take(ClassOf(memory.pools[p]), memory.pools[p].pages);
  model.Write(&arena);
  arena.other_bytes = kArenaBytes + classes.size() * (terms.workers + 1) * kPageCacheBytes;
  return arena;
}

}  // namespace

uint64_t PktmbufObjectBytes(uint32_t data_room) {
  return CeilDiv(kObjectHeader + kMbuf + data_room, kCacheLine) * kCacheLine;
}

ExactPacking PackExact(const FrameMix& mix, uint32_t page_bytes) {
  ExactPacking packing;
  uint64_t all = 0;
  for (const auto& [length, weight] : mix) all += weight;
  if (all == 0) return packing;
  const uint64_t largest = LargestExactBytes(page_bytes);
  const uint64_t one = CeilDiv(kMbuf + kHeadroom + mix.front().first, kCacheLine) * kCacheLine;
  if (mix.size() == 1 && one <= largest) {  // every page is cut alike
    packing.buffer_bytes = static_cast<double>(one);
    packing.per_page = static_cast<double>(page_bytes / one);
    return packing;
  }
  uint64_t random = 1;  // Knuth's linear congruential generator: the same on every machine
  uint64_t left = 0;    // of the page that is being cut
  uint64_t sum = 0;
  int pages = 0;
  int cut = 0;
  while (cut < kTrialBuffers && pages < kTrialPages) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    uint64_t draw = (random >> 33) % all;
    size_t i = 0;
    for (; draw >= mix[i].second; ++i) draw -= mix[i].second;
    // Segment by segment; only the first has headroom.
    for (int64_t rest = int64_t{mix[i].first} + kHeadroom; rest > 0; rest -= static_cast<int64_t>(largest - kMbuf)) {
      const uint64_t bytes = std::min(CeilDiv(kMbuf + static_cast<uint64_t>(rest), kCacheLine) * kCacheLine, largest);
      if (bytes > left) {
        ++pages;
        left = page_bytes;
      }
      left -= bytes;
      sum += bytes;
      ++cut;
    }
  }
  packing.buffer_bytes = static_cast<double>(sum) / cut;
  packing.per_page = static_cast<double>(cut) / pages;
  return packing;
}

PoolFootprint ComputePoolFootprint(const PktmbufPoolConfig& config, const FootprintTerms& terms) {
  if (!IsCarved(config)) return ComputeStockFootprint(config, terms);
  PoolFootprint footprint;
  footprint.object_bytes = PktmbufObjectBytes(config.data_room);
  const auto layout = LayoutOf(config, config.data_room, config.page_frag.page_size);
  if (!layout.has_value()) return footprint;
  footprint.page_bytes = layout->page_size();
  footprint.objects_per_page = layout->objects;
  double per_page = layout->objects;
  if (config.page_frag.exact) {
    FrameMix own_room;
    const ExactPacking packing = PackExact(MixOf(config, terms, &own_room), layout->page_size());
    footprint.object_bytes = static_cast<uint64_t>(std::ceil(packing.buffer_bytes));
    footprint.objects_per_page = static_cast<uint32_t>(packing.per_page);
    per_page = packing.per_page;
  }
  // Lcores that carve side by side leave a page each that is not used up.
  const auto filled = static_cast<uint64_t>(std::ceil(config.size / per_page));
  footprint.pages = filled + std::min<uint64_t>(filled, config.page_frag.rotation) + std::max(terms.workers, 1u) - 1;
  footprint.buffer_bytes = footprint.pages * footprint.page_bytes;
  if (config.cache > 0) footprint.cache_bytes = kMempoolCacheBytes;
  // One lane more than workers: that of threads without an lcore id.
  footprint.other_bytes = kMempoolBytes + kCarvedPoolBytes + (terms.workers + 1) * kLaneBytes;
  return footprint;
}

PoolFootprint ComputeStockFootprint(const PktmbufPoolConfig& config, const FootprintTerms& terms) {
  PoolFootprint footprint;
  footprint.object_bytes = StockObjectBytes(config.data_room);
  footprint.page_bytes = terms.hugepages ? kHugepage : kSystemPage;
  footprint.objects_per_page = static_cast<uint32_t>(footprint.page_bytes / footprint.object_bytes);
  footprint.buffer_bytes = StockBufferBytes(config.size, footprint.object_bytes, footprint.page_bytes);
  footprint.pages = CeilDiv(footprint.buffer_bytes, footprint.page_bytes);
  if (config.cache > 0) footprint.cache_bytes = kMempoolCacheBytes;
  footprint.other_bytes = kMempoolBytes + kRingHeader + std::bit_ceil(uint64_t{config.size} + 1) * sizeof(void*);
  return footprint;
}

MemoryFootprint ComputeFootprint(const std::vector<PktmbufPoolConfig>& pools, const FootprintTerms& terms) {
  MemoryFootprint memory;
  std::map<int, std::vector<size_t>> by_socket;
  for (size_t p = 0; p < pools.size(); ++p) {
    const PoolFootprint pool = ComputePoolFootprint(pools[p], terms);
    const bool carved = IsCarved(pools[p]) && pool.pages > 0;
    if (carved) by_socket[pools[p].socket].push_back(p);
    memory.total += pool.total() - (carved ? pool.buffer_bytes : 0);
    memory.pools.push_back(pool);
  }
  for (const auto& [socket, members] : by_socket) {
    memory.arenas.push_back(ComputeArena(socket, members, pools, memory, terms));
    memory.total += memory.arenas.back().total();
  }
  return memory;
}

uint32_t LargestPoolSize(std::vector<PktmbufPoolConfig> pools, size_t index, const FootprintTerms& terms,
                         uint64_t available) {
  uint32_t fits = 0;
  uint32_t too_many = UINT32_MAX;
  // Bounded first: no buffer takes less than its object, and the arena is modelled extent by extent.
  const uint64_t least = pools[index].page_frag.exact ? kMbuf : PktmbufObjectBytes(pools[index].data_room);
  const uint64_t bound = available / least + 1;
  too_many = static_cast<uint32_t>(std::min<uint64_t>(bound, too_many));
  while (too_many - fits > 1) {
    const uint32_t trial = fits + (too_many - fits) / 2;
    pools[index].size = trial;
    (ComputeFootprint(pools, terms).total <= available ? fits : too_many) = trial;
  }
  return fits;
}

PackingCliff FindPackingCliff(const PktmbufPoolConfig& config, const FootprintTerms& terms) {
  PackingCliff cliff;
  if (config.page_frag.exact || (!IsCarved(config) && terms.hugepages)) return cliff;
  const PoolFootprint now = ComputePoolFootprint(config, terms);
  if (now.objects_per_page == 0) return cliff;
  cliff.page_bytes = now.page_bytes;
  cliff.objects_per_page = now.objects_per_page;
  const auto objects = [&](uint32_t room) -> uint32_t {
    if (!IsCarved(config)) return static_cast<uint32_t>(kSystemPage / StockObjectBytes(room));
    const auto layout = LayoutOf(config, room, static_cast<uint32_t>(now.page_bytes));
    return layout.has_value() ? layout->objects : 0;
  };
  cliff.largest_room = config.data_room;
  while (cliff.largest_room < kMostRoom && objects(cliff.largest_room + 1) == now.objects_per_page) {
    ++cliff.largest_room;
  }
  for (uint32_t room = config.data_room; room > kLeastRoom && config.data_room - room < kCliffReach;) {
    if (objects(--room) <= now.objects_per_page) continue;
    cliff.next_room = room;
    cliff.next_objects = objects(room);
    break;
  }
  return cliff;
}

}  // namespace halfpage
