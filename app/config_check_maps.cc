// Redirect maps: each slot once, each leading to what the map's kind has, and targets that say one thing.
#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "app/behind_maps.h"
#include "app/config_check.h"
#include "app/config_units.h"
#include "app/redirects.h"

namespace halfpage {
namespace {

constexpr size_t kMostLanes = 256;  // target numbers for them (xdp_emul/maps.h)

struct SlotWords {
  const char* kind;
  const char* key;
  const char* leads_to;
};

SlotWords WordsOf(MapKind kind) {
  switch (kind) {
    case MapKind::kDevmap:
      return {"devmap", "device", "a device"};
    case MapKind::kXskmap:
      return {"xskmap", "sink", "a sink of kind user"};
    case MapKind::kCpumap:
      break;
  }
  return {"cpumap", "worker", "a worker"};
}

// What a slot says that slots of its map's kind have no place for.
void CheckForeignKeys(const RedirectMapConfig& map, const MapSlotConfig& slot, const std::string& path,
                      FaultList& faults) {
  const SlotWords words = WordsOf(map.kind);
  const auto refuse = [&](bool given, const char* key) {
    if (!given) return;
    faults.Fault(absl::StrCat(path, ".", key),
                 absl::StrCat("a slot of a ", words.kind, " leads to ", words.leads_to, ": remove this key, or write ",
                              "another `kind` for the map"));
  };
  const MapSlotConfig none;
  refuse(map.kind != MapKind::kDevmap && !slot.device.empty(), "device");
  refuse(map.kind != MapKind::kXskmap && !slot.sink.empty(), "sink");
  refuse(map.kind != MapKind::kCpumap && slot.worker != none.worker, "worker");
  refuse(map.kind != MapKind::kCpumap && slot.ring != none.ring, "ring");
  refuse(map.kind == MapKind::kXskmap && !slot.program.empty(), "program");
}

void CheckSlot(const Config& config, const RedirectMapConfig& map, const MapSlotConfig& slot, const std::string& path,
               FaultList& faults) {
  if (slot.key >= map.size) {
    faults.Fault(path + ".key", absl::StrCat(slot.key, " is past the map's end: keys are below its size, ", map.size,
                                             "; write a smaller one, or `size: ", slot.key + 1, "`"));
  }
  CheckForeignKeys(map, slot, path, faults);
  const SlotWords words = WordsOf(map.kind);
  const bool leads = map.kind == MapKind::kCpumap   ? faults.Given(path + ".worker")
                     : map.kind == MapKind::kDevmap ? !slot.device.empty()
                                                    : !slot.sink.empty();
  if (!leads) {
    faults.Fault(path, absl::StrCat("a slot of a ", words.kind, " must lead to ", words.leads_to, ": add `", words.key,
                                    "`, or remove the slot"));
  }
  const size_t workers = config.lcores.workers.size();
  if (map.kind == MapKind::kCpumap && slot.worker >= workers && !faults.Touches("lcores")) {
    faults.Fault(path + ".worker",
                 absl::StrCat("no worker ", slot.worker, ": `lcores` has ", workers, ", counted from 0"));
  }
  for (const SinkConfig& sink : config.sinks) {
    if (map.kind != MapKind::kXskmap || sink.name != slot.sink || sink.kind == SinkConfig::Kind::kUser) continue;
    faults.Fault(path + ".sink", absl::StrCat(Shown(slot.sink), " is no sink of kind user: an xskmap leads to the ",
                                              "rings of one; name another, or write `kind: user` there"));
  }
}

bool RedirectsInto(const ProgramConfig& program, const std::string& map) {
  const auto rule_does = [&](const FilterRule& rule) { return rule.map == map; };
  const auto entry_does = [&](const MapEntryConfig& entry) { return entry.redirect_map == map; };
  return program.map == map || program.fallback_map == map ||
         std::any_of(program.rules.begin(), program.rules.end(), rule_does) ||
         std::any_of(program.maps.begin(), program.maps.end(), entry_does);
}

// The program behind a slot: of the map's kind, and for the frames of whoever redirects there.
void CheckSecond(const Config& config, const RedirectMapConfig& map, const MapSlotConfig& slot, const std::string& path,
                 FaultList& faults) {
  const ProgramConfig* behind = FindProgramConfig(config, slot.program);
  if (behind == nullptr || map.kind == MapKind::kXskmap || faults.Touches(path)) return;
  absl::Status status = CheckBehind(config, *behind, map.kind);
  for (const ProgramConfig& program : config.programs) {
    if (status.ok() && RedirectsInto(program, map.name)) status = CheckFragsBehind(*behind, program, map.kind);
  }
  if (!status.ok()) faults.Fault(path + ".program", std::string(status.message()));
}

void CheckTarget(const std::string& device, const std::string& map, const std::string& path, const char* prefix,
                 FaultList& faults) {
  if (device.empty() || map.empty() || faults.Touches(path)) return;
  faults.Fault(absl::StrCat(path, ".", prefix, "map"), absl::StrCat("a redirect goes into a map or through `", prefix,
                                                                    "target`, and both are given: remove one of them"));
}

}  // namespace

void CheckMaps(const Config& config, FaultList& faults) {
  for (size_t p = 0; p < config.programs.size(); ++p) {
    const ProgramConfig& program = config.programs[p];
    const std::string path = absl::StrCat("programs[", p, "]");
    CheckTarget(program.target, program.map, path, "", faults);
    CheckTarget(program.fallback_target, program.fallback_map, path, "default_", faults);
    for (size_t r = 0; r < program.rules.size(); ++r) {
      CheckTarget(program.rules[r].target, program.rules[r].map, absl::StrCat(path, ".rules[", r, "]"), "", faults);
    }
  }
  for (size_t m = 0; m < config.maps.size(); ++m) {
    const RedirectMapConfig& map = config.maps[m];
    std::set<uint32_t> keys;
    for (size_t s = 0; s < map.entries.size(); ++s) {
      const MapSlotConfig& slot = map.entries[s];
      const std::string path = absl::StrCat("maps[", m, "].entries[", s, "]");
      if (faults.Touches(path) || faults.Touches(absl::StrCat("maps[", m, "].kind"))) continue;
      CheckSlot(config, map, slot, path, faults);
      CheckSecond(config, map, slot, path, faults);
      if (keys.insert(slot.key).second) continue;
      faults.Fault(path + ".key", absl::StrCat("slot ", slot.key, " is there already: a slot leads to one place; ",
                                               "write another key, or remove one of the two"));
    }
  }
  if (ListLanes(config).size() > kMostLanes) {
    faults.Fault("maps", absl::StrCat("cpumaps have ", ListLanes(config).size(), " slots in all: ", kMostLanes,
                                      " may lead to workers; remove some"));
  }
}

}  // namespace halfpage
