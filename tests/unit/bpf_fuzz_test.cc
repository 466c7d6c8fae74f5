// Random programs: whatever they are, memory outside packet, stack and maps is never touched, and compiled code ends as
// the interpreter does.
//
//   HALFPAGE_FUZZ_SECONDS=600 HALFPAGE_FUZZ_SEED=1 build/tests/unit/bpf_test --gtest_filter='Fuzz.*'
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>

#include "tests/unit/bpf_outcome.h"

namespace halfpage::bpf {
namespace {

// Makes programs that are wrong often enough, and right often enough to be run.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Code Next() {
    code_ = {Copy(6, 1), Load(BPF_W, 7, 1, 0), Load(BPF_W, 8, 1, 4), Mov(9, Small())};
    const char kinds[] = "UUUUUUCPESK";  // r0 to r10
    std::copy(kinds, kinds + 11, kinds_);
    for (int i = 0; i < 6; ++i) code_.push_back(StoreImm(BPF_DW, 10, -8 * (i + 1), Small()));
    Proof();
    const int length = 4 + Below(40);
    for (int i = 0; i < length; ++i) Step();
    code_.push_back(Mov(0, Below(6)));
    code_.push_back(Exit());
    if (local_call_) {
      for (bpf_insn insn : {Copy(0, 1), AddReg(0, 2), StoreImm(BPF_DW, 10, -16, 3), Exit()}) code_.push_back(insn);
    }
    Patch();
    return code_;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int Small() { return Below(8) == 0 ? static_cast<int>(random_()) : Below(80) - 16; }
  int Size() {
    constexpr int kSizes[] = {BPF_B, BPF_H, BPF_W, BPF_DW};
    return kSizes[Below(4)];
  }
  // A register of one of these kinds, or any where there is none.
  int Of(const char* wanted) {
    for (int tries = 0; tries < 24; ++tries) {
      const int reg = Below(11);
      if (strchr(wanted, kinds_[reg]) != nullptr) return reg;
    }
    return Below(11);
  }
  // r6 to r9 stay what they are, the context, the packet, its end and a number, whatever is jumped over: what programs
  // compare and hand out is taken from there, for addresses differ from run to run.
  int Free() { return Below(6); }
  static constexpr int kNumber = 9;

  // Compares the packet with its end, so that some of it may be read without a check.
  void Proof() {
    code_.push_back(Copy(5, 7));
    code_.push_back(Add(5, 8 + Below(20)));
    code_.push_back(JumpGt(5, 8, 2));
    code_.push_back(Load(BPF_B, 4, 7, Below(24)));
    code_.push_back(Goto(1));
    code_.push_back(Mov(4, 1));
    kinds_[4] = 'S';
    kinds_[5] = 'P';
  }

  void Arithmetic() {
    constexpr int kOperations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,  BPF_AND,
                                   BPF_LSH, BPF_RSH, BPF_MOD, BPF_XOR, BPF_ARSH};
    const int operation = kOperations[Below(11)];
    const int type = Below(3) == 0 ? BPF_ALU : BPF_ALU64;
    const int dst = Of("S");
    const bool shift = operation == BPF_LSH || operation == BPF_RSH || operation == BPF_ARSH;
    if (dst == 10) return;
    if (Below(2) == 0) {
      code_.push_back(Raw(type | operation | BPF_X, dst, Of("S"), 0, 0));
    } else {
      code_.push_back(Raw(type | operation | BPF_K, dst, 0, 0, shift ? Below(32) : Small() | 1));
    }
  }

  void Move() {
    const int dst = Free();
    if (Below(2) == 0) {
      code_.push_back(Mov(dst, Small()));
      kinds_[dst] = 'S';
      return;
    }
    const int src = Of("SPKVC");
    code_.push_back(Copy(dst, src));
    kinds_[dst] = kinds_[src];
  }

  void Pointer() {
    const int dst = Free();
    const int src = Of("PKV");
    code_.push_back(Copy(dst, src));
    kinds_[dst] = kinds_[src];
    if (Below(3) == 0) {
      const int amount = Of("S");
      if (Below(2) == 0) code_.push_back(Raw(BPF_ALU64 | BPF_AND | BPF_K, amount, 0, 0, 31));
      if (amount != dst && amount != 10) code_.push_back(AddReg(dst, amount));
    } else {
      code_.push_back(Add(dst, kinds_[dst] == 'K' ? -Below(64) : Below(24)));
    }
  }

  int Offset(int base) {
    return kinds_[base] == 'K' ? -8 * (1 + Below(6)) + Below(3) * Below(4) : Below(24) - 2 * Below(2);
  }

  void Memory() {
    const int base = Of(Below(10) == 0 ? "CSE" : "PPKV");
    const int choice = Below(5);
    if (choice == 0) {
      code_.push_back(Load(Size(), kNumber, 7, Below(24)));
    } else if (choice == 1) {
      const int dst = Free();
      code_.push_back(Load(Size(), dst, base, Offset(base)));
      kinds_[dst] = 'S';
    } else if (choice == 2) {
      code_.push_back(StoreImm(Size(), base, Offset(base), Small()));
    } else if (choice == 3) {
      code_.push_back(Store(Size(), base, kNumber, Offset(base)));
      if (Below(4) == 0) code_.push_back(Store(BPF_DW, 10, Of("SPV"), -8 * (1 + Below(6))));
    } else {
      constexpr int kAtomics[] = {BPF_ADD, BPF_OR, BPF_AND | BPF_FETCH, BPF_XOR, BPF_XCHG};
      code_.push_back(Raw(BPF_STX | BPF_ATOMIC | (Below(2) ? BPF_W : BPF_DW), Of("KV"), kNumber, -8 * Below(4),
                          kAtomics[Below(5)]));
    }
  }

  void Jump() {
    constexpr int kJumps[] = {BPF_JEQ,  BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
                              BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE};
    const int type = Below(2) ? BPF_JMP : BPF_JMP32;
    const int off = Below(12) == 0 ? -1 - Below(6) : Below(6);
    const int choice = Below(4);
    if (choice == 0) {
      code_.push_back(JumpEq(Of("V"), 0, off));
    } else if (choice == 1) {
      code_.push_back(Copy(5, 7));
      code_.push_back(Add(5, Below(40)));
      code_.push_back(JumpGt(5, 8, off));
      kinds_[5] = 'P';
    } else {
      code_.push_back(Raw(type | kJumps[Below(11)] | BPF_K, kNumber, 0, off, Small()));
    }
  }

  void Called(char result) {
    for (int reg = 1; reg < 6; ++reg) kinds_[reg] = 'U';
    kinds_[0] = result;
  }
  void Key() {
    code_.push_back(StoreImm(BPF_W, 10, -4, Below(6)));
    code_.push_back(Copy(2, 10));
    code_.push_back(Add(2, -4));
  }

  void Helper() {
    switch (Below(9)) {
      case 0:
      case 1:
        Key();
        for (bpf_insn insn : {MapOf(1, Below(2)), Half(), Call(BPF_FUNC_map_lookup_elem)}) code_.push_back(insn);
        Called('V');
        if (Below(2) == 0) {
          code_.push_back(JumpEq(0, 0, 1 + Below(3)));
        }
        return;
      case 2:
        Key();
        for (bpf_insn insn : {Copy(3, Of("PK")), Add(3, -Below(40)), Mov(4, Below(4)), MapOf(1, Below(2)), Half(),
                              Call(BPF_FUNC_map_update_elem)}) {
          code_.push_back(insn);
        }
        return Called('S');
      case 3:
        Key();
        for (bpf_insn insn : {MapOf(1, 1), Half(), Call(BPF_FUNC_map_delete_elem)}) code_.push_back(insn);
        return Called('S');
      case 4: {
        constexpr int kMoves[] = {BPF_FUNC_xdp_adjust_head, BPF_FUNC_xdp_adjust_tail, BPF_FUNC_xdp_adjust_meta};
        for (bpf_insn insn : {Copy(1, 6), Mov(2, Below(40) - 20), Call(kMoves[Below(3)])}) code_.push_back(insn);
        Called('S');
        code_.push_back(Load(BPF_W, 7, 6, 0));
        code_.push_back(Load(BPF_W, 8, 6, 4));
        kinds_[7] = 'P';
        kinds_[8] = 'E';
        return;
      }
      case 5:
        for (bpf_insn insn : {Copy(1, 6), Mov(2, Below(24)), Copy(3, 10), Add(3, -8 * Below(8)), Mov(4, 1 + Below(40)),
                              Call(Below(2) ? BPF_FUNC_xdp_load_bytes : BPF_FUNC_xdp_store_bytes)}) {
          code_.push_back(insn);
        }
        return Called('S');
      case 6:
        for (bpf_insn insn : {Copy(1, Of("PKV")), Mov(2, 4 * Below(6)), Copy(3, Of("PK")), Mov(4, 4 * Below(6)),
                              Mov(5, 1), Call(BPF_FUNC_csum_diff)}) {
          code_.push_back(insn);
        }
        return Called('S');
      case 7:
        for (bpf_insn insn : {MapOf(1, 3), Half(), Mov(2, Below(6)), Mov(3, Below(4)), Call(BPF_FUNC_redirect_map)}) {
          code_.push_back(insn);
        }
        return Called('S');
      default:
        code_.push_back(Mov(1, Small()));
        code_.push_back(Mov(2, Small()));
        local_calls_.push_back(code_.size());
        code_.push_back(CallLocal(0));
        local_call_ = true;
        return Called('S');
    }
  }

  void Step() {
    const int choice = Below(100);
    if (choice < 18) return Arithmetic();
    if (choice < 32) return Move();
    if (choice < 46) return Pointer();
    if (choice < 72) return Memory();
    if (choice < 84) return Jump();
    if (choice < 98) return Helper();
    bpf_insn noise;
    const uint64_t bits = random_();
    memcpy(&noise, &bits, sizeof(noise));
    code_.push_back(noise);
  }

  void Patch() {
    for (const size_t at : local_calls_) code_[at].imm = static_cast<int>(code_.size() - 4 - at - 1);
    local_calls_.clear();
    local_call_ = false;
  }

  std::mt19937_64 random_;
  Code code_;
  char kinds_[12] = {};  // of registers: Unset, Scalar, Packet, its End, stacK, Value, Context
  std::vector<size_t> local_calls_;
  bool local_call_ = false;
};

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
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
  // In the short form each program is interpreted, and one of eight that can be run is compiled as well.
  for (; seconds == 0 ? programs < 3000 : std::chrono::steady_clock::now() < end; ++programs) {
    SCOPED_TRACE(testing::Message() << "HALFPAGE_FUZZ_SEED=" << seed + programs);
    const Code code = Generator(seed + programs).Next();
    // All of a case follows from its number, so that the number alone brings it back.
    const uint64_t number = seed + programs;
    const Conditions conditions = {.bytes = 14 + number % 40, .at_start = number % 2 == 0};
    const Outcome outcome = RunCode(code, conditions);
    if (!outcome.status.ok()) {
      EXPECT_NE(outcome.status.message(), "");
      continue;
    }
    faults += outcome.fault.kind != FaultKind::kNone;
    if (outcome.fault.kind != FaultKind::kNone) {
      EXPECT_EQ(outcome.verdict, 0u);
      EXPECT_NE(outcome.text, "");
    }
    if (run++ % (seconds == 0 ? 8 : 1) == 0 && compiler) {
      compiler = ExpectCompiledTheSame(ObjectWith(code), conditions, &by_address);
    }
    if (testing::Test::HasFailure()) {
      for (const bpf_insn& insn : code)
        std::fprintf(stderr, "%02x r%d r%d %d %d\n", insn.code, insn.dst_reg, insn.src_reg, insn.off, insn.imm);
      break;
    }
  }
  std::fprintf(stderr, "%llu programs, %llu run, %llu of these ended in a fault, %d left addresses behind\n",
               static_cast<unsigned long long>(programs), static_cast<unsigned long long>(run),
               static_cast<unsigned long long>(faults), by_address);
  EXPECT_LE(static_cast<uint64_t>(by_address), 1 + run / 200) << "too few programs are compared";
  EXPECT_GT(run, programs / 10) << "too few programs get past the analysis";
}

}  // namespace
}  // namespace halfpage::bpf
