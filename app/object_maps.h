// What a configuration puts into the maps of objects.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "xdp_emul/program_config.h"

namespace halfpage {

namespace bpf {
class MapSet;
}  // namespace bpf

// Puts one entry into its map; a device stands for its interface number, which is its place in `device_names` + 1.
// Errors: InvalidArgument naming map, device, key or value, and what would be right.
absl::Status FillMap(const MapEntryConfig& entry, const std::vector<std::string>& device_names,
                     const bpf::MapSet& maps);

// All of a program's entries, in their order. Errors: the same, with program and entry.
absl::Status FillMaps(const ProgramConfig& program, const std::vector<std::string>& device_names,
                      const bpf::MapSet& maps);

}  // namespace halfpage
