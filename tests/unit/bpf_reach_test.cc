// Callbacks, tail calls, lengths and maps of targets: nothing of what a program may not touch is reached through them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/bpf_outcome.h"

namespace halfpage::bpf {
namespace {

using testing::HasSubstr;

constexpr int kTailCalls = 4;  // the map of programs in Leading()

// `code`, and a program `next` that its tail calls lead to by slot 0 of map kTailCalls.
Object Leading(const Code& code, const Code& next) {
  Object object = ObjectWith(code);
  object.maps.push_back(Spec("programs", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1));
  object.maps.back().targets = {"next"};
  object.programs.push_back(object.programs[0]);
  object.programs.back().name = "next";
  object.programs.back().code = next;
  return object;
}
const Code kTailCall = {MapOf(2, kTailCalls), Half(), Mov(3, 0), Call(BPF_FUNC_tail_call)};
const Code kNothing = {Mov(0, 0), Exit()};

void ExpectSameCompiled(const Object& object, const Conditions& conditions = {}) {
  if (!ExpectCompiledTheSame(object, conditions)) GTEST_SKIP() << "built without bpf_jit";
}

TEST(Callback, OneOfSeveralIsAnalysedWhicheverItIs) {
  // r2 is function 1 where the queue is 0 and 2 elsewhere.
  const Code main = {Load(BPF_W, 6, 1, 16),
                     FunctionOf(2, 1),
                     Half(),
                     JumpEq(6, 0, 2),
                     FunctionOf(2, 2),
                     Half(),
                     Mov(1, 1),
                     Mov(3, 0),
                     Mov(4, 0),
                     Call(BPF_FUNC_loop),
                     Mov(0, 2),
                     Exit()};
  const Code wild = {Mov(1, 4096), Mov(2, 8), Call(BPF_FUNC_trace_printk), Exit()};
  for (const Code& code : {Linked({main, wild, kNothing}), Linked({main, kNothing, wild})}) {
    EXPECT_THAT(std::string(RunCode(code).status.message()), HasSubstr("r1 holds a scalar as argument 1"));
  }
  EXPECT_EQ(RunCode(Linked({main, kNothing, kNothing})).verdict, 2u);
}

// The callback cuts the packet, by way of the context that lies on the stack before its key.
TEST(Callback, APacketPointerIsNoneForCallbacksThatMoveThePacket) {
  const Code main = With({{Store(BPF_DW, 10, 1, -8)},
                          kPacket,
                          {Copy(4, 2), Add(4, 20), JumpGt(4, 3, 7), Copy(3, 2), MapOf(1, 0), Half(), FunctionOf(2, 1),
                           Half(), Mov(4, 0), Call(BPF_FUNC_for_each_map_elem)},
                          kPass});
  const Code cut = {
      Load(BPF_B, 5, 4, 19), Load(BPF_DW, 1, 2, -8), Mov(2, -6), Call(BPF_FUNC_xdp_adjust_tail), Mov(0, 0), Exit()};
  EXPECT_THAT(std::string(RunCode(Linked({main, cut})).status.message()), HasSubstr("r4 holds a scalar"));
  // Two callbacks that the caller chooses from, and a function between.
  const Code asks = {FunctionOf(2, 2), Half(), CallLocal(1), Load(BPF_B, 0, 7, 0), Exit()};
  const Code calls = {Copy(3, 1), Mov(1, 1), Mov(4, 0), Call(BPF_FUNC_loop), Mov(0, 0), Exit()};
  const Code cuts = {Copy(1, 2), Mov(2, -1), Call(BPF_FUNC_xdp_adjust_tail), Mov(0, 0), Exit()};
  const Code before = {Load(BPF_W, 7, 1, 0)};
  EXPECT_THAT(std::string(RunCode(Linked({With({before, asks}), calls, cuts})).status.message()),
              HasSubstr("r7 holds a scalar"));
}

TEST(Callback, BehindTheKeyThereIsNothing) {
  const Code main = {CallLocal(2), Mov(6, 0),   MapOf(1, 0), Half(),     FunctionOf(2, 1),
                     Half(),       Copy(3, 10), Mov(4, 0),   Add(3, -8), Call(BPF_FUNC_for_each_map_elem),
                     Mov(0, 2),    Exit()};
  const Code sums = {Load(BPF_DW, 5, 2, 504), Store(BPF_DW, 3, 5, 0), Mov(0, 0), Exit()};
  const Code leaves = {StoreImm(BPF_DW, 10, -8, 77), Copy(1, 10), CallLocal(3), Exit()};
  const Code code = Linked({main, sums, leaves, kNothing});
  const Outcome outcome = RunCode(code);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.maps.find('\x4d'), std::string::npos);
  ExpectSameCompiled(ObjectWith(code));
}

TEST(TailCall, WhoseFunctionsDoNotFitOnTheStackIsAFault) {
  // Functions that hand their stack on, each one deeper.
  std::vector<Code> first = {{Store(BPF_DW, 10, 1, -8), Copy(2, 10), CallLocal(1), Mov(0, 2), Exit()}};
  std::vector<Code> next = {{Mov(0, 2), Exit()}};
  for (int depth = 1; depth < kMostFrames; ++depth) {
    first.push_back({CallLocal(depth + 1), Exit()});
    next.back() = {Copy(1, 10), Add(1, -8), CallLocal(depth), Mov(0, 2), Exit()};
    next.push_back({StoreImm(BPF_DW, 1, 0, 7), Mov(0, 2), Exit()});
  }
  first.back() = With({{Load(BPF_DW, 1, 2, -8)}, kTailCall, {Mov(0, 1), Exit()}});
  const Object object = Leading(Linked(first), Linked(next));
  const Outcome outcome = RunObject(object);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.text, testing::AllOf(HasSubstr("program hand"), HasSubstr("nested deeper")));
  ExpectSameCompiled(object);
}

TEST(TailCall, WhatTheOtherProgramDoesCountsForWhoCallsIt) {
  const Object object =
      Leading(With({kTailCall, kPass}), With({{Mov(1, 3), Mov(2, 0), Call(BPF_FUNC_redirect)}, kPass}));
  auto maps = *MapSet::Create(object, 1);
  auto program = Program::Create(object.programs[0], object, maps.get());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE((*program)->redirects());
  EXPECT_TRUE((*program)->Calls(BPF_FUNC_redirect));
  EXPECT_FALSE((*program)->Calls(BPF_FUNC_xdp_adjust_meta));
}

// More tail calls out of functions than functions may nest, and then a callback.
TEST(TailCall, LeavesTheStackAsItWas) {
  Code main = {Copy(6, 1)};
  for (int i = 0; i < 2 * kMostFrames; ++i) main = With({main, {Copy(1, 6), CallLocal(1)}});
  main = With({main, {Mov(1, 3), FunctionOf(2, 2), Half(), Mov(3, 0), Mov(4, 0), Call(BPF_FUNC_loop), Exit()}});
  const Code next = With({{Call(BPF_FUNC_get_smp_processor_id)}, kPass});
  const Object object = Leading(Linked({main, With({kTailCall, {Mov(0, 1), Exit()}}), kNothing}), next);
  EXPECT_EQ(RunObject(object).verdict, 3u);
  ExpectSameCompiled(object);
}

// The kernel allows 33 in one run, however many runs there were before.
TEST(TailCall, AreCountedAfreshForEachPacketTracedOrNot) {
  const Object object = Leading(With({kTailCall, {Mov(0, 1), Exit()}}), kPass);
  const auto ignore = [](void*, const Image&, uint32_t, const uint64_t*) {};
  for (const TraceFunction trace : {TraceFunction{nullptr}, TraceFunction{ignore}}) {
    EXPECT_EQ(RunObject(object, {.packets = 40, .trace = trace}).verdict, 2u);
  }
}

TEST(Length, ZeroWhereAtLeastOneIsTakenIsAFault) {
  // r2 = 0, which the analysis does not know, and memory that begins where the packet does.
  const Code zero = With({{Copy(6, 1)}, kPacket, {Copy(1, 2), Load(BPF_W, 2, 6, 16)}});
  const std::vector<Code> calls = {
      {Call(BPF_FUNC_trace_printk)},
      {Copy(4, 2), Copy(3, 1), Copy(1, 6), Mov(2, 0), Call(BPF_FUNC_xdp_load_bytes)},
      {Copy(4, 2), Copy(3, 1), Copy(1, 6), Mov(2, 0), Call(BPF_FUNC_xdp_store_bytes)},
      {Copy(3, 2), Copy(2, 1), Mov(4, 0), Copy(1, 6), Call(BPF_FUNC_fib_lookup)},
  };
  for (const Code& call : calls) {
    const Code code = With({zero, call, kPass});
    const Outcome outcome = RunCode(code, {.at_start = true});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_THAT(outcome.text, HasSubstr("handed no bytes"));
    ExpectSameCompiled(ObjectWith(code), {.at_start = true});
  }
}

// glibc gives no text at all for numbers wider than INT_MAX.
TEST(Print, WidthsThatNobodyReadsAreRefused) {
  const auto said = [](const std::string& format) {
    Code code;
    std::string padded = format;
    padded.resize(24);
    for (size_t at = 0; at < padded.size(); at += 4) {
      int word;
      memcpy(&word, &padded[at], sizeof(word));
      code.push_back(StoreImm(BPF_W, 10, static_cast<int>(at) - 24, word));
    }
    const Code print = {Copy(1, 10),
                        Add(1, -24),
                        Mov(2, 24),
                        Mov(3, 5),
                        Call(BPF_FUNC_trace_printk),
                        Raw(BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 60),
                        Exit()};
    return RunCode(With({code, print})).verdict;
  };
  EXPECT_EQ(said("%5d"), 0u);
  EXPECT_EQ(said("%120d"), 0u);
  EXPECT_EQ(said("%9999999999d"), 15u) << "an error";
  EXPECT_EQ(said("%.2147483640d"), 15u);
}

TEST(Map, TargetsAreReadByProgramsAndNeverWritten) {
  for (const bpf_map_type type : {BPF_MAP_TYPE_DEVMAP, BPF_MAP_TYPE_DEVMAP_HASH, BPF_MAP_TYPE_XSKMAP}) {
    Object object = ObjectWith(With({Lookup(3), {JumpEq(0, 0, 1), StoreImm(BPF_W, 0, 0, 7)}, kPass}));
    object.maps[3].type = type;
    EXPECT_THAT(std::string(RunObject(object).status.message()), HasSubstr("writes to outs, which is read only"));
  }
}

}  // namespace
}  // namespace halfpage::bpf
