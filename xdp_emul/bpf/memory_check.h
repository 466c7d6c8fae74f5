// Checks that the analysis left for when the access happens.
#pragma once

#include <cstdint>

#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

inline bool InPacket(const RunState& state, uint64_t address, uint64_t size) {
  const auto first = reinterpret_cast<uint64_t>(state.data_meta);
  const uint64_t bytes = reinterpret_cast<uint64_t>(state.data_end) - first;
  return address - first <= bytes && size <= bytes - (address - first);
}

inline bool InFrame(const RunState& state, uint64_t address, uint64_t size) {
  const uint64_t first = reinterpret_cast<uint64_t>(state.frame_top) - kStackBytes;
  return address - first <= kStackBytes && size <= kStackBytes - (address - first);
}

// Packet, stacks of all running functions, values of any map of the program. Writes only where programs may.
bool InAnything(const RunState& state, uint64_t address, uint64_t size, bool write);

// Does what `insn.check` asks. False after it noted the fault.
bool CheckAccess(RunState* state, const Instruction& insn, uint64_t address, uint64_t size, bool write);

// Whether an atomic access at `address` stays within one word. False after it noted the fault.
inline bool CheckAlignment(RunState* state, uint64_t address, uint64_t size) {
  if (address % size == 0) return true;
  state->Fail(FaultKind::kAlignment, address, size);
  return false;
}

// A field of xdp_md at byte `offset`, as programs see it: data, data_end and data_meta as whole pointers.
uint64_t ContextField(const RunState& state, uint32_t offset);

// Checks those arguments of a helper call that `insn.unproven` names; `registers` are r1 to r5. False after it noted
// the fault. Called by interpreter and compiled code alike.
bool CheckArguments(RunState* state, const Instruction* insn, const uint64_t* registers);

}  // namespace halfpage::bpf
