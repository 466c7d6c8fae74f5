// BPF functions to LLVM's intermediate form.
#pragma once

#include <llvm-c/Core.h>

#include "xdp_emul/bpf/compile.h"

namespace halfpage::bpf {

// Adds the functions of `program` to `module`; the program itself is `run`, of type CompiledFunction.
void CompileFunctions(const Program& program, const CompilerServices& services, LLVMContextRef context,
                      LLVMModuleRef module);

}  // namespace halfpage::bpf
