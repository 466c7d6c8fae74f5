// Which programs may run behind a map's entry: the second program that a redirected frame meets, in a devmap before it
// leaves, in a cpumap on the other worker.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "app/config.h"

namespace halfpage {

// The configured program of that name; null where there is none, or several things of a file with faults are meant.
const ProgramConfig* FindProgramConfig(const Config& config, const std::string& name);

// Where a program may run; of a chain: anywhere if all its links may, else at a device.
ProgramHook HookOf(const Config& config, const ProgramConfig& program);

// Whether `behind` may be the program of an entry of such a map (kernel: expected_attach_type, EINVAL), and whether
// anything comes of what it says. Errors: InvalidArgument with the program, its section and what to do.
absl::Status CheckBehind(const Config& config, const ProgramConfig& behind, MapKind kind);

// Whether `behind` takes the frames that `redirects`, which may redirect into its map, was shown. The kernel lets only
// programs of one kind into a map and near it: all with frags or none (bpf_prog_map_compatible, EINVAL); that holds for
// objects. Errors: the same.
absl::Status CheckFragsBehind(const ProgramConfig& behind, const ProgramConfig& redirects, MapKind kind);

// The programs that entries of devmaps may have while a run goes on, by the numbers that they have there
// (EgressTarget()): objects of section xdp/devmap, and built-in ones that some entry of the configuration names.
std::vector<std::string> EgressPrograms(const Config& config);

}  // namespace halfpage
