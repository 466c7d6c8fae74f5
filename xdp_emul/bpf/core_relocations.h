// Relocations that ask for the types of a running kernel (CO-RE).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

struct btf;

namespace halfpage::bpf {

// No kernel takes part, so that an instruction keeps what the compiler put in. That is right where the value is fixed
// by the kernel's interface to programs (xdp_md, packet headers) or by the object itself; for every other one gives
// InvalidArgument naming type and field. `types` and `extension` are the object's .BTF and .BTF.ext; null and empty
// where it has none.
absl::Status CheckCoreRelocations(const std::string& path, const btf* types, absl::Span<const uint8_t> extension);

}  // namespace halfpage::bpf
