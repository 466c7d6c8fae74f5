// Random programs: whatever they are, memory outside packet, stack and maps is never touched, and compiled code ends as
// the interpreter does.
//
//   HALFPAGE_FUZZ_SECONDS=600 HALFPAGE_FUZZ_SEED=1 build/tests/unit/bpf_test --gtest_filter='Fuzz.*'
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/unit/bpf_random_program.h"

namespace halfpage::bpf {
namespace {

// Calls of helpers that a program made and came back from, and how many had what they asked for.
class Calls {
 public:
  struct Count {
    uint64_t made = 0;
    uint64_t good = 0;
  };

  static void See(void* to, const Image& image, uint32_t index, const uint64_t* registers) {
    auto* const calls = static_cast<Calls*>(to);
    calls->Back(registers[0]);
    const Instruction& insn = image.code[index];
    if (insn.code != (BPF_JMP | BPF_CALL) || insn.src != 0) return;
    calls->helper_ = FindHelper(static_cast<uint32_t>(insn.imm));
    calls->type_ = BPF_MAP_TYPE_UNSPEC;
    for (int i = 0; i < 2; ++i) {
      if (calls->helper_->arguments[i] != Argument::kMap || registers[i + 1] == 0) continue;
      calls->type_ = reinterpret_cast<const Map*>(registers[i + 1])->spec().type;
    }
  }

  // The run is over; a tail call that led somewhere does not come back.
  void RunEnded(bool fault) {
    if (!fault && helper_ != nullptr && helper_->number == BPF_FUNC_tail_call) return Back(0);
    helper_ = nullptr;
  }

  // Helpers, and types of maps that they take, that were never called, "" for none.
  std::string Missing() const {
    std::string missing;
    for (uint32_t number = 0; number < 256; ++number) {
      const Helper* helper = FindHelper(number);
      if (helper == nullptr) continue;
      for (int type = 0; type < 64; ++type) {
        const bool taken = helper->map_types == 0 ? type == 0 : (helper->map_types >> type & 1) != 0;
        if (!taken || counts_.count({number, type}) != 0) continue;
        absl::StrAppend(&missing, " ", helper->name, type == 0 ? "" : "/",
                        type == 0 ? "" : MapTypeName(static_cast<bpf_map_type>(type)));
      }
    }
    return missing;
  }

  // Helpers that nobody got anything from.
  std::string InVain() const {
    std::map<uint32_t, uint64_t> good;
    for (const auto& [call, count] : counts_) good[call.first] += count.good;
    std::string vain;
    for (const auto& [number, count] : good) {
      if (count == 0) absl::StrAppend(&vain, " ", HelperName(number));
    }
    return vain;
  }

  std::string Table() const {
    std::string table;
    for (const auto& [call, count] : counts_) {
      absl::StrAppend(&table, HelperName(call.first), call.second == 0 ? "" : "/",
                      call.second == 0 ? "" : MapTypeName(static_cast<bpf_map_type>(call.second)), " ", count.made, "/",
                      count.good, " ");
    }
    return table;
  }

 private:
  void Back(uint64_t result) {
    if (helper_ == nullptr) return;
    Count& count = counts_[{helper_->number, static_cast<int>(type_)}];
    ++count.made;
    const bool pointer = helper_->result != Result::kNumber;
    count.good += pointer ? result != 0 : static_cast<int64_t>(result) >= 0;
    helper_ = nullptr;
  }

  const Helper* helper_ = nullptr;  // that was called and has not come back
  bpf_map_type type_ = BPF_MAP_TYPE_UNSPEC;
  std::map<std::pair<uint32_t, int>, Count> counts_;
};

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void Print(const Object& object) {
  for (const ProgramCode& program : object.programs) {
    std::fprintf(stderr, "%s\n", program.name.c_str());
    for (const bpf_insn& insn : program.code)
      std::fprintf(stderr, "%02x r%d r%d %d %d\n", insn.code, insn.dst_reg, insn.src_reg, insn.off, insn.imm);
  }
}

TEST(Fuzz, CompiledAndInterpretedProgramsEndAlikeAndStayInside) {
  const uint64_t seconds = Setting("HALFPAGE_FUZZ_SECONDS", 0);
  const uint64_t seed = Setting("HALFPAGE_FUZZ_SEED", 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  uint64_t run = 0;
  uint64_t faults = 0;
  uint64_t programs = 0;
  int by_address = 0;
  bool compiler = true;
  Calls calls;
  // In the short form each program is interpreted, and one of sixteen that can be run is compiled as well; in the long
  // one of four.
  for (; seconds == 0 ? programs < 700 : std::chrono::steady_clock::now() < end; ++programs) {
    SCOPED_TRACE(testing::Message() << "HALFPAGE_FUZZ_SEED=" << seed + programs);
    // All of a case follows from its number, so that the number alone brings it back.
    const uint64_t number = seed + programs;
    const Object object = RandomObject(number);
    Conditions conditions = {
        .bytes = (number % 4 == 0 ? 14 : 60) + number % 40, .at_start = number % 2 == 0, .filled = true};
    if (number % 3 == 0 && conditions.bytes >= 20) conditions.buffers = 2 + number / 3 % 3;
    conditions.trace = Calls::See;
    conditions.trace_to = &calls;
    const Outcome outcome = RunObject(object, conditions);
    calls.RunEnded(outcome.fault.kind != FaultKind::kNone);
    if (!outcome.status.ok()) {
      EXPECT_NE(outcome.status.message(), "");
      continue;
    }
    faults += outcome.fault.kind != FaultKind::kNone;
    if (outcome.fault.kind != FaultKind::kNone) {
      EXPECT_EQ(outcome.verdict, 0u);
      EXPECT_NE(outcome.text, "");
    }
    conditions.trace = nullptr;
    if (run++ % (seconds == 0 ? 16 : 4) == 0 && compiler) {
      compiler = ExpectCompiledTheSame(object, conditions, &by_address);
    }
    if (testing::Test::HasFailure()) {
      Print(object);
      break;
    }
  }
  std::fprintf(stderr, "%llu programs, %llu run, %llu of these ended in a fault, %d left addresses behind\n",
               static_cast<unsigned long long>(programs), static_cast<unsigned long long>(run),
               static_cast<unsigned long long>(faults), by_address);
  if (seconds != 0) std::fprintf(stderr, "%s\n", calls.Table().c_str());
  EXPECT_LE(static_cast<uint64_t>(by_address), 1 + run / 200) << "too few programs are compared";
  EXPECT_GT(run, programs / 2) << "too few programs get past the analysis";
  EXPECT_EQ(calls.Missing(), "") << "the generator does not make them any more";
  EXPECT_EQ(calls.InVain(), "");
}

}  // namespace
}  // namespace halfpage::bpf
