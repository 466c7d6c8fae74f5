// What kind of thing each register and stack slot holds at each instruction, for all ways through the program.
#pragma once

#include "absl/status/status.h"
#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/object.h"

namespace halfpage::bpf {

// Fills in the checks of `image`: an access that cannot miss gets none, others what they are to be held against.
//
// Errors: InvalidArgument for a program that is ill-typed on a way that can be taken, naming the instruction, its text,
// the register, what it holds and what would be right; for a helper that does not exist here, what to do without it.
absl::Status Analyse(const Object& object, Image* image);

}  // namespace halfpage::bpf
