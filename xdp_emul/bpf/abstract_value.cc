#include "xdp_emul/bpf/abstract_value.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace halfpage::bpf {

Value Value::Scalar(uint64_t min, uint64_t max) {
  Value value;
  value.kinds = kScalar;
  value.min = min;
  value.max = max;
  return value;
}

Value Value::Any() {
  Value value;
  value.kinds = kAnyKind;
  value.offset_known = false;
  value.own = false;
  value.map_set = kAnyMap;
  return value;
}

std::string KindText(const Value& value) {
  static constexpr const char* kNames[] = {"nothing",          "a scalar",        "the context", "a packet pointer",
                                           "the packet's end", "a stack pointer", "a map",       "a map value",
                                           "a function",       "a record"};
  std::vector<std::string> names;
  for (int bit = 0; bit < 10; ++bit) {
    if (value.kinds & (1 << bit)) names.push_back(kNames[bit]);
  }
  return absl::StrJoin(names, " or ");
}

Value Join(const Value& a, const Value& b, bool widen) {
  if (a == b) return a;
  Value joined;
  joined.kinds = a.kinds | b.kinds;
  constexpr uint16_t kWithMap = kMapPointer | kMapValue;
  if (a.Has(kWithMap) && b.Has(kWithMap)) {
    joined.map = a.map == b.map ? a.map : kSeveralMaps;
  } else {
    joined.map = a.Has(kWithMap) ? a.map : b.map;
  }
  joined.map_set = a.map_set | b.map_set;
  // What is said of pointers counts only where both sides are the same kind of one.
  const bool same = a.kinds == b.kinds;
  joined.offset_known =
      same && a.offset_known && b.offset_known && a.offset == b.offset && (a.id == b.id || !a.Has(kPacket));
  joined.offset = joined.offset_known ? a.offset : 0;
  joined.not_null = same && a.not_null && b.not_null;
  joined.own = (a.own || !a.Has(kStack)) && (b.own || !b.Has(kStack));
  joined.anchored = same && a.anchored && b.anchored;
  joined.id = a.id == b.id ? a.id : 0;
  joined.range = a.id == b.id ? std::min(a.range, b.range) : 0;
  if (widen && joined.range != a.range) joined.range = 0;
  const bool a_scalar = a.Is(kScalar);
  const bool b_scalar = b.Is(kScalar);
  if (a_scalar && b_scalar) {
    joined.min = std::min(a.min, b.min);
    joined.max = std::max(a.max, b.max);
    if (widen && joined.min != a.min) joined.min = 0;
    if (widen && joined.max != a.max) joined.max = UINT64_MAX;
  }
  return joined;
}

bool State::Merge(const State& other, bool widen) {
  bool changed = false;
  const auto take = [&](Value& mine, const Value& theirs) {
    const Value joined = Join(mine, theirs, widen);
    if (joined == mine) return;
    mine = joined;
    changed = true;
  };
  for (int i = 0; i < 11; ++i) take(registers[i], other.registers[i]);
  for (int i = 0; i < kSlots; ++i) take(slots[i], other.slots[i]);
  return changed;
}

}  // namespace halfpage::bpf
