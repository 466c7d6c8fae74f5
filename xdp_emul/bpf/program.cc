#include "xdp_emul/bpf/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/bpf/analysis.h"
#include "xdp_emul/bpf/decode.h"
#include "xdp_emul/bpf/interpreter.h"

namespace halfpage::bpf {

void RunState::Fail(FaultKind kind, uint64_t address, uint64_t size) {
  if (fault.kind != FaultKind::kNone) return;
  fault.kind = kind;
  fault.program = program;
  fault.instruction = Fault::kNowhere;
  fault.address = address;
  fault.size = size;
  fault.from_data = static_cast<int64_t>(address - reinterpret_cast<uint64_t>(data));
  fault.packet_bytes = data_end - data;
}

Program::~Program() {
  if (compiled_.discard != nullptr) compiled_.discard(compiled_.owner);
}

absl::StatusOr<std::unique_ptr<Program>> Program::Create(const ProgramCode& code, const Object& object, MapSet* maps) {
  absl::StatusOr<Image> image = Decode(code, object);
  if (!image.ok())
    return absl::Status(image.status().code(), absl::StrCat(object.path, ": ", image.status().message()));
  const absl::Status status = Analyse(object, &*image);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(object.path, ": ", status.message()));
  auto program = std::unique_ptr<Program>(new Program());
  program->image_ = std::move(*image);
  program->maps_ = maps;
  program->frags_ = code.frags;
  program->redirects_ = program->Calls(BPF_FUNC_redirect) || program->Calls(BPF_FUNC_redirect_map);
  program->reshapes_ = program->Calls(BPF_FUNC_tail_call) || program->Calls(BPF_FUNC_xdp_adjust_head) ||
                       program->Calls(BPF_FUNC_xdp_adjust_tail) || program->Calls(BPF_FUNC_xdp_adjust_meta);
  program->holds_ = program->Calls(BPF_FUNC_tail_call) || program->Calls(BPF_FUNC_spin_lock) ||
                    program->Calls(BPF_FUNC_ringbuf_reserve);
  return program;
}

bool Program::uses_map(const Map* map) const {
  for (const Instruction& insn : image_.code) {
    const bool refers = insn.constant == Constant::kMap || insn.constant == Constant::kMapValue;
    if (refers && maps_->maps()[insn.map].get() == map) return true;
  }
  return false;
}

bool Program::Calls(uint32_t number) const {
  const auto calls = [](const Image& image, uint32_t wanted) {
    return std::any_of(image.code.begin(), image.code.end(), [=](const Instruction& insn) {
      return insn.code == (BPF_JMP | BPF_CALL) && insn.src == 0 && static_cast<uint32_t>(insn.imm) == wanted;
    });
  };
  if (calls(image_, number)) return true;
  const auto& targets = maps_->programs();
  return calls(image_, BPF_FUNC_tail_call) &&
         std::any_of(targets.begin(), targets.end(), [&](const auto& target) { return calls(target->image_, number); });
}

void Program::Begin(RunState* state) const {
  state->program = this;
  PrepareRun(state);
}

uint32_t Program::RunTraced(RunState* state, TraceFunction trace, void* to) const {
  Begin(state);
  return Between(state, [=, this](RunState* running) { return InterpretTraced(image_, running, trace, to); });
}

uint64_t Program::RunTail(RunState* state) const {
  const Program* const before = state->program;
  uint8_t* const top = state->frame_top;
  state->program = this;
  const uint64_t result = Go(state);
  state->program = before;
  state->frame_top = top;  // which a compiled program leaves where its own function had it
  return result;
}

uint64_t Program::RunInterpreted(RunState* state) const {
  return Interpret(image_, state);
}

std::string FaultText(const Program& runs, const Fault& fault) {
  const Program& program = fault.program != nullptr ? *fault.program : runs;  // a tail call may have led to another
  const Image& image = program.image();
  const std::string where =
      fault.instruction == Fault::kNowhere
          ? absl::StrCat("program ", program.name(), ": its end")
          : absl::StrCat("program ", program.name(), ": instruction ", Disassemble(image, fault.instruction));
  const std::string access = absl::StrFormat("%s: an access of %d bytes", where, fault.size);
  switch (fault.kind) {
    case FaultKind::kNone:
      return "no fault";
    case FaultKind::kPacket:
      if (fault.address < 4096) return absl::StrCat(access, " through a null pointer");
      return absl::StrFormat("%s at byte %d of a packet of %d; compare with data_end before", access, fault.from_data,
                             fault.packet_bytes);
    case FaultKind::kStack:
      return absl::StrCat(access, " outside the function's 512 bytes of stack");
    case FaultKind::kValue: {
      const Map& map = *program.maps().maps()[image.code[fault.instruction].map];
      if (fault.address < 4096) {
        return absl::StrCat(access, " through a null pointer; look whether map ", map.spec().name, " had the key");
      }
      return absl::StrFormat("%s outside a value of map %s, which has %d bytes", access, map.spec().name,
                             map.spec().value_size);
    }
    case FaultKind::kPointer:
      return absl::StrCat(access, " through a pointer to nothing of the program's");
    case FaultKind::kAlignment:
      return absl::StrFormat("%s: an atomic access at an address that is no multiple of %d", where, fault.size);
    case FaultKind::kArgument:
      if (fault.size == 0) {
        return absl::StrCat(where,
                            ": the helper was handed no bytes where it takes one or more, or a pointer to "
                            "something else than it takes");
      }
      return absl::StrFormat("%s: the helper was handed %d bytes outside packet, stack and map values", where,
                             fault.size);
    case FaultKind::kFuel:
      return absl::StrFormat("%s: stopped after %d loops", where, Program::kFuel);
    case FaultKind::kCalls:
      return absl::StrFormat("%s: functions are nested deeper than %d", where, kMostFrames);
    case FaultKind::kTurns:
      return absl::StrFormat("%s: stopped after %d turns of callbacks", where, Program::kMostTurns);
    case FaultKind::kLock:
      return absl::StrCat(where,
                          ": a bpf_spin_lock is taken while one is held, given back by who does not hold it, or "
                          "not given back by anybody");
    case FaultKind::kHeld:
      return absl::StrCat(where, ": a lock or a record of a ring buffer is still held; give it back on all ways");
    case FaultKind::kOpcode:
      return absl::StrCat(where, ": cannot be run");
  }
  return where;
}

}  // namespace halfpage::bpf
