#include "app/config_sizes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/config_check.h"

namespace halfpage {
namespace {

constexpr uint32_t kHeadroom = 128;     // RTE_PKTMBUF_HEADROOM
constexpr uint32_t kFrameOverMtu = 18;  // Ethernet header and a VLAN tag
constexpr uint32_t kWithoutCache = 32;  // sizes without a cache are a multiple of it
constexpr uint64_t kMostBuffers = 1u << 27;

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

// No longer than the MTU of the device that receives it; of a capture, nothing else is known here.
uint32_t LongestFrame(const Config& config, const TrafficConfig& traffic, const std::map<std::string, EndPlace>& ends) {
  const auto place = ends.find(traffic.into);
  if (place == ends.end()) return 0;
  const uint32_t limit = config.veth[place->second.pair].ends[1 - place->second.end].mtu + kFrameOverMtu;
  if (traffic.source == TrafficConfig::Source::kCapture) return limit;
  uint32_t longest = 0;
  for (const auto& [size, weight] : traffic.sizes) longest = std::max(longest, size);
  return std::min(longest, limit);
}

// Headroom is kept in a frame's first buffer only.
uint32_t Segments(uint32_t frame, uint32_t data_room) {
  const uint32_t first = data_room - kHeadroom;
  return frame <= first ? 1 : 2 + (frame - first - 1) / data_room;
}

}  // namespace

BufferNeeds NeedsOf(const Config& config, size_t number) {
  const PktmbufPoolConfig& pool = config.pools[number];
  const std::map<std::string, EndPlace> ends = EndsByName(config);
  BufferNeeds needs;
  uint64_t frames = 0;
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.pool != pool.name) continue;
    needs.segments = std::max(needs.segments, Segments(LongestFrame(config, traffic, ends), pool.data_room));
    frames += traffic.burst;
  }
  uint64_t slots = 0;
  for (const size_t pair : PairsFed(config, pool.name)) {
    slots += 2ull * config.veth[pair].queues * config.veth[pair].ring;
  }
  if (slots == 0) return needs;
  const uint64_t workers = config.lcores.workers.size();
  frames += workers * (config.measure.budget + config.measure.bulk);
  needs.rings = slots * needs.segments;
  needs.bursts = frames * needs.segments;
  needs.caches = workers * CacheHolds(pool.cache);
  return needs;
}

uint32_t AutoSize(const Config& config, size_t pool) {
  const uint32_t cache = config.pools[pool].cache;
  const uint64_t step = cache > 0 ? cache : kWithoutCache;
  const uint64_t least = std::max({NeedsOf(config, pool).sum(), CacheHolds(cache), uint64_t{1}});
  // Past the largest size that the key takes, the check of memory speaks.
  return static_cast<uint32_t>(std::min((least + step - 1) / step * step, kMostBuffers));
}

void ResolveSizes(Config& config) {
  for (size_t p = 0; p < config.pools.size(); ++p) {
    if (config.pools[p].size == 0) config.pools[p].size = AutoSize(config, p);
  }
}

}  // namespace halfpage
