// What page_frag promises beyond any other handler.
#include "mempool/page_frag.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "mempool/page_arena.h"
#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"

namespace halfpage {
namespace {

TEST(PageFrag, RegisteringAgainGivesTheSameSlot) {
  const int first = page_frag_register();
  const unsigned slots = rte_mempool_ops_table.num_ops;
  EXPECT_GE(first, 0);
  EXPECT_EQ(page_frag_register(), first);
  EXPECT_EQ(rte_mempool_ops_table.num_ops, slots);
}

TEST(PageFrag, BufferFreedOnAnotherLcoreReturnsToItsOwnPage) {
  auto pool = PktmbufPool::Create(Small("page_frag", 13 * 8, 0));
  ASSERT_TRUE(pool.ok());
  std::map<uintptr_t, std::vector<void*>> pages;
  for (void* object : TakeAll(pool->get())) pages[reinterpret_cast<uintptr_t>(object) >> 15].push_back(object);
  EXPECT_EQ(pages.size(), 8u);
  EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 8u);
  OnWorker([&] {
    for (auto& [number, objects] : pages) PutAll(pool->get(), {objects.begin() + 1, objects.end()});
  });
  pool->Flush();
  EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 8u) << "one buffer keeps its page";
  size_t left = 8;
  for (auto& [number, objects] : pages) {
    rte_mempool_put(pool->get(), objects.front());
    pool->Flush();
    EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, --left) << "the last buffer brings its page home";
  }
}

TEST(PageFrag, ARoomOfAnyBytesIsCarvedLikeAnyOther) {
  for (uint16_t room : {1769, 1770, 2177, 2183}) {
    PktmbufPoolConfig config = Small("page_frag", 100, 0);
    config.data_room = room;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok()) << pool.status();
    ASSERT_TRUE(ReadPageFragStats(pool->get()).has_value()) << room << " is served as a plain ring";
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool->get());
    ASSERT_NE(mbuf, nullptr);
    EXPECT_EQ(mbuf->buf_len, room);
    rte_pktmbuf_free(mbuf);
  }
}

TEST(PageFrag, WhatAnIdlePoolGaveToItsRingServesPoolsOfOtherPageSizesBeforeTheArenaGrows) {
  PktmbufPoolConfig config = Small("page_frag", 8000, 0);
  config.page_frag.page_size = 32768;
  auto first = PktmbufPool::Create(config);
  config.name = "second";
  config.page_frag.page_size = 65536;
  auto second = PktmbufPool::Create(config);
  ASSERT_TRUE(first.ok() && second.ok());
  PutAll(first->get(), TakeAll(first->get()));
  EXPECT_GT(PageArena::ForSocket(SOCKET_ID_ANY)->Stats().ring[3], 100u) << "the pages wait for others of their size";
  const uint64_t before = ReadPageFragStats(first->get())->bytes_resident;
  const std::vector<void*> all = TakeAll(second->get());
  EXPECT_EQ(all.size(), 8000u);
  EXPECT_LT(ReadPageFragStats(first->get())->bytes_resident, before * 3 / 2);
  PutAll(second->get(), all);
  for (auto* pool : {&*first, &*second}) pool->Flush();
  TrimPageFragArena(first->get());
}

TEST(PageFrag, BurstFreedOnAnLcoreIsItsNextBurstInTheSameOrder) {
  auto pool = PktmbufPool::Create(Small("page_frag", 1000, 0));
  ASSERT_TRUE(pool.ok());
  void* first[32];
  void* second[32];
  ASSERT_EQ(rte_mempool_get_bulk(pool->get(), first, 32), 0);
  std::shuffle(std::begin(first), std::end(first), std::mt19937(1));
  rte_mempool_put_bulk(pool->get(), first, 32);
  ASSERT_EQ(rte_mempool_get_bulk(pool->get(), second, 32), 0);
  EXPECT_TRUE(std::equal(std::begin(first), std::end(first), std::begin(second)));
  rte_mempool_put_bulk(pool->get(), second, 32);
  EXPECT_EQ(rte_mempool_avail_count(pool->get()), 1000u) << "kept for the lcore, and free all the same";
  pool->Flush();
  EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u) << "flushing takes what the lcore keeps";
}

// With recycling off every page goes home as soon as it is whole: nothing is kept that would spare it the way.
TEST(PageFrag, RecyclingOffKeepsNoBurstForTheLcore) {
  PktmbufPoolConfig config = Small("page_frag", 13 * 8, 0);
  config.page_frag.recycle = RecycleMode::kOff;
  auto pool = PktmbufPool::Create(config);
  ASSERT_TRUE(pool.ok());
  void* page[13];
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(rte_mempool_get_bulk(pool->get(), page, 13), 0);
    rte_mempool_put_bulk(pool->get(), page, 13);
    EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u);
  }
  EXPECT_EQ(ReadPageFragStats(pool->get())->alloc_slow_ho, 5u) << "a page fetched from the arena each time";
}

TEST(PageFrag, PagesComeFromOneArenaWhateverThePoolsAre) {
  PktmbufPoolConfig config = Small("page_frag", 2000, 0);
  config.data_room = 256;
  uint64_t peak = 0;
  for (uint16_t room : {256, 2176, 9216}) {
    config.data_room = room;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok());
    std::vector<void*> all = TakeAll(pool->get());
    EXPECT_EQ(all.size(), 2000u);
    peak = std::max(peak, ReadPageFragStats(pool->get())->bytes_resident);
    PutAll(pool->get(), all);
    pool->Flush();
    TrimPageFragArena(pool->get());
  }
  const uint64_t jumbo = 2000u / 3 * 32768;
  EXPECT_LT(peak, jumbo * 5 / 4) << "memory of the earlier pools was not used again";
}

TEST(PageFrag, TrimmingGivesEverythingBackOnceNothingIsOut) {
  auto pool = PktmbufPool::Create(Small("page_frag", 5000, 0));
  ASSERT_TRUE(pool.ok());
  std::vector<void*> all = TakeAll(pool->get());
  EXPECT_GT(ReadPageFragStats(pool->get())->bytes_resident, 12u << 20);
  PutAll(pool->get(), all);
  pool->Flush();
  EXPECT_GT(TrimPageFragArena(pool->get()), 12u << 20);
  EXPECT_EQ(ReadPageFragStats(pool->get())->bytes_resident, 0u);
  all = TakeAll(pool->get());
  EXPECT_EQ(all.size(), 5000u) << "a trimmed arena grows again";
  PutAll(pool->get(), all);
  pool->Flush();
}

TEST(PageFrag, StatesOfPagesAddUpAtEverySample) {
  auto pool = PktmbufPool::Create(Small("page_frag", 4000, 0));
  ASSERT_TRUE(pool.ok());
  std::mt19937 random(7);
  std::vector<void*> held;
  for (int i = 0; i < 300; ++i) {
    void* objects[64];
    const unsigned n = 1 + random() % 64;
    if (random() % 2 == 0 && rte_mempool_get_bulk(pool->get(), objects, n) == 0) {
      held.insert(held.end(), objects, objects + n);
    } else {
      std::shuffle(held.begin(), held.end(), random);
      const size_t keep = held.size() - std::min<size_t>(n, held.size());
      PutAll(pool->get(), {held.begin() + static_cast<std::ptrdiff_t>(keep), held.end()});
      held.resize(keep);
    }
    const ArenaStats arena = PageArena::ForSocket(SOCKET_ID_ANY)->Stats();
    EXPECT_EQ(arena.InUse(3), ReadPageFragStats(pool->get())->pages_inflight);
    EXPECT_EQ(ReadPageFragStats(pool->get())->objects_out, held.size());
  }
  PutAll(pool->get(), held);
  pool->Flush();
}

TEST(PageFrag, RecycleModesDifferInWhereWholePagesGo) {
  for (RecycleMode mode : {RecycleMode::kLifo, RecycleMode::kRing, RecycleMode::kOff}) {
    PktmbufPoolConfig config = Small("page_frag", 2000, 0);
    config.page_frag.recycle = mode;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok());
    for (int i = 0; i < 50; ++i) {
      std::vector<void*> all = TakeAll(pool->get());
      ASSERT_EQ(all.size(), 2000u);
      PutAll(pool->get(), all);
    }
    const PageFragStats stats = *ReadPageFragStats(pool->get());
    EXPECT_EQ(stats.recycle_cached != 0, mode == RecycleMode::kLifo);
    EXPECT_EQ(stats.recycle_ring != 0, mode != RecycleMode::kOff);
    EXPECT_EQ(stats.alloc_slow_ho > 5000, mode == RecycleMode::kOff) << stats.alloc_slow_ho;
    pool->Flush();
    EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u);
  }
}

TEST(PageFrag, WithoutMemoryForPagesItGivesNoneAndGoesOnLater) {
  // 128 MiB of EAL memory cannot hold a pool of 200 MiB: the pool can be made, and fails request by request.
  auto pool = PktmbufPool::Create(Small("page_frag", 90000, 0));
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::vector<void*> all = TakeAll(pool->get());
  EXPECT_LT(all.size(), 60000u);
  EXPECT_GT(all.size(), 20000u);
  EXPECT_GT(ReadPageFragStats(pool->get())->nobuf, 0u);
  std::mt19937 random(3);
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    void*& victim = all[random() % all.size()];
    rte_mempool_put(pool->get(), victim);
    taken += rte_mempool_get(pool->get(), &victim) == 0;
  }
  EXPECT_EQ(taken, 2000) << "a buffer freed on a page in use can be taken again";
  PutAll(pool->get(), all);
  pool->Flush();
  EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u);
  TrimPageFragArena(pool->get());
}

// Objects by the 32 KiB page that they are on.
std::map<uintptr_t, std::vector<void*>> ByPage(const std::vector<void*>& objects) {
  std::map<uintptr_t, std::vector<void*>> pages;
  for (void* object : objects) pages[reinterpret_cast<uintptr_t>(object) >> 15].push_back(object);
  return pages;
}

// Takes objects one by one for at most `seconds`, until `n` are there.
std::vector<void*> TakeWithin(rte_mempool* pool, size_t n, double seconds) {
  std::vector<void*> taken;
  const uint64_t end = rte_rdtsc() + static_cast<uint64_t>(seconds * static_cast<double>(rte_get_tsc_hz()));
  while (taken.size() < n && rte_rdtsc() < end) {
    void* object = nullptr;
    if (rte_mempool_get(pool, &object) == 0) taken.push_back(object);
  }
  return taken;
}

// Frees on an lcore that then does nothing more: single buffers of each page, which wait in its table for their
// neighbours, or its last ones, which it keeps for itself.
TEST(PageFrag, WhatAnIdleLcoreFreedIsFoundByAnotherInBoundedTime) {
  for (const bool whole_pages : {false, true}) {
    auto pool = PktmbufPool::Create(Small("page_frag", 13 * 60, 0));
    ASSERT_TRUE(pool.ok());
    std::vector<void*> all = TakeAll(pool->get());
    ASSERT_EQ(all.size(), 13u * 60);
    std::vector<void*> freed;
    std::vector<void*> kept;
    size_t number = 0;
    for (const auto& [page, objects] : ByPage(all)) {
      const bool free_all = whole_pages && number++ < 10;
      for (size_t i = 0; i < objects.size(); ++i) (free_all || i == 5 ? freed : kept).push_back(objects[i]);
    }
    OnWorker([&] { PutAll(pool->get(), freed); });
    const std::vector<void*> taken = TakeWithin(pool->get(), freed.size(), 2);
    EXPECT_EQ(taken.size(), freed.size()) << (whole_pages ? "whole pages" : "single buffers");
    PutAll(pool->get(), taken);
    PutAll(pool->get(), kept);
    pool->Flush();
    EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u);
    TrimPageFragArena(pool->get());
  }
}

TEST(PageFrag, WhatAnIdleLcoreHoldsGoesBackToEalWithTheSecondLook) {
  for (const bool exact : {false, true}) {
    PktmbufPoolConfig config = Small("page_frag", 5000, 0);
    config.page_frag.exact = exact;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok());
    OnWorker([&] { PutAll(pool->get(), TakeAll(pool->get())); });
    EXPECT_EQ(pool->in_use(), 0u);
    EXPECT_GT(ReadPageFragArena(-1).bytes, 0u);
    FlushIdlePageFragLanes(-1);
    EXPECT_EQ(FlushIdlePageFragLanes(-1), 1u) << "nobody has used it since";
    EXPECT_EQ(FlushIdlePageFragLanes(-1), 0u) << "and it has nothing any more";
    EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u);
    ShrinkPageFragArena(-1);
    EXPECT_EQ(ReadPageFragArena(-1).bytes, 0u) << "exact: " << exact;
    void* object = nullptr;
    OnWorker([&] {
      ASSERT_EQ(rte_mempool_get(pool->get(), &object), 0) << "it is as good as new";
      rte_mempool_put(pool->get(), object);
    });
  }
}

TEST(PageFrag, ReclaimingTakesBackThePagesOfWhatIsOutAndNoOthers) {
  for (const bool exact : {false, true}) {
    PktmbufPoolConfig config = Small("page_frag", 2000, 0);
    config.page_frag.exact = exact;
    auto lost = PktmbufPool::Create(config);
    config.name = "beside";
    auto beside = PktmbufPool::Create(config);
    ASSERT_TRUE(lost.ok() && beside.ok());
    std::vector<void*> theirs = TakeAll(beside->get());
    std::vector<void*> ours = TakeAll(lost->get());
    PutAll(lost->get(), {ours.begin() + 3, ours.end()});  // three stay out, of one page
    const PktmbufPool::Lost found = lost->DestroyAndReclaim(0.02);
    EXPECT_EQ(found.buffers, 3u);
    EXPECT_EQ(found.pages, 1u) << "exact: " << exact;
    EXPECT_GE(found.waited, 0.02);
    EXPECT_LT(found.waited, 1);
    EXPECT_EQ(rte_mempool_lookup("small"), nullptr);
    EXPECT_EQ(beside->in_use(), 2000u);
    const std::set<void*> distinct(theirs.begin(), theirs.end());
    EXPECT_EQ(distinct.size(), 2000u);
    PutAll(beside->get(), theirs);
    EXPECT_EQ(beside->DestroyAndReclaim(0).buffers, 0u);
    ShrinkPageFragArena(-1);
    EXPECT_EQ(ReadPageFragArena(-1).bytes, 0u) << "all pages are home";
  }
}

TEST(PageFrag, APoolFreedWithBuffersOutKeepsTheirPagesOutOfUse) {
  void* lost = nullptr;
  {
    auto pool = PktmbufPool::Create(Small("page_frag", 100, 0));
    ASSERT_TRUE(pool.ok());
    ASSERT_EQ(rte_mempool_get(pool->get(), &lost), 0);
  }
  auto next = PktmbufPool::Create(Small("page_frag", 2000, 0));
  ASSERT_TRUE(next.ok());
  const std::vector<void*> all = TakeAll(next->get());
  EXPECT_EQ(all.size(), 2000u);
  for (void* object : all) {
    EXPECT_NE(reinterpret_cast<uintptr_t>(object) >> 15, reinterpret_cast<uintptr_t>(lost) >> 15);
  }
  PutAll(next->get(), all);
  next->Flush();
}

TEST(PageFrag, AnApplicationThatFreesAPoolWithFullMempoolCachesLosesNoPage) {
  rte_mempool* pool = rte_pktmbuf_pool_create_by_ops("as_testpmd", 1000, 64, 0, 2176, SOCKET_ID_ANY, "page_frag");
  ASSERT_NE(pool, nullptr);
  PageArena* arena = PageArena::ForSocket(SOCKET_ID_ANY);
  const uint64_t before = arena->Stats().InUse(3);
  rte_mbuf* burst[64];
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool, burst, 64), 0);
  rte_pktmbuf_free_bulk(burst, 64);
  EXPECT_GT(rte_mempool_default_cache(pool, rte_lcore_id())->len, 0u);
  EXPECT_GT(arena->Stats().InUse(3), before);
  rte_mempool_free(pool);
  EXPECT_EQ(arena->Stats().InUse(3), before);
}

TEST(PageFrag, APoolOfAnotherProcessIsRefused) {
  auto pool = PktmbufPool::Create(Small("page_frag", 100, 0));
  ASSERT_TRUE(pool.ok());
  auto* token = static_cast<uint64_t*>(pool->get()->pool_data);
  const uint64_t own = *token;
  *token ^= 1;  // as the pool of another process would carry
  void* object = nullptr;
  EXPECT_EQ(rte_mempool_ops_dequeue_bulk(pool->get(), &object, 1), -EPERM);
  EXPECT_EQ(rte_mempool_ops_enqueue_bulk(pool->get(), &object, 1), -EPERM);
  EXPECT_EQ(rte_mempool_avail_count(pool->get()), 0u);
  EXPECT_FALSE(ReadPageFragStats(pool->get()).has_value());
  *token = own;
}

TEST(PageFrag, EnvironmentChoosesForApplicationsThatCannot) {
  setenv("PAGE_FRAG_PAGE_SIZE", "4096", 1);
  rte_mempool* pool = rte_pktmbuf_pool_create_by_ops("env", 100, 0, 0, 1856, SOCKET_ID_ANY, "page_frag");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(ReadPageFragStats(pool)->page_size, 4096u);
  EXPECT_EQ(ReadPageFragStats(pool)->objects_per_page, 2u);
  rte_mempool_free(pool);
  for (const char* bad : {"5000", "no", "4KiB"}) {
    setenv("PAGE_FRAG_PAGE_SIZE", bad, 1);
    EXPECT_EQ(rte_pktmbuf_pool_create_by_ops("env", 100, 0, 0, 1856, SOCKET_ID_ANY, "page_frag"), nullptr) << bad;
  }
  unsetenv("PAGE_FRAG_PAGE_SIZE");
  setenv("PAGE_FRAG_ROTATION", "many", 1);
  EXPECT_EQ(rte_pktmbuf_pool_create_by_ops("env", 100, 0, 0, 1856, SOCKET_ID_ANY, "page_frag"), nullptr);
  unsetenv("PAGE_FRAG_ROTATION");
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(
      new halfpage::EalEnvironment({.memory_mib = 128, .extra_args = {"--lcores", "0@0,1@1"}}));
  return RUN_ALL_TESTS();
}
