#include "xdp_emul/bpf/interpreter.h"

#include <cstring>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/memory_check.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage::bpf {
namespace {

struct Tracer {
  TraceFunction function;
  void* to;
};

template <typename T>
T Read(uint64_t address) {
  T value;
  memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}

template <typename T>
void Write(uint64_t address, uint64_t value) {
  const T narrow = static_cast<T>(value);
  memcpy(reinterpret_cast<void*>(address), &narrow, sizeof(T));
}

uint64_t LoadFrom(uint8_t code, uint64_t address) {
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

void StoreTo(uint8_t code, uint64_t address, uint64_t value) {
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

uint64_t SizeOf(uint8_t code) {
  switch (BPF_SIZE(code)) {
    case BPF_B:
      return 1;
    case BPF_H:
      return 2;
    case BPF_W:
      return 4;
    default:
      return 8;
  }
}

template <typename T>
uint64_t AtomicOn(T* place, int64_t operation, uint64_t operand, uint64_t expected) {
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

uint64_t Swap(const Instruction& insn, uint64_t value) {
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

uint64_t Extend(uint64_t value, int32_t bits) {
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

void RunArithmetic(const Instruction& insn, uint64_t* r) {
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
bool Holds(uint8_t operation, T a, T b) {
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

bool Jumps(const Instruction& insn, const uint64_t* r) {
  const uint64_t right = BPF_SRC(insn.code) == BPF_X ? r[insn.src] : static_cast<uint64_t>(insn.imm);
  if (BPF_CLASS(insn.code) == BPF_JMP) return Holds<uint64_t, int64_t>(BPF_OP(insn.code), r[insn.dst], right);
  return Holds<uint32_t, int32_t>(BPF_OP(insn.code), static_cast<uint32_t>(r[insn.dst]), static_cast<uint32_t>(right));
}

// An access through a pointer that may be the context's: its fields are read whole.
bool ReadsContext(const RunState& state, const Instruction& insn, uint64_t address, uint64_t* value) {
  if (insn.check != Check::kAny || BPF_SIZE(insn.code) != BPF_W) return false;
  const uint64_t offset = address - reinterpret_cast<uint64_t>(state.context);
  if (offset > 20 || offset % 4 != 0) return false;
  *value = ContextField(state, static_cast<uint32_t>(offset));
  return true;
}

template <bool kTraced>
class Run {
 public:
  Run(const Image& image, RunState* state, const Tracer* tracer)
      : code_(image.code.data()), image_(image), state_(state), tracer_(tracer) {}

  // Runs the function at `begin` with `r` in place; r0 is its result. Its stack is above frame_top. False after a
  // fault.
  bool Call(uint32_t begin, uint64_t* r) {
    uint8_t* const outer = state_->frame_top;
    if (outer + kStackBytes > state_->stack + sizeof(state_->stack)) return Fault(begin, FaultKind::kCalls);
    state_->frame_top = outer + kStackBytes;
    const uint32_t used = image_.FunctionOf(begin).stack;
    memset(state_->frame_top - used, 0, used);
    r[10] = reinterpret_cast<uint64_t>(state_->frame_top);
    const bool good = Execute(begin, r);
    state_->frame_top = outer;
    return good;
  }

 private:
  bool Fault(uint32_t at, FaultKind kind) {
    state_->Fail(kind, 0, 0);
    state_->fault.instruction = at;
    return false;
  }
  bool FaultAt(uint32_t at) {
    state_->fault.instruction = at;
    return false;
  }

  bool LocalCall(uint32_t target, uint64_t* r) {
    uint64_t inner[11] = {};
    memcpy(inner + 1, r + 1, 5 * sizeof(uint64_t));
    if (!Call(target, inner)) return false;
    r[0] = inner[0];
    return true;
  }

  bool HelperCall(const Instruction& insn, uint32_t at, uint64_t* r) {
    if (insn.unproven != 0 && !CheckArguments(state_, &insn, r + 1)) return FaultAt(at);
    const Helper* helper = FindHelper(static_cast<uint32_t>(insn.imm));
    r[0] = helper->function(state_, r[1], r[2], r[3], r[4], r[5]);
    if (!state_->Failed()) return true;
    // A callback's fault has its own place.
    if (state_->fault.kind == FaultKind::kArgument) return FaultAt(at);
    return false;
  }

  bool Execute(uint32_t pc, uint64_t* r) {
    for (;;) {
      const Instruction& insn = code_[pc];
      if (kTraced) tracer_->function(tracer_->to, image_, pc, r);
      switch (BPF_CLASS(insn.code)) {
        case BPF_ALU:
        case BPF_ALU64:
          RunArithmetic(insn, r);
          ++pc;
          break;
        case BPF_LDX: {
          const uint64_t address = r[insn.src] + static_cast<int64_t>(insn.off);
          uint64_t value = 0;
          if (insn.check == Check::kContext) {
            r[insn.dst] = ContextField(*state_, static_cast<uint32_t>(insn.imm));
          } else if (insn.check == Check::kNone || CheckLoad(insn, address, &value)) {
            r[insn.dst] = insn.check == Check::kAny && value != 0 ? value : LoadFrom(insn.code, address);
          } else {
            return FaultAt(pc);
          }
          ++pc;
          break;
        }
        case BPF_ST:
        case BPF_STX: {
          const uint64_t address = r[insn.dst] + static_cast<int64_t>(insn.off);
          if (insn.check != Check::kNone && !CheckAccess(state_, insn, address, SizeOf(insn.code), true))
            return FaultAt(pc);
          if (BPF_CLASS(insn.code) == BPF_ST) {
            StoreTo(insn.code, address, static_cast<uint64_t>(insn.imm));
          } else if (BPF_MODE(insn.code) == BPF_ATOMIC) {
            if (!CheckAlignment(state_, address, SizeOf(insn.code))) return FaultAt(pc);
            Atomic(insn, address, r);
          } else {
            StoreTo(insn.code, address, r[insn.src]);
          }
          ++pc;
          break;
        }
        case BPF_JMP:
        case BPF_JMP32: {
          const uint8_t operation = BPF_OP(insn.code);
          if (operation == BPF_EXIT) return true;
          if (operation == BPF_CALL) {
            if (insn.src == BPF_PSEUDO_CALL ? !LocalCall(static_cast<uint32_t>(insn.off), r)
                                            : !HelperCall(insn, pc, r)) {
              return false;
            }
            ++pc;
            break;
          }
          if (operation != BPF_JA && !Jumps(insn, r)) {
            ++pc;
            break;
          }
          const auto target = static_cast<uint32_t>(insn.off);
          if (target <= pc && --state_->fuel < 0) return Fault(pc, FaultKind::kFuel);
          pc = target;
          break;
        }
        default:
          r[insn.dst] = Constant64(insn);
          pc += 2;
      }
    }
  }

  bool CheckLoad(const Instruction& insn, uint64_t address, uint64_t* value) {
    if (ReadsContext(*state_, insn, address, value)) return true;
    *value = 0;
    return CheckAccess(state_, insn, address, SizeOf(insn.code), false);
  }

  uint64_t Constant64(const Instruction& insn) const {
    switch (insn.constant) {
      case Constant::kMap:
        return reinterpret_cast<uint64_t>(state_->program->maps().maps()[insn.map].get());
      case Constant::kMapValue:
        return reinterpret_cast<uint64_t>(state_->program->maps().maps()[insn.map]->region().base) + insn.imm;
      default:
        return static_cast<uint64_t>(insn.imm);
    }
  }

  void Atomic(const Instruction& insn, uint64_t address, uint64_t* r) {
    uint64_t old;
    if (BPF_SIZE(insn.code) == BPF_DW) {
      old = AtomicOn(reinterpret_cast<uint64_t*>(address), insn.imm, r[insn.src], r[0]);
    } else {
      old = AtomicOn(reinterpret_cast<uint32_t*>(address), insn.imm, r[insn.src], r[0]);
    }
    if (insn.imm == BPF_CMPXCHG) {
      r[0] = old;
    } else if (insn.imm & BPF_FETCH) {
      r[insn.src] = old;
    }
  }

  const Instruction* code_;
  const Image& image_;
  RunState* state_;
  const Tracer* tracer_;
};

uint64_t CallBack(RunState* state, uint32_t function, const uint64_t* arguments) {
  uint64_t r[11] = {};
  memcpy(r + 1, arguments, 5 * sizeof(uint64_t));
  return Run<false>(state->program->image(), state, nullptr).Call(function, r) ? r[0] : 0;
}

template <bool kTraced>
uint64_t Start(const Image& image, RunState* state, const Tracer* tracer) {
  uint64_t r[11] = {};
  r[1] = reinterpret_cast<uint64_t>(state->context);
  return Run<kTraced>(image, state, tracer).Call(0, r) ? r[0] : 0;
}

}  // namespace

uint64_t SizeOfAccess(uint8_t code) {
  return SizeOf(code);
}

bool LoadThroughAny(RunState* state, const Instruction& insn, uint64_t address, uint64_t* value) {
  if (ReadsContext(*state, insn, address, value)) return true;
  if (!CheckAccess(state, insn, address, SizeOf(insn.code), false)) return false;
  *value = LoadFrom(insn.code, address);
  return true;
}

void PrepareRun(RunState* state) {
  state->call = CallBack;
}

uint64_t Interpret(const Image& image, RunState* state) {
  return Start<false>(image, state, nullptr);
}

uint64_t InterpretTraced(const Image& image, RunState* state, TraceFunction trace, void* to) {
  const Tracer tracer = {trace, to};
  return Start<true>(image, state, &tracer);
}

}  // namespace halfpage::bpf
