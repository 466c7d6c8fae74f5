// Random programs: wrong often enough, and right often enough to be run.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/bpf_random_calls.h"

namespace halfpage::bpf {

class RandomProgram : private RandomCalls {
 public:
  RandomProgram(uint64_t seed, const std::vector<MapSpec>* maps) : RandomCalls(seed, maps) {}

  // A program of `least` steps and up to `more` further ones. `calls_tail` is set where it makes tail calls.
  Code Next(int least, int more, bool* calls_tail) {
    wild_ = Below(8) == 0;
    code_ = {Copy(6, 1), Load(BPF_W, 7, 1, 0), Load(BPF_W, 8, 1, 4), Mov(9, Small())};
    const char kinds[] = "UUUUUUCPESK";  // r0 to r10
    std::copy(kinds, kinds + 11, kinds_);
    for (int i = 0; i < 6; ++i) code_.push_back(StoreImm(BPF_DW, 10, -8 * (i + 1), Small()));
    Proof();
    for (int left = least + Below(more); left > 0; --left) {
      Land(1);
      steps_.push_back(code_.size());
      Step();
    }
    Land(kFar);
    code_.push_back(Mov(0, Below(6)));
    code_.push_back(Exit());
    *calls_tail |= calls_tail_;
    functions_.insert(functions_.begin(), code_);
    return Linked(functions_);
  }

 private:
  int Size() {
    constexpr int kSizes[] = {BPF_B, BPF_H, BPF_W, BPF_DW};
    return kSizes[Below(4)];
  }
  // A register of one of these kinds; where there is none one of those that stay, and any in a wild program.
  int Of(const char* wanted) {
    for (int tries = 0; tries < 24; ++tries) {
      const int reg = Below(11);
      if (strchr(wanted, kinds_[reg]) != nullptr) return reg;
    }
    if (wild_) return Below(11);
    constexpr const char* kStaying = "CPESK";  // r6 to r10
    for (const char* kind = kStaying; *kind != '\0'; ++kind) {
      if (strchr(wanted, *kind) != nullptr) return 6 + static_cast<int>(kind - kStaying);
    }
    return kNumber;
  }
  // r6 to r9 stay what they are, the context, the packet, its end and a number, whatever is jumped over: what programs
  // compare and hand out is taken from there, for addresses differ from run to run.
  int Free() { return Below(6); }

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
    const int base = Of(Below(wild_ ? 10 : 80) == 0 ? "CSE" : "PPKV");
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
      const int place = Of("KV");
      code_.push_back(Raw(BPF_STX | BPF_ATOMIC | (Below(2) ? BPF_W : BPF_DW), place, kNumber,
                          -8 * (Below(4) + (kinds_[place] == 'K')), kAtomics[Below(5)]));
    }
  }

  void Jump() {
    constexpr int kJumps[] = {BPF_JEQ,  BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
                              BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE};
    const int type = Below(2) ? BPF_JMP : BPF_JMP32;
    const int off = Below(12) == 0 ? -1 - Below(6) : Below(6);
    // Most loops have a few turns; the others go on until they are stopped.
    const bool counted = !wild_ && off < 0 && Below(30) != 0;
    size_t over = 0;
    if (counted) {
      Put({Load(BPF_DW, 5, 10, kTurns), Add(5, 1), Store(BPF_DW, 10, 5, kTurns)});
      over = Begin(Raw(BPF_JMP | BPF_JGT | BPF_K, 5, 0, 0, Below(8)));
      kinds_[5] = 'S';
    }
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
    if (wild_) return;  // into the middle of what belongs together, even
    const size_t jump = code_.size() - 1;
    if (off >= 0) return jumps_.push_back({jump, off});
    const size_t back = steps_[steps_.size() - std::min(steps_.size(), static_cast<size_t>(-off))];
    code_[jump].off = static_cast<int16_t>(static_cast<int>(back) - static_cast<int>(jump) - 1);
    if (counted) End(over);
  }

  // Jumps over as many steps as they wait for arrive here.
  void Land(int steps) {
    for (auto& [jump, left] : jumps_) left -= steps;
    const auto arrived = [this](const std::pair<size_t, int>& jump) {
      if (jump.second > 0) return false;
      End(jump.first);
      return true;
    };
    jumps_.erase(std::remove_if(jumps_.begin(), jumps_.end(), arrived), jumps_.end());
  }

  // A function of its own; every other one calls the one before it, deeper each time.
  void FunctionCall() {
    Code outer = std::move(code_);
    code_ = {Copy(6, 1), Copy(7, 2)};
    if (Below(2)) Put({StoreImm(BPF_DW, 10, -16, 3), Store(BPF_DW, 10, 7, -8)});
    if (Below(2)) Put({StoreImm(BPF_DW, 7, 0, 5), Load(BPF_DW, 8, 7, -8), Add(8, 1), Store(BPF_DW, 7, 8, -8)});
    if (Below(2) && plain_ != 0) Put({Copy(1, 6), Copy(2, 10), Add(2, -16), CallLocal(plain_)});
    if (Below(4) == 0) {
      calls_tail_ = true;
      Put({Copy(1, 6), MapOf(2, kProgramArray), Half(), Mov(3, Below(4)), Call(BPF_FUNC_tail_call)});
    }
    if (Below(6) == 0) Put({Copy(1, 6), Mov(2, Below(9) - 4), Call(BPF_FUNC_xdp_adjust_head)});
    Put({Mov(0, Small()), Exit()});
    functions_.push_back(std::exchange(code_, std::move(outer)));
    plain_ = static_cast<int>(functions_.size());
    // Its second argument is a place on the stack, mostly.
    Put({Copy(1, 6), Copy(2, Below(6) ? 10 : kNumber), Add(2, -24), CallLocal(plain_)});
    Called('S');
    Put({Load(BPF_W, 7, 6, 0), Load(BPF_W, 8, 6, 4)});
  }

  void Step() {
    const int choice = Below(100);
    if (choice < 18) return Arithmetic();
    if (choice < 32) return Move();
    if (choice < 46) return Pointer();
    if (choice < 72) return Memory();
    if (choice < 84) return Jump();
    if (choice < 87) return FunctionCall();
    if (choice < 98 || !wild_) return AnyCall();
    bpf_insn noise;
    const uint64_t bits = random_();
    memcpy(&noise, &bits, sizeof(noise));
    code_.push_back(noise);
  }

  static constexpr int kFar = 1000;
  static constexpr int kTurns = -184;          // of loops, counted on the stack
  int plain_ = 0;                              // the last function that is no callback, 0 for none
  bool wild_ = false;                          // of instructions that are none, too
  std::vector<size_t> steps_;                  // where they begin
  std::vector<std::pair<size_t, int>> jumps_;  // and over how many steps they still go
};

// Maps that no program refers to become small ones, which are made sooner.
inline void LeaveOutUnused(Object* object) {
  std::vector<bool> used(object->maps.size());
  for (const ProgramCode& program : object->programs) {
    for (const bpf_insn& insn : program.code) {
      const bool map = insn.code == (BPF_LD | BPF_IMM | BPF_DW) && insn.src_reg != 0;
      if (map && static_cast<size_t>(insn.imm) < used.size()) used[static_cast<size_t>(insn.imm)] = true;
    }
  }
  for (size_t i = 4; i < used.size(); ++i) {
    if (used[i] || object->maps[i].name == "own") continue;
    object->maps[i] = Spec(object->maps[i].name.c_str(), BPF_MAP_TYPE_ARRAY, 4, 4, 1);
  }
}

// The object of a random program. Where it makes tail calls they lead to another one, to nothing, and to itself.
inline Object RandomObject(uint64_t seed) {
  Object object = ObjectWith({});
  object.maps = RandomMaps();
  bool calls_tail = false;
  object.programs[0].code = RandomProgram(seed, &object.maps).Next(4, 40, &calls_tail);
  if (calls_tail) {
    object.maps[kProgramArray].targets = {"next", "", "hand"};
    object.programs.push_back(object.programs[0]);
    object.programs.back().name = "next";
    object.programs.back().code = RandomProgram(~seed, &object.maps).Next(1, 16, &calls_tail);
  }
  LeaveOutUnused(&object);
  return object;
}

}  // namespace halfpage::bpf
