#include "app/redirects.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace halfpage {
namespace {

void AddMap(const Config& config, const std::string& name, RedirectEnds* ends) {
  for (const RedirectMapConfig& map : config.maps) {
    if (map.name != name) continue;
    for (const MapSlotConfig& slot : map.entries) {
      if (map.kind == MapKind::kDevmap) ends->devices.push_back(slot.device);
      if (map.kind == MapKind::kXskmap) ends->sinks.push_back(slot.sink);
      if (map.kind == MapKind::kCpumap) ends->lanes.push_back({&map, &slot});
    }
    if (map.broadcast && !map.entries.empty()) {
      ends->most_copies = std::max(ends->most_copies, map.entries.size() - 1);
    }
  }
}

void AddTarget(const Config& config, const std::string& device, const std::string& map, RedirectEnds* ends) {
  if (!device.empty()) ends->devices.push_back(device);
  if (!map.empty()) AddMap(config, map, ends);
}

bool Transmits(const ProgramConfig& program) {
  switch (program.kind) {
    case ProgramKind::kTx:
      return true;
    case ProgramKind::kTouch:
    case ProgramKind::kAdjust:
      return program.verdict == XdpAction::kTx;
    case ProgramKind::kFilter:
      return program.fallback == XdpAction::kTx ||
             std::any_of(program.rules.begin(), program.rules.end(),
                         [](const FilterRule& rule) { return rule.verdict == XdpAction::kTx; });
    default:
      return false;
  }
}

void AddProgram(const Config& config, const std::string& name, bool links, RedirectEnds* ends) {
  for (const ProgramConfig& program : config.programs) {
    if (program.name != name || name.empty()) continue;
    ends->back |= Transmits(program);
    AddTarget(config, program.target, program.map, ends);
    AddTarget(config, program.fallback_target, program.fallback_map, ends);
    for (const FilterRule& rule : program.rules) AddTarget(config, rule.target, rule.map, ends);
    for (const MapEntryConfig& entry : program.maps) AddTarget(config, entry.device, entry.redirect_map, ends);
    if (!links) continue;
    for (const std::string& link : program.programs) AddProgram(config, link, false, ends);
  }
}

}  // namespace

std::string LaneOf::Name() const {
  return absl::StrCat(map->name, "[", slot->key, "]");
}

std::vector<LaneOf> ListLanes(const Config& config) {
  std::vector<LaneOf> lanes;
  for (const RedirectMapConfig& map : config.maps) {
    if (map.kind != MapKind::kCpumap) continue;
    for (const MapSlotConfig& slot : map.entries) lanes.push_back({&map, &slot});
  }
  return lanes;
}

RedirectEnds RedirectsOf(const Config& config, const std::string& program) {
  RedirectEnds ends;
  AddProgram(config, program, true, &ends);
  return ends;
}

}  // namespace halfpage
