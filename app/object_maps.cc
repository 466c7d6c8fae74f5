#include "app/object_maps.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "app/nearest_name.h"
#include "app/xdp_maps.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage {

namespace {

bool IsDevmap(const bpf::Map* map) {
  return map != nullptr && (map->spec().type == BPF_MAP_TYPE_DEVMAP || map->spec().type == BPF_MAP_TYPE_DEVMAP_HASH);
}

constexpr uint32_t kWithProgram = sizeof(bpf_devmap_val);

// The place of a name in a list, + 1.
absl::StatusOr<size_t> NumberOf(const std::string& name, const char* what, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin() + 1);
  return absl::InvalidArgumentError(absl::StrCat("`", name, "` is no ", what, DidYouMean(name, names), "; there ",
                                                 names.empty() ? "is none" : "are ",
                                                 names.empty() ? "" : ListNames(names)));
}

// A devmap's value as numbers: a program has none that a user could know.
absl::Status CheckNumbers(const MapEntryConfig& entry, const bpf::Map* map) {
  if (!IsDevmap(map) || map->spec().value_size != kWithProgram) return absl::OkStatus();
  const auto bytes = ParseMapBytes("", "value", entry.value, map->spec());
  bpf_devmap_val value = {};
  if (bytes.ok()) memcpy(&value, bytes->data(), sizeof(value));
  if (value.bpf_prog.id == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the value `", entry.value, "` of map ", entry.map, " has program ", value.bpf_prog.id,
      " behind the interface: name it, as `device` and `program` in a file, as DEVICE,PROGRAM in the prompt"));
}

}  // namespace

absl::Status FillMap(const MapEntryConfig& entry, const TargetNames& names, const bpf::MapSet& maps) {
  const bpf::Map* map = maps.Find(entry.map);
  if (!entry.program.empty() && (entry.device.empty() || !IsDevmap(map) || map->spec().value_size != kWithProgram)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "program `", entry.program, "` runs behind a device, in a devmap or devmap_hash whose values are struct ",
        "bpf_devmap_val (", kWithProgram, " bytes), and ",
        entry.device.empty() ? "no `device` is named: add it"
                             : absl::StrCat("map `", entry.map, "` is none: declare it so in the object"),
        ", or remove the program"));
  }
  if (!entry.redirect_map.empty()) return absl::OkStatus();  // the program's own part
  if (entry.device.empty()) {
    const absl::Status status = CheckNumbers(entry, map);
    return status.ok() ? PutIntoMap("", entry.map, entry.key, entry.value, maps) : status;
  }
  const auto device = NumberOf(entry.device, "device", names.devices);
  if (!device.ok()) return device.status();
  std::string value = absl::StrCat(*device, ":4");
  if (!entry.program.empty()) {
    const auto program = NumberOf(entry.program,
                                  "program that may run behind a devmap's entry (section xdp/devmap, or "
                                  "one that an entry of the file names)",
                                  names.egress);
    if (!program.ok()) return program.status();
    absl::StrAppend(&value, ",", *program);
  } else if (map != nullptr && map->spec().value_size == kWithProgram) {
    absl::StrAppend(&value, ",0");
  }
  return PutIntoMap("", entry.map, entry.key, value, maps);
}

absl::Status FillMaps(const ProgramConfig& program, const TargetNames& names, const bpf::MapSet& maps) {
  for (size_t i = 0; i < program.maps.size(); ++i) {
    const absl::Status status = FillMap(program.maps[i], names, maps);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("program ", program.name, ": maps[", i, "]: ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace halfpage
