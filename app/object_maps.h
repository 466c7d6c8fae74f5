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

// What names in maps stand for: a device for its interface number, which is its place + 1; a program behind a devmap's
// entry for its number among these (EgressPrograms()), + 1, too.
struct TargetNames {
  std::vector<std::string> devices;
  std::vector<std::string> egress;
};

// Puts one entry into its map. Errors: InvalidArgument naming map, device, program, key or value, and what would be
// right.
absl::Status FillMap(const MapEntryConfig& entry, const TargetNames& names, const bpf::MapSet& maps);

// All of a program's entries, in their order. Errors: the same, with program and entry.
absl::Status FillMaps(const ProgramConfig& program, const TargetNames& names, const bpf::MapSet& maps);

}  // namespace halfpage
