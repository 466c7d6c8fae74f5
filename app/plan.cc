#include "app/plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "app/config_units.h"
#include "mempool/page_layout.h"

namespace halfpage {
namespace {

constexpr uint64_t kBytesPerMiB = 1ull << 20;
constexpr uint64_t kEalWithoutHugepages = 64;  // MiB without -m: MEMSIZE_IF_NO_HUGE_PAGE
constexpr uint64_t kRingHeader = 512;          // struct rte_ring with malloc's header

// What EAL's own arguments say of memory.
struct EalMemory {
  bool hugepages = true;
  uint64_t bytes = 0;  // 0: as much as there is
};

EalMemory ReadArguments(const std::vector<std::string>& arguments) {
  EalMemory memory;
  uint64_t mib = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--no-huge") memory.hugepages = false;
    std::string value;
    if (argument == "-m" && i + 1 < arguments.size()) value = arguments[i + 1];
    if (argument.size() > 2 && absl::StartsWith(argument, "-m")) value = argument.substr(2);
    if (uint64_t number = 0; absl::SimpleAtoi(value, &number)) mib = number;
  }
  // With hugepages -m is what EAL starts with; it takes more when it needs more.
  if (!memory.hugepages) memory.bytes = (mib != 0 ? mib : kEalWithoutHugepages) * kBytesPerMiB;
  return memory;
}

EalMemory MemoryOf(const EalConfig& eal) {
  if (eal.preset == EalConfig::Preset::kNone) return ReadArguments(eal.args);
  return {.hugepages = eal.preset == EalConfig::Preset::kHugepages, .bytes = eal.memory};
}

FootprintTerms TermsOf(const Config& config) {
  FootprintTerms terms;
  terms.hugepages = MemoryOf(config.eal).hugepages;
  terms.workers = static_cast<uint32_t>(std::max<size_t>(config.lcores.workers.size(), 1));
  terms.arena_limit = config.arena.limit;
  for (const PktmbufPoolConfig& pool : config.pools) {
    if (!pool.page_frag.exact) continue;
    FrameMix mix = ExactMixOf(config, pool);
    if (!mix.empty()) terms.exact.emplace(pool.name, std::move(mix));
  }
  return terms;
}

// One ring per queue and end; RING_F_EXACT_SZ doubles a ring whose slots are a power of two.
uint64_t RingBytes(const Config& config) {
  uint64_t bytes = 0;
  for (const VethConfig& veth : config.veth) {
    const uint64_t slots = std::bit_ceil(uint64_t{veth.ring} + 1);
    bytes += 2ull * veth.queues * (slots * sizeof(void*) + kRingHeader);
  }
  return bytes;
}

std::string ReasonOf(const PktmbufPoolConfig& pool, const PoolFootprint& own, const FootprintTerms& terms) {
  if (pool.ops != "page_frag") {
    return terms.hugepages ? "hugepages, which no object crosses"
                           : "the system's pages, which no object crosses without hugepages";
  }
  if (pool.page_frag.page_size != 0) return "as page_size says";
  if (pool.page_frag.exact) return "auto: by data_room, which is what other takers than exact sources get";
  const uint32_t usual = 32 * 1024;
  if (own.page_bytes == usual) return "auto: 32KiB waste little and are as fast as larger ones";
  if (own.page_bytes < usual) {
    return absl::StrCat("auto: ", FormatBytes(own.page_bytes * 2), " would hold more than the ", kMaxObjectsPerPage,
                        " buffers that one word of bits covers");
  }
  return "auto: 32KiB would hold fewer than three buffers";
}

std::vector<std::string> TakenFor(const Config& config, const PktmbufPoolConfig& pool) {
  std::vector<std::string> lines;
  for (const TrafficConfig& traffic : config.traffic) {
    const std::vector<std::string> names = traffic.PoolNames();
    if (std::find(names.begin(), names.end(), pool.name) == names.end()) continue;
    if (!traffic.classes.empty()) {
      const ClassRange range = RangeOf(config, traffic, pool);
      const std::string longer = !range.last        ? traffic.borrow ? "; when empty, from the next larger pool" : ""
                                 : names.size() > 1 ? ", and longer ones as chains, whose ends may be in a smaller one"
                                                    : "";
      lines.push_back(absl::StrCat("class of `", traffic.name, "`: frames of ", range.above + 1, " to ", range.up_to,
                                   " bytes", longer));
    } else if (traffic.buffers == TrafficConfig::Buffers::kExact) {
      lines.push_back(absl::StrCat("cut exactly for `", traffic.name, "`",
                                   traffic.source == TrafficConfig::Source::kCapture
                                       ? ", whose frames all count as the longest that crosses the pair"
                                       : ""));
    }
  }
  return lines;
}

uint64_t StockTotal(const Config& config, bool hugepages) {
  const FootprintTerms terms = {.hugepages = hugepages};
  uint64_t bytes = RingBytes(config);
  for (const PktmbufPoolConfig& pool : config.pools) bytes += ComputeStockFootprint(pool, terms).total();
  return bytes;
}

uint64_t NeededBy(const Config& config, const std::vector<PktmbufPoolConfig>& pools) {
  return RingBytes(config) + ComputeFootprint(pools, TermsOf(config)).total;
}

// All bookkeeping stays; of the pages, those of the pool that takes most, socket by socket.
uint64_t OneAtATime(const MemoryPlan& plan, const Config& config) {
  uint64_t bytes = plan.needed;
  for (const ArenaFootprint& arena : plan.memory.arenas) {
    uint64_t largest = 0;
    for (const size_t p : arena.pools) {
      const MemoryFootprint alone = ComputeFootprint({config.pools[p]}, plan.terms);
      largest = std::max(largest, alone.arenas.front().chunk_bytes);
    }
    bytes -= arena.chunk_bytes - largest;
  }
  return bytes;
}

std::vector<SocketPlan> SocketsOf(const Config& config, const FootprintTerms& terms) {
  std::map<int, std::vector<PktmbufPoolConfig>> by_socket;
  for (const PktmbufPoolConfig& pool : config.pools) by_socket[pool.socket].push_back(pool);
  std::vector<SocketPlan> sockets;
  for (const auto& [socket, pools] : by_socket) {
    SocketPlan& plan = sockets.emplace_back();
    plan.socket = socket;
    plan.bytes = ComputeFootprint(pools, terms).total;
    for (const PktmbufPoolConfig& pool : pools) plan.pools.push_back(pool.name);
  }
  return sockets;
}

}  // namespace

std::optional<PlanOverrun> FindOverrun(const Config& config, uint64_t available) {
  if (NeededBy(config, config.pools) <= available) return std::nullopt;
  std::vector<PktmbufPoolConfig> up_to;
  PlanOverrun overrun;
  for (overrun.pool = 0; overrun.pool + 1 < config.pools.size(); ++overrun.pool) {
    up_to.push_back(config.pools[overrun.pool]);
    if (NeededBy(config, up_to) > available) break;
  }
  const uint64_t rings = RingBytes(config);
  if (rings < available) {
    overrun.largest = LargestPoolSize(config.pools, overrun.pool, TermsOf(config), available - rings);
  }
  return overrun;
}

MemoryPlan PlanMemory(const Config& config) {
  MemoryPlan plan;
  plan.file = config.file;
  plan.terms = TermsOf(config);
  plan.memory = ComputeFootprint(config.pools, plan.terms);
  plan.sockets = SocketsOf(config, plan.terms);
  for (size_t p = 0; p < config.pools.size(); ++p) {
    PoolPlan& pool = plan.pools.emplace_back();
    pool.config = config.pools[p];
    pool.needs = NeedsOf(config, p);
    pool.own = plan.memory.pools[p];
    pool.stock_hugepages = ComputeStockFootprint(pool.config, {.hugepages = true});
    pool.stock_small = ComputeStockFootprint(pool.config, {.hugepages = false});
    pool.cliff = FindPackingCliff(pool.config, plan.terms);
    pool.page_reason = ReasonOf(pool.config, pool.own, plan.terms);
    pool.taken_for = TakenFor(config, pool.config);
  }
  plan.ring_bytes = RingBytes(config);
  plan.needed = plan.ring_bytes + plan.memory.total;
  plan.stock_hugepages = StockTotal(config, true);
  plan.stock_small = StockTotal(config, false);
  plan.one_at_a_time = OneAtATime(plan, config);
  plan.eal_memory = MemoryOf(config.eal).bytes;
  plan.available = plan.eal_memory > kEalOwnBytes ? plan.eal_memory - kEalOwnBytes : 0;
  if (plan.eal_memory != 0) plan.overrun = FindOverrun(config, plan.available);
  return plan;
}

bool UsesHugepages(const EalConfig& eal) {
  return MemoryOf(eal).hugepages;
}

std::set<int> ArenaSockets(const Config& config) {
  std::set<int> sockets;
  for (const PktmbufPoolConfig& pool : config.pools) {
    if (pool.ops == "page_frag") sockets.insert(pool.socket);
  }
  return sockets;
}

uint64_t PlannedChunkBytes(const Config& config) {
  uint64_t chunks = 0;
  for (const ArenaFootprint& arena : ComputeFootprint(config.pools, TermsOf(config)).arenas) chunks += arena.chunks;
  return chunks * kChunkBytes;
}

}  // namespace halfpage
