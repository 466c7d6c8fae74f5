// A program that can be run: its object's maps made, its code analysed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/held.h"
#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/interpreter.h"
#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

class Program;

// The maps of an object, shared by its programs and all workers.
class MapSet {
 public:
  // Makes the maps, and fills the slots that the object fills: programs for tail calls, maps of maps. Errors: those of
  // Map::Create and Program::Create, and InvalidArgument for a slot that leads nowhere.
  static absl::StatusOr<std::unique_ptr<MapSet>> Create(const Object& object, uint32_t workers);

  Epochs& epochs() const { return epochs_; }
  const std::vector<std::unique_ptr<Map>>& maps() const { return maps_; }
  // Null where there is none of this name.
  Map* Find(absl::string_view name) const;
  // Those that tail calls lead to.
  const std::vector<std::unique_ptr<Program>>& programs() const { return programs_; }

  ~MapSet();

 private:
  explicit MapSet(uint32_t workers) : epochs_(workers) {}
  absl::Status Fill(const Object& object, const MapSpec& spec, Map* map);
  mutable Epochs epochs_;
  std::vector<std::unique_ptr<Map>> maps_;
  std::vector<std::unique_ptr<Program>> programs_;  // go first
};

// Where the description of a frame, whatever it is, holds what a run starts from: offsets of the buffer's address, of
// the 16-bit offset of the packet in it and of the 16-bit length of the packet.
struct FrameLayout {
  uint32_t buffer = 0;
  uint32_t data_offset = 0;
  uint32_t data_length = 0;
};

// Compiled code of a program: as Interpret(), same checks, same faults. `run_burst` is null unless a layout of frames
// was given. `discard(owner)` gives its memory back.
using CompiledFunction = uint64_t (*)(RunState* state);
using CompiledBurst = uint64_t (*)(RunState* state, void* const* frames, uint64_t n, uint8_t* verdicts,
                                   RedirectTarget* targets);
// What RunBurst() makes of a verdict that is no XdpAction.
inline constexpr uint8_t kUnknownVerdict = 5;
struct CompiledCode {
  CompiledFunction run = nullptr;
  CompiledBurst run_burst = nullptr;
  void* owner = nullptr;
  void (*discard)(void* owner) = nullptr;
};

class Program {
 public:
  // Decodes and analyses `code`. `maps` must outlive it. Errors: those of Decode() and Analyse().
  static absl::StatusOr<std::unique_ptr<Program>> Create(const ProgramCode& code, const Object& object, MapSet* maps);

  const std::string& name() const { return image_.name; }
  bool frags() const { return frags_; }
  const Image& image() const { return image_; }
  const MapSet& maps() const { return *maps_; }
  bool uses_map(const Map* map) const;
  // Whether it may write into packets, and whether it may move their ends.
  bool writes() const { return image_.writes_packet; }
  bool reshapes() const { return reshapes_; }
  // Whether it may name targets.
  bool redirects() const { return redirects_; }
  // Whether it may end with a lock or a record in its hands, which Run() then takes from it.
  bool holds() const { return holds_; }
  // Whether it, or a program that its tail calls may lead to, calls helper `number`.
  bool Calls(uint32_t number) const;

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  // No worker runs it any more.
  ~Program();

  // From here on Run() runs `code`, which belongs to the program, instead of interpreting. Once, before any worker runs
  // it.
  void SetCompiled(const CompiledCode& code) { compiled_ = code; }
  bool compiled() const { return compiled_.run != nullptr; }

  // Runs the program over the packet that `state` describes and gives its verdict as the program returned it (only 0 to
  // 4 mean something), 0 (aborted) after a fault, which state->fault then tells. Hot; any worker, each with its own
  // state, between Epochs::Enter() and Leave().
  uint32_t Run(RunState* state) const {
    Begin(state);
    return RunNext(state);
  }
  // The same for several packets in a row: Begin() before the first.
  void Begin(RunState* state) const;
  uint32_t RunNext(RunState* state) const {
    return Between(state, [this](RunState* running) { return Go(running); });
  }
  // Run(), interpreted, with `trace` told of each instruction of this program but not of callbacks and other programs.
  uint32_t RunTraced(RunState* state, TraceFunction trace, void* to) const;

  // Whether there is RunBurst(): not where it reshapes() or holds().
  bool runs_bursts() const { return compiled_.run_burst != nullptr; }
  // RunNext() for `n` frames in one buffer each, described as the layout says that it was compiled with, without
  // metadata. Gives how many were judged: all, or those up to the first that failed, which state->fault then tells. The
  // ends that state describes are left where the last frame has them: not for programs that move them. `targets` is
  // written where redirects(). Hot, as RunNext().
  uint64_t RunBurst(RunState* state, void* const* frames, uint64_t n, uint8_t* verdicts,
                    RedirectTarget* targets) const {
    state->frame_top = state->stack;
    state->fault.kind = FaultKind::kNone;
    return compiled_.run_burst(state, frames, n, verdicts, targets);
  }
  // Runs it in the place of another program, within that one's run.
  uint64_t RunTail(RunState* state) const;

  // Loops that one run may make before it is stopped.
  static constexpr int64_t kFuel = 1 << 20;
  // Turns that its callbacks may make in one run, all together.
  static constexpr uint32_t kMostTurns = 1 << 23;

 private:
  // What a run begins and ends with, whoever makes it.
  template <typename F>
  uint32_t Between(RunState* state, F run) const {
    state->frame_top = state->stack;
    state->fuel = kFuel;
    state->fault.kind = FaultKind::kNone;
    state->redirect.flags = RedirectTarget::kNone;
    state->tail_calls = 0;
    state->turns = 0;
    const uint64_t verdict = run(state);
    if (holds_) LetGo(state);
    return state->Failed() ? 0 : static_cast<uint32_t>(verdict);
  }
  uint64_t Go(RunState* state) const { return compiled_.run != nullptr ? compiled_.run(state) : RunInterpreted(state); }
  uint64_t RunInterpreted(RunState* state) const;

  Program() = default;
  Image image_;
  bool frags_ = false;
  bool redirects_ = false;
  bool reshapes_ = false;
  bool holds_ = false;
  MapSet* maps_ = nullptr;
  CompiledCode compiled_;
};

}  // namespace halfpage::bpf
