// Runs an image instruction by instruction: the reference for compiled code.
#pragma once

#include <cstdint>

#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

// Receives each instruction before it runs, with r0 to r10.
using TraceFunction = void (*)(void* to, const Image& image, uint32_t index, const uint64_t* registers);

// Runs the program's first function with the context as its argument. Gives r0, or 0 after a fault.
uint64_t Interpret(const Image& image, RunState* state);
uint64_t InterpretTraced(const Image& image, RunState* state, TraceFunction trace, void* to);

// What compiled code needs done before it runs: callbacks of helpers are interpreted.
void PrepareRun(RunState* state);

// A load whose check is kAny, of the context's fields too. False after it noted the fault.
bool LoadThroughAny(RunState* state, const Instruction& insn, uint64_t address, uint64_t* value);

}  // namespace halfpage::bpf
