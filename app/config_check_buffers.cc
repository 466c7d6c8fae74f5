// Pools: their own rules, what the run can hold at once, and all of them against EAL's memory.
#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/config_check.h"
#include "app/config_units.h"
#include "mempool/footprint.h"

namespace halfpage {
namespace {

std::string PoolPath(size_t pool) {
  return absl::StrCat("pools[", pool, "]");
}

// rte_mempool flushes a cache at 1.5 times its size (CALC_CACHE_FLUSHTHRESH), and refuses a pool below that.
uint32_t CacheHolds(uint32_t cache) {
  return cache * 3 / 2;
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
    for (const char* key : {".page_size", ".recycle", ".colour"}) {
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

// The ends that frames of a program may be sent to.
std::vector<std::string> Targets(const Config& config, const std::string& name) {
  std::vector<std::string> targets;
  for (const ProgramConfig& program : config.programs) {
    if (program.name != name) continue;
    targets.push_back(program.target);
    targets.push_back(program.fallback_target);
    for (const FilterRule& rule : program.rules) targets.push_back(rule.target);
  }
  return targets;
}

// The pairs whose rings can hold buffers of the pool: those it is sent into, and where redirects take them from there.
std::set<size_t> PairsFed(const Config& config, const std::string& pool) {
  const std::map<std::string, EndPlace> ends = EndsByName(config);
  std::vector<std::string> reached;
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.pool == pool) reached.push_back(traffic.into);
  }
  std::set<size_t> pairs;
  while (!reached.empty()) {
    const auto place = ends.find(reached.back());
    reached.pop_back();
    if (place == ends.end() || !pairs.insert(place->second.pair).second) continue;
    for (const VethEndConfig& end : config.veth[place->second.pair].ends) {
      if (end.program.empty()) continue;
      for (std::string& target : Targets(config, end.program)) reached.push_back(std::move(target));
    }
  }
  return pairs;
}

void CheckSize(const Config& config, const PktmbufPoolConfig& pool, const std::string& path, FaultList& faults) {
  const uint64_t workers = config.lcores.workers.size();
  uint64_t rings = 0;
  for (const size_t pair : PairsFed(config, pool.name)) {
    rings += 2ull * config.veth[pair].queues * config.veth[pair].ring;
  }
  if (rings == 0) return;
  uint64_t bursts = workers * (config.measure.budget + config.measure.bulk);
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.pool == pool.name) bursts += traffic.burst;
  }
  const uint64_t caches = workers * CacheHolds(pool.cache);
  const uint64_t sum = rings + caches + bursts;
  if (pool.size >= sum) return;
  faults.Warn(path + ".size", absl::StrCat(pool.size, " buffers are fewer than can be held at once: rings ", rings,
                                           " + caches ", caches, " + bursts ", bursts, " = ", sum,
                                           "; sources will find no buffer at times: write size: ", std::bit_ceil(sum),
                                           ", or shorten rings"));
}

}  // namespace

void CheckPools(const Config& config, FaultList& faults) {
  const bool whole =
      !faults.Touches("veth") && !faults.Touches("traffic") && !faults.Touches("programs") && !faults.Touches("lcores");
  for (size_t i = 0; i < config.pools.size(); ++i) {
    const std::string path = PoolPath(i);
    if (faults.Touches(path)) continue;
    CheckCache(config.pools[i], path, faults);
    CheckPage(config.pools[i], path, faults);
    if (whole) CheckSize(config, config.pools[i], path, faults);
  }
}

void CheckMemory(const Config& config, FaultList& faults) {
  // With `preset: none` the arguments say what memory there is.
  if (faults.Touches("pools") || faults.Touches("eal") || config.eal.preset == EalConfig::Preset::kNone) return;
  const FootprintTerms terms = {.hugepages = config.eal.preset == EalConfig::Preset::kHugepages,
                                .workers = static_cast<uint32_t>(config.lcores.workers.size())};
  const uint64_t available = config.eal.memory - kEalOwnBytes;
  uint64_t needed = 0;
  size_t crossing = config.pools.size();
  std::vector<std::string> parts;
  for (size_t i = 0; i < config.pools.size(); ++i) {
    const uint64_t bytes = ComputePoolFootprint(config.pools[i], terms).total();
    needed += bytes;
    if (needed > available && crossing == config.pools.size()) crossing = i;
    parts.push_back(absl::StrCat(config.pools[i].name, " ", DescribeBytes(bytes)));
  }
  if (needed <= available) return;
  const PktmbufPoolConfig& pool = config.pools[crossing];
  const uint64_t others = needed - ComputePoolFootprint(pool, terms).total();
  const uint32_t largest = others < available ? LargestPoolSize(pool, terms, available - others) : 0;
  const std::string smaller = largest > 0 ? absl::StrCat("size: ", largest, " or less here, or ")
                                          : "no size of this pool alone is small enough: shrink others too, or write ";
  const uint64_t wanted_mib = (needed + kEalOwnBytes + (1 << 20) - 1) >> 20;
  faults.Fault(PoolPath(crossing) + ".size",
               absl::StrCat("the pools need ", DescribeBytes(needed), ", and eal.memory ",
                            FormatBytes(config.eal.memory), " less ", FormatBytes(kEalOwnBytes),
                            " for EAL itself leaves ", DescribeBytes(available), ": ", absl::StrJoin(parts, ", "),
                            "; pool `", pool.name, "` crosses the line: ", largest > 0 ? "write " : "", smaller,
                            "memory: ", wanted_mib, "MiB under eal"));
}

}  // namespace halfpage
