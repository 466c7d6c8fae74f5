#include "xdp_emul/bpf/llvm/function_compiler.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "xdp_emul/bpf/array_map.h"
#include "xdp_emul/bpf/llvm/emitter.h"

namespace halfpage::bpf {
namespace {

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

class FunctionCompiler : private Emitter {
 public:
  FunctionCompiler(const Program& program, const CompilerServices& services, LLVMContextRef context,
                   LLVMModuleRef module)
      : Emitter(context, module),
        program_(program),
        image_(program.image()),
        services_(services),
        fixed_(!program.reshapes()),
        told_(TellsState(program)) {}

  void Run() {
    for (const Function& function : image_.functions) {
      if (!function.reachable) continue;
      const bool first = function.begin == 0;
      std::vector<LLVMTypeRef> types(first ? 1 + kEnds : 6, i64_);
      LLVMTypeRef type = LLVMFunctionType(i64_, types.data(), static_cast<unsigned>(types.size()), 0);
      const std::string name = first ? kBody : "f" + std::to_string(function.begin);
      V compiled = LLVMAddFunction(module_, name.c_str(), type);
      LLVMSetLinkage(compiled, LLVMInternalLinkage);
      functions_[function.begin] = {compiled, type};
    }
    for (const Function& function : image_.functions) {
      if (function.reachable) Emit(function);
    }
    EmitRun();
  }

 private:
  struct Callee {
    V function;
    LLVMTypeRef type;
  };

  // A call of a function in this process.
  V CallAt(const void* function, LLVMTypeRef result, std::vector<V> arguments) {
    std::vector<LLVMTypeRef> types(arguments.size(), i64_);
    LLVMTypeRef type = LLVMFunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
    V target = LLVMConstIntToPtr(Number(reinterpret_cast<uint64_t>(function)), LLVMPointerType(type, 0));
    return LLVMBuildCall2(builder_, type, target, arguments.data(), static_cast<unsigned>(arguments.size()), "");
  }

  LLVMBasicBlockRef NewBlock() { return LLVMAppendBasicBlockInContext(context_, compiled_, ""); }
  void Leave(V result) {
    if (!first_) SetMember(offsetof(RunState, frame_top), outer_top_);
    LLVMBuildRet(builder_, first_ ? Both(result, Number(UINT32_MAX)) : result);
  }
  void LeaveFaulted() {
    if (!first_) SetMember(offsetof(RunState, frame_top), outer_top_);
    LLVMBuildRet(builder_, Number(first_ ? kFaulted : 0));
  }

  // Where the packet is: data, data_end or data_meta. Programs that cannot move it keep it in registers.
  V End(size_t offset) { return fixed_ ? ends_[offset / 8] : Member(offset); }

  // Goes on where `good` holds; notes a fault and leaves otherwise.
  void Require(V good, FaultKind kind, uint32_t index, V address, uint64_t size) {
    LLVMBasicBlockRef bad_block = NewBlock();
    LLVMBasicBlockRef good_block = NewBlock();
    LLVMBuildCondBr(builder_, good, good_block, bad_block);
    LLVMPositionBuilderAtEnd(builder_, bad_block);
    if (fixed_ && !told_) SetEnds(ends_);
    CallAt(reinterpret_cast<const void*>(services_.fail), LLVMVoidTypeInContext(context_),
           {state_, Number(static_cast<uint64_t>(kind)), Number(index), address, Number(size)});
    LeaveFaulted();
    LLVMPositionBuilderAtEnd(builder_, good_block);
  }
  // The same for a fault that was noted already.
  void RequireNoFault(V good) {
    LLVMBasicBlockRef bad_block = NewBlock();
    LLVMBasicBlockRef good_block = NewBlock();
    LLVMBuildCondBr(builder_, good, good_block, bad_block);
    LLVMPositionBuilderAtEnd(builder_, bad_block);
    LeaveFaulted();
    LLVMPositionBuilderAtEnd(builder_, good_block);
  }
  V True(V flag) {
    return Is(LLVMIntNE, LLVMBuildAnd(builder_, flag, LLVMConstInt(LLVMTypeOf(flag), 255, 0), ""),
              LLVMConstInt(LLVMTypeOf(flag), 0, 0));
  }

  V Between(V first, V end, V address, uint32_t size) {
    V bytes = SubOf(end, first);
    V offset = SubOf(address, first);
    return Both(Is(LLVMIntULE, offset, bytes), Is(LLVMIntULE, Number(size), SubOf(bytes, offset)));
  }

  // Checks an access of kind other than kAny.
  void CheckAccess(const Instruction& insn, uint32_t index, V address, uint32_t size, bool write) {
    switch (insn.check) {
      case Check::kPacket:
        return Require(Between(End(offsetof(RunState, data_meta)), End(offsetof(RunState, data_end)), address, size),
                       FaultKind::kPacket, index, address, size);
      case Check::kStack: {
        return Require(Between(SubOf(top_, Number(kStackBytes)), top_, address, size), FaultKind::kStack, index,
                       address, size);
      }
      case Check::kValue: {
        const ValueRegion& region = program_.maps().maps()[insn.map]->region();
        V offset = SubOf(address, Number(reinterpret_cast<uint64_t>(region.base)));
        V inside = LLVMBuildURem(builder_, offset, Number(region.stride), "");
        V good = Both(Is(LLVMIntULT, offset, Number(region.bytes)), Is(LLVMIntUGE, inside, Number(region.first)));
        const uint64_t last = size <= region.last ? region.last - size : 0;
        good = Both(good, Is(LLVMIntULE, inside, Number(last)));
        if (size > region.last - region.first || (write && !region.writable)) good = LLVMConstInt(i1_, 0, 0);
        return Require(good, FaultKind::kValue, index, address, size);
      }
      default:
        return;
    }
  }

  V Address(int reg, const Instruction& insn) {
    if (reg == BPF_REG_10 && insn.check == Check::kNone && stack_ != nullptr) {
      V index = Number(static_cast<uint64_t>(int64_t{stack_bytes_} + insn.off));
      return LLVMBuildPtrToInt(builder_, LLVMBuildGEP2(builder_, i8_, stack_, &index, 1, ""), i64_, "");
    }
    return AddOf(Register(reg), Number(static_cast<uint64_t>(int64_t{insn.off})));
  }

  V InsnAt(uint32_t index) { return Number(reinterpret_cast<uint64_t>(&image_.code[index])); }

  void EmitLoad(uint32_t index) {
    const Instruction& insn = image_.code[index];
    if (insn.check == Check::kContext) {
      static constexpr size_t kFields[] = {offsetof(RunState, data),           offsetof(RunState, data_end),
                                           offsetof(RunState, data_meta),      offsetof(RunState, ingress_ifindex),
                                           offsetof(RunState, rx_queue_index), offsetof(RunState, egress_ifindex)};
      const size_t field = kFields[insn.imm / 4];
      return Set(insn.dst, insn.imm <= 8 ? End(field) : Member(field, 4));
    }
    V address = Address(insn.src, insn);
    if (insn.check == Check::kAny) {
      V value = CallAt(reinterpret_cast<const void*>(services_.load_any), i64_,
                       {state_, InsnAt(index), Number(index), address});
      RequireNoFault(NoFault());
      return Set(insn.dst, value);
    }
    const uint32_t size = AccessBytes(insn.code);
    CheckAccess(insn, index, address, size, false);
    V value = LoadAt(address, size);
    const bool extend = BPF_MODE(insn.code) == kModeSignExtended;
    if (size < 8) value = extend ? LLVMBuildSExt(builder_, value, i64_, "") : Wide(value);
    Set(insn.dst, value);
  }

  void EmitStore(uint32_t index) {
    const Instruction& insn = image_.code[index];
    const uint32_t size = AccessBytes(insn.code);
    V address = Address(insn.dst, insn);
    if (insn.check == Check::kAny) {
      RequireNoFault(True(CallAt(reinterpret_cast<const void*>(services_.may_write_any), i8_,
                                 {state_, InsnAt(index), Number(index), address})));
    } else {
      CheckAccess(insn, index, address, size, true);
    }
    if (BPF_CLASS(insn.code) == BPF_ST) return StoreAt(address, Number(static_cast<uint64_t>(insn.imm)), size);
    if (BPF_MODE(insn.code) == BPF_MEM) return StoreAt(address, Register(insn.src), size);
    Require(Is(LLVMIntEQ, LLVMBuildAnd(builder_, address, Number(size - 1), ""), Number(0)), FaultKind::kAlignment,
            index, address, size);
    EmitAtomic(insn, address, size);
  }

  void EmitAtomic(const Instruction& insn, V address, uint32_t size) {
    LLVMTypeRef type = IntOf(size);
    V place = Pointer(address, type);
    V operand = LLVMBuildTrunc(builder_, Register(insn.src), type, "");
    V old;
    if (insn.imm == BPF_CMPXCHG) {
      V expected = LLVMBuildTrunc(builder_, Register(0), type, "");
      V pair = LLVMBuildAtomicCmpXchg(builder_, place, expected, operand, LLVMAtomicOrderingSequentiallyConsistent,
                                      LLVMAtomicOrderingSequentiallyConsistent, 0);
      old = LLVMBuildExtractValue(builder_, pair, 0, "");
    } else {
      LLVMAtomicRMWBinOp operation = LLVMAtomicRMWBinOpXchg;
      if ((insn.imm & 0xf0) == BPF_ADD) operation = LLVMAtomicRMWBinOpAdd;
      if ((insn.imm & 0xf0) == BPF_OR) operation = LLVMAtomicRMWBinOpOr;
      if ((insn.imm & 0xf0) == BPF_AND) operation = LLVMAtomicRMWBinOpAnd;
      if ((insn.imm & 0xf0) == BPF_XOR) operation = LLVMAtomicRMWBinOpXor;
      if (insn.imm == BPF_XCHG) operation = LLVMAtomicRMWBinOpXchg;
      old = LLVMBuildAtomicRMW(builder_, operation, place, operand, LLVMAtomicOrderingSequentiallyConsistent, 0);
    }
    V wide = size == 8 ? old : Wide(old);
    if (insn.imm == BPF_CMPXCHG) {
      Set(0, wide);
    } else if (insn.imm & BPF_FETCH) {
      Set(insn.src, wide);
    }
  }

  // Values of arrays are found without a call, those of other maps without a virtual one.
  bool EmitLookup(const Instruction& insn) {
    if (insn.imm != BPF_FUNC_map_lookup_elem || insn.unproven != 0 || insn.map < 0) return false;
    Map& map = *program_.maps().maps()[insn.map];
    const MapSpec& spec = map.spec();
    if (spec.type != BPF_MAP_TYPE_ARRAY && spec.type != BPF_MAP_TYPE_PERCPU_ARRAY) {
      Set(0, CallAt(reinterpret_cast<const void*>(map.lookup_function()), i64_,
                    {Number(reinterpret_cast<uint64_t>(&map)), Register(2), Member(offsetof(RunState, worker), 4)}));
      return true;
    }
    const ValueRegion& region = map.region();
    V index = Wide(LoadAt(Register(2), 4));
    V address = AddOf(Number(reinterpret_cast<uint64_t>(region.base)),
                      LLVMBuildMul(builder_, index, Number(region.stride), ""));
    if (spec.type == BPF_MAP_TYPE_PERCPU_ARRAY) {
      V block = Number(static_cast<const ArrayMap&>(map).worker_bytes());
      address = AddOf(address, LLVMBuildMul(builder_, Member(offsetof(RunState, worker), 4), block, ""));
    }
    Set(0, LLVMBuildSelect(builder_, Is(LLVMIntULT, index, Number(spec.max_entries)), address, Number(0), ""));
    return true;
  }

  // Where it leads to a program, that one's result is the function's. Goes on where it leads nowhere.
  void EmitTailCall() {
    V target = CallAt(reinterpret_cast<const void*>(services_.tail_target), i64_, {state_, Register(2), Register(3)});
    LLVMBasicBlockRef taken = NewBlock();
    LLVMBasicBlockRef next = NewBlock();
    LLVMBuildCondBr(builder_, Is(LLVMIntNE, target, Number(0)), taken, next);
    LLVMPositionBuilderAtEnd(builder_, taken);
    SetMember(offsetof(RunState, frame_top), outer_top_);
    LLVMBuildRet(builder_, CallAt(reinterpret_cast<const void*>(services_.run_tail), i64_, {target, state_}));
    LLVMPositionBuilderAtEnd(builder_, next);
  }

  void EmitHelper(uint32_t index) {
    const Instruction& insn = image_.code[index];
    if (EmitLookup(insn)) return;
    const Helper* helper = services_.find_helper(static_cast<uint32_t>(insn.imm));
    if (helper == nullptr) return EmitUnreachable(index);
    if (insn.unproven != 0) {
      for (int i = 0; i < 5; ++i) {
        V place = Number(static_cast<uint64_t>(i));
        LLVMBuildStore(builder_, Register(i + 1), LLVMBuildGEP2(builder_, i64_, arguments_, &place, 1, ""));
      }
      V first = LLVMBuildPtrToInt(builder_, arguments_, i64_, "");
      RequireNoFault(True(CallAt(reinterpret_cast<const void*>(services_.check_arguments), i8_,
                                 {state_, InsnAt(index), Number(index), first})));
    }
    if (insn.imm == BPF_FUNC_tail_call) EmitTailCall();
    Set(0, CallAt(reinterpret_cast<const void*>(helper->function), i64_,
                  {state_, Register(1), Register(2), Register(3), Register(4), Register(5)}));
    if (helper->may_fail) Require(NoFault(), FaultKind::kOpcode, index, Number(0), 0);
  }

  // Code that the analysis found no way to: it is compiled all the same, for jumps lead there.
  void EmitUnreachable(uint32_t index) {
    Require(LLVMConstInt(i1_, 0, 0), FaultKind::kOpcode, index, Number(0), 0);
    Set(0, Number(0));
  }

  void EmitLocalCall(uint32_t index) {
    const auto found = functions_.find(static_cast<uint32_t>(image_.code[index].off));
    if (found == functions_.end()) return EmitUnreachable(index);
    const Callee& callee = found->second;
    V arguments[] = {state_, Register(1), Register(2), Register(3), Register(4), Register(5)};
    Set(0, LLVMBuildCall2(builder_, callee.type, callee.function, arguments, 6, ""));
    RequireNoFault(NoFault());
  }

  V ConstantOf(const Instruction& insn) {
    if (insn.constant == Constant::kMap)
      return Number(reinterpret_cast<uint64_t>(program_.maps().maps()[insn.map].get()));
    if (insn.constant == Constant::kMapValue) {
      return Number(reinterpret_cast<uint64_t>(program_.maps().maps()[insn.map]->region().base) +
                    static_cast<uint64_t>(insn.imm));
    }
    return Number(static_cast<uint64_t>(insn.imm));
  }

  void EmitEntry(const Function& function) {
    LLVMPositionBuilderAtEnd(builder_, NewBlock());
    state_ = LLVMGetParam(compiled_, 0);
    for (V& place : registers_) {
      place = LLVMBuildAlloca(builder_, i64_, "");
      LLVMBuildStore(builder_, Number(0), place);
    }
    arguments_ = LLVMBuildArrayAlloca(builder_, i64_, LLVMConstInt(i32_, 5, 0), "");
    outer_top_ = Member(offsetof(RunState, frame_top));
    top_ = AddOf(outer_top_, Number(kStackBytes));
    if (told_) SetMember(offsetof(RunState, frame_top), top_);
    for (unsigned i = 0; i < kEnds; ++i) ends_[i] = first_ ? LLVMGetParam(compiled_, 1 + i) : Member(8 * i);
    V top = top_;
    if (first_) {
      Set(1, AddOf(state_, Number(offsetof(RunState, context))));
    } else {
      for (unsigned i = 1; i <= 5; ++i) Set(static_cast<int>(i), LLVMGetParam(compiled_, i));
    }
    // Stacks that only the function itself and proven arguments of helpers touch are the compiler's to arrange; their
    // ends are aligned as the interpreter's.
    stack_ = nullptr;
    stack_bytes_ = (function.stack + 15) / 16 * 16;
    if (function.stack < kStackBytes && !function.stack_escapes) {
      stack_ = LLVMBuildArrayAlloca(builder_, i8_, LLVMConstInt(i32_, std::max(stack_bytes_, 16u), 0), "");
      LLVMSetAlignment(stack_, 16);
      V end = Number(stack_bytes_);
      top = LLVMBuildPtrToInt(builder_, LLVMBuildGEP2(builder_, i8_, stack_, &end, 1, ""), i64_, "");
      if (function.stack > 0) LLVMBuildMemSet(builder_, stack_, LLVMConstInt(i8_, 0, 0), Number(stack_bytes_), 16);
    } else {
      LLVMBuildMemSet(builder_, Pointer(SubOf(top, Number(function.stack)), i8_), LLVMConstInt(i8_, 0, 0),
                      Number(function.stack), 8);
    }
    Set(10, top);
  }

  // `run`, of what the state says.
  void EmitRun() {
    LLVMTypeRef type = LLVMFunctionType(i64_, &i64_, 1, 0);
    compiled_ = LLVMAddFunction(module_, "run", type);
    LLVMPositionBuilderAtEnd(builder_, NewBlock());
    state_ = LLVMGetParam(compiled_, 0);
    V arguments[1 + kEnds] = {state_};
    for (unsigned i = 0; i < kEnds; ++i) arguments[1 + i] = Member(8 * i);
    const Callee& body = functions_[0];
    LLVMBuildRet(builder_, LLVMBuildCall2(builder_, body.type, body.function, arguments, 1 + kEnds, ""));
  }

  LLVMBasicBlockRef BlockOf(uint32_t index) {
    LLVMBasicBlockRef& block = blocks_[index];
    if (block == nullptr) {
      block = NewBlock();
      waiting_.push_back(index);
    }
    return block;
  }

  // Jumps back use up fuel.
  void JumpTo(uint32_t from, uint32_t target) {
    if (target <= from) {
      V left = SubOf(Member(offsetof(RunState, fuel)), Number(1));
      SetMember(offsetof(RunState, fuel), left);
      Require(Is(LLVMIntSGE, left, Number(0)), FaultKind::kFuel, from, Number(0), 0);
    }
    LLVMBuildBr(builder_, BlockOf(target));
  }

  void EmitBlock(uint32_t index) {
    LLVMPositionBuilderAtEnd(builder_, blocks_[index]);
    for (;;) {
      const Instruction& insn = image_.code[index];
      switch (BPF_CLASS(insn.code)) {
        case BPF_ALU:
        case BPF_ALU64:
          EmitArithmetic(insn);
          break;
        case BPF_LDX:
          EmitLoad(index);
          break;
        case BPF_ST:
        case BPF_STX:
          EmitStore(index);
          break;
        case BPF_LD:
          Set(insn.dst, ConstantOf(insn));
          ++index;
          break;
        default: {
          const uint8_t operation = BPF_OP(insn.code);
          if (operation == BPF_EXIT) return Leave(Register(0));
          if (operation == BPF_CALL) {
            if (insn.src == BPF_PSEUDO_CALL) {
              EmitLocalCall(index);
            } else {
              EmitHelper(index);
            }
            for (int reg = 1; reg <= 5; ++reg) Set(reg, Number(0));  // as the interpreter leaves them
            break;
          }
          const auto target = static_cast<uint32_t>(insn.off);
          if (operation == BPF_JA) return JumpTo(index, target);
          LLVMBasicBlockRef taken = NewBlock();
          LLVMBasicBlockRef next = BlockOf(index + 1);
          LLVMBuildCondBr(builder_, Condition(insn), taken, next);
          LLVMPositionBuilderAtEnd(builder_, taken);
          return JumpTo(index, target);
        }
      }
      ++index;
      if (is_head_[index]) {
        LLVMBuildBr(builder_, BlockOf(index));
        return;
      }
    }
  }

  void Emit(const Function& function) {
    compiled_ = functions_[function.begin].function;
    first_ = function.begin == 0;
    blocks_.clear();
    is_head_.assign(image_.code.size() + 2, false);
    for (uint32_t i = function.begin; i < function.end; ++i) {
      const Instruction& insn = image_.code[i];
      if (IsJump(insn)) is_head_[insn.off] = is_head_[i + 1] = true;
    }
    EmitEntry(function);
    LLVMBuildBr(builder_, BlockOf(function.begin));
    while (!waiting_.empty()) {
      const uint32_t next = waiting_.back();
      waiting_.pop_back();
      EmitBlock(next);
    }
  }

  const Program& program_;
  const Image& image_;
  const CompilerServices& services_;
  const bool fixed_;  // the packet's ends stay where they are
  const bool told_;   // others look at the state while the program runs
  std::map<uint32_t, Callee> functions_;
  // Of the function being compiled.
  V compiled_ = nullptr;
  bool first_ = false;
  V arguments_ = nullptr;
  V ends_[kEnds] = {};
  V outer_top_ = nullptr;
  V top_ = nullptr;
  V stack_ = nullptr;
  uint32_t stack_bytes_ = 0;
  std::vector<bool> is_head_;
  std::map<uint32_t, LLVMBasicBlockRef> blocks_;
  std::vector<uint32_t> waiting_;
};

}  // namespace

void CompileFunctions(const Program& program, const CompilerServices& services, LLVMContextRef context,
                      LLVMModuleRef module) {
  FunctionCompiler(program, services, context, module).Run();
}

}  // namespace halfpage::bpf
