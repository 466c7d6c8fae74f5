#include "xdp_emul/bpf/interpreter.h"

#include <cstring>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/interpreter_operations.h"
#include "xdp_emul/bpf/memory_check.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage::bpf {
namespace {

using namespace operations;

struct Tracer {
  TraceFunction function;
  void* to;
};

// An access through a pointer that may be the context's: its fields are read whole.
bool ReadsContext(const RunState& state, const Instruction& insn, uint64_t address, uint64_t* value) {
  if (insn.check != Check::kAny || BPF_SIZE(insn.code) != BPF_W) return false;
  const uint64_t offset = address - reinterpret_cast<uint64_t>(state.context);
  if (offset > 20 || offset % 4 != 0) return false;
  *value = ContextField(state, static_cast<uint32_t>(offset));
  return true;
}

// Cases of Execute() for instructions without a check, in both widths, with a register and with an immediate.
#define HALFPAGE_ARITHMETIC(OPERATION, SIGN)                                               \
  case BPF_ALU64 | OPERATION | BPF_X:                                                      \
    r[insn.dst] = r[insn.dst] SIGN r[insn.src];                                            \
    ++pc;                                                                                  \
    continue;                                                                              \
  case BPF_ALU64 | OPERATION | BPF_K:                                                      \
    r[insn.dst] = r[insn.dst] SIGN static_cast<uint64_t>(insn.imm);                        \
    ++pc;                                                                                  \
    continue;                                                                              \
  case BPF_ALU | OPERATION | BPF_X:                                                        \
    r[insn.dst] = static_cast<uint32_t>(r[insn.dst] SIGN r[insn.src]);                     \
    ++pc;                                                                                  \
    continue;                                                                              \
  case BPF_ALU | OPERATION | BPF_K:                                                        \
    r[insn.dst] = static_cast<uint32_t>(r[insn.dst] SIGN static_cast<uint64_t>(insn.imm)); \
    ++pc;                                                                                  \
    continue;
#define HALFPAGE_SHIFT(OPERATION, SIGN)                                                             \
  case BPF_ALU64 | OPERATION | BPF_X:                                                               \
    r[insn.dst] = r[insn.dst] SIGN(r[insn.src] & 63);                                               \
    ++pc;                                                                                           \
    continue;                                                                                       \
  case BPF_ALU64 | OPERATION | BPF_K:                                                               \
    r[insn.dst] = r[insn.dst] SIGN(insn.imm & 63);                                                  \
    ++pc;                                                                                           \
    continue;                                                                                       \
  case BPF_ALU | OPERATION | BPF_X:                                                                 \
    r[insn.dst] = static_cast<uint32_t>(static_cast<uint32_t>(r[insn.dst]) SIGN(r[insn.src] & 31)); \
    ++pc;                                                                                           \
    continue;                                                                                       \
  case BPF_ALU | OPERATION | BPF_K:                                                                 \
    r[insn.dst] = static_cast<uint32_t>(static_cast<uint32_t>(r[insn.dst]) SIGN(insn.imm & 31));    \
    ++pc;                                                                                           \
    continue;
#define HALFPAGE_JUMP_IF(CONDITION)                                             \
  if (CONDITION) {                                                              \
    const auto target = static_cast<uint32_t>(insn.off);                        \
    if (target <= pc && --state_->fuel < 0) return Fault(pc, FaultKind::kFuel); \
    pc = target;                                                                \
  } else {                                                                      \
    ++pc;                                                                       \
  }                                                                             \
  continue;
#define HALFPAGE_JUMP(OPERATION, SIGN)                                                           \
  case BPF_JMP | OPERATION | BPF_X:                                                              \
    HALFPAGE_JUMP_IF(r[insn.dst] SIGN r[insn.src])                                               \
  case BPF_JMP | OPERATION | BPF_K:                                                              \
    HALFPAGE_JUMP_IF(r[insn.dst] SIGN static_cast<uint64_t>(insn.imm))                           \
  case BPF_JMP32 | OPERATION | BPF_X:                                                            \
    HALFPAGE_JUMP_IF(static_cast<uint32_t>(r[insn.dst]) SIGN static_cast<uint32_t>(r[insn.src])) \
  case BPF_JMP32 | OPERATION | BPF_K:                                                            \
    HALFPAGE_JUMP_IF(static_cast<uint32_t>(r[insn.dst]) SIGN static_cast<uint32_t>(insn.imm))
#define HALFPAGE_LOAD(SIZE, TYPE)                                           \
  case BPF_LDX | BPF_MEM | SIZE: {                                          \
    if (insn.check != Check::kNone) break;                                  \
    r[insn.dst] = Read<TYPE>(r[insn.src] + static_cast<int64_t>(insn.off)); \
    ++pc;                                                                   \
    continue;                                                               \
  }
#define HALFPAGE_STORE(SIZE, TYPE)                                          \
  case BPF_STX | BPF_MEM | SIZE: {                                          \
    if (insn.check != Check::kNone) break;                                  \
    Write<TYPE>(r[insn.dst] + static_cast<int64_t>(insn.off), r[insn.src]); \
    ++pc;                                                                   \
    continue;                                                               \
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

  // The program that a tail call leads to takes the function's place, its stack too. False where it leads nowhere.
  bool TailCalled(uint64_t* r) {
    const Program* target = TailTarget(state_, r[2], r[3]);
    if (target == nullptr) return false;
    state_->frame_top -= kStackBytes;
    r[0] = target->RunTail(state_);
    return true;
  }

  bool HelperCall(const Instruction& insn, uint32_t at, uint64_t* r) {
    if (insn.unproven != 0 && !CheckArguments(state_, &insn, r + 1)) return FaultAt(at);
    const Helper* helper = FindHelper(static_cast<uint32_t>(insn.imm));
    r[0] = helper->function(state_, r[1], r[2], r[3], r[4], r[5]);
    if (!state_->Failed()) return true;
    // A callback's fault has its own place.
    return state_->fault.instruction == bpf::Fault::kNowhere ? FaultAt(at) : false;
  }

  bool Execute(uint32_t pc, uint64_t* r) {
    for (;;) {
      const Instruction& insn = code_[pc];
      if (kTraced) tracer_->function(tracer_->to, image_, pc, r);
      // What most programs do most of the time, with one jump for each instruction; the rest is below.
      switch (insn.code) {
        HALFPAGE_ARITHMETIC(BPF_ADD, +)
        HALFPAGE_ARITHMETIC(BPF_SUB, -)
        HALFPAGE_ARITHMETIC(BPF_MUL, *)
        HALFPAGE_ARITHMETIC(BPF_OR, |)
        HALFPAGE_ARITHMETIC(BPF_AND, &)
        HALFPAGE_ARITHMETIC(BPF_XOR, ^)
        HALFPAGE_SHIFT(BPF_LSH, <<)
        HALFPAGE_SHIFT(BPF_RSH, >>)
        HALFPAGE_JUMP(BPF_JEQ, ==)
        HALFPAGE_JUMP(BPF_JNE, !=)
        HALFPAGE_JUMP(BPF_JGT, >)
        HALFPAGE_JUMP(BPF_JGE, >=)
        HALFPAGE_JUMP(BPF_JLT, <)
        HALFPAGE_JUMP(BPF_JLE, <=)
        HALFPAGE_LOAD(BPF_B, uint8_t)
        HALFPAGE_LOAD(BPF_H, uint16_t)
        HALFPAGE_LOAD(BPF_W, uint32_t)
        HALFPAGE_LOAD(BPF_DW, uint64_t)
        HALFPAGE_STORE(BPF_B, uint8_t)
        HALFPAGE_STORE(BPF_H, uint16_t)
        HALFPAGE_STORE(BPF_W, uint32_t)
        HALFPAGE_STORE(BPF_DW, uint64_t)
        case BPF_ALU64 | BPF_MOV | BPF_X:
          if (insn.off != 0) break;
          r[insn.dst] = r[insn.src];
          ++pc;
          continue;
        case BPF_ALU64 | BPF_MOV | BPF_K:
          r[insn.dst] = static_cast<uint64_t>(insn.imm);
          ++pc;
          continue;
        case BPF_ALU | BPF_MOV | BPF_X:
          if (insn.off != 0) break;
          r[insn.dst] = static_cast<uint32_t>(r[insn.src]);
          ++pc;
          continue;
        case BPF_ALU | BPF_MOV | BPF_K:
          r[insn.dst] = static_cast<uint32_t>(insn.imm);
          ++pc;
          continue;
        case BPF_JMP | BPF_EXIT:
          return true;
        default:
          break;
      }
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
          if (insn.check != Check::kNone && !CheckAccess(state_, insn, address, AccessBytes(insn.code), true))
            return FaultAt(pc);
          if (BPF_CLASS(insn.code) == BPF_ST) {
            StoreTo(insn.code, address, static_cast<uint64_t>(insn.imm));
          } else if (BPF_MODE(insn.code) == BPF_ATOMIC) {
            if (!CheckAlignment(state_, address, AccessBytes(insn.code))) return FaultAt(pc);
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
            if (insn.imm == BPF_FUNC_tail_call && insn.src == 0) {
              if (insn.unproven != 0 && !CheckArguments(state_, &insn, r + 1)) return FaultAt(pc);
              if (TailCalled(r)) return !state_->Failed();
            }
            if (insn.src == BPF_PSEUDO_CALL ? !LocalCall(static_cast<uint32_t>(insn.off), r)
                                            : !HelperCall(insn, pc, r)) {
              return false;
            }
            memset(r + 1, 0, 5 * sizeof(*r));  // a program that reads them all the same runs alike each time
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
    return CheckAccess(state_, insn, address, AccessBytes(insn.code), false);
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

bool LoadThroughAny(RunState* state, const Instruction& insn, uint64_t address, uint64_t* value) {
  if (ReadsContext(*state, insn, address, value)) return true;
  if (!CheckAccess(state, insn, address, AccessBytes(insn.code), false)) return false;
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
