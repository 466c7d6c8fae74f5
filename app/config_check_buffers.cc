// Pools: their own rules, what the run can hold at once, and all of them against EAL's memory.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/config_check.h"
#include "app/config_sizes.h"
#include "app/config_units.h"
#include "app/plan.h"
#include "mempool/footprint.h"
#include "mempool/page_layout.h"

namespace halfpage {
namespace {

std::string PoolPath(size_t pool) {
  return absl::StrCat("pools[", pool, "]");
}

void CheckCache(const PktmbufPoolConfig& pool, const std::string& path, FaultList& faults) {
  if (CacheHolds(pool.cache) > pool.size) {
    faults.Fault(path + ".cache", absl::StrCat(pool.cache, " is too much for `size` ", pool.size,
                                               ": an lcore's cache holds up to 1.5 times ", "its size, ",
                                               CacheHolds(pool.cache), "; write cache: ", (2ull * pool.size + 1) / 3,
                                               " or less, or size: ", CacheHolds(pool.cache), " or more"));
  } else if (faults.Given(path + ".cache") && pool.cache > 0 && pool.size % pool.cache != 0) {
    faults.Warn(path + ".cache", absl::StrCat(pool.cache, " does not divide `size` ", pool.size, ", so up to ",
                                              pool.size % pool.cache, " buffers may never be used: write size: ",
                                              (static_cast<uint64_t>(pool.size) / pool.cache + 1) * pool.cache));
  }
}

void CheckPage(const PktmbufPoolConfig& pool, const std::string& path, FaultList& faults) {
  if (pool.ops != "page_frag") {
    for (const char* key : {".page_size", ".recycle", ".rotation", ".colour", ".debug"}) {
      if (!faults.Given(path + key)) continue;
      faults.Warn(path + key, absl::StrCat("means nothing to `ops: ", pool.ops, "`: remove it, or use page_frag"));
    }
    return;
  }
  const uint32_t page = pool.page_frag.page_size;
  const uint64_t object = PktmbufObjectBytes(pool.data_room);
  if (page == 0 || object <= page) return;
  faults.Fault(path + ".page_size",
               absl::StrCat(FormatBytes(page), " holds no buffer: one takes ", object,
                            " bytes (64 header + 128 mbuf + ", "data_room ", pool.data_room,
                            ", in lines of 64); write page_size: ", FormatBytes(std::bit_ceil(object)),
                            " or auto, or data_room: ", page - 192, " or less"));
}

void CheckSocket(const Config& config, const PktmbufPoolConfig& pool, const std::string& path, FaultList& faults) {
  if (pool.socket <= 0 || UsesHugepages(config.eal)) return;
  faults.Fault(path + ".socket", absl::StrCat(pool.socket,
                                              ": without hugepages all of EAL's memory counts as socket 0: write "
                                              "socket: auto, or preset: hugepages under eal"));
}

void CheckExact(const PktmbufPoolConfig& pool, const std::string& path, FaultList& faults) {
  if (!pool.page_frag.exact) return;
  if (pool.ops != "page_frag") {
    faults.Fault(path + ".exact", absl::StrCat("`ops: ", pool.ops,
                                               "` has buffers of one room only: remove `exact`, or "
                                               "write ops: page_frag"));
  } else if (pool.cache != 0) {
    faults.Fault(path + ".cache", absl::StrCat(pool.cache,
                                               " with `exact: true`: a cached buffer would come back with "
                                               "another frame's room; write cache: 0"));
  } else if (pool.page_frag.debug) {
    faults.Warn(path + ".debug", "an exact pool counts its buffers and cannot tell which are out: remove it");
  }
}

void CheckClasses(const Config& config, const TrafficConfig& traffic, const std::string& path, FaultList& faults) {
  if (!traffic.pool.empty()) {
    faults.Fault(path + ".classes", absl::StrCat("`pool: ", traffic.pool,
                                                 "` names one pool already: remove `pool`, and "
                                                 "have it among `classes`, or remove `classes`"));
    return;
  }
  for (size_t p = 0; p < traffic.classes.size(); ++p) {
    const std::string item = absl::StrCat(path, ".classes[", p, "]");
    const PktmbufPoolConfig* pool = config.FindPool(traffic.classes[p]);
    if (std::find(traffic.classes.begin(), traffic.classes.begin() + static_cast<std::ptrdiff_t>(p),
                  traffic.classes[p]) != traffic.classes.begin() + static_cast<std::ptrdiff_t>(p)) {
      faults.Fault(item, absl::StrCat(Shown(traffic.classes[p]), " is in this list already: name each pool once"));
    } else if (pool != nullptr && pool->page_frag.exact) {
      faults.Fault(item, absl::StrCat(Shown(traffic.classes[p]),
                                      " has `exact: true` and no room to choose it by: name "
                                      "it as `pool` with buffers: exact, or remove `exact` there"));
    }
  }
}

void CheckExactSource(const Config& config, const TrafficConfig& traffic, const std::string& path, FaultList& faults) {
  if (!traffic.classes.empty()) {
    faults.Fault(path + ".buffers",
                 "exact buffers have no classes: name one pool with `exact: true` as `pool`, or "
                 "write buffers: pool");
    return;
  }
  const PktmbufPoolConfig* pool = config.FindPool(traffic.pool);
  if (pool == nullptr) return;
  if (!pool->page_frag.exact) {
    faults.Fault(path + ".buffers", absl::StrCat("pool ", Shown(pool->name),
                                                 " has buffers of one room: write exact: "
                                                 "true under pools[",
                                                 pool - config.pools.data(), "], or buffers: pool here"));
  }
}

// Whether whoever finds this pool empty takes a larger class instead.
bool AllBorrow(const Config& config, const PktmbufPoolConfig& pool) {
  for (const TrafficConfig& traffic : config.traffic) {
    const std::vector<std::string> names = traffic.PoolNames();
    if (std::find(names.begin(), names.end(), pool.name) == names.end()) continue;
    if (traffic.classes.empty() || !traffic.borrow || RangeOf(config, traffic, pool).last) return false;
  }
  return true;
}

void CheckSize(const Config& config, size_t number, const std::string& path, FaultList& faults) {
  const BufferNeeds needs = NeedsOf(config, number);
  const uint32_t size = config.pools[number].size;
  if (needs.rings == 0 || size >= needs.sum() || AllBorrow(config, config.pools[number])) return;
  const std::string chains = needs.segments > 1 ? absl::StrCat(" (a frame takes ", needs.segments, ")") : "";
  faults.Warn(path + ".size", absl::StrCat(size, " buffers are fewer than can be held at once: rings ", needs.rings,
                                           " + caches ", needs.caches, " + bursts ", needs.bursts, " = ", needs.sum(),
                                           chains, "; sources will find no buffer at times: write size: auto (",
                                           AutoSize(config, number), "), or shorten rings"));
}

}  // namespace

void CheckBuffers(const Config& config, FaultList& faults) {
  if (faults.Touches("pools")) return;
  for (size_t i = 0; i < config.traffic.size(); ++i) {
    const TrafficConfig& traffic = config.traffic[i];
    const std::string path = absl::StrCat("traffic[", i, "]");
    if (faults.Touches(path)) continue;
    if (!traffic.classes.empty()) CheckClasses(config, traffic, path, faults);
    if (traffic.buffers == TrafficConfig::Buffers::kExact) CheckExactSource(config, traffic, path, faults);
    const PktmbufPoolConfig* pool = config.FindPool(traffic.pool);
    if (pool != nullptr && pool->page_frag.exact && config.measure.track_owners) {
      faults.Fault("measure.track_owners",
                   absl::StrCat("buffers of pool ", Shown(pool->name),
                                " have no header that a stamp fits into (exact: true): write track_owners: false, or "
                                "exact: false and buffers: pool for the run that looks for a leak"));
    }
  }
}

void CheckPools(const Config& config, FaultList& faults) {
  const bool whole =
      !faults.Touches("veth") && !faults.Touches("traffic") && !faults.Touches("programs") && !faults.Touches("lcores");
  for (size_t i = 0; i < config.pools.size(); ++i) {
    const std::string path = PoolPath(i);
    if (faults.Touches(path)) continue;
    CheckSocket(config, config.pools[i], path, faults);
    CheckExact(config.pools[i], path, faults);
    CheckCache(config.pools[i], path, faults);
    if (faults.Given(path)) CheckPage(config.pools[i], path, faults);  // else it is made for copies, checked there
    if (whole) CheckSize(config, i, path, faults);
  }
}

namespace {

// A limit below the sum of all pools is what a limit is for. One that holds not even the pool that needs most, or not a
// chunk for each size of page, is a mistake.
void CheckArenaLimit(const Config& config, FaultList& faults) {
  if (config.arena.limit == 0 || faults.Touches("pools") || faults.Touches("arena")) return;
  Config unlimited = config;
  unlimited.arena.limit = 0;
  const MemoryPlan plan = PlanMemory(unlimited);
  for (const ArenaFootprint& arena : plan.memory.arenas) {
    std::set<uint64_t> page_sizes;
    uint64_t most = 0;
    std::string neediest;
    for (const size_t p : arena.pools) {
      page_sizes.insert(plan.memory.pools[p].page_bytes);
      const uint64_t chunks = ComputeFootprint({config.pools[p]}, plan.terms).arenas.front().chunks;
      if (chunks <= most) continue;
      most = chunks;
      neediest = config.pools[p].name;
    }
    const uint64_t have = config.arena.limit / kChunkBytes;
    const std::string shown =
        absl::StrCat(FormatBytes(config.arena.limit), " hold ", have, " of an arena's chunks of 2MiB");
    const std::string write =
        absl::StrCat("write limit: ", 2 * most, "MiB or more (", 2 * arena.chunks, "MiB hold all pools at once)");
    if (have < page_sizes.size()) {
      faults.Fault("arena.limit", absl::StrCat(shown, ", and pools with pages of ", page_sizes.size(),
                                               " sizes share them, each of which takes chunks of its own: a pool "
                                               "would find no page at all; ",
                                               write));
      return;
    }
    if (have >= most) continue;
    faults.Warn("arena.limit", absl::StrCat(shown, ", and pool `", neediest, "` alone needs ", most,
                                            " to have all its buffers out: sources will find no buffer before it is "
                                            "empty; ",
                                            write, ", or a smaller `size` there"));
    return;
  }
}

}  // namespace

void CheckMemory(const Config& config, FaultList& faults) {
  CheckArenaLimit(config, faults);
  if (faults.Touches("pools") || faults.Touches("eal") || faults.Touches("veth")) return;
  const MemoryPlan plan = PlanMemory(config);
  if (!plan.overrun.has_value()) return;
  std::vector<std::string> parts;
  uint64_t rest = plan.needed;
  for (const PoolPlan& pool : plan.pools) {
    parts.push_back(absl::StrCat(pool.config.name, " ", DescribeBytes(pool.own.total())));
    rest -= pool.own.total();
  }
  parts.push_back(absl::StrCat("rings and whole chunks ", DescribeBytes(rest)));
  const std::string& name = plan.pools[plan.overrun->pool].config.name;
  const uint32_t largest = plan.overrun->largest;
  const uint64_t wanted_mib = (plan.needed + kEalOwnBytes + (1 << 20) - 1) >> 20;
  // With arguments of its own EAL has its memory from there.
  const std::string more = config.eal.preset == EalConfig::Preset::kNone
                               ? absl::StrCat("-m ", wanted_mib, " among EAL's arguments")
                               : absl::StrCat("memory: ", wanted_mib, "MiB under eal");
  faults.Fault(
      PoolPath(plan.overrun->pool) + ".size",
      absl::StrCat("the pools need ", DescribeBytes(plan.needed), ", and eal.memory ", FormatBytes(plan.eal_memory),
                   " less ", FormatBytes(kEalOwnBytes), " for EAL itself leaves ", DescribeBytes(plan.available), ": ",
                   absl::StrJoin(parts, ", "), "; pool `", name, "` crosses the line: ",
                   largest > 0 ? absl::StrCat("write size: ", largest, " or less here, or ")
                               : "no size of this pool alone is small enough: shrink others too, or write ",
                   more));
}

}  // namespace halfpage
