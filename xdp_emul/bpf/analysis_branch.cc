// What a comparison tells on each of its two ways.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "xdp_emul/bpf/analyzer.h"

namespace halfpage::bpf {
namespace {

// Bounds of `value` given that `value op limit` holds (unsigned). False where that cannot be.
bool Bound(uint8_t operation, uint64_t limit, Value* value) {
  uint64_t min = value->min;
  uint64_t max = value->max;
  switch (operation) {
    case BPF_JEQ:
      min = std::max(min, limit);
      max = std::min(max, limit);
      break;
    case BPF_JNE:
      if (min == limit && max == limit) return false;
      if (min == limit) ++min;
      if (max == limit) --max;
      break;
    case BPF_JGT:
      if (limit == UINT64_MAX) return false;
      min = std::max(min, limit + 1);
      break;
    case BPF_JGE:
      min = std::max(min, limit);
      break;
    case BPF_JLT:
      if (limit == 0) return false;
      max = std::min(max, limit - 1);
      break;
    case BPF_JLE:
      max = std::min(max, limit);
      break;
    default:
      break;
  }
  if (min > max) return false;
  value->min = min;
  value->max = max;
  return true;
}

uint8_t Opposite(uint8_t operation) {
  switch (operation) {
    case BPF_JEQ:
      return BPF_JNE;
    case BPF_JNE:
      return BPF_JEQ;
    case BPF_JGT:
      return BPF_JLE;
    case BPF_JGE:
      return BPF_JLT;
    case BPF_JLT:
      return BPF_JGE;
    case BPF_JLE:
      return BPF_JGT;
    default:
      return 0;
  }
}

uint8_t Mirrored(uint8_t operation) {
  switch (operation) {
    case BPF_JGT:
      return BPF_JLT;
    case BPF_JGE:
      return BPF_JLE;
    case BPF_JLT:
      return BPF_JGT;
    case BPF_JLE:
      return BPF_JGE;
    default:
      return operation;
  }
}

// A packet pointer stands `operation` data_end: everything with its base has that many bytes.
void RefinePacket(const Value& pointer, uint8_t operation, State* state) {
  if (!pointer.offset_known || pointer.offset < 0 || pointer.id == 0) return;
  uint32_t bytes = static_cast<uint32_t>(pointer.offset);
  if (operation == BPF_JLT) {
    ++bytes;
  } else if (operation != BPF_JLE && operation != BPF_JEQ) {
    return;
  }
  const uint32_t id = pointer.id;
  state->ForEach([=](Value& value) {
    if (value.Is(kPacket) && value.id == id) value.range = std::max(value.range, bytes);
  });
}

// The pointer in a register is null, or is not.
void RefineNull(Value* pointer, bool null, State* state) {
  const Value before = *pointer;
  const auto refine = [null](Value& value) {
    if (null) {
      value = Value::Number(0);
    } else {
      value.not_null = true;
    }
  };
  // One from several places has no id, and what is like it may be another.
  if (before.id == 0) return refine(*pointer);
  state->ForEach([&](Value& value) {
    if (value.kinds == before.kinds && value.id == before.id) refine(value);
  });
}

}  // namespace

void Analyzer::Refine(const Instruction& insn, const Value& right, bool taken, State* state) {
  const bool wide = BPF_CLASS(insn.code) == BPF_JMP;
  uint8_t operation = BPF_OP(insn.code);
  if (operation == BPF_JSET || operation == BPF_JSGT || operation == BPF_JSGE || operation == BPF_JSLT ||
      operation == BPF_JSLE) {
    return;
  }
  if (!taken) operation = Opposite(operation);
  Value& left = state->registers[insn.dst];
  const Value left_before = left;
  if (wide && left_before.Is(kPacket) && right.Is(kPacketEnd)) return RefinePacket(left_before, operation, state);
  if (wide && left_before.Is(kPacketEnd) && right.Is(kPacket)) return RefinePacket(right, Mirrored(operation), state);
  if (wide && (left_before.Is(kMapValue) || left_before.Is(kRecord) || left_before.Is(kMapPointer)) &&
      right.IsNumber() && right.min == 0 && !left_before.not_null) {
    if (operation == BPF_JEQ || operation == BPF_JNE) RefineNull(&left, operation == BPF_JEQ, state);
    return;
  }
}

void Analyzer::Branch(uint32_t index, const State& state) {
  const Instruction& insn = At(index);
  if (BPF_OP(insn.code) == BPF_JA) return Push(static_cast<uint32_t>(insn.off), state);
  const bool wide = BPF_CLASS(insn.code) == BPF_JMP;
  const bool with_register = BPF_SRC(insn.code) == BPF_X;
  const Value left = state.registers[insn.dst];
  const uint64_t immediate = wide ? static_cast<uint64_t>(insn.imm) : static_cast<uint32_t>(insn.imm);
  const Value right = with_register ? state.registers[insn.src] : Value::Number(immediate);
  for (const int reg : {static_cast<int>(insn.dst), with_register ? static_cast<int>(insn.src) : -1}) {
    if (reg >= 0 && state.registers[reg].Is(kUnset)) {
      FailUnset(index, reg);
    }
  }
  const uint8_t operation = BPF_OP(insn.code);
  const bool ordered = Opposite(operation) != 0;
  const uint64_t top = wide ? UINT64_MAX : UINT32_MAX;
  for (const bool taken : {true, false}) {
    State way = state;
    const uint8_t holds = taken ? operation : Opposite(operation);
    if (ordered && left.Is(kScalar) && right.Is(kScalar) && left.max <= top && right.max <= top) {
      // Bounds against a number in both directions; a way that cannot be taken is not followed.
      bool possible = true;
      if (right.IsNumber()) possible = Bound(holds, right.min, &way.registers[insn.dst]);
      if (possible && with_register && left.IsNumber()) {
        possible = Bound(Mirrored(holds), left.min, &way.registers[insn.src]);
      }
      if (!possible) continue;
    } else {
      Refine(insn, right, taken, &way);
    }
    Push(taken ? static_cast<uint32_t>(insn.off) : index + 1, way);
  }
}

}  // namespace halfpage::bpf
