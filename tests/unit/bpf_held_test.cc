// Locks, records and callbacks: what a program takes and does not give back, and what it does with what it does not
// hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/unit/bpf_outcome.h"
#include "xdp_emul/bpf/ring_map.h"

namespace halfpage::bpf {
namespace {

using testing::HasSubstr;

// Maps 0 to 2: a hash whose value has a lock at 4, a ring, a hash without a lock.
Object Holding(const Code& code) {
  Object object = ObjectWith(code);
  object.maps = {Spec("guarded", BPF_MAP_TYPE_HASH, 4, 16, 4), Spec("ring", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096),
                 Spec("plain", BPF_MAP_TYPE_HASH, 4, 8, 4)};
  object.maps[0].lock_offset = 4;
  return object;
}

struct Held {
  absl::Status status;
  std::string text;  // of the fault
  uint32_t verdict = 99;
  uint64_t records = 0;  // that can be read afterwards
  uint64_t waiting = 0;  // bytes of the ring that cannot be read
  uint32_t lock = 99;    // the lock of key 0
};

Held RunHolding(const Code& code, bool compile, uint32_t lock = 0) {
  Held held;
  const Object object = Holding(code);
  auto maps = *MapSet::Create(object, 1);
  const uint32_t key = 0;
  uint32_t value[4] = {};
  const auto* key_bytes = reinterpret_cast<const uint8_t*>(&key);
  EXPECT_EQ(maps->maps()[0]->UpdateAll(key_bytes, reinterpret_cast<const uint8_t*>(value), 0), 0);
  uint8_t* const kept = maps->maps()[0]->Lookup(key_bytes, 0);
  memcpy(kept + 4, &lock, sizeof(lock));
  auto program = Program::Create(object.programs[0], object, maps.get());
  held.status = program.status();
  if (!program.ok() || (compile && !Compile(program->get()).ok())) return held;
  EXPECT_EQ((*program)->runs_bursts(), false);
  RunState state;
  uint8_t packet[64] = {};
  state.hard_start = state.data = state.data_meta = packet;
  state.hard_end = state.data_end = packet + sizeof(packet);
  held.verdict = (*program)->Run(&state);
  if (state.Failed()) held.text = FaultText(**program, state.fault);
  EXPECT_EQ(state.lock, nullptr);
  EXPECT_EQ(state.records, 0u);
  auto* ring = static_cast<RingMap*>(maps->maps()[1].get());
  ring->Read([](void* to, const RingMap&, const uint8_t*, uint64_t) { ++*static_cast<uint64_t*>(to); }, &held.records);
  held.waiting = ring->Query(BPF_RB_AVAIL_DATA);
  memcpy(&held.lock, kept + 4, sizeof(held.lock));
  return held;
}

// Interpreted, and compiled where there is a compiler.
std::vector<bool> Ways() {
  return RunCode(kPass, {.compile = true}).compiler ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

// r6 = r7 = the value of key 0 in map `index`, or out.
Code ValueIn6(int index) {
  return With({Lookup(index), {JumpEq(0, 0, 1), Goto(2)}, kPass, {Copy(6, 0), Copy(7, 0)}});
}
Code Lock(int reg, int offset) {
  return {Copy(1, reg), Add(1, offset), Call(BPF_FUNC_spin_lock)};
}
Code Unlock(int reg, int offset) {
  return {Copy(1, reg), Add(1, offset), Call(BPF_FUNC_spin_unlock)};
}
Code Reserve(int size) {
  return With({{MapOf(1, 1), Half(), Mov(2, size), Mov(3, 0), Call(BPF_FUNC_ringbuf_reserve), JumpEq(0, 0, 1), Goto(2)},
               kPass,
               {Copy(6, 0)}});
}
Code Submit(int reg) {
  return {Copy(1, reg), Mov(2, 0), Call(BPF_FUNC_ringbuf_submit)};
}

TEST(Held, WhatIsNotGivenBackIsTakenAndIsAFault) {
  const Code lock = With({ValueIn6(0), Lock(6, 4), kPass});
  const Code record = With({Reserve(16), {StoreImm(BPF_DW, 6, 0, 7)}, kPass});
  const Code faults = With({ValueIn6(0),
                            Lock(6, 4),
                            {Load(BPF_W, 4, 10, -4), Add(4, 12), AddReg(7, 4)},
                            {StoreImm(BPF_DW, 7, 0, 1)},
                            Unlock(6, 4),
                            kPass});
  for (const bool compile : Ways()) {
    EXPECT_THAT(RunHolding(lock, compile).text, HasSubstr("its end: a lock or a record"));
    EXPECT_EQ(RunHolding(lock, compile).lock, 0u);
    const Held left = RunHolding(record, compile);
    EXPECT_THAT(left.text, HasSubstr("give it back on all ways"));
    EXPECT_EQ(left.verdict, 0u);
    EXPECT_EQ(left.records, 0u);
    EXPECT_EQ(left.waiting, 0u) << "the ring goes on behind it";
    // Whatever else ended the run, that is what is told.
    EXPECT_THAT(RunHolding(faults, compile).text, HasSubstr("outside a value of map guarded"));
    EXPECT_EQ(RunHolding(faults, compile).lock, 0u);
  }
}

TEST(Held, WhatIsGivenBackIsNoFault) {
  const Code lock = With({ValueIn6(0), Lock(6, 4), {StoreImm(BPF_DW, 6, 8, 9)}, Unlock(6, 4), kPass});
  const Code record = With({Reserve(16), {StoreImm(BPF_DW, 6, 8, 7)}, Submit(6), kPass});
  for (const bool compile : Ways()) {
    EXPECT_EQ(RunHolding(lock, compile).verdict, 2u) << RunHolding(lock, compile).text;
    const Held submitted = RunHolding(record, compile);
    EXPECT_EQ(submitted.verdict, 2u) << submitted.text << submitted.status;
    EXPECT_EQ(submitted.records, 1u);
  }
}

TEST(Held, LocksThatAreNotWhatTheySeemEndInAFault) {
  for (const bool compile : Ways()) {
    const auto text = [&](const Code& code, uint32_t lock = 0) { return RunHolding(code, compile, lock).text; };
    EXPECT_THAT(text(With({ValueIn6(0), Lock(6, 4), Lock(6, 4), kPass})), HasSubstr("taken while one is held"));
    EXPECT_THAT(text(With({ValueIn6(0), Unlock(6, 4), kPass})), HasSubstr("does not hold it"));
    EXPECT_THAT(text(With({ValueIn6(0), Lock(6, 4), kPass}), 7), HasSubstr("not given back by anybody"));
  }
}

TEST(Held, LocksThatTheTypesDoNotNameAreRefused) {
  const auto refused = [](const Code& code) { return std::string(RunHolding(code, false).status.message()); };
  EXPECT_THAT(refused(With({ValueIn6(2), Lock(6, 0), kPass})), HasSubstr("map plain has no bpf_spin_lock"));
  EXPECT_THAT(refused(With({ValueIn6(0), Lock(6, 8), kPass})), HasSubstr("whose lock is at 4"));
  EXPECT_THAT(refused(With({{Copy(6, 10)}, Lock(6, -8), kPass})), HasSubstr("takes a bpf_spin_lock of a map's value"));
}

TEST(Held, RecordsAreUsedOnlyWhileTheyAreHeld) {
  const auto refused = [](const Code& code) { return std::string(RunHolding(code, false).status.message()); };
  EXPECT_THAT(refused(With({Reserve(16), Submit(6), {StoreImm(BPF_W, 6, 0, 1)}, kPass})),
              HasSubstr("r6 holds a scalar"));
  EXPECT_THAT(refused(With({Reserve(16), Submit(6), Submit(6), kPass})),
              HasSubstr("a record that bpf_ringbuf_reserve"));
  EXPECT_THAT(refused(With({{Copy(6, 10)}, Submit(6), kPass})), HasSubstr("a record that bpf_ringbuf_reserve"));
  for (const bool compile : Ways()) {
    const auto text = [&](const Code& code) { return RunHolding(code, compile).text; };
    EXPECT_THAT(text(With({Reserve(16), {Add(6, 8)}, Submit(6), kPass})), HasSubstr("handed"));
    EXPECT_THAT(text(With({Reserve(16), {Copy(7, 6), StoreImm(BPF_DW, 7, 8192, 1)}, Submit(6), kPass})),
                HasSubstr("pointer to nothing"));
  }
}

TEST(Callback, TurnsOfAllCallbacksOfARunTogetherHaveAnEnd) {
  const Code loop = {Mov(1, 1 << 22), Raw(BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_FUNC, 0, 0),
                     Half(),          Mov(3, 0),
                     Mov(4, 0),       Call(BPF_FUNC_loop)};
  Code code = With({loop, loop, loop, kPass, {Mov(0, 0), Exit()}});
  for (int i = 0; i < 3; ++i) code[static_cast<size_t>(6 * i + 1)].imm = 18 - 6 * i;
  const Outcome outcome = RunCode(code);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.verdict, 0u);
  EXPECT_THAT(outcome.text, testing::AllOf(HasSubstr("instruction 17"), HasSubstr("8388608 turns of callbacks")));
}

TEST(RingMap, TwoWorkersWriteAndAReaderGetsEachRecordOnceAndWhole) {
  Epochs epochs(2);
  auto map = *Map::Create(Spec("ring", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096), &epochs);
  auto* ring = static_cast<RingMap*>(map.get());
  constexpr uint32_t kRecords = 20000;
  std::atomic<int> writing = 2;
  const auto work = [&](uint32_t worker) {
    for (uint32_t i = 0; i < kRecords;) {
      const uint64_t words = 1 + i % 5;
      auto* record = reinterpret_cast<uint64_t*>(ring->Reserve(8 * words));
      if (record == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (uint64_t w = 0; w < words; ++w) record[w] = uint64_t{worker} << 32 | i;
      ring->Submit(reinterpret_cast<uint8_t*>(record), i % 7 == 6);
      ++i;
    }
    --writing;
  };
  struct Seen {
    uint32_t next[2] = {};
    uint64_t torn = 0;
  } seen;
  const auto take = [](void* to, const RingMap&, const uint8_t* data, uint64_t size) {
    auto* const at = static_cast<Seen*>(to);
    uint64_t words[8];
    memcpy(words, data, size);
    for (uint64_t w = 1; w < size / 8; ++w) at->torn += words[w] != words[0];
    uint32_t& next = at->next[words[0] >> 32 & 1];
    if (next % 7 == 6) ++next;  // was discarded
    at->torn += static_cast<uint32_t>(words[0]) != next++;
  };
  std::thread one(work, 0);
  std::thread other(work, 1);
  while (writing.load() != 0) ring->Read(take, &seen);
  one.join();
  other.join();
  ring->Read(take, &seen);
  EXPECT_EQ(seen.torn, 0u);
  for (uint32_t next : seen.next) EXPECT_GE(next + 1, kRecords);
  EXPECT_EQ(ring->Query(BPF_RB_AVAIL_DATA), 0u);
}

TEST(Hook, OnlyBehindADevmapThereIsAnInterfaceThatAFrameLeavesBy) {
  const auto object = ReadObject(HALFPAGE_BPF_OBJECTS "/third.bpf.o");
  ASSERT_TRUE(object.ok()) << object.status();
  auto maps = *MapSet::Create(*object, 1);
  for (const char* name : {"leaving", "elsewhere"}) {
    auto program = Program::Create(**FindProgram(*object, name), *object, maps.get());
    ASSERT_TRUE(program.ok()) << program.status();
    for (const bool compile : {false, true}) {
      if (compile && !Compile(program->get()).ok()) break;
      RunState state;
      uint8_t packet[64] = {};
      state.hard_start = state.data = state.data_meta = packet;
      state.hard_end = state.data_end = packet + sizeof(packet);
      state.ingress_ifindex = 1;
      state.egress_ifindex = 7;
      EXPECT_EQ((*program)->Run(&state), 2u) << name;
    }
  }
  EXPECT_EQ((*FindProgram(*object, "leaving"))->hook, ProgramHook::kDevmap);
  EXPECT_EQ((*FindProgram(*object, "elsewhere"))->hook, ProgramHook::kCpumap);
  const Outcome outcome = RunCode({Load(BPF_W, 0, 1, 20), Exit()});
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("SEC(\"xdp/devmap\")"));
}

TEST(Object, TypesOfAKernelAreNotThereAndWhoNeedsOneIsToldWhich) {
  const auto object = ReadObject(HALFPAGE_BPF_OBJECTS "/third.bpf.o");
  ASSERT_TRUE(object.ok()) << object.status();
  auto maps = *MapSet::Create(*object, 1);
  EXPECT_TRUE(Program::Create(**FindProgram(*object, "kernel_types"), *object, maps.get()).ok());
  const auto refused = Program::Create(**FindProgram(*object, "kernel_only"), *object, maps.get());
  EXPECT_THAT(std::string(refused.status().message()),
              testing::AllOf(HasSubstr("type `nowhere`"), HasSubstr("bpf_core_type_exists")));
}

}  // namespace
}  // namespace halfpage::bpf
