// BPF functions to LLVM's intermediate form.
#pragma once

#include <llvm-c/Core.h>

#include "xdp_emul/bpf/compile.h"

namespace halfpage::bpf {

// The program as a function of the state and of what it says of data, data_end and data_meta. Gives the verdict's 32
// bits, or kFaulted: who has the function in his own loop then need not look at the state.
inline constexpr char kBody[] = "body";
inline constexpr uint64_t kFaulted = uint64_t{1} << 32;

// Whether anything but the program's own code sees the state before a fault: helpers, functions of the program, loads
// through pointers of unknown kind. The state must hold the packet's ends for those, else at a fault only.
bool TellsState(const Program& program);

// Adds the functions of `program` to `module`: kBody, and the program itself as `run`, of type CompiledFunction.
void CompileFunctions(const Program& program, const CompilerServices& services, LLVMContextRef context,
                      LLVMModuleRef module);

// Adds `run_burst`, of type CompiledBurst, to a module that has kBody.
void CompileBurst(const Program& program, const FrameLayout& layout, LLVMContextRef context, LLVMModuleRef module);

}  // namespace halfpage::bpf
