// Values, registers and arithmetic in LLVM's terms: what does not depend on where a program's memory is.
#pragma once

#include <llvm-c/Core.h>

#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

using V = LLVMValueRef;

class Emitter {
 public:
  Emitter(LLVMContextRef context, LLVMModuleRef module) : context_(context), module_(module) {
    builder_ = LLVMCreateBuilderInContext(context);
    i64_ = LLVMInt64TypeInContext(context);
    i32_ = LLVMInt32TypeInContext(context);
    i8_ = LLVMInt8TypeInContext(context);
    i1_ = LLVMInt1TypeInContext(context);
  }
  ~Emitter() { LLVMDisposeBuilder(builder_); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

 protected:
  V Number(uint64_t value) { return LLVMConstInt(i64_, value, 0); }
  V AddOf(V a, V b) { return LLVMBuildAdd(builder_, a, b, ""); }
  V SubOf(V a, V b) { return LLVMBuildSub(builder_, a, b, ""); }
  V Is(LLVMIntPredicate how, V a, V b) { return LLVMBuildICmp(builder_, how, a, b, ""); }
  V Both(V a, V b) { return LLVMBuildAnd(builder_, a, b, ""); }
  V Wide(V value) { return LLVMBuildZExt(builder_, value, i64_, ""); }
  LLVMTypeRef IntOf(uint32_t bytes) { return LLVMIntTypeInContext(context_, bytes * 8); }

  V Register(int number) { return LLVMBuildLoad2(builder_, i64_, registers_[number], ""); }
  void Set(int number, V value) { LLVMBuildStore(builder_, value, registers_[number]); }

  V Pointer(V address, LLVMTypeRef type) { return LLVMBuildIntToPtr(builder_, address, LLVMPointerType(type, 0), ""); }
  V LoadAt(V address, uint32_t bytes) {
    V value = LLVMBuildLoad2(builder_, IntOf(bytes), Pointer(address, IntOf(bytes)), "");
    LLVMSetAlignment(value, 1);
    return value;
  }
  void StoreAt(V address, V value, uint32_t bytes) {
    V narrow = LLVMBuildTrunc(builder_, value, IntOf(bytes), "");
    LLVMSetAlignment(LLVMBuildStore(builder_, narrow, Pointer(address, IntOf(bytes))), 1);
  }
  // Members of the RunState that `state_` is the address of.
  V Member(size_t offset, uint32_t bytes = 8) {
    V value = LoadAt(AddOf(state_, Number(offset)), bytes);
    return bytes == 8 ? value : Wide(value);
  }
  void SetMember(size_t offset, V value) { StoreAt(AddOf(state_, Number(offset)), value, 8); }
  // data, data_end and data_meta are the state's first three members, in this order.
  static constexpr unsigned kEnds = 3;
  void SetEnds(const V* ends) {
    for (unsigned i = 0; i < kEnds; ++i) SetMember(8 * i, ends[i]);
  }
  V NoFault();

  void EmitArithmetic(const Instruction& insn);
  // Whether a jump is taken.
  V Condition(const Instruction& insn);

  LLVMContextRef context_;
  LLVMModuleRef module_;
  LLVMBuilderRef builder_;
  LLVMTypeRef i64_, i32_, i8_, i1_;
  V registers_[11] = {};  // places of r0 to r10
  V state_ = nullptr;

 private:
  V Divide(V a, V b, LLVMTypeRef type, bool remainder, bool is_signed);
  V SwapBytes(V value, uint32_t bits);
};

}  // namespace halfpage::bpf
