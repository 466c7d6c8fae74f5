#include "app/leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "app/config_sizes.h"
#include "app/leak_watch.h"
#include "mempool/buffer_stamp.h"
#include "mempool/page_frag.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"

namespace halfpage {
namespace {

using testing::HasSubstr;

class Leaks : public testing::TestWithParam<const char*> {};

TEST_P(Leaks, EachHolderIsNamedWithItsCountAndAges) {
  for (uint32_t cache : {0u, 32u}) {
    auto pool = PktmbufPool::Create(Small(GetParam(), 500, cache));
    ASSERT_TRUE(pool.ok());
    rte_mbuf* burst[60];
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), burst, 60), 0);
    const uint64_t hz = rte_get_tsc_hz();
    StampBurst(burst, 10, 0, rte_rdtsc() - 5 * hz);
    StampBurst(burst + 1, 1, 0, rte_rdtsc() - 2 * hz);
    StampBurst(burst + 10, 20, 1, rte_rdtsc() - hz);
    rte_pktmbuf_free_bulk(burst + 30, 30);
    pool->Flush();
    const std::vector<LeakedBuffers> leaks = FindLeaks(*pool, {"ring of a", "sink b"});
    ASSERT_EQ(leaks.size(), 2u);
    EXPECT_EQ(leaks[0].stage, "ring of a");
    EXPECT_EQ(leaks[0].count, 10u);
    EXPECT_NEAR(leaks[0].oldest, 5, 0.5);
    EXPECT_NEAR(leaks[0].youngest, 2, 0.5);
    EXPECT_EQ(leaks[1].stage, "sink b");
    EXPECT_EQ(leaks[1].count, 20u);
    EXPECT_NEAR(leaks[1].oldest, 1, 0.5);
    rte_pktmbuf_free_bulk(burst, 30);
    pool->Flush();
    EXPECT_TRUE(FindLeaks(*pool, {"ring of a", "sink b"}).empty());
    const std::vector<void*> all = TakeAll(pool->get());
    EXPECT_EQ(all.size(), 500u) << "looking for leaks cost a buffer";
    PutAll(pool->get(), all);
  }
}

TEST_P(Leaks, BuffersThatNobodyStampedAreCountedWithoutAName) {
  auto pool = PktmbufPool::Create(Small(GetParam(), 100, 0));
  ASSERT_TRUE(pool.ok());
  // What the pools of earlier tests stamped on the same pages does not speak for this one.
  const std::vector<void*> all = TakeAll(pool->get());
  pool->Flush();
  const std::vector<LeakedBuffers> leaks = FindLeaks(*pool, {"somebody"});
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_EQ(leaks[0].stage, "");
  EXPECT_EQ(leaks[0].count, 100u);
  PutAll(pool->get(), all);
}

// A worker takes and frees all the while; 50 buffers stay in the test's hands.
TEST(HeldBuffersOf, APoolInUseAreListedOldestFirstAndWhatComesAndGoesIsNot) {
  for (const uint32_t cache : {0u, 64u}) {
    auto pool = PktmbufPool::Create(Small("page_frag", 2000, cache));
    ASSERT_TRUE(pool.ok());
    rte_mbuf* held[50];
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), held, 50), 0);
    const uint64_t hz = rte_get_tsc_hz();
    StampBurst(held, 20, 1, rte_rdtsc() - 5 * hz);
    StampBurst(held + 20, 20, 0, rte_rdtsc() - 3 * hz);
    StampBurst(held + 40, 10, 0, rte_rdtsc());
    std::atomic<bool> over{false};
    absl::StatusOr<HeldBuffers> found;
    OnBothLcores(
        [&] {
          rte_delay_us_sleep(2000);
          found = FindHeld(*pool, {"ring of a", "sink b"}, 1, 30);
          over.store(true);
        },
        [&] {
          rte_mbuf* burst[40];
          while (!over.load()) {
            if (rte_pktmbuf_alloc_bulk(pool->get(), burst, 40) != 0) continue;
            StampBurst(burst, 40, 1, rte_rdtsc());
            rte_pktmbuf_free_bulk(burst, 40);
          }
        });
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_GE(found->out, 50u);
    EXPECT_LE(found->out, 90u);
    ASSERT_EQ(found->by_stage.size(), 2u);
    EXPECT_EQ(found->by_stage[0].stage, "ring of a");
    EXPECT_EQ(found->by_stage[0].count, 20u);
    EXPECT_NEAR(found->by_stage[0].oldest, 3, 0.5);
    EXPECT_EQ(found->by_stage[1].stage, "sink b");
    EXPECT_EQ(found->by_stage[1].count, 20u);
    ASSERT_EQ(found->oldest.size(), 30u);
    for (size_t i = 0; i < 30; ++i) {
      EXPECT_EQ(found->oldest[i].stage, i < 20 ? "sink b" : "ring of a");
      EXPECT_NEAR(found->oldest[i].age, i < 20 ? 5 : 3, 0.5);
      const auto* begin = i < 20 ? held : held + 20;
      EXPECT_NE(std::find(begin, begin + 20, found->oldest[i].object), begin + 20);
    }
    const std::string text = HeldText(*pool, *found, 1);
    EXPECT_THAT(text, HasSubstr("pool small: "));
    EXPECT_THAT(text, HasSubstr("  sink b: 20 for 5."));
    EXPECT_THAT(text, HasSubstr("s  ring of a\n"));
    rte_pktmbuf_free_bulk(held, 50);
    pool->Flush();
    const auto none = FindHeld(*pool, {"ring of a", "sink b"}, 1, 30);
    ASSERT_TRUE(none.ok());
    EXPECT_EQ(none->out, 0u);
    EXPECT_THAT(HeldText(*pool, *none, 1), HasSubstr("none has been with its owner for 1.00 s"));
  }
}

// R29: what the planner counts for an lcore's mempool cache is what it can hold.
TEST_P(Leaks, NoMempoolCacheEverHoldsMoreThanThePlanCounts) {
  for (const uint32_t cache : {1u, 32u, 250u, 512u}) {
    auto pool = PktmbufPool::Create(Small(GetParam(), 4000, cache));
    ASSERT_TRUE(pool.ok());
    uint32_t most[2] = {0, 0};
    const auto play = [&](uint32_t* held) {
      std::mt19937 random(cache);
      std::vector<void*> out;
      for (int round = 0; round < 3000; ++round) {
        void* burst[64];
        const unsigned n = 1 + random() % 64;
        if (random() % 2 == 0 && out.size() < 1500 && GetBulk(pool->get(), burst, n) == 0) {
          out.insert(out.end(), burst, burst + n);
        } else {
          for (unsigned i = 0; i < n && !out.empty(); ++i, out.pop_back()) PutBulk(pool->get(), &out.back(), 1);
        }
        *held = std::max(*held, rte_mempool_default_cache(pool->get(), rte_lcore_id())->len);
      }
      if (!out.empty()) PutBulk(pool->get(), out.data(), static_cast<unsigned>(out.size()));
    };
    OnBothLcores([&] { play(&most[0]); }, [&] { play(&most[1]); });
    for (const uint32_t each : most) {
      EXPECT_GT(each, cache / 2);
      EXPECT_LE(each, CacheHolds(cache)) << "cache " << cache;
    }
  }
}

TEST(HeldBuffersOf, APoolThatCannotTellSaysWhichCan) {
  PktmbufPoolConfig exact = Small("page_frag", 100, 0);
  exact.page_frag.exact = true;
  for (const PktmbufPoolConfig& config : {Small("ring_mp_mc", 100, 0), exact}) {
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok());
    const auto held = FindHeld(*pool, {}, 0, 10);
    EXPECT_EQ(held.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(held.status().message()), HasSubstr("take `ops: page_frag`"));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Leaks, testing::Values("page_frag", "ring_mp_mc"),
                         [](const auto& ops) { return std::string(ops.param); });

PktmbufPool Debugged(const char* name) {
  PktmbufPoolConfig config = Small("page_frag", 200, 0);
  config.name = name;
  config.page_frag.debug = true;
  auto pool = PktmbufPool::Create(config);
  EXPECT_TRUE(pool.ok());
  return *std::move(pool);
}

TEST(PageFragDebug, ASecondFreeIsRefusedAtTheFree) {
  PktmbufPool pool = Debugged("twice");
  std::vector<void*> all = TakeAll(pool.get());
  rte_mempool_put(pool.get(), all[5]);
  rte_mempool_put(pool.get(), all[5]);
  EXPECT_EQ(ReadPageFragStats(pool.get())->misuses, 1u);
  EXPECT_EQ(pool.in_use(), 199u) << "the second free changed nothing";
  void* again = nullptr;
  ASSERT_EQ(rte_mempool_get(pool.get(), &again), 0);
  EXPECT_NE(rte_mempool_get(pool.get(), &all[6]), 0) << "a buffer given twice";
  all[5] = again;
  PutAll(pool.get(), all);
  EXPECT_EQ(ReadPageFragStats(pool.get())->misuses, 1u);
  pool.Flush();
  EXPECT_EQ(ReadPageFragStats(pool.get())->pages_inflight, 0u);
}

TEST(PageFragDebug, AFreeOfWhatIsNotThePoolsIsRefused) {
  PktmbufPool pool = Debugged("own");
  PktmbufPool other = Debugged("other");
  auto stock = PktmbufPool::Create(Small("ring_mp_mc", 10, 0));
  ASSERT_TRUE(stock.ok());
  void* own = nullptr;
  void* foreign = nullptr;
  void* elsewhere = nullptr;
  ASSERT_EQ(rte_mempool_get(pool.get(), &own), 0);
  ASSERT_EQ(rte_mempool_get(other.get(), &foreign), 0);
  ASSERT_EQ(rte_mempool_get(stock->get(), &elsewhere), 0);
  void* inside = static_cast<char*>(own) + 64;
  char local[64];
  void* bad[] = {foreign, elsewhere, inside, local};
  for (void* object : bad) rte_mempool_ops_enqueue_bulk(pool.get(), &object, 1);
  EXPECT_EQ(ReadPageFragStats(pool.get())->misuses, 4u);
  EXPECT_EQ(pool.in_use(), 1u);
  rte_mempool_put(pool.get(), own);
  rte_mempool_put(other.get(), foreign);
  rte_mempool_put(stock->get(), elsewhere);
}

TEST(LeakWatch, SteadyGrowthIsWarnedOfOnceBeforeThePoolIsEmpty) {
  LeakWatch watch("p", 10000);
  int warnings = 0;
  double warned_at = 0;
  for (int ms = 0; ms < 5000; ++ms) {
    const auto base = static_cast<uint64_t>(ms);  // 1000 a second, empty after ten
    const auto warning = watch.Sample(ms / 1000.0, base + static_cast<uint64_t>(ms * 37 % 400));
    if (!warning.has_value()) continue;
    ++warnings;
    warned_at = ms / 1000.0;
    EXPECT_THAT(*warning, HasSubstr("pool p: buffers in use have only grown"));
    EXPECT_THAT(*warning, HasSubstr("of 10000"));
  }
  EXPECT_EQ(warnings, 1);
  EXPECT_LT(warned_at, 2.0);
}

// Whatever the rate, and whatever the load beneath it: the warning comes while there is time, and says when the pool is
// empty within a fifth.
TEST(LeakWatch, LeaksOfEveryRateAreWarnedOfBeforeThePoolIsEmpty) {
  for (const double per_second : {1.0, 10.0, 40.0, 200.0, 5000.0, 20000.0}) {
    for (const uint64_t varies : {0, 1, 100, 300}) {
      LeakWatch watch("p", 20000);
      std::mt19937 random(1);
      bool warned = false;
      for (double t = 0; !warned && per_second * t < 19000; t += 0.002) {
        const auto in_use = static_cast<uint64_t>(per_second * t) + (varies == 0 ? 0 : 500 + random() % varies);
        const auto warning = watch.Sample(t, in_use);
        if (!warning.has_value()) continue;
        warned = true;
        const size_t at = warning->find(" is empty in ");
        ASSERT_NE(at, std::string::npos) << *warning;
        const double left = static_cast<double>(20000 - in_use) / per_second;
        EXPECT_NEAR(std::stod(warning->substr(at + 13)), left, left / 5 + 1) << *warning;
      }
      EXPECT_TRUE(warned) << per_second << " a second beneath a load that varies by " << varies;
    }
  }
}

TEST(LeakWatch, ALoadThatOnlyVariesIsNeverSuspectedHoweverLongItGoesOn) {
  for (const uint64_t varies : {uint64_t{1}, uint64_t{50}, uint64_t{4000}}) {
    LeakWatch watch("p", 10000);
    std::mt19937 random(1);
    for (int sample = 0; sample < 300'000; ++sample) {  // ten minutes
      ASSERT_FALSE(watch.Sample(sample * 0.002, 3000 + random() % varies).has_value()) << sample * 0.002 << " s";
    }
  }
}

TEST(LeakWatch, ALeakThatBeginsLateIsSeenAndOneThatEndsIsForgotten) {
  LeakWatch watch("p", 20000);
  for (int ms = 0; ms < 200; ++ms) EXPECT_FALSE(watch.Sample(ms / 1000.0, static_cast<uint64_t>(ms)).has_value());
  for (int ms = 200; ms < 2000; ++ms) EXPECT_FALSE(watch.Sample(ms / 1000.0, 200).has_value()) << ms;
  bool warned = false;
  for (int ms = 2000; ms < 4000; ++ms) {
    warned = watch.Sample(ms / 1000.0, 200 + static_cast<uint64_t>(ms - 2000)).has_value() || warned;
  }
  EXPECT_TRUE(warned);
}

TEST(LeakWatch, ABusyPoolThatComesBackIsNoLeak) {
  LeakWatch watch("p", 10000);
  for (int ms = 0; ms < 20000; ++ms) {
    const auto in_use = static_cast<uint64_t>(5000 + 4000 * (ms / 100 % 2) + ms * 7919 % 900);
    EXPECT_FALSE(watch.Sample(ms / 1000.0, in_use).has_value()) << "at " << ms << " ms";
  }
}

TEST(LeakWatch, FillingUpAtTheStartIsNoLeak) {
  LeakWatch watch("p", 10000);
  for (int ms = 0; ms < 5000; ++ms) {
    EXPECT_FALSE(watch.Sample(ms / 1000.0, std::min<uint64_t>(4000, static_cast<uint64_t>(ms) * 40)).has_value());
  }
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(
      new halfpage::EalEnvironment({.memory_mib = 128, .extra_args = {"--lcores", "0@0,1@1"}}));
  return RUN_ALL_TESTS();
}
