// Compiled code for a program, by LLVM, which is loaded when the first object is compiled and not before: it costs time
// and memory at the start of a process.
#pragma once

#include "absl/status/status.h"
#include "xdp_emul/bpf/memory_check.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage::bpf {

// What compiled code calls back for. The compiler is a module of its own and gets these by hand.
struct CompilerServices {
  const Helper* (*find_helper)(uint32_t number);
  // Notes a fault at `instruction`, or that a helper's was there.
  void (*fail)(RunState* state, uint32_t kind, uint32_t instruction, uint64_t address, uint64_t size);
  // Load through a pointer of unknown kind; notes a fault.
  uint64_t (*load_any)(RunState* state, const Instruction* insn, uint32_t instruction, uint64_t address);
  // Whether a write through such a pointer may be; notes a fault.
  bool (*may_write_any)(RunState* state, const Instruction* insn, uint32_t instruction, uint64_t address);
  // For tail calls.
  const Program* (*tail_target)(RunState* state, uint64_t map, uint64_t index);
  uint64_t (*run_tail)(const Program* target, RunState* state);
  bool (*check_arguments)(RunState* state, const Instruction* insn, uint32_t instruction, const uint64_t* registers);
};

// The module's one function. Gives code whose `run` is null after writing a reason to `error` (at most `size` bytes
// with the end).
using CompilerFunction = CompiledCode (*)(const Program& program, const CompilerServices& services,
                                          const FrameLayout* layout, char* error, size_t size);

// Makes Run() of `program`, and of the programs that its tail calls lead to, run compiled code from now on; with a
// layout of frames there is RunBurst() too, but not for a program that moves a packet's ends or holds things. The code
// lives as long as the program. Errors: Unavailable with the reason where the compiler is not installed or does not
// take the program; it is interpreted then. Set-up code.
absl::Status Compile(Program* program, const FrameLayout* layout = nullptr);

}  // namespace halfpage::bpf
