#include "xdp_emul/bpf/analysis.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/bpf/analyzer.h"

namespace halfpage::bpf {
namespace {

constexpr int kMergesBeforeWidening = 12;

bool IsCall(const Instruction& insn) {
  return insn.code == (BPF_JMP | BPF_CALL);
}
bool IsLocalCall(const Instruction& insn) {
  return IsCall(insn) && insn.src == BPF_PSEUDO_CALL;
}
bool IsExit(const Instruction& insn) {
  return insn.code == (BPF_JMP | BPF_EXIT);
}
bool IsConstant(const Instruction& insn) {
  return insn.code == (BPF_LD | BPF_IMM | BPF_DW);
}

}  // namespace

void Analyzer::Fail(uint32_t index, absl::string_view what, absl::string_view mend) {
  if (!reporting_ || index >= fault_at_) return;
  fault_at_ = index;
  fault_ = absl::StrCat(what, "; ", mend);
}

void Analyzer::FailUnset(uint32_t index, int reg) {
  Fail(index, absl::StrCat("r", reg, " holds nothing: it is read before anything was put into it"),
       "give the variable a value on each way that leads here");
}

void Analyzer::FindHeads() {
  is_head_.assign(image_.code.size() + 1, false);
  for (const Function& function : image_.functions) is_head_[function.begin] = true;
  for (uint32_t i = 0; i < image_.code.size(); ++i) {
    const Instruction& insn = image_.code[i];
    if (IsConstant(insn)) {
      ++i;
      continue;
    }
    if (IsJump(insn) || IsExit(insn)) is_head_[i + 1] = true;
    if (IsJump(insn)) is_head_[insn.off] = true;
  }
}

// Which functions move the packet, by themselves or by what they call.
void Analyzer::FindPacketChanges() {
  for (size_t round = 0; round <= image_.functions.size(); ++round) {
    bool changed = false;
    const bool callback_changes = std::any_of(image_.code.begin(), image_.code.end(), [this](const Instruction& insn) {
      return insn.constant == Constant::kFunction && image_.FunctionOf(static_cast<uint32_t>(insn.off)).changes_packet;
    });
    for (Function& function : image_.functions) {
      for (uint32_t i = function.begin; i < function.end && !function.changes_packet; ++i) {
        const Instruction& insn = image_.code[i];
        bool changes = false;
        if (IsLocalCall(insn) || insn.constant == Constant::kFunction) {
          changes = image_.FunctionOf(static_cast<uint32_t>(insn.off)).changes_packet;
        } else if (IsCall(insn)) {
          const Helper* helper = FindHelper(static_cast<uint32_t>(insn.imm));
          // A callback's address may come from the caller.
          const bool calls_back = helper != nullptr && helper->arguments[1] == Argument::kFunction;
          changes = helper != nullptr && (helper->changes_packet || (calls_back && callback_changes));
        }
        function.changes_packet = changes;
        changed |= changes;
      }
    }
    if (!changed) return;
  }
}

void Analyzer::Push(uint32_t head, const State& state) {
  if (reporting_) return;
  std::unique_ptr<Head>& known = heads_[head];
  if (known == nullptr) {
    known = std::make_unique<Head>();
    known->state = state;
    waiting_.insert(head);
    return;
  }
  if (known->state.Merge(state, ++known->merges > kMergesBeforeWidening)) waiting_.insert(head);
}

void Analyzer::LocalCall(uint32_t index, State* state, bool* stop) {
  const auto target = static_cast<uint32_t>(At(index).off);
  State entry;
  bool stack = false;
  for (int i = 1; i <= 5; ++i) {
    Value argument = state->registers[i];
    if (argument.Has(kStack)) {
      stack = true;
      argument.own = false;
      argument.offset_known = false;
    }
    argument.id = argument.id <= kMetaId ? argument.id : 0;
    entry.registers[i] = argument;
  }
  entry.registers[10].kinds = kStack;
  Push(target, entry);
  callers_[target].insert(head_);

  const auto result = results_.find(target);
  if (result == results_.end()) {
    // Not known to come back, so far.
    *stop = true;
    return;
  }
  for (int i = 1; i <= 5; ++i) state->registers[i] = Value();
  if (stack) {
    function_->stack_escapes = true;
    UseStack(-static_cast<int64_t>(kStackBytes));
    ForgetSlots(state);
  }
  if (image_.FunctionOf(target).changes_packet) ForgetPacket(state);
  state->registers[0] = result->second;
}

void Analyzer::Exit(const State& state, uint32_t index) {
  Value result = state.registers[0];
  if (result.Is(kUnset)) {
    Fail(index, "r0 holds nothing where the function ends", "put the verdict into it before exit (`return XDP_PASS;`)");
    return;
  }
  if (function_->begin == 0 && (result.kinds & ~kScalar) != 0) {
    Fail(index, absl::StrCat(RegisterText(0, result), " where the program ends: a verdict is a number"),
         "return XDP_PASS, XDP_DROP, XDP_TX, XDP_REDIRECT or XDP_ABORTED");
    return;
  }
  if (reporting_) return;
  if (result.Has(kStack)) result = Value::Scalar();  // of a frame that is gone
  result.id = result.id <= kMetaId ? result.id : 0;
  if (function_->changes_packet && result.Has(kPacket | kPacketEnd) && result.id == 0) result = Value::Scalar();
  const auto known = results_.find(function_->begin);
  if (known != results_.end()) result = Join(known->second, result, true);
  if (known != results_.end() && known->second == result) return;
  results_[function_->begin] = result;
  for (const uint32_t caller : callers_[function_->begin]) waiting_.insert(caller);
}

void Analyzer::Step(uint32_t index, State* state) {
  switch (BPF_CLASS(At(index).code)) {
    case BPF_ALU:
    case BPF_ALU64:
      return Arithmetic(index, state);
    case BPF_LDX:
      return Load(index, state);
    case BPF_ST:
      return Store(index, state);
    case BPF_STX:
      return BPF_MODE(At(index).code) == BPF_ATOMIC ? Atomic(index, state) : Store(index, state);
    default:
      return LoadConstant(index, state);
  }
}

void Analyzer::RunBlock(uint32_t head) {
  head_ = head;
  function_ = &FunctionAt(head);
  function_->reachable = true;
  State state = heads_[head]->state;
  for (uint32_t i = head;;) {
    const Instruction& insn = At(i);
    if (IsExit(insn)) return Exit(state, i);
    if (IsJump(insn)) return Branch(i, state);
    if (IsLocalCall(insn)) {
      bool stop = false;
      LocalCall(i, &state, &stop);
      if (stop) return;
    } else if (IsCall(insn)) {
      HelperCall(i, &state);
    } else {
      Step(i, &state);
    }
    i += IsConstant(insn) ? 2 : 1;
    if (is_head_[i]) return Push(i, state);
  }
}

std::string Analyzer::RegisterText(int reg, const Value& value) const {
  return absl::StrFormat("r%d holds %s", reg, KindText(value));
}

absl::Status Analyzer::Run() {
  FindHeads();
  FindPacketChanges();
  State entry;
  entry.registers[1].kinds = kContext;
  entry.registers[10].kinds = kStack;
  Push(0, entry);
  while (!waiting_.empty()) {
    const uint32_t head = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    RunBlock(head);
  }
  reporting_ = true;
  for (const auto& [head, known] : heads_) RunBlock(head);
  if (results_.find(0) == results_.end() && fault_.empty()) {
    Fail(0, "the program never ends: no way leads to an exit", "let its loops end, and return a verdict");
  }
  if (fault_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("program %s: instruction %s: %s", image_.name, Disassemble(image_, fault_at_), fault_));
}

absl::Status Analyse(const Object& object, Image* image) {
  return Analyzer(object, image).Run();
}

}  // namespace halfpage::bpf
