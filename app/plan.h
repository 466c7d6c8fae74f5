// The memory plan of a configuration: what its pools will take, what stock DPDK would, and whether that fits. Values
// and arithmetic; no DPDK call, no look at the machine (see app/plan_machine.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/config_sizes.h"
#include "mempool/footprint.h"

namespace halfpage {

struct PoolPlan {
  PktmbufPoolConfig config;
  BufferNeeds needs;
  PoolFootprint own;              // its own pages and bookkeeping, without its share of chunks
  PoolFootprint stock_hugepages;  // the same buffers by ring_mp_mc
  PoolFootprint stock_small;      // and without hugepages
  PackingCliff cliff;
  std::string page_reason;  // why the page has the size it has
  // What sources take from it as one of their classes, or exactly: a sentence for each.
  std::vector<std::string> taken_for;

  uint64_t nominal_per_buffer() const { return config.data_room; }
  double real_per_buffer() const { return static_cast<double>(own.total()) / config.size; }
};

// What the pools of one socket take together: their bookkeeping, caches and pages, by page_frag in whole chunks.
struct SocketPlan {
  int socket = -1;
  std::vector<std::string> pools;
  uint64_t bytes = 0;
};

// Where a plan does not fit.
struct PlanOverrun {
  size_t pool = 0;       // the first one over the line
  uint32_t largest = 0;  // the most buffers it may have with all others as they are, 0: none
};

struct MemoryPlan {
  std::string file;
  FootprintTerms terms;
  std::vector<PoolPlan> pools;
  MemoryFootprint memory;
  std::vector<SocketPlan> sockets;  // ascending, -1 (any) first
  uint64_t ring_bytes = 0;          // of all pairs
  uint64_t needed = 0;              // everything above
  uint64_t stock_hugepages = 0;     // everything, all pools by ring_mp_mc
  uint64_t stock_small = 0;
  // Pools that are full one after the other: what page_frag needs at most, for they share one arena per socket.
  uint64_t one_at_a_time = 0;
  uint64_t eal_memory = 0;             // what EAL is given, 0: not known from the configuration
  uint64_t available = 0;              // of this, for pools and rings
  std::optional<PlanOverrun> overrun;  // only where eal_memory is known
};

// Plans a filled-in configuration whose values are in their ranges; its references may be wrong.
MemoryPlan PlanMemory(const Config& config);

// The first pool over a line of `available` bytes (rings included); nothing where all fit.
std::optional<PlanOverrun> FindOverrun(const Config& config, uint64_t available);

// Whether EAL is given hugepages, by the preset or by its arguments.
bool UsesHugepages(const EalConfig& eal);

// The sockets that page_frag pools name (-1: any): each has an arena.
std::set<int> ArenaSockets(const Config& config);

// Bytes of the chunks that all page_frag pools' buffers together take, as PageArena counts them.
uint64_t PlannedChunkBytes(const Config& config);

}  // namespace halfpage
