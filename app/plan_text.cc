#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/config_units.h"
#include "app/plan_report.h"
#include "app/text_table.h"

namespace halfpage {
namespace {

std::string Mib(uint64_t bytes) {
  return absl::StrFormat("%.2f", static_cast<double>(bytes) / (1 << 20));
}

std::string Socket(int socket) {
  return socket < 0 ? "any" : absl::StrCat(socket);
}

std::string PoolTable(const MemoryPlan& plan) {
  std::vector<TableRow> rows = {{"pool", "socket", "handler", "buffers", "room", "page", "per page", "pages",
                                 "pages MiB", "caches MiB", "other MiB", "sum MiB", "bytes/buffer"}};
  for (const PoolPlan& pool : plan.pools) {
    rows.push_back({pool.config.name, Socket(pool.config.socket), pool.config.ops, absl::StrCat(pool.config.size),
                    pool.config.page_frag.exact ? "exact" : absl::StrCat(pool.config.data_room),
                    FormatBytes(pool.own.page_bytes),
                    pool.own.objects_per_page > 0 ? absl::StrCat(pool.own.objects_per_page) : "several each",
                    absl::StrCat(pool.own.pages), Mib(pool.own.buffer_bytes), Mib(pool.own.cache_bytes),
                    Mib(pool.own.other_bytes), Mib(pool.own.total()), absl::StrFormat("%.0f", pool.real_per_buffer())});
  }
  return TextTable(rows);
}

std::string StockTable(const MemoryPlan& plan) {
  const auto per_buffer = [](const PoolPlan& pool, const PoolFootprint& stock) {
    return absl::StrFormat("%.0f", static_cast<double>(stock.total()) / pool.config.size);
  };
  std::vector<TableRow> rows = {
      {"the same by ring_mp_mc", "hugepages MiB", "bytes/buffer", "without MiB", "bytes/buffer"}};
  for (const PoolPlan& pool : plan.pools) {
    rows.push_back({pool.config.name, Mib(pool.stock_hugepages.total()), per_buffer(pool, pool.stock_hugepages),
                    Mib(pool.stock_small.total()), per_buffer(pool, pool.stock_small)});
  }
  return TextTable(rows);
}

// "room 1920: one per 4 KiB page; 64 bytes less: two per page".
std::string CliffText(const PoolPlan& plan) {
  const PackingCliff& cliff = plan.cliff;
  const uint32_t room = plan.config.data_room;
  if (plan.config.page_frag.exact) {
    return absl::StrFormat("packing: back to back, %u buffers to a page on average", plan.own.objects_per_page);
  }
  if (cliff.page_bytes == 0) return "packing: objects lie back to back in hugepages, every room is as good";
  std::string text = absl::StrFormat("packing: room %u: %u per page of %s; rooms up to %u cost the same", room,
                                     cliff.objects_per_page, FormatBytes(cliff.page_bytes), cliff.largest_room);
  if (cliff.next_room > 0) {
    absl::StrAppendFormat(&text, "; %u bytes less (data_room: %u): %u per page", room - cliff.next_room,
                          cliff.next_room, cliff.next_objects);
  }
  return text;
}

std::string PoolNotes(const MemoryPlan& plan) {
  std::string text;
  for (const PoolPlan& pool : plan.pools) {
    const PktmbufPoolConfig& config = pool.config;
    absl::StrAppendFormat(&text, "  %s\n", config.name);
    if (config.page_frag.exact) {
      absl::StrAppendFormat(
          &text, "    buffer: as long as its frame, on average %u bytes with 128 of mbuf and 128 of headroom",
          pool.own.object_bytes);
    } else {
      absl::StrAppendFormat(&text, "    buffer: %u bytes nominal, %u with 64 of header, 128 of mbuf and rounding",
                            config.data_room, pool.own.object_bytes);
    }
    absl::StrAppendFormat(&text, ", %.0f with all there is\n", pool.real_per_buffer());
    absl::StrAppendFormat(&text, "    page: %s (%s)\n", FormatBytes(pool.own.page_bytes), pool.page_reason);
    absl::StrAppendFormat(&text, "    %s\n", CliffText(pool));
    for (const std::string& line : pool.taken_for) absl::StrAppendFormat(&text, "    %s\n", line);
    const BufferNeeds& needs = pool.needs;
    if (needs.rings == 0) {
      absl::StrAppend(&text, "    size: no source uses this pool\n");
    } else {
      absl::StrAppendFormat(&text, "    size: %u; %u can be held at once (rings %u + caches %u + bursts %u%s)\n",
                            config.size, needs.sum(), needs.rings, needs.caches, needs.bursts,
                            needs.segments > 1 ? absl::StrFormat(", %u buffers a frame", needs.segments) : "");
    }
  }
  return text;
}

std::string ArenaLines(const MemoryPlan& plan) {
  std::string text;
  for (const ArenaFootprint& arena : plan.memory.arenas) {
    absl::StrAppendFormat(&text,
                          "  arena of socket %s: %u chunks of 2MiB = %s MiB: pages in use %s, headers and metadata %s, "
                          "still free %s; its own %s MiB\n",
                          Socket(arena.socket), arena.chunks, Mib(arena.chunk_bytes), Mib(arena.page_bytes),
                          Mib(arena.header_bytes), Mib(arena.home_bytes()), Mib(arena.other_bytes));
    if (plan.terms.arena_limit != 0) {
      absl::StrAppendFormat(&text, "    limit %s MiB: %s\n", Mib(plan.terms.arena_limit),
                            arena.denied_bytes == 0 ? "room for all buffers"
                                                    : absl::StrCat("pages of ", Mib(arena.denied_bytes),
                                                                   " MiB that buffers need are denied; "
                                                                   "sources find no buffer when it is reached"));
    }
  }
  if (plan.sockets.size() > 1) {
    for (const SocketPlan& socket : plan.sockets) {
      absl::StrAppendFormat(&text, "  socket %s: %s MiB for %s\n", Socket(socket.socket), Mib(socket.bytes),
                            absl::StrJoin(socket.pools, ", "));
    }
  }
  const uint64_t stock = plan.terms.hugepages ? plan.stock_hugepages : plan.stock_small;
  const bool shared = std::any_of(plan.memory.arenas.begin(), plan.memory.arenas.end(),
                                  [](const ArenaFootprint& arena) { return arena.pools.size() > 1; });
  if (shared) {
    absl::StrAppendFormat(&text,
                          "  sharing: pools that are full one after the other need %s MiB, all at once %s MiB; stock "
                          "keeps %s MiB either way\n",
                          Mib(plan.one_at_a_time), Mib(plan.needed), Mib(stock));
  }
  return text;
}

std::string SumLine(const MemoryPlan& plan) {
  return absl::StrFormat("  sum: %s MiB, of it rings %s; by ring_mp_mc with hugepages %s MiB, without %s MiB\n",
                         Mib(plan.needed), Mib(plan.ring_bytes), Mib(plan.stock_hugepages), Mib(plan.stock_small));
}

std::string LimitTable(const MemoryPlan& plan, const std::vector<MemoryLimit>& limits) {
  std::vector<TableRow> rows = {{"there is", "MiB", "needed MiB", ""}};
  const auto add = [&](const std::string& name, uint64_t bytes, uint64_t needed) {
    rows.push_back({name, Mib(bytes), Mib(needed), needed <= bytes ? "fits" : "DOES NOT FIT"});
  };
  if (plan.eal_memory != 0) {
    add(absl::StrCat("eal.memory ", FormatBytes(plan.eal_memory), " less ", FormatBytes(kEalOwnBytes), " for EAL"),
        plan.available, plan.needed);
  }
  for (const MemoryLimit& limit : limits) add(limit.name, limit.bytes, plan.needed);
  return rows.size() == 1 ? "" : TextTable(rows);
}

std::string OverrunLine(const MemoryPlan& plan) {
  if (!plan.overrun.has_value()) return "";
  const std::string& name = plan.pools[plan.overrun->pool].config.name;
  if (plan.overrun->largest == 0) {
    return absl::StrFormat("  pool %s is the first over the line; no size of it alone is small enough\n", name);
  }
  return absl::StrFormat("  pool %s is the first over the line; the largest size that fits: %u\n", name,
                         plan.overrun->largest);
}

}  // namespace

std::optional<MachineOverrun> FindMachineOverrun(const Config& config, const MemoryPlan& plan,
                                                 const std::vector<MemoryLimit>& limits) {
  for (const MemoryLimit& limit : limits) {
    if (plan.needed <= limit.bytes) continue;
    const std::optional<PlanOverrun> pool = FindOverrun(config, limit.bytes);
    if (pool.has_value()) return MachineOverrun{limit, *pool};
  }
  return std::nullopt;
}

std::string MachineFault(const MemoryPlan& plan, const MachineOverrun& overrun) {
  const std::string& name = plan.pools[overrun.pool.pool].config.name;
  return absl::StrCat(plan.file, ": pools[", overrun.pool.pool, "].size: the pools need ", DescribeBytes(plan.needed),
                      ", and this machine has ", DescribeBytes(overrun.limit.bytes), " (", overrun.limit.name, ", ",
                      overrun.limit.source, "); pool `", name, "` crosses the line: ",
                      overrun.pool.largest > 0 ? absl::StrCat("write size: ", overrun.pool.largest, " or less here")
                                               : "no size of this pool alone is small enough: shrink others too",
                      plan.terms.hugepages ? ", or reserve more hugepages" : ", or give the machine more memory");
}

std::vector<std::string> SocketFaults(const MemoryPlan& plan, const std::vector<int>& sockets) {
  std::vector<std::string> lines;
  for (size_t p = 0; p < plan.pools.size() && !sockets.empty(); ++p) {
    const int socket = plan.pools[p].config.socket;
    if (socket < 0 || std::find(sockets.begin(), sockets.end(), socket) != sockets.end()) continue;
    lines.push_back(absl::StrCat(plan.file, ": pools[", p, "].socket: ", socket, " is not on this machine, which has ",
                                 absl::StrJoin(sockets, ", "), ": write one of these, or auto"));
  }
  return lines;
}

std::string PlanText(const MemoryPlan& plan, const std::vector<MemoryLimit>& limits) {
  const std::string kind = plan.terms.hugepages ? "hugepages" : "no hugepages";
  const std::string workers = absl::StrCat(plan.terms.workers, plan.terms.workers == 1 ? " worker" : " workers");
  std::string text = absl::StrFormat("%s: memory with all buffers out, %s, %s\n\n", plan.file, kind, workers);
  absl::StrAppend(&text, PoolTable(plan), "\n", StockTable(plan), "\n", PoolNotes(plan), "\n", ArenaLines(plan),
                  SumLine(plan), "\n", LimitTable(plan, limits), OverrunLine(plan));
  return text;
}

}  // namespace halfpage
