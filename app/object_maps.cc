#include "app/object_maps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "app/nearest_name.h"
#include "app/xdp_maps.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage {

absl::Status FillMap(const MapEntryConfig& entry, const std::vector<std::string>& device_names,
                     const bpf::MapSet& maps) {
  if (!entry.redirect_map.empty()) return absl::OkStatus();  // the program's own part
  if (entry.device.empty()) return PutIntoMap("", entry.map, entry.key, entry.value, maps);
  const auto device = std::find(device_names.begin(), device_names.end(), entry.device);
  if (device == device_names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("`", entry.device, "` is no device",
                                                   DidYouMean(entry.device, device_names), "; there are ",
                                                   ListNames(device_names)));
  }
  // Behind the interface's number may come a program's, which is none.
  const bpf::Map* map = maps.Find(entry.map);
  const bool wide = map != nullptr && map->spec().value_size == 8;
  const std::string value = absl::StrCat(device - device_names.begin() + 1, wide ? ":8" : ":4");
  return PutIntoMap("", entry.map, entry.key, value, maps);
}

absl::Status FillMaps(const ProgramConfig& program, const std::vector<std::string>& device_names,
                      const bpf::MapSet& maps) {
  for (size_t i = 0; i < program.maps.size(); ++i) {
    const absl::Status status = FillMap(program.maps[i], device_names, maps);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("program ", program.name, ": maps[", i, "]: ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace halfpage
