// What single instructions calculate: private to the interpreter.
#pragma once

#include <cstdint>
#include <cstring>

#include "xdp_emul/bpf/instruction.h"

namespace halfpage::bpf::operations {

template <typename T>
T Read(uint64_t address) {
  T value;
  memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}

template <typename T>
inline void Write(uint64_t address, uint64_t value) {
  const T narrow = static_cast<T>(value);
  memcpy(reinterpret_cast<void*>(address), &narrow, sizeof(T));
}

inline uint64_t LoadFrom(uint8_t code, uint64_t address) {
  const bool extend = BPF_MODE(code) == kModeSignExtended;
  switch (BPF_SIZE(code)) {
    case BPF_B:
      return extend ? static_cast<uint64_t>(int64_t{Read<int8_t>(address)}) : Read<uint8_t>(address);
    case BPF_H:
      return extend ? static_cast<uint64_t>(int64_t{Read<int16_t>(address)}) : Read<uint16_t>(address);
    case BPF_W:
      return extend ? static_cast<uint64_t>(int64_t{Read<int32_t>(address)}) : Read<uint32_t>(address);
    default:
      return Read<uint64_t>(address);
  }
}

inline void StoreTo(uint8_t code, uint64_t address, uint64_t value) {
  switch (BPF_SIZE(code)) {
    case BPF_B:
      return Write<uint8_t>(address, value);
    case BPF_H:
      return Write<uint16_t>(address, value);
    case BPF_W:
      return Write<uint32_t>(address, value);
    default:
      return Write<uint64_t>(address, value);
  }
}

template <typename T>
inline uint64_t AtomicOn(T* place, int64_t operation, uint64_t operand, uint64_t expected) {
  const auto value = static_cast<T>(operand);
  switch (operation & ~static_cast<int64_t>(BPF_FETCH)) {
    case BPF_ADD:
      return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);
    case BPF_OR:
      return __atomic_fetch_or(place, value, __ATOMIC_SEQ_CST);
    case BPF_AND:
      return __atomic_fetch_and(place, value, __ATOMIC_SEQ_CST);
    case BPF_XOR:
      return __atomic_fetch_xor(place, value, __ATOMIC_SEQ_CST);
    case BPF_XCHG & ~BPF_FETCH:
      return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);
    default: {
      auto old = static_cast<T>(expected);
      __atomic_compare_exchange_n(place, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return old;
    }
  }
}

template <typename T, typename S>
T Arithmetic(uint8_t operation, T a, T b, bool is_signed) {
  constexpr unsigned kBits = sizeof(T) * 8;
  switch (operation) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      if (b == 0) return 0;
      if (!is_signed) return a / b;
      return b == static_cast<T>(-1) ? T{0} - a : static_cast<T>(static_cast<S>(a) / static_cast<S>(b));
    case BPF_MOD:
      if (b == 0) return a;
      if (!is_signed) return a % b;
      return b == static_cast<T>(-1) ? 0 : static_cast<T>(static_cast<S>(a) % static_cast<S>(b));
    case BPF_OR:
      return a | b;
    case BPF_AND:
      return a & b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b & (kBits - 1));
    case BPF_RSH:
      return a >> (b & (kBits - 1));
    case BPF_ARSH:
      return static_cast<T>(static_cast<S>(a) >> (b & (kBits - 1)));
    default:
      return b;
  }
}

inline uint64_t Swap(const Instruction& insn, uint64_t value) {
  const bool always = BPF_CLASS(insn.code) == BPF_ALU64;
  const bool swap = always || BPF_SRC(insn.code) == BPF_TO_BE;  // this machine is little-endian
  switch (insn.imm) {
    case 16:
      return swap ? __builtin_bswap16(static_cast<uint16_t>(value)) : static_cast<uint16_t>(value);
    case 32:
      return swap ? __builtin_bswap32(static_cast<uint32_t>(value)) : static_cast<uint32_t>(value);
    default:
      return swap ? __builtin_bswap64(value) : value;
  }
}

inline uint64_t Extend(uint64_t value, int32_t bits) {
  switch (bits) {
    case 8:
      return static_cast<uint64_t>(int64_t{static_cast<int8_t>(value)});
    case 16:
      return static_cast<uint64_t>(int64_t{static_cast<int16_t>(value)});
    case 32:
      return static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
    default:
      return value;
  }
}

inline void RunArithmetic(const Instruction& insn, uint64_t* r) {
  const uint8_t operation = BPF_OP(insn.code);
  const bool wide = BPF_CLASS(insn.code) == BPF_ALU64;
  uint64_t& dst = r[insn.dst];
  if (operation == BPF_END) {
    dst = Swap(insn, dst);
    return;
  }
  if (operation == BPF_NEG) {
    dst = wide ? 0 - dst : static_cast<uint32_t>(0 - dst);
    return;
  }
  uint64_t operand = BPF_SRC(insn.code) == BPF_X ? r[insn.src] : static_cast<uint64_t>(insn.imm);
  if (operation == BPF_MOV) operand = Extend(operand, insn.off);
  const bool is_signed = insn.off == 1;
  if (wide) {
    dst = Arithmetic<uint64_t, int64_t>(operation, dst, operand, is_signed);
  } else {
    dst =
        Arithmetic<uint32_t, int32_t>(operation, static_cast<uint32_t>(dst), static_cast<uint32_t>(operand), is_signed);
  }
}

template <typename T, typename S>
inline bool Holds(uint8_t operation, T a, T b) {
  switch (operation) {
    case BPF_JEQ:
      return a == b;
    case BPF_JNE:
      return a != b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JLT:
      return a < b;
    case BPF_JLE:
      return a <= b;
    case BPF_JSET:
      return (a & b) != 0;
    case BPF_JSGT:
      return static_cast<S>(a) > static_cast<S>(b);
    case BPF_JSGE:
      return static_cast<S>(a) >= static_cast<S>(b);
    case BPF_JSLT:
      return static_cast<S>(a) < static_cast<S>(b);
    default:
      return static_cast<S>(a) <= static_cast<S>(b);
  }
}

inline bool Jumps(const Instruction& insn, const uint64_t* r) {
  const uint64_t right = BPF_SRC(insn.code) == BPF_X ? r[insn.src] : static_cast<uint64_t>(insn.imm);
  if (BPF_CLASS(insn.code) == BPF_JMP) return Holds<uint64_t, int64_t>(BPF_OP(insn.code), r[insn.dst], right);
  return Holds<uint32_t, int32_t>(BPF_OP(insn.code), static_cast<uint32_t>(r[insn.dst]), static_cast<uint32_t>(right));
}

}  // namespace halfpage::bpf::operations
