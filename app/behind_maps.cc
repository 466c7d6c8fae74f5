#include "app/behind_maps.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "app/config_units.h"
#include "app/redirects.h"

namespace halfpage {
namespace {

ProgramHook HookBehind(MapKind kind) {
  return kind == MapKind::kDevmap ? ProgramHook::kDevmap : ProgramHook::kCpumap;
}

}  // namespace

const ProgramConfig* FindProgramConfig(const Config& config, const std::string& name) {
  const auto found = std::find_if(config.programs.begin(), config.programs.end(),
                                  [&](const ProgramConfig& each) { return each.name == name; });
  return found == config.programs.end() || name.empty() ? nullptr : &*found;
}

ProgramHook HookOf(const Config& config, const ProgramConfig& program) {
  if (program.kind != ProgramKind::kChain) return program.hook;
  for (const std::string& name : program.programs) {
    const ProgramConfig* link = FindProgramConfig(config, name);
    if (link != nullptr && link->hook != ProgramHook::kAny) return ProgramHook::kDevice;
  }
  return ProgramHook::kAny;
}

absl::Status CheckBehind(const Config& config, const ProgramConfig& behind, MapKind kind) {
  const ProgramHook wanted = HookBehind(kind);
  const ProgramHook hook = HookOf(config, behind);
  if (hook != ProgramHook::kAny && hook != wanted) {
    const bool chain = behind.kind == ProgramKind::kChain;
    return absl::InvalidArgumentError(absl::StrCat(
        Shown(behind.name),
        chain ? " is a chain with objects" : absl::StrCat(" is of section ", SectionOf(hook, behind.frags)),
        ", and what runs behind an entry of a ", MapKindName(kind), " is of section ", SectionOf(wanted, behind.frags),
        " (kernel: EINVAL): ", chain ? "name a program of that section" : "compile it into that one",
        ", or remove it here"));
  }
  const RedirectEnds ends = RedirectsOf(config, behind.name);
  const bool goes = ends.back || !ends.devices.empty() || !ends.sinks.empty() || !ends.lanes.empty();
  if (kind != MapKind::kDevmap || behind.kind == ProgramKind::kObject || !goes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Shown(behind.name), " may say ", ends.back ? "tx" : "redirect",
                                                 ", and behind a devmap's entry all but pass drops ",
                                                 "the frame: name a program that says pass or drop"));
}

absl::Status CheckFragsBehind(const ProgramConfig& behind, const ProgramConfig& redirects, MapKind kind) {
  const bool objects = behind.kind == ProgramKind::kObject && redirects.kind == ProgramKind::kObject;
  if (redirects.frags == behind.frags || (!objects && behind.frags)) return absl::OkStatus();
  const auto shown = [](const ProgramConfig& program, ProgramHook hook) {
    return absl::StrCat(Shown(program.name), program.kind == ProgramKind::kObject
                                                 ? absl::StrCat(" is of section ", SectionOf(hook, program.frags))
                                                 : absl::StrCat(" has frags: ", program.frags ? "true" : "false"));
  };
  const ProgramHook hook = HookBehind(kind);
  return absl::InvalidArgumentError(absl::StrCat(
      shown(behind, hook), ", and ", shown(redirects, ProgramHook::kDevice),
      ", which redirects into the map: both take ", "frames in several buffers or neither does",
      objects ? absl::StrCat(" (kernel: EINVAL); compile the first into ", SectionOf(hook, redirects.frags),
                             " or the other into ", SectionOf(ProgramHook::kDevice, behind.frags))
              : "; give both the same `frags`, or sections that agree"));
}

std::vector<std::string> EgressPrograms(const Config& config) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    const ProgramConfig* program = FindProgramConfig(config, name);
    if (program != nullptr && !absl::c_linear_search(names, name)) names.push_back(name);
  };
  for (const ProgramConfig& program : config.programs) {
    if (program.hook == ProgramHook::kDevmap) add(program.name);
  }
  for (const RedirectMapConfig& map : config.maps) {
    if (map.kind != MapKind::kDevmap) continue;
    for (const MapSlotConfig& slot : map.entries) add(slot.program);
  }
  for (const ProgramConfig& program : config.programs) {
    for (const MapEntryConfig& entry : program.maps) add(entry.program);
  }
  return names;
}

}  // namespace halfpage
