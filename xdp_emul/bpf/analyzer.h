// The analysis at work: states at the heads of blocks, made wider until they hold for every way that leads there.
// Private to analysis*.cc.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xdp_emul/bpf/abstract_value.h"
#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/instruction.h"
#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/object.h"

namespace halfpage::bpf {

class Analyzer {
 public:
  Analyzer(const Object& object, Image* image) : object_(object), image_(*image) {}

  absl::Status Run();

 private:
  // analysis.cc
  void FindHeads();
  void FindPacketChanges();
  void Push(uint32_t head, const State& state);
  void RunBlock(uint32_t head);
  void Step(uint32_t index, State* state);
  void LocalCall(uint32_t index, State* state, bool* stop);
  void Exit(const State& state, uint32_t index);
  // Refuses the program at instruction `index` for `what`, of which `mend` is the way out. The first of several counts.
  void Fail(uint32_t index, absl::string_view what, absl::string_view mend);
  // Refuses a read of register `reg`, into which nothing was put.
  void FailUnset(uint32_t index, int reg);

  // analysis_arithmetic.cc
  void Arithmetic(uint32_t index, State* state);
  Value AddToPointer(uint32_t index, State* state, const Value& pointer, const Value& amount, bool subtract, int reg);
  Value ScalarResult(const Instruction& insn, const Value& left, const Value& right) const;
  void LoadConstant(uint32_t index, State* state);
  // Forgets that other values have the id that instruction `index` is about to hand out; gives that id.
  uint32_t NewId(uint32_t index, State* state) const;

  // analysis_memory.cc
  void Load(uint32_t index, State* state);
  void Store(uint32_t index, State* state);
  void Atomic(uint32_t index, State* state);
  Check CheckFor(uint32_t index, int reg, const Value& base, int32_t offset, uint32_t size, bool write, int16_t* map);
  void WriteStack(State* state, const Value& base, int64_t offset, uint32_t size, const Value* stored);
  void UseStack(int64_t lowest);
  bool Proven(const Value& base, int64_t offset, uint64_t size, bool write) const;

  // analysis_branch.cc
  void Branch(uint32_t index, const State& state);
  static void Refine(const Instruction& insn, const Value& right, bool taken, State* state);

  // analysis_call.cc
  void HelperCall(uint32_t index, State* state);
  bool CheckArgument(uint32_t index, const Helper& helper, int number, State* state);
  void CheckMemoryArgument(uint32_t index, const Helper& helper, int number, State* state);
  // Refuses what is handed to `helper` as argument `number`, from 0.
  void FailArgument(uint32_t index, const Helper& helper, int number, const Value& value, absl::string_view wanted);
  void CheckLock(uint32_t index, const Helper& helper, const Value& value);
  void Callback(const Helper& helper, State* state);
  // Where a callback may begin: the one that is known, or all whose address the program takes.
  std::vector<uint32_t> TargetsOf(const Value& function) const;
  void ForgetPacket(State* state) const;
  static void ForgetSlots(State* state);
  static void ForgetRecord(State* state);
  std::string RegisterText(int reg, const Value& value) const;
  const MapSpec* SpecOf(const Value& map) const;

  Instruction& At(uint32_t index) { return image_.code[index]; }
  Function& FunctionAt(uint32_t index) { return const_cast<Function&>(image_.FunctionOf(index)); }

  const Object& object_;
  Image& image_;
  std::vector<bool> is_head_;
  struct Head {
    State state;
    int merges = 0;
  };
  std::map<uint32_t, std::unique_ptr<Head>> heads_;
  std::set<uint32_t> waiting_;
  std::map<uint32_t, Value> results_;               // by function: what it gives back
  std::map<uint32_t, std::set<uint32_t>> callers_;  // by function: heads of blocks that call it
  uint32_t head_ = 0;                               // of the block being run
  Function* function_ = nullptr;                    // that it belongs to
  bool reporting_ = false;                          // states are final: faults count and checks are written
  uint32_t fault_at_ = UINT32_MAX;
  std::string fault_;
};

}  // namespace halfpage::bpf
