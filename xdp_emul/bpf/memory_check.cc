#include "xdp_emul/bpf/memory_check.h"

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage::bpf {
namespace {

bool InRunningStacks(const RunState& state, uint64_t address, uint64_t size) {
  const auto first = reinterpret_cast<uint64_t>(state.stack);
  const uint64_t bytes = reinterpret_cast<uint64_t>(state.frame_top) - first;
  return address - first <= bytes && size <= bytes - (address - first);
}

bool InMap(const Map& map, uint64_t address, uint64_t size, bool write) {
  return map.region().Contains(address, size) && (!write || map.region().writable);
}

uint64_t SizeOfArgument(const RunState& state, Argument kind, const uint64_t* registers, int number) {
  (void)state;
  if (FixedBytes(kind) != 0) return FixedBytes(kind);
  if (kind != Argument::kKey && kind != Argument::kValue && kind != Argument::kValueOut) return registers[number + 1];
  const auto* map = reinterpret_cast<const Map*>(registers[0]);
  return kind == Argument::kKey ? map->spec().key_size : map->spec().value_size;
}

}  // namespace

bool InAnything(const RunState& state, uint64_t address, uint64_t size, bool write) {
  if (InPacket(state, address, size) || InRunningStacks(state, address, size)) return true;
  for (const std::unique_ptr<Map>& map : state.program->maps().maps()) {
    if (InMap(*map, address, size, write)) return true;
  }
  return false;
}

bool CheckAccess(RunState* state, const Instruction& insn, uint64_t address, uint64_t size, bool write) {
  switch (insn.check) {
    case Check::kNone:
    case Check::kContext:
      return true;
    case Check::kPacket:
      if (InPacket(*state, address, size)) return true;
      state->Fail(FaultKind::kPacket, address, size);
      return false;
    case Check::kStack:
      if (InFrame(*state, address, size)) return true;
      state->Fail(FaultKind::kStack, address, size);
      return false;
    case Check::kValue:
      if (InMap(*state->program->maps().maps()[insn.map], address, size, write)) return true;
      state->Fail(FaultKind::kValue, address, size);
      return false;
    case Check::kAny:
      if (InAnything(*state, address, size, write)) return true;
      state->Fail(FaultKind::kPointer, address, size);
      return false;
  }
  return false;
}

uint64_t ContextField(const RunState& state, uint32_t offset) {
  switch (offset) {
    case 0:
      return reinterpret_cast<uint64_t>(state.data);
    case 4:
      return reinterpret_cast<uint64_t>(state.data_end);
    case 8:
      return reinterpret_cast<uint64_t>(state.data_meta);
    case 12:
      return state.ingress_ifindex;
    case 16:
      return state.rx_queue_index;
    default:
      return state.egress_ifindex;
  }
}

bool CheckArguments(RunState* state, const Instruction* insn, const uint64_t* registers) {
  const Helper* helper = FindHelper(static_cast<uint32_t>(insn->imm));
  for (int i = 0; i < 5; ++i) {
    if ((insn->unproven >> i & 1) == 0) continue;
    const Argument kind = helper->arguments[i];
    const uint64_t value = registers[i];
    bool good = true;
    uint64_t size = 0;
    if (kind == Argument::kContext) {
      good = value == reinterpret_cast<uint64_t>(state->context);
    } else if (kind == Argument::kMap) {
      good = value != 0 && (helper->map_types >> reinterpret_cast<const Map*>(value)->spec().type & 1) != 0;
    } else {
      size = SizeOfArgument(*state, kind, registers, i);
      const bool nothing = kind == Argument::kMemoryOrNull && value == 0 && size == 0;
      const bool too_short = size == 0 && i + 1 < 5 && helper->arguments[i + 1] == Argument::kSize;
      good = nothing || (!too_short && size <= UINT32_MAX && InAnything(*state, value, size, IsWritten(kind)));
    }
    if (good) continue;
    state->Fail(FaultKind::kArgument, value, size);
    return false;
  }
  return true;
}

}  // namespace halfpage::bpf
