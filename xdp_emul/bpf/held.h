// Locks and records of ring buffers that a program takes while it runs and must give back before it ends.
#pragma once

#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

// Takes back what the program still holds, by its fault or because it never gave it back, which is a fault (kHeld).
void LetGo(RunState* state);

}  // namespace halfpage::bpf
