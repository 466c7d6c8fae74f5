// Names: each once, each reference to something, nothing idle.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "app/config_check.h"
#include "app/config_units.h"
#include "app/device.h"
#include "app/nearest_name.h"
#include "app/redirects.h"

namespace halfpage {
namespace {

// The things of one kind that a file has, in its order.
struct Names {
  absl::string_view kind;          // "program"
  std::vector<std::string> names;  // as references spell them
  std::vector<std::string> paths;  // "programs[0]"
  bool complete = true;            // no name was lost to a fault of the reader
};

void Add(Names& names, const std::string& name, std::string path, const FaultList& faults) {
  if (!faults.Given(path + ".name") && faults.Touches(path)) names.complete = false;
  names.names.push_back(name);
  names.paths.push_back(std::move(path));
}

template <typename T>
Names Collect(absl::string_view kind, const std::string& section, const std::vector<T>& items,
              const FaultList& faults) {
  Names names{kind, {}, {}, !faults.HasFaultAt(section)};
  for (size_t i = 0; i < items.size(); ++i) Add(names, items[i].name, absl::StrCat(section, "[", i, "]"), faults);
  return names;
}

Names CollectEnds(const Config& config, const FaultList& faults) {
  Names names{"end", {}, {}, !faults.HasFaultAt("veth")};
  for (size_t i = 0; i < config.veth.size(); ++i) {
    if (faults.HasFaultAt(absl::StrCat("veth[", i, "]")) || faults.HasFaultAt(absl::StrCat("veth[", i, "].ends")) ||
        !faults.Given(absl::StrCat("veth[", i, "].ends"))) {
      names.complete = false;
      continue;
    }
    for (size_t end = 0; end < 2; ++end) {
      Add(names, config.veth[i].ends[end].name, absl::StrCat("veth[", i, "].ends[", end, "]"), faults);
    }
  }
  if (faults.HasFaultAt("ports")) names.complete = false;
  for (size_t i = 0; i < config.ports.size(); ++i) {
    Add(names, config.ports[i].name, absl::StrCat("ports[", i, "]"), faults);
  }
  return names;
}

// Sinks that a worker has to read.
Names CollectHeld(const Config& config, const FaultList& faults) {
  Names names{"udp_socket or user sink", {}, {}, !faults.HasFaultAt("sinks")};
  for (size_t i = 0; i < config.sinks.size(); ++i) {
    const std::string path = absl::StrCat("sinks[", i, "]");
    if (faults.Touches(path + ".kind")) names.complete = false;
    if (config.sinks[i].held()) Add(names, config.sinks[i].name, path, faults);
  }
  return names;
}

void CheckUnique(const Names& names, FaultList& faults) {
  std::map<std::string, std::string> first_paths;
  for (size_t i = 0; i < names.names.size(); ++i) {
    if (names.names[i].empty()) continue;
    const auto [first, fresh] = first_paths.emplace(names.names[i], names.paths[i]);
    if (fresh) continue;
    faults.Fault(names.paths[i] + ".name", absl::StrCat(Shown(names.names[i]), " is the name of ", first->second,
                                                        " already: give each ", names.kind, " its own"));
  }
}

// What refers to things of one kind, and which of them it named.
class References {
 public:
  References(const Names& names, FaultList& faults) : names_(names), faults_(faults) {
    known_.insert(names.names.begin(), names.names.end());
  }

  // `name` at `path` must be one of the names; empty refers to nothing.
  void Check(const std::string& name, const std::string& path) {
    if (name.empty()) return;
    used_.insert(name);
    if (!names_.complete || known_.contains(name) || faults_.Touches(path)) return;
    all_found_ = false;
    faults_.Fault(path, absl::StrCat("no ", names_.kind, " named ", Shown(name), DidYouMean(name, names_.names), " (",
                                     names_.kind, "s here: ", ListNames(names_.names), ")"));
  }

  // Whether every name checked so far was there. One that was not may have been meant for any that nobody named.
  bool all_found() const { return all_found_; }

  void WarnUnused(absl::string_view advice) {
    for (size_t i = 0; i < names_.names.size(); ++i) {
      if (names_.names[i].empty() || used_.contains(names_.names[i])) continue;
      faults_.Warn(names_.paths[i],
                   absl::StrCat("nothing uses the ", names_.kind, " ", Shown(names_.names[i]), ": ", advice));
    }
  }

 private:
  const Names& names_;
  FaultList& faults_;
  std::set<std::string> known_;
  std::set<std::string> used_;
  bool all_found_ = true;
};

void CheckLinks(const Config& config, size_t program, References& programs, FaultList& faults) {
  const std::vector<std::string>& links = config.programs[program].programs;
  for (size_t i = 0; i < links.size(); ++i) {
    const std::string path = absl::StrCat("programs[", program, "].programs[", i, "]");
    programs.Check(links[i], path);
    for (const ProgramConfig& other : config.programs) {
      if (other.name != links[i] || other.kind != ProgramKind::kChain || faults.Touches(path)) continue;
      faults.Fault(path, absl::StrCat(Shown(links[i]), " is a chain itself: name its programs here instead"));
    }
  }
}

void CheckPrograms(const Config& config, References& ends, References& programs, References& maps, FaultList& faults) {
  for (size_t i = 0; i < config.programs.size(); ++i) {
    const ProgramConfig& program = config.programs[i];
    const std::string path = absl::StrCat("programs[", i, "]");
    ends.Check(program.target, path + ".target");
    ends.Check(program.fallback_target, path + ".default_target");
    maps.Check(program.map, path + ".map");
    maps.Check(program.fallback_map, path + ".default_map");
    for (size_t m = 0; m < program.maps.size(); ++m) {
      const std::string item = absl::StrCat(path, ".maps[", m, "]");
      maps.Check(program.maps[m].redirect_map, item + ".redirect_map");
      programs.Check(program.maps[m].program, item + ".program");
    }
    CheckLinks(config, i, programs, faults);
    for (size_t r = 0; r < program.rules.size(); ++r) {
      ends.Check(program.rules[r].target, absl::StrCat(path, ".rules[", r, "].target"));
      maps.Check(program.rules[r].map, absl::StrCat(path, ".rules[", r, "].map"));
    }
    CheckUnique(Collect("rule", path + ".rules", program.rules, faults), faults);
  }
}

void CheckSlots(const Config& config, References& ends, References& sinks, References& programs) {
  for (size_t m = 0; m < config.maps.size(); ++m) {
    for (size_t s = 0; s < config.maps[m].entries.size(); ++s) {
      const MapSlotConfig& slot = config.maps[m].entries[s];
      const std::string path = absl::StrCat("maps[", m, "].entries[", s, "]");
      ends.Check(slot.device, path + ".device");
      sinks.Check(slot.sink, path + ".sink");
      programs.Check(slot.program, path + ".program");
    }
  }
}

// Pools that the file names for copies, and those that were made for them.
void CheckCopyPools(const Device& device, References& pools, const FaultList& faults) {
  const std::string path = device.path + ".copy.pools";
  for (size_t p = 0; p < device.copy.pools.size(); ++p) {
    const std::string item = absl::StrCat(path, "[", p, "]");
    if (faults.Given(path) || faults.Given(item) || device.copy.pools[p] == "copy_" + device.name) {
      pools.Check(device.copy.pools[p], item);
    }
  }
}

void CheckDevices(const Config& config, References& programs, References& sinks, References& pools,
                  const FaultList& faults) {
  for (const Device& device : ListDevices(config)) {
    CheckCopyPools(device, pools, faults);
    programs.Check(device.program, device.path + ".program");
    sinks.Check(device.sink, device.path + ".sink");
  }
}

// The pool of a source or a port: one that is there, or the only one.
void CheckPool(const std::string& pool, const std::string& path, bool of_source, const Names& pools,
               References& to_pools, FaultList& faults) {
  to_pools.Check(pool, path);
  if (!pool.empty() || !pools.complete || faults.Touches(path)) return;
  faults.Fault(path, absl::StrCat("missing, and there are several pools: name one of ", ListNames(pools.names),
                                  of_source ? ", or several as `classes`" : ""));
}

// A claim of a worker on an end or a source: right if it is there, and nobody else's.
void Claim(const std::string& name, const std::string& path, size_t worker, absl::string_view how,
           References& references, std::map<std::string, size_t>& claimed, FaultList& faults) {
  references.Check(name, path);
  const auto [first, fresh] = claimed.emplace(name, worker);
  if (fresh) return;
  faults.Fault(path, absl::StrCat(Shown(name), " is ", how, " by worker ", first->second,
                                  " already: exactly one worker may, so remove it from one list"));
}

void CheckAllClaimed(const Names& names, const std::map<std::string, size_t>& claimed, absl::string_view how,
                     absl::string_view key, FaultList& faults) {
  std::vector<std::string> missing;
  for (const std::string& name : names.names) {
    if (!name.empty() && !claimed.contains(name)) missing.push_back(Shown(name));
  }
  if (missing.empty() || !names.complete) return;
  faults.Fault("lcores.workers", absl::StrCat("no worker ", how, " ", absl::StrJoin(missing, ", "), ": add it to `",
                                              key, "` of exactly one worker, or write `workers: auto`"));
}

}  // namespace

void CheckNames(const Config& config, FaultList& faults) {
  const Names pools = Collect("pool", "pools", config.pools, faults);
  const Names programs = Collect("program", "programs", config.programs, faults);
  const Names sinks = Collect("sink", "sinks", config.sinks, faults);
  const Names ends = CollectEnds(config, faults);
  const Names maps = Collect("map", "maps", config.maps, faults);
  References to_pools(pools, faults), to_programs(programs, faults), to_sinks(sinks, faults), to_ends(ends, faults),
      to_maps(maps, faults);
  const bool whole_veth = !faults.Touches("veth") && !faults.Touches("ports");
  const bool whole_traffic = !faults.Touches("traffic") && !faults.Touches("ports");

  CheckUnique(pools, faults);
  CheckUnique(programs, faults);
  CheckUnique(sinks, faults);
  CheckUnique(ends, faults);
  CheckUnique(maps, faults);
  CheckUnique(Collect("pair", "veth", config.veth, faults), faults);
  CheckUnique(Collect("source", "traffic", config.traffic, faults), faults);
  CheckDevices(config, to_programs, to_sinks, to_pools, faults);
  CheckPrograms(config, to_ends, to_programs, to_maps, faults);
  CheckSlots(config, to_ends, to_sinks, to_programs);
  for (size_t i = 0; i < config.traffic.size(); ++i) {
    const TrafficConfig& traffic = config.traffic[i];
    const std::string path = absl::StrCat("traffic[", i, "]");
    to_ends.Check(traffic.into, path + ".into");
    if (traffic.classes.empty()) CheckPool(traffic.pool, path + ".pool", true, pools, to_pools, faults);
    for (size_t c = 0; c < traffic.classes.size(); ++c) {
      to_pools.Check(traffic.classes[c], absl::StrCat(path, ".classes[", c, "]"));
    }
  }
  for (size_t i = 0; i < config.ports.size(); ++i) {
    CheckPool(config.ports[i].pool, absl::StrCat("ports[", i, "].pool"), false, pools, to_pools, faults);
  }
  for (size_t i = 0; i < config.sinks.size(); ++i) {
    to_ends.Check(config.sinks[i].port, absl::StrCat("sinks[", i, "].port"));
  }
  if (whole_veth) {
    to_programs.WarnUnused("name it as `program` of an end or of a map's entry, or remove it");
    to_sinks.WarnUnused("name it as `sink` of an end, or remove it");
    to_maps.WarnUnused("name it as `map` of a program that redirects, as `redirect_map` of an object's, or remove it");
  }
  if (whole_traffic) to_pools.WarnUnused("name it as `pool` of a source, or remove it and save its memory");
}

void CheckWorkers(const Config& config, FaultList& faults) {
  if (!faults.Given("lcores.workers[0]")) return;  // `auto` is complete by the way it is made
  const Names ends = CollectEnds(config, faults);
  const Names sources = Collect("source", "traffic", config.traffic, faults);
  const Names held = CollectHeld(config, faults);
  References to_ends(ends, faults), to_sources(sources, faults), to_held(held, faults);
  std::map<std::string, size_t> polled, driven, read;
  const bool whole = !faults.Touches("lcores");
  for (size_t w = 0; w < config.lcores.workers.size(); ++w) {
    const WorkerConfig& worker = config.lcores.workers[w];
    const std::string path = absl::StrCat("lcores.workers[", w, "]");
    for (size_t i = 0; i < worker.poll.size(); ++i) {
      Claim(worker.poll[i], absl::StrCat(path, ".poll[", i, "]"), w, "polled", to_ends, polled, faults);
    }
    for (size_t i = 0; i < worker.generate.size(); ++i) {
      Claim(worker.generate[i], absl::StrCat(path, ".generate[", i, "]"), w, "driven", to_sources, driven, faults);
    }
    for (size_t i = 0; i < worker.read.size(); ++i) {
      Claim(worker.read[i], absl::StrCat(path, ".read[", i, "]"), w, "read", to_held, read, faults);
    }
    const std::vector<LaneOf> lanes = ListLanes(config);
    const bool fed =
        std::any_of(lanes.begin(), lanes.end(), [w](const LaneOf& lane) { return lane.slot->worker == w; });
    if (whole && worker.poll.empty() && worker.generate.empty() && worker.read.empty() && !fed) {
      faults.Warn(path, "this worker has nothing to do, and takes an lcore: give it something to `poll`, or remove it");
    }
  }
  if (!whole) return;
  if (to_ends.all_found()) CheckAllClaimed(ends, polled, "polls", "poll", faults);
  if (to_sources.all_found()) CheckAllClaimed(sources, driven, "drives", "generate", faults);
  if (to_held.all_found()) CheckAllClaimed(held, read, "reads", "read", faults);
}

void CheckRules(const Config& config, FaultList& faults) {
  constexpr uint8_t kTcp = 6, kUdp = 17, kSctp = 132;
  constexpr uint16_t kIpv4 = 0x0800, kIpv6 = 0x86dd;
  for (size_t p = 0; p < config.programs.size(); ++p) {
    const std::vector<FilterRule>& rules = config.programs[p].rules;
    for (size_t r = 0; r < rules.size(); ++r) {
      const FilterRule& rule = rules[r];
      const std::string path = absl::StrCat("programs[", p, "].rules[", r, "]");
      if (faults.Touches(path)) continue;
      const bool ports = rule.source_port.has_value() || rule.destination_port.has_value();
      const std::string port_path = path + (rule.source_port.has_value() ? ".source_port" : ".destination_port");
      if (ports && rule.protocol.has_value() && *rule.protocol != kTcp && *rule.protocol != kUdp &&
          *rule.protocol != kSctp) {
        faults.Fault(port_path, absl::StrCat("protocol ", *rule.protocol,
                                             " has no ports, so this rule never matches: "
                                             "use tcp, udp or sctp, or remove the port"));
      }
      if (rule.ethertype.has_value() && *rule.ethertype != kIpv4 && *rule.ethertype != kIpv6 &&
          (ports || rule.protocol.has_value())) {
        faults.Fault(
            rule.protocol.has_value() ? path + ".protocol" : port_path,
            "only IP has protocols and ports, so this rule never matches: use `ethertype` ipv4, ipv6 or any, or "
            "remove this key");
      }
      if (!ports && !rule.protocol.has_value() && !rule.ethertype.has_value() && r + 1 < rules.size()) {
        faults.Warn(path, absl::StrCat("matches every frame, so the ", rules.size() - r - 1,
                                       " rules behind it decide nothing: move it to the end, or use `default`"));
      }
    }
  }
}

}  // namespace halfpage
