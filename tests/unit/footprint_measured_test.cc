// The footprint that is planned against the one that is: every buffer of every pool out. Without hugepages; with them
// when the argument --hugepages is given and enough are free.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mempool/exact_frag.h"
#include "mempool/footprint.h"
#include "mempool/page_arena.h"
#include "mempool/page_frag.h"
#include "mempool/page_frag_pool.h"
#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"

namespace halfpage {
namespace {

constexpr double kTolerance = 0.02;
constexpr uint32_t kMemoryMib = 192;

uint64_t FreeHugepages() {
  uint64_t free = 0;
  std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> free;
  return free;
}

// Bytes of EAL's heap that are given out, on all sockets.
uint64_t HeapInUse() {
  uint64_t bytes = 0;
  for (int socket = 0; socket < RTE_MAX_NUMA_NODES; ++socket) {
    rte_malloc_socket_stats stats;
    if (rte_malloc_get_socket_stats(socket, &stats) == 0) bytes += stats.heap_allocsz_bytes;
  }
  return bytes;
}

struct Shape {
  std::string ops = "page_frag";
  uint16_t room = 2176;
  uint32_t page = 0;
  uint32_t cache = 0;
};

PktmbufPoolConfig PoolOf(const Shape& shape, size_t number) {
  PktmbufPoolConfig pool;
  pool.name = absl::StrCat("pool", number);
  pool.ops = shape.ops;
  pool.data_room = shape.room;
  pool.page_frag.page_size = shape.page;
  pool.cache = shape.cache;
  // 24 MiB of objects, and a number that fills neither pages nor chunks evenly.
  pool.size = static_cast<uint32_t>((24u << 20) / PktmbufObjectBytes(shape.room)) + 7;
  return pool;
}

double Deviation(uint64_t planned, uint64_t measured) {
  return (static_cast<double>(measured) - static_cast<double>(planned)) / static_cast<double>(planned);
}

class FootprintMeasured : public testing::Test {
 public:
  static void SkipAll() { skip_ = true; }

 protected:
  // What EAL takes.
  static void SetUpTestSuite() {
    if (!skip_) at_rest_ = HeapInUse();
  }
  void SetUp() override {
    if (skip_) GTEST_SKIP() << FreeHugepages() << " hugepages of 2 MiB are free, " << kMemoryMib / 2 << " are needed";
  }

  // Makes the pools, takes all there is out of each in their order, compares, and gives everything back.
  static void Compare(const std::vector<Shape>& shapes) {
    std::vector<PktmbufPoolConfig> configs;
    std::string what;
    for (const Shape& shape : shapes) {
      configs.push_back(PoolOf(shape, configs.size()));
      absl::StrAppend(&what, shape.ops, " room ", shape.room, " page ", shape.page, " cache ", shape.cache, "; ");
    }
    const MemoryFootprint plan = ComputeFootprint(configs, {.hugepages = rte_eal_has_hugepages() != 0});
    std::vector<PktmbufPool> pools;
    std::vector<std::vector<void*>> taken;
    for (const PktmbufPoolConfig& config : configs) {
      auto pool = PktmbufPool::Create(config);
      ASSERT_TRUE(pool.ok()) << pool.status();
      pools.push_back(*std::move(pool));
    }
    uint64_t resident = 0;
    for (const PktmbufPool& pool : pools) {
      taken.push_back(TakeAll(pool.get()));
      ASSERT_EQ(taken.back().size(), pool.config().size) << what;
    }
    for (const PktmbufPool& pool : pools) {
      if (const auto stats = ReadPageFragStats(pool.get())) resident = stats->bytes_resident;
    }
    const uint64_t heap = HeapInUse() - at_rest_;
    uint64_t chunks = 0;
    for (const ArenaFootprint& arena : plan.arenas) chunks += arena.chunks;
    EXPECT_EQ(resident, chunks * kChunkBytes) << what;
    EXPECT_LE(std::abs(Deviation(plan.total, heap)), kTolerance) << what << plan.total << " planned, " << heap;
    std::printf("[ measured ] %splanned %.2f MiB, measured %.2f MiB, %+.3f %%\n", what.c_str(),
                static_cast<double>(plan.total) / (1 << 20), static_cast<double>(heap) / (1 << 20),
                100 * Deviation(plan.total, heap));
    for (size_t p = 0; p < pools.size(); ++p) PutAll(pools[p].get(), taken[p]);
    for (PktmbufPool& pool : pools) pool.Flush();
    for (PktmbufPool& pool : pools) TrimPageFragArena(pool.get());
  }

  static inline uint64_t at_rest_ = 0;
  static inline bool skip_ = false;
};

TEST_F(FootprintMeasured, EveryRoomCacheAndPageSizeIsWithinTwoPerCent) {
  for (const uint16_t room : {256, 1856, 2176, 9216}) {
    for (const uint32_t cache : {0u, 256u}) {
      for (const uint32_t page : {0u, 4096u, 8192u, 16384u, 32768u, 65536u}) {
        if (page != 0 && PktmbufObjectBytes(room) > page) continue;
        Compare({{.room = room, .page = page, .cache = cache}});
      }
    }
  }
}

TEST_F(FootprintMeasured, StockPoolsAreWithinTwoPerCent) {
  for (const uint16_t room : {192, 256, 1664, 1856, 2176, 9216}) {
    for (const uint32_t cache : {0u, 256u}) Compare({{.ops = "ring_mp_mc", .room = room, .cache = cache}});
  }
}

TEST_F(FootprintMeasured, PoolsThatShareAnArenaAreWithinTwoPerCent) {
  Compare({{.room = 704, .cache = 256}, {.room = 1856, .page = 4096}, {.room = 9216, .cache = 256}});
  Compare({{.room = 2176}, {.room = 2176}, {.ops = "ring_mp_mc", .room = 2176, .cache = 256}});
}

// Every buffer of an exact pool out, cut for IMIX and jumbo frames in a random order.
TEST_F(FootprintMeasured, ExactPoolsAreWithinTwoPerCent) {
  const FrameMix mixes[] = {{{64, 1}}, {{64, 28}, {570, 16}, {1514, 4}}, {{64, 1}, {1514, 1}, {9000, 1}}};
  for (const FrameMix& mix : mixes) {
    for (const uint32_t page : {4096u, 32768u}) {
      PktmbufPoolConfig config = PoolOf({.page = page}, 0);
      config.page_frag.exact = true;
      config.size = static_cast<uint32_t>((24u << 20) / PackExact(mix, page).buffer_bytes);
      const FootprintTerms terms = {.hugepages = rte_eal_has_hugepages() != 0, .exact = {{config.name, mix}}};
      const MemoryFootprint plan = ComputeFootprint({config}, terms);
      auto pool = PktmbufPool::Create(config);
      ASSERT_TRUE(pool.ok()) << pool.status();
      auto exact = ExactFrag::Over(pool->get());
      ASSERT_TRUE(exact.ok());
      std::vector<uint32_t> lengths;
      for (const auto& [bytes, weight] : mix) lengths.insert(lengths.end(), weight, bytes);
      std::mt19937 random(7);
      std::vector<rte_mbuf*> frames;
      while (rte_mbuf* frame = exact->Alloc(lengths[random() % lengths.size()], {})) frames.push_back(frame);
      // A chain that was one segment short leaves its first ones free.
      while (rte_mbuf* frame = exact->Alloc(64, {})) frames.push_back(frame);
      EXPECT_EQ(pool->in_use(), config.size);
      const uint64_t heap = HeapInUse() - at_rest_;
      EXPECT_LE(std::abs(Deviation(plan.total, heap)), kTolerance) << plan.total << " planned, " << heap;
      EXPECT_LE(std::abs(Deviation(plan.pools[0].pages, ReadPageFragStats(pool->get())->pages_inflight)), kTolerance);
      for (rte_mbuf* frame : frames) rte_pktmbuf_free(frame);
      pool->Flush();
      TrimPageFragArena(pool->get());
    }
  }
}

TEST_F(FootprintMeasured, PeakOfChunksStaysAfterTheyWentBack) {
  const uint64_t before = PageFragPeakBytes(-1);
  EXPECT_GE(before, 24u << 20);
  PageArena* arena = PageArena::Find(-1);
  ASSERT_NE(arena, nullptr);
  EXPECT_EQ(arena->Stats().chunks, 0u) << "every test gave its memory back";
  EXPECT_EQ(arena->Stats().peak_chunks * kChunkBytes, before);
  EXPECT_EQ(PageFragPeakBytes(7), 0u) << "no pool was made for socket 7";
}

TEST_F(FootprintMeasured, AnArenaStopsAtItsLimitToTheChunkAndPoolsCountWhatFoundNoPage) {
  ASSERT_EQ(LimitPageFragArena(-1, (2u << 20) - 1), -EINVAL) << "less than a chunk";
  for (const uint64_t mib : {2, 7, 20}) {
    ASSERT_EQ(LimitPageFragArena(-1, mib << 20), 0);
    const uint64_t refusals = ReadPageFragArena(-1).limit_refusals;
    const PktmbufPoolConfig config = PoolOf({}, 0);
    const FootprintTerms terms = {.hugepages = rte_eal_has_hugepages() != 0, .arena_limit = mib << 20};
    const ArenaFootprint plan = ComputeFootprint({config}, terms).arenas.front();
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok());
    const std::vector<void*> taken = TakeAll(pool->get());
    EXPECT_EQ(ReadPageFragArena(-1).bytes, mib / 2 * kChunkBytes);
    EXPECT_EQ(plan.chunks, mib / 2);
    EXPECT_EQ(plan.page_bytes,
              ReadPageFragStats(pool->get())->pages_inflight * ReadPageFragStats(pool->get())->page_size);
    EXPECT_GT(plan.denied_bytes, 0u);
    EXPECT_LT(taken.size(), config.size);
    EXPECT_EQ(ReadPageFragStats(pool->get())->nobuf, 1u);
    EXPECT_GT(ReadPageFragArena(-1).limit_refusals, refusals);
    ASSERT_EQ(LimitPageFragArena(-1, 0), 0);
    void* more = nullptr;
    EXPECT_EQ(rte_mempool_get(pool->get(), &more), 0) << "without a limit there is more";
    rte_mempool_put(pool->get(), more);
    PutAll(pool->get(), taken);
    pool->Flush();
    TrimPageFragArena(pool->get());
  }
}

TEST_F(FootprintMeasured, AnArenaShrinksAfterABurstWhileItsPoolsAreInUse) {
  auto pool = PktmbufPool::Create(PoolOf({}, 0));
  ASSERT_TRUE(pool.ok());
  std::vector<void*> taken = TakeAll(pool->get());
  const uint64_t burst = ReadPageFragArena(-1).bytes;
  const std::vector<void*> kept(taken.begin(), taken.begin() + 100);
  taken.erase(taken.begin(), taken.begin() + 100);
  PutAll(pool->get(), taken);
  const uint64_t given_back = ShrinkPageFragArena(-1);
  const uint64_t left = ReadPageFragArena(-1).bytes;
  EXPECT_EQ(left, burst - given_back);
  // The kept ones' chunk, and the lcore's cache of 128 pages of 32 KiB.
  EXPECT_LE(left, 12u << 20) << "of " << burst;
  PutAll(pool->get(), kept);
  pool->Flush();
  TrimPageFragArena(pool->get());
}

// The plan's allowances are no smaller than what they stand for.
TEST_F(FootprintMeasured, BookkeepingFitsItsAllowances) {
  constexpr size_t kMallocHeader = 128;
  EXPECT_LE(sizeof(Lane) + kMallocHeader, kLaneBytes);
  EXPECT_LE(sizeof(PageCache) + kMallocHeader, kPageCacheBytes);
  EXPECT_LE(sizeof(PageFragPool) + kMallocHeader, kCarvedPoolBytes);
  EXPECT_LE(sizeof(PageArena) + kMallocHeader, kArenaBytes);
  EXPECT_EQ(RTE_MAX_LCORE * sizeof(rte_mempool_cache), kMempoolCacheBytes);
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool hugepages = argc > 1 && std::string(argv[1]) == "--hugepages";
  if (hugepages && halfpage::FreeHugepages() < halfpage::kMemoryMib / 2) {
    halfpage::FootprintMeasured::SkipAll();
  } else {
    testing::AddGlobalTestEnvironment(new halfpage::EalEnvironment(
        {.memory_mib = halfpage::kMemoryMib, .hugepages = hugepages, .extra_args = {"-l", "0"}}));
  }
  return RUN_ALL_TESTS();
}
