// What loads and stores may touch, and what they leave behind.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/bpf/analyzer.h"

namespace halfpage::bpf {
namespace {

Value Loaded(const Instruction& insn, uint32_t size) {
  if (size == 8 || BPF_MODE(insn.code) == kModeSignExtended) return Value::Scalar();
  return Value::Scalar(0, (uint64_t{1} << (8 * size)) - 1);
}

// Values of slots that begin at offset, for whole and aligned accesses; -1 otherwise.
int SlotAt(int64_t offset, uint32_t size) {
  return size == 8 && offset % 8 == 0 ? static_cast<int>(-offset / 8 - 1) : -1;
}

}  // namespace

void Analyzer::UseStack(int64_t lowest) {
  const auto bytes = static_cast<uint32_t>((-lowest + 7) / 8 * 8);
  function_->stack = std::max(function_->stack, bytes);
}

// Whether [offset, offset + size) from the base of `base` is inside for sure.
bool Analyzer::Proven(const Value& base, int64_t offset, uint64_t size, bool write) const {
  if (!base.offset_known) return false;
  const int64_t end = offset + static_cast<int64_t>(size);
  if (base.Is(kPacket)) return base.anchored && offset >= 0 && end <= base.range;
  if (base.Is(kStack)) return base.own && offset >= -static_cast<int64_t>(kStackBytes) && end <= 0;
  if (base.Is(kRecord)) return base.not_null && offset >= 0 && end <= base.range;
  if (base.Is(kMapValue) && base.not_null && base.map_set != kAnyMap) {
    for (size_t map = 0; map < object_.maps.size(); ++map) {
      if ((base.map_set >> map & 1) == 0) continue;
      const MapSpec& spec = object_.maps[map];
      if (offset < 0 || end > spec.value_size || (write && IsReadOnly(spec))) return false;
    }
    return true;
  }
  return false;
}

Check Analyzer::CheckFor(uint32_t index, int reg, const Value& base, int32_t offset, uint32_t size, bool write,
                         int16_t* map) {
  const int64_t at = int64_t{base.offset} + offset;
  const char* verb = write ? "writes" : "reads";
  if (base.Is(kUnset)) {
    FailUnset(index, reg);
    return Check::kAny;
  }
  const uint16_t pointers = base.kinds & kPointers;
  if (pointers == 0) {
    Fail(index, absl::StrCat(RegisterText(reg, base), ", no pointer"),
         "load data from the context or look a value up first (a packet pointer ends where bpf_xdp_adjust_*() is "
         "called: load it again)");
    return Check::kAny;
  }
  if (base.Is(kContext)) {
    const bool field = base.offset_known && at >= 0 && at <= 20 && at % 4 == 0 && size == 4;
    if (write || !field) {
      Fail(index, absl::StrFormat("%s %d bytes at %d of xdp_md", verb, size, at),
           "its fields are read only, 4 bytes each, at 0 to 20: read a whole one");
    }
    if (field && at == 20 && !image_.behind_devmap) {
      Fail(index, "reads egress_ifindex, which a frame has behind a devmap only",
           "put the program into SEC(\"xdp/devmap\")");
    }
    return Check::kContext;
  }
  if (base.Is(kPacketEnd) || base.Is(kMapPointer) || base.Is(kFunction)) {
    Fail(index, absl::StrCat(RegisterText(reg, base), ", which points at nothing that a program may access"),
         "access the packet from data on, or a value that bpf_map_lookup_elem() gave");
    return Check::kAny;
  }
  if (Proven(base, at, size, write)) return Check::kNone;
  if (base.Is(kStack) && base.own && base.offset_known) {
    Fail(index, absl::StrFormat("%s %d bytes at %d of the stack, which is r10-512 to r10", verb, size, at),
         "stay inside the variable; what needs more room belongs into a map");
  }
  if (base.Is(kMapValue) && base.map != kSeveralMaps) {
    const MapSpec& spec = object_.maps[base.map];
    if (write && IsReadOnly(spec)) {
      Fail(index, absl::StrCat("writes to ", spec.name, ", which is read only"),
           "leave away its const or BPF_F_RDONLY_PROG");
    } else if (base.offset_known && base.not_null && (at < 0 || at + size > spec.value_size)) {
      Fail(index,
           absl::StrFormat("%s %d bytes at %d of a value of map %s, which has %d", verb, size, at, spec.name,
                           spec.value_size),
           "stay inside the value, or make its type larger");
    }
  }
  if (pointers == kPacket) return Check::kPacket;
  if (pointers == kStack && base.own) return Check::kStack;
  if (pointers == kMapValue && base.map != kSeveralMaps) {
    *map = base.map;
    return Check::kValue;
  }
  return Check::kAny;
}

// What the own stack's slots hold after `size` bytes were written through `base`. `stored` is null for plain numbers.
void Analyzer::WriteStack(State* state, const Value& base, int64_t offset, uint32_t size, const Value* stored) {
  if (!base.Has(kStack)) return;
  if (base.Is(kStack) && base.own && base.offset_known) {
    if (offset < -static_cast<int64_t>(kStackBytes) || offset + size > 0) return;
    UseStack(offset);
    const int slot = SlotAt(offset, size);
    if (slot >= 0) {
      state->slots[slot] = stored != nullptr ? *stored : Value::Scalar();
      return;
    }
    const int64_t end = offset + size;
    for (int64_t byte = offset; byte < end; ++byte) state->slots[(-byte - 1) / 8] = Value::Scalar();
    return;
  }
  UseStack(-static_cast<int64_t>(kStackBytes));
  ForgetSlots(state);
}

void Analyzer::Load(uint32_t index, State* state) {
  Instruction& insn = At(index);
  const Value base = state->registers[insn.src];
  const uint32_t size = AccessBytes(insn.code);
  int16_t map = kSeveralMaps;
  const Check check = CheckFor(index, insn.src, base, insn.off, size, false, &map);
  const int64_t at = int64_t{base.offset} + insn.off;
  if (reporting_) {
    insn.check = check;
    insn.map = map;
  }
  Value& result = state->registers[insn.dst];
  if (check == Check::kContext) {
    if (reporting_) insn.imm = at;
    if (BPF_MODE(insn.code) == kModeSignExtended) {
      Fail(index, "reads a field of xdp_md sign-extended", "read it as __u32");
    }
    result = Value::Scalar(0, UINT32_MAX);
    if (at == 0 || at == 8) {
      result = Value();
      result.kinds = kPacket;
      result.id = at == 0 ? kDataId : kMetaId;
      result.anchored = true;
    } else if (at == 4) {
      result = Value();
      result.kinds = kPacketEnd;
    }
    return;
  }
  if (base.Is(kStack) && base.own && base.offset_known && check == Check::kNone) {
    UseStack(at);
    const int slot = SlotAt(at, size);
    result = Loaded(insn, size);
    if (slot >= 0) {
      result = state->slots[slot];
      if (result.Is(kUnset)) result = Value::Number(0);  // the stack is zeroed before the function runs
    }
    return;
  }
  if (base.Has(kStack)) UseStack(-static_cast<int64_t>(kStackBytes));
  result = base.Has(kStack) && size == 8 ? Value::Any() : Loaded(insn, size);
}

void Analyzer::Store(uint32_t index, State* state) {
  Instruction& insn = At(index);
  const Value base = state->registers[insn.dst];
  const uint32_t size = AccessBytes(insn.code);
  const bool from_register = BPF_CLASS(insn.code) == BPF_STX;
  int16_t map = kSeveralMaps;
  if (from_register && state->registers[insn.src].Is(kUnset)) {
    FailUnset(index, insn.src);
  }
  const Check check = CheckFor(index, insn.dst, base, insn.off, size, true, &map);
  if (reporting_) {
    insn.check = check;
    insn.map = map;
    image_.writes_packet |= base.Has(kPacket);
  }
  const Value stored = from_register ? state->registers[insn.src] : Value::Number(static_cast<uint64_t>(insn.imm));
  const bool to_own_slot = base.Is(kStack) && base.own && base.offset_known;
  if (stored.Has(kStack) && !to_own_slot) function_->stack_escapes = true;
  WriteStack(state, base, int64_t{base.offset} + insn.off, size, &stored);
}

void Analyzer::Atomic(uint32_t index, State* state) {
  Instruction& insn = At(index);
  const Value base = state->registers[insn.dst];
  const uint32_t size = AccessBytes(insn.code);
  for (const int reg : {static_cast<int>(insn.src), 0}) {
    if (reg == 0 && insn.imm != BPF_CMPXCHG) continue;
    if (state->registers[reg].Is(kUnset)) {
      FailUnset(index, reg);
    }
  }
  if (base.Is(kPacket)) {
    Fail(index, absl::StrCat(RegisterText(insn.dst, base), ": atomics work on map values and the stack"),
         "load, change and store what is in the packet: no other worker has it");
  }
  int16_t map = kSeveralMaps;
  const Check check = CheckFor(index, insn.dst, base, insn.off, size, true, &map);
  if (reporting_) {
    insn.check = check;
    insn.map = map;
    image_.writes_packet |= base.Has(kPacket);
  }
  WriteStack(state, base, int64_t{base.offset} + insn.off, size, nullptr);
  if (insn.imm == BPF_CMPXCHG) {
    state->registers[0] = Value::Scalar();
  } else if (insn.imm & BPF_FETCH) {
    state->registers[insn.src] = Value::Scalar();
  }
}

void Analyzer::ForgetSlots(State* state) {
  for (Value& slot : state->slots) slot = Value::Any();
}

}  // namespace halfpage::bpf
