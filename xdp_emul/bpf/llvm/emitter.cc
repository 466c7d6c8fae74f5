#include "xdp_emul/bpf/llvm/emitter.h"

#include <cstddef>

namespace halfpage::bpf {

V Emitter::NoFault() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  return Is(LLVMIntEQ, Member(offsetof(RunState, fault) + offsetof(Fault, kind), 4), Number(0));
#pragma GCC diagnostic pop
}

V Emitter::Divide(V a, V b, LLVMTypeRef type, bool remainder, bool is_signed) {
  V zero = LLVMConstInt(type, 0, 0);
  V one = LLVMConstInt(type, 1, 0);
  V by_zero = Is(LLVMIntEQ, b, zero);
  V divisor = LLVMBuildSelect(builder_, by_zero, one, b, "");
  V result;
  if (is_signed) {
    V minus = Is(LLVMIntEQ, b, LLVMConstAllOnes(type));
    divisor = LLVMBuildSelect(builder_, minus, one, divisor, "");
    result = remainder ? LLVMBuildSRem(builder_, a, divisor, "") : LLVMBuildSDiv(builder_, a, divisor, "");
    if (!remainder) result = LLVMBuildSelect(builder_, minus, LLVMBuildNeg(builder_, a, ""), result, "");
  } else {
    result = remainder ? LLVMBuildURem(builder_, a, divisor, "") : LLVMBuildUDiv(builder_, a, divisor, "");
  }
  return LLVMBuildSelect(builder_, by_zero, remainder ? a : zero, result, "");
}

V Emitter::SwapBytes(V value, uint32_t bits) {
  LLVMTypeRef type = LLVMIntTypeInContext(context_, bits);
  const unsigned id = LLVMLookupIntrinsicID("llvm.bswap", 10);
  V intrinsic = LLVMGetIntrinsicDeclaration(module_, id, &type, 1);
  V narrow = bits == 64 ? value : LLVMBuildTrunc(builder_, value, type, "");
  V swapped = LLVMBuildCall2(builder_, LLVMFunctionType(type, &type, 1, 0), intrinsic, &narrow, 1, "");
  return bits == 64 ? swapped : Wide(swapped);
}

void Emitter::EmitArithmetic(const Instruction& insn) {
  const bool wide = BPF_CLASS(insn.code) == BPF_ALU64;
  const uint8_t operation = BPF_OP(insn.code);
  LLVMTypeRef type = wide ? i64_ : i32_;
  const auto narrow = [&](V value) { return wide ? value : LLVMBuildTrunc(builder_, value, i32_, ""); };
  if (operation == BPF_END) {
    const bool swap = wide || BPF_SRC(insn.code) == BPF_TO_BE;
    const auto bits = static_cast<uint32_t>(insn.imm);
    if (swap) return Set(insn.dst, SwapBytes(Register(insn.dst), bits));
    if (bits == 64) return;
    return Set(insn.dst, LLVMBuildAnd(builder_, Register(insn.dst), Number((uint64_t{1} << bits) - 1), ""));
  }
  V a = narrow(Register(insn.dst));
  V b = BPF_SRC(insn.code) == BPF_X ? Register(insn.src) : Number(static_cast<uint64_t>(insn.imm));
  if (operation == BPF_MOV && insn.off != 0) {
    V part = LLVMBuildTrunc(builder_, b, LLVMIntTypeInContext(context_, static_cast<unsigned>(insn.off)), "");
    b = LLVMBuildSExt(builder_, part, i64_, "");
  }
  b = narrow(b);
  V bits = LLVMBuildAnd(builder_, b, LLVMConstInt(type, wide ? 63 : 31, 0), "");
  V result = b;
  switch (operation) {
    case BPF_ADD:
      result = AddOf(a, b);
      break;
    case BPF_SUB:
      result = SubOf(a, b);
      break;
    case BPF_MUL:
      result = LLVMBuildMul(builder_, a, b, "");
      break;
    case BPF_DIV:
    case BPF_MOD:
      result = Divide(a, b, type, operation == BPF_MOD, insn.off == 1);
      break;
    case BPF_OR:
      result = LLVMBuildOr(builder_, a, b, "");
      break;
    case BPF_AND:
      result = LLVMBuildAnd(builder_, a, b, "");
      break;
    case BPF_XOR:
      result = LLVMBuildXor(builder_, a, b, "");
      break;
    case BPF_LSH:
      result = LLVMBuildShl(builder_, a, bits, "");
      break;
    case BPF_RSH:
      result = LLVMBuildLShr(builder_, a, bits, "");
      break;
    case BPF_ARSH:
      result = LLVMBuildAShr(builder_, a, bits, "");
      break;
    case BPF_NEG:
      result = LLVMBuildNeg(builder_, a, "");
      break;
    default:
      break;
  }
  Set(insn.dst, wide ? result : Wide(result));
}

V Emitter::Condition(const Instruction& insn) {
  const bool wide = BPF_CLASS(insn.code) == BPF_JMP;
  V a = Register(insn.dst);
  V b = BPF_SRC(insn.code) == BPF_X ? Register(insn.src) : Number(static_cast<uint64_t>(insn.imm));
  if (!wide) {
    a = LLVMBuildTrunc(builder_, a, i32_, "");
    b = LLVMBuildTrunc(builder_, b, i32_, "");
  }
  switch (BPF_OP(insn.code)) {
    case BPF_JEQ:
      return Is(LLVMIntEQ, a, b);
    case BPF_JNE:
      return Is(LLVMIntNE, a, b);
    case BPF_JGT:
      return Is(LLVMIntUGT, a, b);
    case BPF_JGE:
      return Is(LLVMIntUGE, a, b);
    case BPF_JLT:
      return Is(LLVMIntULT, a, b);
    case BPF_JLE:
      return Is(LLVMIntULE, a, b);
    case BPF_JSET:
      return Is(LLVMIntNE, LLVMBuildAnd(builder_, a, b, ""), LLVMConstInt(LLVMTypeOf(a), 0, 0));
    case BPF_JSGT:
      return Is(LLVMIntSGT, a, b);
    case BPF_JSGE:
      return Is(LLVMIntSGE, a, b);
    case BPF_JSLT:
      return Is(LLVMIntSLT, a, b);
    default:
      return Is(LLVMIntSLE, a, b);
  }
}

}  // namespace halfpage::bpf
