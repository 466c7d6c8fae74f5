// What is known of a register or a stack slot while a program is analysed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

// Kinds of things; a value may be one of several.
enum Kind : uint16_t {
  kUnset = 1,  // nothing was put into it
  kScalar = 2,
  kContext = 4,
  kPacket = 8,
  kPacketEnd = 16,
  kStack = 32,
  kMapPointer = 64,
  kMapValue = 128,
  kFunction = 256,
  kRecord = 512,  // of a ring buffer
};
inline constexpr uint16_t kPointers =
    kContext | kPacket | kPacketEnd | kStack | kMapPointer | kMapValue | kFunction | kRecord;
// What a slot may hold that somebody else wrote.
inline constexpr uint16_t kAnyKind = kScalar | kContext | kPacket | kStack | kMapValue | kRecord;

inline constexpr int16_t kSeveralMaps = -1;
inline constexpr uint64_t kAnyMap = UINT64_MAX;
// The bit of one map in a set of maps.
inline constexpr uint64_t MapBit(int16_t map) {
  return map < 0 || map >= 63 ? kAnyMap : uint64_t{1} << map;
}

struct Value {
  uint16_t kinds = kUnset;
  bool offset_known = true;  // of pointers: `offset` is right
  bool not_null = false;     // of map values, records and map pointers
  bool own = true;           // of stack pointers: into the running function's own stack
  bool anchored = false;     // of packet pointers: what `id` stands for is at or above data
  int16_t map = kSeveralMaps;
  uint64_t map_set = 0;  // bit i: of map values, it may be one of map i; all bits where nobody knows
  int32_t offset = 0;    // from what `id` stands for; of stack pointers from the frame's top
  uint32_t id = 0;       // values with the same id (not 0) have the same base; 1 is the packet's data
  uint32_t range = 0;    // bytes from the base: of packet pointers those compared with data_end, of records all
  uint64_t min = 0;      // of scalars
  uint64_t max = UINT64_MAX;

  bool Is(uint16_t kind) const { return kinds == kind; }
  bool Has(uint16_t kind) const { return (kinds & kind) != 0; }
  bool IsNumber() const { return kinds == kScalar && min == max; }
  bool operator==(const Value&) const = default;

  static Value Scalar(uint64_t min = 0, uint64_t max = UINT64_MAX);
  static Value Number(uint64_t number) { return Scalar(number, number); }
  static Value Any();
};

inline constexpr uint32_t kDataId = 1;
inline constexpr uint32_t kMetaId = 2;
inline constexpr uint32_t kFirstId = 3;  // instruction i makes id i + kFirstId

// "a scalar", "a packet pointer or a scalar".
std::string KindText(const Value& value);

// The value that is known when it is `a` on one way and `b` on another. `widen`: bounds that differ are given up.
Value Join(const Value& a, const Value& b, bool widen);

inline constexpr int kSlots = kStackBytes / 8;

struct State {
  Value registers[11];
  Value slots[kSlots];  // slot i is at frame top - 8 * (i + 1)

  // Takes in `other`; whether anything changed.
  bool Merge(const State& other, bool widen);

  // Calls `f` with each value that is held.
  template <typename F>
  void ForEach(F f) {
    for (Value& value : registers) f(value);
    for (Value& value : slots) f(value);
  }
};

}  // namespace halfpage::bpf
