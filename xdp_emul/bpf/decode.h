// From an object's instructions to an image: everything that can be seen without knowing what registers hold.
#pragma once

#include "absl/status/statusor.h"
#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/object.h"

namespace halfpage::bpf {

inline constexpr size_t kMostInstructions = 65536;

// Functions that may be running inside one another, callbacks included, as in the kernel.
inline constexpr int kMostFrames = 8;

// Errors: InvalidArgument naming program, instruction and what is wrong with it: an opcode or register that does not
// exist, a jump out of its function or into the middle of an instruction, code that runs over its end, recursion.
absl::StatusOr<Image> Decode(const ProgramCode& program, const Object& object);

}  // namespace halfpage::bpf
