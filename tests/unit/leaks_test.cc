#include "app/leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <string>
#include <vector>

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
  testing::AddGlobalTestEnvironment(new halfpage::EalEnvironment({.memory_mib = 128}));
  return RUN_ALL_TESTS();
}
