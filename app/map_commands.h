// What the prompt and telemetry do with the maps of objects, also while programs run over them.
//
// No header of bpf/ here: libpcap's and the kernel's name two things alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "app/object_maps.h"

namespace halfpage {

namespace bpf {
class MapSet;
}  // namespace bpf

// The maps of each object in use, with the name of the program that brought them.
using ObjectMaps = std::vector<std::pair<std::string, const bpf::MapSet*>>;

// What a user calls a map: its name, or PROGRAM/MAP where several programs have one of that name. `maps` is as it was
// given while the call lasts. Errors: NotFound with those that there are, InvalidArgument where it is not clear which.
struct NamedMap {
  std::string name;
  const bpf::MapSet* set = nullptr;
};
absl::StatusOr<NamedMap> FindMap(const ObjectMaps& maps, absl::string_view name);

// A line for each map: program, type, sizes, entries there are.
std::string MapsText(const ObjectMaps& maps);
// All maps as PROGRAM/MAP.
std::vector<std::string> MapNames(const ObjectMaps& maps);

// An entry as people read it: by its fields where the object says which there are, else in hexadecimal.
struct MapEntryText {
  std::string key;
  std::vector<std::string> values;  // by worker where each has its own, else one
};

// Entries from number `from` on, at most `most`; of arrays only those that are not all zero. Entries that come and go
// meanwhile may be there or not.
absl::StatusOr<std::vector<MapEntryText>> ReadMapEntries(const NamedMap& map, size_t from, size_t most,
                                                         const TargetNames& names);
absl::StatusOr<MapEntryText> ReadMapEntry(const NamedMap& map, absl::string_view key, const TargetNames& names);
// In a map of devices a value may be DEVICE, or DEVICE,PROGRAM with what runs before frames leave. For all workers.
absl::Status SetMapEntry(const NamedMap& map, const std::string& key, const std::string& value,
                         const TargetNames& names);
absl::Status DeleteMapEntry(const NamedMap& map, absl::string_view key);

}  // namespace halfpage
