#include "absl/strings/str_cat.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/slots_map.h"

namespace halfpage::bpf {

MapSet::~MapSet() = default;

absl::StatusOr<std::unique_ptr<MapSet>> MapSet::Create(const Object& object, uint32_t workers) {
  auto set = std::unique_ptr<MapSet>(new MapSet(workers));
  for (const MapSpec& spec : object.maps) {
    absl::StatusOr<std::unique_ptr<Map>> map = Map::Create(spec, &set->epochs_);
    if (!map.ok()) return absl::Status(map.status().code(), absl::StrCat(object.path, ": ", map.status().message()));
    set->maps_.push_back(std::move(*map));
  }
  for (size_t i = 0; i < object.maps.size(); ++i) {
    const absl::Status status = set->Fill(object, object.maps[i], set->maps_[i].get());
    if (!status.ok()) return status;
  }
  return set;
}

absl::Status MapSet::Fill(const Object& object, const MapSpec& spec, Map* map) {
  const bool programs = spec.type == BPF_MAP_TYPE_PROG_ARRAY;
  const bool by_key = spec.type == BPF_MAP_TYPE_HASH_OF_MAPS;
  if (!programs && !by_key && spec.type != BPF_MAP_TYPE_ARRAY_OF_MAPS) return absl::OkStatus();
  const auto put = [&](uint32_t slot, void* what) {
    if (by_key) return static_cast<HashOfMaps*>(map)->Put(slot, static_cast<Map*>(what));
    return static_cast<SlotsMap*>(map)->Put(slot, what);
  };
  for (uint32_t slot = 0; slot < spec.targets.size(); ++slot) {
    const std::string& name = spec.targets[slot];
    if (name.empty()) continue;
    void* what = nullptr;
    if (programs) {
      const auto code = FindProgram(object, name);
      if (!code.ok()) return code.status();
      absl::StatusOr<std::unique_ptr<Program>> program = Program::Create(**code, object, this);
      if (!program.ok()) return program.status();
      programs_.push_back(std::move(*program));
      what = programs_.back().get();
    } else {
      what = Find(name);
    }
    if (what == nullptr || !put(slot, what)) {
      return absl::InvalidArgumentError(
          absl::StrCat(object.path, ": map ", spec.name, ": slot ", slot, " is for `", name,
                       "`, which is no map of the object, or past its ", spec.max_entries,
                       " entries; put maps of this file there, and as many as max_entries says"));
    }
  }
  return absl::OkStatus();
}

Map* MapSet::Find(absl::string_view name) const {
  for (const std::unique_ptr<Map>& map : maps_) {
    if (map->spec().name == name) return map.get();
  }
  return nullptr;
}

}  // namespace halfpage::bpf
