// The loader, the analysis, the interpreter's checks and the maps, without a kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "tests/support/bpf_code.h"
#include "tests/unit/bpf_outcome.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/surroundings.h"

namespace halfpage::bpf {
namespace {

using testing::HasSubstr;

struct Hostile {
  const char* what;
  Code code;
  const char* refused;  // part of the reason; null: it is run and ends in a fault
  const char* fault = "";
};

std::vector<Hostile> HostilePrograms() {
  return {
      {"a wild pointer", With({{Mov(2, 4096), Load(BPF_DW, 0, 2, 0), Exit()}}), "r2 holds a scalar"},
      {"a null pointer", {Mov(2, 0), Load(BPF_B, 0, 2, 0), Exit()}, "r2 holds a scalar"},
      {"nothing in r0", {Exit()}, "r0 holds nothing"},
      {"a pointer as verdict", {Copy(0, 10), Exit()}, "a verdict is a number"},
      {"a pointer or a number as verdict",
       {Load(BPF_W, 2, 1, 16), Mov(0, 2), JumpEq(2, 0, 1), Copy(0, 10), Exit()},
       "a verdict is a number"},
      {"an unset register read", {Copy(0, 5), Exit()}, "r5 holds nothing"},
      {"an unset register stored", {Store(BPF_DW, 10, 6, -8), Mov(0, 1), Exit()}, "r6 holds nothing"},
      {"an unset register compared", {JumpEq(4, 0, 0), Mov(0, 1), Exit()}, "r4 holds nothing"},
      {"a write to the context", With({{StoreImm(BPF_W, 1, 0, 0)}, kPass}), "read only"},
      {"a context field of 8 bytes", With({{Load(BPF_DW, 2, 1, 0)}, kPass}), "4 bytes each"},
      {"a context field past the end", With({{Load(BPF_W, 2, 1, 24)}, kPass}), "at 24 of xdp_md"},
      {"a context field out of step", With({{Load(BPF_W, 2, 1, 2)}, kPass}), "at 2 of xdp_md"},
      {"a write through data_end", With({kPacket, {StoreImm(BPF_B, 3, 0, 0)}, kPass}), "the packet's end"},
      {"arithmetic on data_end", With({kPacket, {Add(3, 8)}, kPass}), "cannot be calculated with"},
      {"a read below the stack", With({{Load(BPF_DW, 2, 10, -520)}, kPass}), "r10-512"},
      {"a read above the stack", With({{Load(BPF_DW, 2, 10, 0)}, kPass}), "of the stack"},
      {"a write over the stack's edge", With({{StoreImm(BPF_DW, 10, -4, 0)}, kPass}), "of the stack"},
      {"a write to r10", With({{Mov(10, 0)}, kPass}), "frame pointer"},
      {"a register that does not exist", With({{Raw(BPF_ALU64 | BPF_MOV | BPF_K, 12, 0, 0, 0)}, kPass}),
       "r12 does not exist"},
      {"an opcode that does not exist", With({{Raw(0xe7, 0, 0, 0, 0)}, kPass}), "opcode 0xe7"},
      {"a packet load of old BPF", With({{Raw(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, 0)}, kPass}), "LD_ABS"},
      {"a jump out of the program", With({{Goto(100)}, kPass}), "out of its function"},
      {"a jump before the program", With({{Goto(-5)}, kPass}), "out of its function"},
      {"a jump into a constant", With({{Goto(1), MapOf(1, 0), Half()}, kPass}), "middle of a 64-bit constant"},
      {"half a constant", {Mov(0, 2), MapOf(1, 0)}, "second half is missing"},
      {"code that runs over its end", {Mov(0, 2)}, "runs over its end"},
      {"an empty program", {}, "is empty"},
      {"a map that does not exist", With({{MapOf(1, 77), Half()}, kPass}), "map 77"},
      {"a kernel function", With({{Raw(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, 5)}, kPass}), "kfunc"},
      {"a kernel variable", With({{Raw(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_BTF_ID, 0, 1), Half()}, kPass}),
       "ksym"},
      {"recursion", {CallLocal(1), Exit(), CallLocal(-1), Exit()}, "recursion"},
      {"division by a constant 0", With({{Mov(1, 5), Raw(BPF_ALU64 | BPF_DIV | BPF_K, 1, 0, 0, 0)}, kPass}),
       "by the constant 0"},
      {"a shift past 64", With({{Mov(1, 5), Raw(BPF_ALU64 | BPF_LSH | BPF_K, 1, 0, 0, 64)}, kPass}), "by 64"},
      {"a helper of other programs", With({{Call(BPF_FUNC_probe_read_kernel)}, kPass}), "bpf_probe_read_kernel"},
      {"a helper that nobody knows", With({{Call(9999)}, kPass}), "helper 9999"},
      {"a scalar as a map", With({{Mov(1, 4096), Mov(2, 0), Call(BPF_FUNC_map_lookup_elem)}, kPass}), "takes a map"},
      {"a scalar as a key", With({{MapOf(1, 0), Half(), Mov(2, 4096), Call(BPF_FUNC_map_lookup_elem)}, kPass}),
       "a pointer to a key"},
      {"a key over the stack's edge",
       With({{MapOf(1, 0), Half(), Copy(2, 10), Add(2, -2), Call(BPF_FUNC_map_lookup_elem)}, kPass}),
       "of the stack as argument 2"},
      {"a lookup in a map of the wrong type",
       With({{MapOf(1, 0), Half(), Mov(2, 0), Mov(3, 0), Call(BPF_FUNC_redirect_map)}, kPass}), "of type array"},
      {"a map's own memory", With({{MapOf(1, 0), Half(), Load(BPF_DW, 2, 1, 0)}, kPass}), "r1 holds a map"},
      {"a write to constants", With({{ValueOf(1, 2), Half(), StoreImm(BPF_W, 1, 0, 1)}, kPass}), "read only"},
      {"a constant's end", With({{ValueOf(1, 2), Half(), Load(BPF_DW, 2, 1, 4)}, kPass}), "which has 8"},
      {"bits of a pointer", With({kPacket, {Raw(BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, 7)}, kPass}), "nothing else"},
      {"two pointers added", With({kPacket, {Copy(4, 10), AddReg(4, 2)}, kPass}), "nothing else"},
      {"an atomic on the packet",
       With({kPacket, {Mov(4, 1), Raw(BPF_STX | BPF_ATOMIC | BPF_W, 2, 4, 0, BPF_ADD)}, kPass}), "atomics"},
      {"an atomic that does not exist", With({{Mov(4, 1), Raw(BPF_STX | BPF_ATOMIC | BPF_W, 10, 4, -8, 0x33)}, kPass}),
       "does not exist"},
      {"a packet pointer kept over adjust_head",
       With({kPacket, {Copy(6, 2), Mov(2, 0), Call(BPF_FUNC_xdp_adjust_head), Load(BPF_B, 0, 6, 0), Exit()}}),
       "r6 holds a scalar"},
      {"a program that never ends", {Mov(0, 1), Goto(-1)}, "never ends"},
      // What only shows when it runs.
      {"a read past the packet", With({kPacket, {Load(BPF_DW, 4, 2, 16)}, kPass}), nullptr,
       "at byte 16 of a packet of 20"},
      {"a read before the packet", With({kPacket, {Load(BPF_B, 4, 2, -1)}, kPass}), nullptr, "at byte -1"},
      {"a write past the packet", With({kPacket, {StoreImm(BPF_W, 2, 18, 0)}, kPass}), nullptr, "at byte 18"},
      {"a compare that proves less than is read",
       With({kPacket, {Copy(4, 2), Add(4, 14), JumpGt(4, 3, 1), Load(BPF_DW, 5, 2, 13)}, kPass}), nullptr,
       "at byte 13"},
      {"a compare the wrong way round",
       With({kPacket, {Copy(4, 2), Add(4, 30), JumpGt(4, 3, 1), Goto(1), Load(BPF_B, 5, 2, 29)}, kPass}), nullptr,
       "at byte 29"},
      {"an offset out of the packet itself",
       With({kPacket,
             {Mov(5, 1 << 20), Raw(BPF_ALU64 | BPF_LSH | BPF_K, 5, 0, 0, 10), AddReg(2, 5), Load(BPF_B, 4, 2, 0)},
             kPass}),
       nullptr, "of a packet of 20"},
      {"a negative offset that a compare seems to prove",
       With({kPacket,
             {Load(BPF_W, 5, 1, 16), Add(5, -64), AddReg(2, 5), Copy(4, 2), Add(4, 8), JumpGt(4, 3, 1),
              Load(BPF_B, 5, 2, 0)},
             kPass}),
       nullptr, "at byte -64"},
      {"a value that was not looked at", With({Lookup(1), {Load(BPF_DW, 1, 0, 0)}, kPass}), nullptr, "null pointer"},
      {"a value's end",
       With({{Copy(6, 1)},
             Lookup(0),
             {JumpEq(0, 0, 4), Load(BPF_W, 4, 6, 16), Add(4, 12), AddReg(0, 4), StoreImm(BPF_DW, 0, 0, 0)},
             kPass}),
       nullptr, "outside a value of map numbers, which has 16 bytes"},
      {"a stack offset that varies",
       With({{Load(BPF_W, 4, 1, 12), Copy(5, 10), AddReg(5, 4), StoreImm(BPF_DW, 5, 0, 0)}, kPass}), nullptr,
       "512 bytes of stack"},
      {"an endless loop that could end", With({{Load(BPF_W, 4, 1, 12), JumpEq(4, 77, 1), Goto(-2)}, kPass}), nullptr,
       "loops"},
      {"a format that lies about its length",
       With({{StoreImm(BPF_DW, 10, -8, 0), Copy(1, 10), Add(1, -8), Load(BPF_W, 2, 10, -8), Add(2, 600),
              Call(BPF_FUNC_trace_printk)},
             kPass}),
       nullptr, "handed"},
      {"an atomic across words",
       With({Lookup(0), {JumpEq(0, 0, 2), Mov(4, 1), Raw(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 4, 4, BPF_ADD)}, kPass}),
       nullptr, "atomic"},
  };
}

TEST(HostileProgram, IsRefusedWithAReasonOrEndsInAFaultThatSaysWhere) {
  const std::vector<Hostile> programs = HostilePrograms();
  EXPECT_GE(programs.size(), 50u);
  for (const Hostile& hostile : programs) {
    SCOPED_TRACE(hostile.what);
    const Outcome outcome = RunCode(hostile.code);
    if (hostile.refused != nullptr) {
      ASSERT_FALSE(outcome.status.ok());
      EXPECT_THAT(std::string(outcome.status.message()), HasSubstr(hostile.refused));
      EXPECT_THAT(std::string(outcome.status.message()),
                  testing::ContainsRegex("hand(: instruction [0-9]+: .*| is empty); .+"));
    } else {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_NE(hostile.fault, std::string()) << "which fault is it?";
      EXPECT_EQ(outcome.verdict, 0u);
      EXPECT_THAT(outcome.text, HasSubstr(hostile.fault));
      EXPECT_THAT(outcome.text, HasSubstr("instruction"));
    }
  }
}

TEST(Compiled, HostileProgramsEndAsInterpreted) {
  for (const Hostile& hostile : HostilePrograms()) {
    SCOPED_TRACE(hostile.what);
    for (const bool at_start : {false, true}) {
      if (!ExpectCompiledTheSame(hostile.code, {.at_start = at_start})) GTEST_SKIP() << "built without bpf_jit";
    }
  }
}

TEST(Compiled, PacketsShorterThanAHeaderEndAsInterpreted) {
  const Code code =
      With({kPacket, {Copy(4, 2), Add(4, 6), JumpGt(4, 3, 1), StoreImm(BPF_W, 2, 2, 7), Load(BPF_W, 0, 2, 4), Exit()}});
  for (size_t bytes = 0; bytes < 14; ++bytes) ExpectCompiledTheSame(code, {.bytes = bytes});
}

// What one packet leaves in the state must not show in the next one's run: stack, loops left, target, fault.
TEST(Compiled, PacketsOfABurstStartAfresh) {
  const std::vector<std::pair<const char*, Code>> programs = {
      {"its own function's stack",
       {Mov(0, 2), StoreImm(BPF_DW, 10, -8, 7), CallLocal(1), Exit(), StoreImm(BPF_DW, 10, -512, 9),
        Load(BPF_DW, 0, 10, -512), Exit()}},
      {"a target for some", With({kPacket,
                                  {Copy(4, 2), Add(4, 1), Mov(0, 2), JumpGt(4, 3, 6), Load(BPF_B, 5, 2, 0), Mov(6, 11),
                                   JumpEq(5, 11, 3), Mov(1, 3), Mov(2, 0), Call(BPF_FUNC_redirect), Exit()}})},
      {"a fault for some",
       With({kPacket, {Load(BPF_B, 5, 2, 0), Mov(0, 1), JumpEq(5, 22, 1), Exit(), Load(BPF_B, 0, 2, 30), Exit()}})},
      {"lookups",
       With({Lookup(0), {JumpEq(0, 0, 3), Load(BPF_DW, 1, 0, 0), Add(1, 3), Store(BPF_DW, 0, 1, 0)}, kPass})},
  };
  for (const auto& [what, code] : programs) {
    SCOPED_TRACE(what);
    const Outcome outcome = RunCode(code);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    // More packets than functions may nest: a stack that grew from one to the next would show.
    if (!ExpectCompiledTheSame(code, {.packets = 2 * kMostFrames})) GTEST_SKIP() << "built without bpf_jit";
  }
}

// Bytes of 40 in three buffers, and one more than there are: bpf_xdp_event_output() of net/core/filter.c.
TEST(Events, HoldBytesOfAllBuffers) {
  constexpr int kEvents = 4;
  const Conditions chained = {.bytes = 40, .buffers = 3};
  for (const int bytes : {0, 1, 20, 33, 40, 41}) {
    SCOPED_TRACE(bytes);
    Object object =
        ObjectWith({StoreImm(BPF_W, 10, -4, 7), MapOf(2, kEvents), Half(), Raw(BPF_LD | BPF_IMM | BPF_DW, 3, 0, 0, -1),
                    Half(bytes), Copy(4, 10), Add(4, -4), Mov(5, 4), Call(BPF_FUNC_perf_event_output), JumpEq(0, 0, 2),
                    Mov(0, 1), Exit(), Mov(0, 2), Exit()});
    object.maps.push_back(Spec("events", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2));
    const Outcome outcome = RunObject(object, chained);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    std::string sent("events \7\0\0\0", 11);
    for (int i = 0; i < bytes; ++i) sent.push_back(static_cast<char>(i * 37));
    EXPECT_EQ(outcome.verdict, bytes <= 40 ? 2u : 1u);
    EXPECT_EQ(outcome.sent, bytes <= 40 ? sent : "");
    if (!ExpectCompiledTheSame(object, chained)) GTEST_SKIP() << "built without bpf_jit";
  }
}

TEST(Compiled, CallsOfNobodyWhereNoWayLeadsAreCompiledToo) {
  const Code helper = {Mov(0, 2), Mov(1, 0), JumpEq(1, 0, 1), Call(9999), Exit()};
  const Code function = {Mov(0, 2), Mov(1, 0), JumpEq(1, 0, 1), CallLocal(1), Exit(), Mov(0, 1), Exit()};
  for (const Code& code : {helper, function}) {
    EXPECT_EQ(RunCode(code).verdict, 2u);
    if (!ExpectCompiledTheSame(code, {})) GTEST_SKIP() << "built without bpf_jit";
  }
}

// The kernel refuses this program; here one of two ways leaves in r1 what a call left there.
TEST(Compiled, RegistersThatACallWentThroughAreZeroHoweverTheyAreRead) {
  const Code code = With({kPacket,
                          {Load(BPF_W, 6, 1, 16), Copy(1, 2), Call(BPF_FUNC_get_smp_processor_id), JumpEq(6, 0, 1),
                           Mov(1, 5), Copy(0, 1), Add(0, 2), Exit()}});
  EXPECT_EQ(RunCode(code).verdict, 2u);
  if (!ExpectCompiledTheSame(code, {})) GTEST_SKIP() << "built without bpf_jit";
}

// The kernel lets who is trusted do so. Nothing comes of it: read back, it is a number.
TEST(Compiled, AnAddressThatAProgramKeepsIsTheOnlyThingThatMayDiffer) {
  const Code spilled = With({kPacket,
                             {Store(BPF_DW, 10, 2, -16)},
                             {StoreImm(BPF_W, 10, -4, 0), Copy(2, 10), Add(2, -4), Copy(3, 10), Add(3, -16), Mov(4, 0),
                              MapOf(1, 1), Half(), Call(BPF_FUNC_map_update_elem)}});
  const Code used = With({spilled, Lookup(1), {JumpEq(0, 0, 2), Load(BPF_DW, 1, 0, 0), Load(BPF_B, 0, 1, 0)}, kPass});
  EXPECT_THAT(std::string(RunCode(used).status.message()), HasSubstr("r1 holds a scalar"));
  const Code code = With({spilled, kPass});
  EXPECT_EQ(RunCode(code).verdict, 2u);
  EXPECT_TRUE(DependsOnAddresses(ObjectWith(code), {}));
  const Code kept_nothing = With({Lookup(0), {JumpEq(0, 0, 1), StoreImm(BPF_DW, 0, 0, 7)}, kPass});
  EXPECT_FALSE(DependsOnAddresses(ObjectWith(kept_nothing), {}));
  int by_address = 0;  // the two runs' packets may lie in the same place, one after the other
  if (!ExpectCompiledTheSame(ObjectWith(code), {}, &by_address)) GTEST_SKIP() << "built without bpf_jit";
  EXPECT_LE(by_address, 1);
}

// Arithmetic on random values with every operation, then a verdict and bytes that depend on all of it.
TEST(Compiled, RandomArithmeticEndsAsInterpreted) {
  constexpr int kOperations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,   BPF_AND, BPF_LSH,
                                 BPF_RSH, BPF_MOD, BPF_XOR, BPF_MOV, BPF_ARSH, BPF_NEG, BPF_END};
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    Code code = kPacket;
    for (int reg = 4; reg < 9; ++reg) {
      code.push_back(Raw(BPF_LD | BPF_IMM | BPF_DW, reg, 0, 0, static_cast<int>(random())));
      code.push_back(Half(static_cast<int>(random() >> (random() % 32))));
    }
    for (int i = 0; i < 60; ++i) {
      const int operation = kOperations[random() % std::size(kOperations)];
      const int type = random() % 2 ? BPF_ALU64 : BPF_ALU;
      const int dst = 4 + static_cast<int>(random() % 5);
      const int src = 4 + static_cast<int>(random() % 5);
      bpf_insn insn = Raw(type | operation | BPF_X, dst, src, 0, 0);
      if (operation == BPF_NEG) insn = Raw(type | BPF_NEG | BPF_K, dst, 0, 0, 0);
      if (operation == BPF_END)
        insn = Raw(BPF_ALU | BPF_END | (random() % 2 ? BPF_TO_BE : BPF_TO_LE), dst, 0, 0, 16 << random() % 3);
      if (operation != BPF_END && operation != BPF_NEG && random() % 3 == 0) {
        const bool shift = operation == BPF_LSH || operation == BPF_RSH || operation == BPF_ARSH;
        const int imm = shift ? static_cast<int>(random() % 32) : static_cast<int>(random()) | 1;
        insn = Raw(type | operation | BPF_K, dst, 0, 0, imm);
      }
      code.push_back(insn);
      if (random() % 6 == 0) {
        constexpr int kJumps[] = {BPF_JEQ,  BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
                                  BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE};
        const int jump = kJumps[random() % std::size(kJumps)];
        code.push_back(Raw((random() % 2 ? BPF_JMP : BPF_JMP32) | jump | BPF_X, dst, src, 1, 0));
        code.push_back(AddReg(dst, src));
      }
    }
    for (int reg = 5; reg < 9; ++reg) code.push_back(Raw(BPF_ALU64 | BPF_XOR | BPF_X, 4, reg, 0, 0));
    code.push_back(Store(BPF_DW, 2, 4, 3));
    code.push_back(Copy(0, 4));
    code.push_back(Exit());
    if (!ExpectCompiledTheSame(code, {})) GTEST_SKIP() << "built without bpf_jit";
  }
}

TEST(Packet, ShorterThanAHeaderEndsInAFaultOrAVerdictNeverOutside) {
  for (size_t bytes = 0; bytes < 14; ++bytes) {
    const Outcome outcome =
        RunCode(With({kPacket, {Load(BPF_B, 0, 2, static_cast<int>(bytes)), Exit()}}), {.bytes = bytes});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.fault.kind, FaultKind::kPacket);
  }
}

TEST(Object, WhatIsNoObjectIsToldWithWhatToGive) {
  const std::string path = testing::TempDir() + "/not_an_object.o";
  std::ofstream(path) << "hello";
  const auto text = ReadObject(path);
  EXPECT_THAT(std::string(text.status().message()), testing::AllOf(HasSubstr("no ELF file"), HasSubstr("-target bpf")));
  const auto program = ReadObject("/bin/true");
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("not for little-endian BPF"));
  EXPECT_EQ(ReadObject("/nowhere.o").status().code(), absl::StatusCode::kNotFound);
}

TEST(Object, CutOffAnywhereIsAnErrorNeverACrash) {
  std::ifstream file(HALFPAGE_BPF_OBJECTS "/basic.bpf.o", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(whole.size(), 1000u);
  const std::string path = testing::TempDir() + "/cut.o";
  for (size_t size = 0; size < whole.size(); size += 397) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(ReadObject(path).ok()) << size;
  }
}

TEST(Object, ProgramIsChosenByNameAndAllAreListedWhereItIsNotThere) {
  const auto object = ReadObject(HALFPAGE_BPF_OBJECTS "/basic.bpf.o");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_TRUE(FindProgram(*object, "swap").ok());
  EXPECT_THAT(std::string(FindProgram(*object, "swop").status().message()), HasSubstr("udp_drop"));
  EXPECT_THAT(std::string(FindProgram(*object, "").status().message()), HasSubstr("choose one of"));
}

TEST(Map, TypeThatIsNotThereIsNamedWithThoseThatAre) {
  Epochs epochs(1);
  const auto map = Map::Create(Spec("tree", BPF_MAP_TYPE_STACK_TRACE, 8, 8, 4), &epochs);
  EXPECT_THAT(std::string(map.status().message()),
              testing::AllOf(HasSubstr("tree"), HasSubstr("stack_trace"), HasSubstr("percpu_array")));
}

TEST(Map, LruTakesOutWhatWasNotLookedAt) {
  Epochs epochs(1);
  const auto map = Map::Create(Spec("recent", BPF_MAP_TYPE_LRU_HASH, 4, 4, 64), &epochs);
  ASSERT_TRUE(map.ok());
  const uint32_t kept = 1000000;
  const auto* kept_key = reinterpret_cast<const uint8_t*>(&kept);
  ASSERT_EQ((*map)->Update(kept_key, kept_key, 0, 0), 0);
  for (uint32_t i = 0; i < 10000; ++i) {
    const auto* key = reinterpret_cast<const uint8_t*>(&i);
    ASSERT_EQ((*map)->Update(key, key, 0, 0), 0);
    ASSERT_NE((*map)->Lookup(kept_key, 0), nullptr) << i;
  }
}

TEST(Map, HashHoldsExactlyItsEntriesThroughReplacingAndDeleting) {
  Epochs epochs(1);
  const auto map = Map::Create(Spec("table", BPF_MAP_TYPE_HASH, 4, 8, 100), &epochs);
  ASSERT_TRUE(map.ok());
  uint64_t value = 1;
  const auto bytes = [](const auto* of) { return reinterpret_cast<const uint8_t*>(of); };
  for (int round = 0; round < 50; ++round) {
    for (uint32_t i = 0; i < 100; ++i) ASSERT_EQ((*map)->Update(bytes(&i), bytes(&++value), 0, 0), 0);
    const uint32_t more = 100;
    ASSERT_EQ((*map)->Update(bytes(&more), bytes(&value), 0, 0), -E2BIG);
    for (uint32_t i = 0; i < 100; i += 2) ASSERT_EQ((*map)->Delete(bytes(&i)), 0);
    ASSERT_EQ((*map)->Delete(bytes(&more)), -ENOENT);
  }
}

// Two workers replace the same keys and read them: each value that is seen is one that was written whole.
TEST(Route, LongestPrefixWinsAndAWrongWordIsNamed) {
  Surroundings surroundings;
  ASSERT_TRUE(surroundings.AddRoute("10.0.0.0/8 dev 1").ok());
  ASSERT_TRUE(surroundings.AddRoute("10.1.0.0/20 dev 2 via 10.0.0.1 dst 02:00:00:00:00:02 mtu 1400").ok());
  const uint8_t inside[] = {10, 1, 15, 9};
  const uint8_t outside[] = {10, 1, 16, 9};
  EXPECT_EQ(surroundings.FindRoute(2, inside)->ifindex, 2u);
  EXPECT_EQ(surroundings.FindRoute(2, outside)->ifindex, 1u);
  EXPECT_THAT(std::string(surroundings.AddRoute("10.0.0.0/40 dev 1").message()), HasSubstr("10.0.0.0/40"));
  EXPECT_THAT(std::string(surroundings.AddRoute("10.0.0.0/8 dve 1").message()), HasSubstr("dve 1"));
}

}  // namespace
}  // namespace halfpage::bpf
