// Two workers on the same maps: counts are exact, and no value is found half replaced.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/bpf_outcome.h"

namespace halfpage::bpf {
namespace {

constexpr char kObject[] = HALFPAGE_BPF_OBJECTS "/shared.bpf.o";

// Programs of one object, interpreted or compiled, that two threads run as workers 0 and 1.
class Shared {
 public:
  Shared(const char* name, bool compile) {
    object_ = *ReadObject(kObject);
    maps_ = *MapSet::Create(object_, 2);
    program_ = *Program::Create(**FindProgram(object_, name), object_, maps_.get());
    can_ = !compile || Compile(program_.get()).ok();
  }
  bool can() const { return can_; }

  // `runs` by each worker, in bursts of 32; the first bytes of packet i are i and the worker's number. Gives how often
  // each verdict came.
  std::array<uint64_t, 6> Run(uint32_t runs) {
    std::array<std::array<uint64_t, 6>, 2> verdicts = {};
    const auto work = [&](uint32_t worker) {
      std::vector<uint8_t> packet(64);
      auto state = std::make_unique<RunState>();
      state->worker = worker;
      for (uint32_t i = 0; i < runs; ++i) {
        if (i % 32 == 0) maps_->epochs().Enter(worker);
        state->hard_start = state->data = state->data_meta = packet.data();
        state->data_end = state->hard_end = packet.data() + packet.size();
        packet[0] = static_cast<uint8_t>(i);
        const uint32_t mark = worker << 31 | i;
        memcpy(&packet[4], &mark, sizeof(mark));
        const uint32_t verdict = program_->Run(state.get());
        ++verdicts[worker][verdict < 5 ? verdict : 5];
        if (i % 32 == 31) maps_->epochs().Leave(worker);
      }
      maps_->epochs().Leave(worker);
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    std::array<uint64_t, 6> sum = {};
    for (size_t v = 0; v < sum.size(); ++v) sum[v] = verdicts[0][v] + verdicts[1][v];
    return sum;
  }

  uint64_t Value(const char* map, uint32_t key, uint32_t worker) const {
    uint64_t value = 0;
    const uint8_t* place = maps_->Find(map)->Lookup(reinterpret_cast<const uint8_t*>(&key), worker);
    if (place != nullptr) memcpy(&value, place, sizeof(value));
    return value;
  }

 private:
  Object object_;
  std::unique_ptr<MapSet> maps_;
  std::unique_ptr<Program> program_;
  bool can_ = false;
};

constexpr uint32_t kRuns = 64000;

TEST(SharedMaps, TwoWorkersCountsAreExactInAHashAnLruHashAndArraysOfTheirOwn) {
  for (const bool compile : {false, true}) {
    Shared shared("tally", compile);
    if (!shared.can()) continue;
    SCOPED_TRACE(compile ? "compiled" : "interpreted");
    EXPECT_EQ(shared.Run(kRuns)[2], 2 * kRuns) << "every packet is counted";
    for (uint32_t key = 0; key < 32; ++key) {
      EXPECT_EQ(shared.Value("counts", key, 0), 2 * kRuns / 32) << key;
      EXPECT_EQ(shared.Value("recent", key, 0), 2 * kRuns / 32) << key;
    }
    for (const uint32_t worker : {0u, 1u}) EXPECT_EQ(shared.Value("own", 1, worker), kRuns);
  }
}

TEST(SharedMaps, TwoWorkersNeverFindAValueHalfReplaced) {
  for (const bool compile : {false, true}) {
    Shared shared("replace", compile);
    if (!shared.can()) continue;
    SCOPED_TRACE(compile ? "compiled" : "interpreted");
    const auto verdicts = shared.Run(kRuns);
    EXPECT_EQ(verdicts[4], 0u) << "values that were found half";
    EXPECT_EQ(verdicts[3], 0u) << "values that were not found at all";
    // Where the other worker is held up inside a burst, spares run out, and an update says so (-EBUSY).
    EXPECT_EQ(verdicts[2] + verdicts[1], 2 * kRuns);
    EXPECT_GT(verdicts[2], 1000u);
  }
}

TEST(SharedMaps, ReplacedValuesAreNeverSeenHalf) {
  Epochs epochs(2);
  const auto map = Map::Create(Spec("table", BPF_MAP_TYPE_HASH, 4, 32, 4), &epochs);
  ASSERT_TRUE(map.ok());
  std::atomic<uint64_t> torn = 0;
  std::atomic<uint64_t> seen = 0;
  const auto work = [&](uint32_t worker) {
    uint64_t value[4];
    for (uint32_t i = 0; i < 200000; ++i) {
      epochs.Enter(worker);
      const uint32_t key = i % 4;
      const auto* key_bytes = reinterpret_cast<const uint8_t*>(&key);
      for (uint64_t& word : value) word = uint64_t{worker} << 32 | i;
      (*map)->Update(key_bytes, reinterpret_cast<const uint8_t*>(value), 0, worker);
      const uint8_t* found = (*map)->Lookup(key_bytes, worker);
      if (found != nullptr) {
        memcpy(value, found, sizeof(value));
        if (value[0] != value[3] || value[0] != value[1] || value[0] != value[2]) torn.fetch_add(1);
        seen.fetch_add(1);
      }
      epochs.Leave(worker);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(seen.load(), 400000u);
}

TEST(SharedMaps, AtomicCountsAreExactUnderTwoWorkers) {
  const auto object = ReadObject(HALFPAGE_BPF_OBJECTS "/maps.bpf.o");
  ASSERT_TRUE(object.ok()) << object.status();
  auto maps = MapSet::Create(*object, 2);
  ASSERT_TRUE(maps.ok()) << maps.status();
  auto program = Program::Create(**FindProgram(*object, "count"), *object, maps->get());
  ASSERT_TRUE(program.ok()) << program.status();
  constexpr uint64_t kCounted = 100000;
  const auto work = [&](uint32_t worker) {
    std::vector<uint8_t> buffer(512);
    auto state = std::make_unique<RunState>();
    state->worker = worker;
    state->hard_start = buffer.data();
    state->data = state->data_meta = buffer.data() + 256;
    state->data_end = state->hard_end = state->data + 65;
    for (uint64_t i = 0; i < kCounted; ++i) (*program)->Run(state.get());
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  const uint32_t one = 1;
  const uint32_t three = 3;
  uint64_t counts[2];
  memcpy(counts, (*maps)->Find("array")->Lookup(reinterpret_cast<const uint8_t*>(&one), 0), sizeof(counts));
  EXPECT_EQ(counts[0], 2 * kCounted);
  EXPECT_EQ(counts[1], 2 * kCounted * 65);
  for (const uint32_t worker : {0u, 1u}) {
    memcpy(counts, (*maps)->Find("percpu")->Lookup(reinterpret_cast<const uint8_t*>(&three), worker), sizeof(counts));
    EXPECT_EQ(counts[0], kCounted);
  }
}

}  // namespace
}  // namespace halfpage::bpf
