// What arithmetic makes of values.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "xdp_emul/bpf/analyzer.h"

namespace halfpage::bpf {
namespace {

constexpr int64_t kFarthest = 1 << 29;       // offsets beyond are as good as unknown
constexpr uint64_t kLongestPacket = 0xffff;  // what may be added to a packet pointer and be trusted after a compare

constexpr uint64_t kLow = UINT32_MAX;

uint64_t MaskAbove(uint64_t value) {
  return value == 0 ? 0 : UINT64_MAX >> std::countl_zero(value);
}

bool IsExactPointer(const Value& value) {
  return value.Has(kPointers) && !value.Has(kScalar);
}

}  // namespace

uint32_t Analyzer::NewId(uint32_t index, State* state) const {
  const uint32_t id = index + kFirstId;
  state->ForEach([id](Value& value) {
    if (value.id == id) value.id = 0;
  });
  return id;
}

void Analyzer::LoadConstant(uint32_t index, State* state) {
  const Instruction& insn = At(index);
  Value& value = state->registers[insn.dst];
  switch (insn.constant) {
    case Constant::kNumber:
      value = Value::Number(static_cast<uint64_t>(insn.imm));
      return;
    case Constant::kMap:
      value = Value();
      value.kinds = kMapPointer;
      value.map = insn.map;
      value.not_null = true;
      return;
    case Constant::kMapValue:
      value = Value();
      value.kinds = kMapValue;
      value.map = insn.map;
      value.map_set = MapBit(insn.map);
      value.not_null = true;
      value.offset = static_cast<int32_t>(insn.imm);
      if (object_.maps[insn.map].type != BPF_MAP_TYPE_ARRAY || insn.imm < 0 ||
          insn.imm > object_.maps[insn.map].value_size) {
        Fail(index,
             absl::StrCat("takes the address of byte ", insn.imm, " of map ", object_.maps[insn.map].name,
                          ": only values of arrays with one entry have one, up to their size"),
             "look the value up by bpf_map_lookup_elem()");
      }
      return;
    case Constant::kFunction:
      value = Value();
      value.kinds = kFunction;
      value.offset = insn.off;
      return;
  }
}

Value Analyzer::AddToPointer(uint32_t index, State* state, const Value& pointer, const Value& amount, bool subtract,
                             int reg) {
  if (pointer.Has(kPacketEnd | kMapPointer | kFunction)) {
    Fail(index, absl::StrCat(RegisterText(reg, pointer), ", which cannot be calculated with"),
         "calculate with a pointer to the packet, the stack or a value, and compare that");
    return Value::Scalar();
  }
  Value result = pointer;
  const auto step = static_cast<int64_t>(amount.min);
  if (amount.IsNumber() && step > -kFarthest && step < kFarthest) {
    const int64_t offset = pointer.offset + (subtract ? -step : step);
    if (pointer.offset_known && offset > -kFarthest && offset < kFarthest) {
      result.offset = static_cast<int32_t>(offset);
      return result;
    }
  }
  if (pointer.Is(kPacket)) {
    // A new base, whose distance to data_end is not known before it is compared.
    result.anchored = pointer.anchored && pointer.offset_known && pointer.offset >= 0 &&
                      static_cast<uint64_t>(pointer.offset) <= kLongestPacket && !subtract && amount.Is(kScalar) &&
                      amount.max <= kLongestPacket;
    result.id = NewId(index, state);
    result.range = 0;
    result.offset = 0;
    result.offset_known = true;
    return result;
  }
  result.offset_known = false;
  result.offset = 0;
  return result;
}

Value Analyzer::ScalarResult(const Instruction& insn, const Value& left, const Value& right) const {
  const bool wide = BPF_CLASS(insn.code) == BPF_ALU64;
  const uint64_t top = wide ? UINT64_MAX : kLow;
  const auto bounded = [&](const Value& value) {
    Value result = value.Is(kScalar) ? value : Value::Scalar();
    if (result.max > top) result = Value::Scalar(0, top);
    return result;
  };
  const Value a = bounded(left);
  const Value b = bounded(right);
  const uint64_t bits = wide ? 63 : 31;
  Value result = Value::Scalar(0, top);
  switch (BPF_OP(insn.code)) {
    case BPF_MOV:
      if (insn.off == 0) result = b;
      break;
    case BPF_ADD:
      if (b.max <= top - a.max) result = Value::Scalar(a.min + b.min, a.max + b.max);
      break;
    case BPF_SUB:
      if (a.min >= b.max) result = Value::Scalar(a.min - b.max, a.max - b.min);
      break;
    case BPF_MUL:
      if (a.max == 0 || b.max <= top / a.max) result = Value::Scalar(a.min * b.min, a.max * b.max);
      break;
    case BPF_DIV:
      if (insn.off == 0 && b.min > 0) result = Value::Scalar(a.min / b.max, a.max / b.min);
      break;
    case BPF_MOD:
      if (insn.off == 0 && b.min > 0) result = Value::Scalar(0, std::min(a.max, b.max - 1));
      break;
    case BPF_AND:
      result = Value::Scalar(0, std::min(a.max, b.max));
      if (a.IsNumber() && b.IsNumber()) result = Value::Number(a.min & b.min);
      break;
    case BPF_OR:
      result = Value::Scalar(std::max(a.min, b.min), MaskAbove(a.max | b.max));
      if (a.IsNumber() && b.IsNumber()) result = Value::Number(a.min | b.min);
      break;
    case BPF_XOR:
      result = Value::Scalar(0, MaskAbove(a.max | b.max));
      break;
    case BPF_LSH:
      if (b.IsNumber() && b.min <= bits && a.max <= (top >> b.min))
        result = Value::Scalar(a.min << b.min, a.max << b.min);
      break;
    case BPF_RSH:
      if (b.IsNumber() && b.min <= bits) result = Value::Scalar(a.min >> b.min, a.max >> b.min);
      break;
    case BPF_ARSH:
      if (b.IsNumber() && b.min <= bits && a.max <= (top >> 1)) result = Value::Scalar(a.min >> b.min, a.max >> b.min);
      break;
    case BPF_END:
      if (insn.imm == 16) result = Value::Scalar(0, 0xffff);
      if (insn.imm == 32) result = Value::Scalar(0, kLow);
      if (insn.imm == 64) result = Value::Scalar();
      break;
    default:
      break;
  }
  return result;
}

void Analyzer::Arithmetic(uint32_t index, State* state) {
  const Instruction& insn = At(index);
  const uint8_t operation = BPF_OP(insn.code);
  const bool wide = BPF_CLASS(insn.code) == BPF_ALU64;
  const bool unary = operation == BPF_NEG || operation == BPF_END;
  const bool with_register = !unary && BPF_SRC(insn.code) == BPF_X;
  const Value left = state->registers[insn.dst];
  const uint64_t immediate = wide ? static_cast<uint64_t>(insn.imm) : static_cast<uint32_t>(insn.imm);
  const Value right = with_register ? state->registers[insn.src] : Value::Number(immediate);
  Value& result = state->registers[insn.dst];
  if (with_register && right.Is(kUnset)) {
    FailUnset(index, insn.src);
  }
  if (operation == BPF_MOV) {
    result = wide && insn.off == 0 ? right : ScalarResult(insn, left, right);
    return;
  }
  if (left.Is(kUnset)) {
    FailUnset(index, insn.dst);
  }
  const bool left_pointer = left.Has(kPointers);
  const bool right_pointer = right.Has(kPointers);
  if (!left_pointer && !right_pointer) {
    result = ScalarResult(insn, left, right);
    return;
  }
  if (wide && operation == BPF_ADD && !(IsExactPointer(left) && IsExactPointer(right))) {
    const bool base_left = left_pointer;
    const Value sum = AddToPointer(index, state, base_left ? left : right, base_left ? right : left, false,
                                   base_left ? insn.dst : insn.src);
    result = sum;
    if (left_pointer && right_pointer) result = Value::Any();
    return;
  }
  if (wide && operation == BPF_SUB) {
    if (left_pointer && !right_pointer) {
      const Value difference = AddToPointer(index, state, left, right, true, insn.dst);
      result = difference;
    } else {
      result = Value::Scalar();
    }
    return;
  }
  const bool exact = IsExactPointer(left) || (with_register && IsExactPointer(right));
  if (exact && !(operation == BPF_SUB && !wide)) {
    const int reg = IsExactPointer(left) ? insn.dst : insn.src;
    Fail(index,
         absl::StrCat(RegisterText(reg, IsExactPointer(left) ? left : right), ", of which this leaves no pointer"),
         "add a number to it or take one from it in 64 bits, nothing else");
  }
  result = Value::Scalar(0, wide ? UINT64_MAX : kLow);
}

}  // namespace halfpage::bpf
