// A program over a burst of frames, with its code in the loop: no call, no state set anew that it does not look at.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "xdp_emul/bpf/llvm/emitter.h"
#include "xdp_emul/bpf/llvm/function_compiler.h"

namespace halfpage::bpf {
namespace {

#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(sizeof(RedirectTarget) % 8 == 0);

class BurstCompiler : private Emitter {
 public:
  BurstCompiler(const Program& program, const FrameLayout& layout, LLVMContextRef context, LLVMModuleRef module)
      : Emitter(context, module), program_(program), layout_(layout) {}

  // Program::RunNext() in a loop.
  void Run() {
    V body = LLVMGetNamedFunction(module_, kBody);
    Inline(body);
    std::vector<LLVMTypeRef> types(5, i64_);
    V burst = LLVMAddFunction(module_, "run_burst", LLVMFunctionType(i64_, types.data(), 5, 0));
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(context_, burst, "");
    LLVMBasicBlockRef turn = LLVMAppendBasicBlockInContext(context_, burst, "");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(context_, burst, "");
    state_ = LLVMGetParam(burst, 0);
    V n = LLVMGetParam(burst, 2);

    LLVMPositionBuilderAtEnd(builder_, entry);
    LLVMBuildCondBr(builder_, Is(LLVMIntEQ, n, Number(0)), end, turn);

    LLVMPositionBuilderAtEnd(builder_, turn);
    V index = LLVMBuildPhi(builder_, i64_, "");
    V arguments[1 + kEnds] = {state_};
    FindEnds(LoadAt(Element(LLVMGetParam(burst, 1), index, 8), 8), arguments + 1);
    Start(arguments + 1);
    LLVMTypeRef type = LLVMFunctionType(i64_, types.data(), 1 + kEnds, 0);
    V verdict = LLVMBuildCall2(builder_, type, body, arguments, 1 + kEnds, "");
    V good = Is(LLVMIntNE, verdict, Number(kFaulted));
    V word = LLVMBuildTrunc(builder_, verdict, i32_, "");
    V unknown = LLVMConstInt(i32_, kUnknownVerdict, 0);
    word = LLVMBuildSelect(builder_, Is(LLVMIntULT, word, unknown), word, unknown, "");
    word = LLVMBuildSelect(builder_, good, word, LLVMConstInt(i32_, 0, 0), "");
    StoreAt(AddOf(LLVMGetParam(burst, 3), index), word, 1);
    if (program_.redirects()) StoreTarget(Element(LLVMGetParam(burst, 4), index, sizeof(RedirectTarget)));
    V next = AddOf(index, Number(1));
    LLVMBuildCondBr(builder_, Both(good, Is(LLVMIntULT, next, n)), turn, end);

    V done[] = {Number(0), next};
    LLVMBasicBlockRef from[] = {entry, turn};
    LLVMAddIncoming(index, done, from, 2);
    LLVMPositionBuilderAtEnd(builder_, end);
    V judged = LLVMBuildPhi(builder_, i64_, "");
    LLVMAddIncoming(judged, done, from, 2);
    LLVMBuildRet(builder_, judged);
  }

 private:
  void Inline(V function) {
    const unsigned always = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    LLVMAddAttributeAtIndex(function, static_cast<unsigned>(LLVMAttributeFunctionIndex),
                            LLVMCreateEnumAttribute(context_, always, 0));
  }

  V Element(V array, V index, uint64_t bytes) { return AddOf(array, LLVMBuildMul(builder_, index, Number(bytes), "")); }

  void FindEnds(V frame, V* ends) {
    V data = AddOf(LoadAt(AddOf(frame, Number(layout_.buffer)), 8),
                   Wide(LoadAt(AddOf(frame, Number(layout_.data_offset)), 2)));
    ends[0] = ends[2] = data;
    ends[1] = AddOf(data, Wide(LoadAt(AddOf(frame, Number(layout_.data_length)), 2)));
  }

  bool Loops() {
    const std::vector<Instruction>& code = program_.image().code;
    for (uint32_t i = 0; i < code.size(); ++i) {
      if (IsJump(code[i]) && static_cast<uint32_t>(code[i].off) <= i) return true;
    }
    return false;
  }

  bool CallsBack() {
    const std::vector<Instruction>& code = program_.image().code;
    return std::any_of(code.begin(), code.end(), [](const Instruction& insn) {
      return insn.code == (BPF_JMP | BPF_CALL) && insn.src == 0 &&
             (insn.imm == BPF_FUNC_loop || insn.imm == BPF_FUNC_for_each_map_elem);
    });
  }

  // What a run starts with, of what this program can tell the difference of.
  void Start(const V* ends) {
    if (TellsState(program_)) {
      SetEnds(ends);
      SetMember(offsetof(RunState, frame_top), AddOf(state_, Number(offsetof(RunState, stack))));
    }
    if (TellsState(program_) || Loops()) {
      SetMember(offsetof(RunState, fuel), Number(static_cast<uint64_t>(Program::kFuel)));
    }
    if (CallsBack()) {
      StoreAt(AddOf(state_, Number(offsetof(RunState, turns))), Number(0), 4);
    }
    if (program_.redirects()) {
      SetMember(offsetof(RunState, redirect) + offsetof(RedirectTarget, flags), Number(RedirectTarget::kNone));
    }
  }

  // Stored even where the verdict asks for no target: a branch on verdicts cannot be predicted.
  void StoreTarget(V to) {
    for (size_t at = 0; at < sizeof(RedirectTarget); at += 8) {
      StoreAt(AddOf(to, Number(at)), Member(offsetof(RunState, redirect) + at), 8);
    }
  }

  const Program& program_;
  const FrameLayout& layout_;
};

}  // namespace

bool TellsState(const Program& program) {
  const std::vector<Instruction>& code = program.image().code;
  return std::any_of(code.begin(), code.end(), [](const Instruction& insn) {
    const uint8_t type = BPF_CLASS(insn.code);
    const bool memory = type == BPF_LDX || type == BPF_ST || type == BPF_STX;
    return insn.code == (BPF_JMP | BPF_CALL) || (memory && insn.check == Check::kAny);
  });
}

void CompileBurst(const Program& program, const FrameLayout& layout, LLVMContextRef context, LLVMModuleRef module) {
  BurstCompiler(program, layout, context, module).Run();
}

}  // namespace halfpage::bpf
