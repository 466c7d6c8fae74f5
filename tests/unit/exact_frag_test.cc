#include "mempool/exact_frag.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "mempool/page_frag.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"

namespace halfpage {
namespace {

class Exact : public testing::TestWithParam<uint32_t> {
 protected:
  ExactFrag Make(uint32_t size) {
    ExactFragConfig config;
    config.size = size;
    config.page_size = GetParam();
    auto made = ExactFrag::Create(config);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static void ExpectEmpty(ExactFrag& pool) {
    pool.Flush();
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_EQ(ReadPageFragStats(pool.get())->pages_inflight, 0u);
  }
};

TEST_P(Exact, ABufferHasTheAskedRoomAndIsLikeOneFromAnyPool) {
  ExactFrag pool = Make(1000);
  for (uint32_t length : {0u, 1u, 14u, 60u, 64u, 570u, 1514u, 1518u, 3000u}) {
    for (ExactRoom room : {ExactRoom{0, 0}, ExactRoom{128, 0}, ExactRoom{256, 320}, ExactRoom{1, 1}}) {
      rte_mbuf* mbuf = pool.Alloc(length, room);
      ASSERT_NE(mbuf, nullptr);
      EXPECT_EQ(mbuf->data_len, length);
      EXPECT_EQ(mbuf->pkt_len, length);
      EXPECT_EQ(rte_pktmbuf_headroom(mbuf), room.headroom);
      EXPECT_GE(rte_pktmbuf_tailroom(mbuf), room.tailroom);
      EXPECT_LT(rte_pktmbuf_tailroom(mbuf), room.tailroom + 64) << "more than a line's rounding";
      EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
      EXPECT_EQ(mbuf->nb_segs, 1);
      EXPECT_EQ(mbuf->next, nullptr);
      EXPECT_EQ(mbuf->ol_flags, 0u);
      EXPECT_EQ(mbuf->port, RTE_MBUF_PORT_INVALID);
      EXPECT_EQ(mbuf->pool, pool.get());
      EXPECT_EQ(mbuf->priv_size, 0);
      EXPECT_EQ(mbuf->buf_iova, rte_mem_virt2iova(mbuf->buf_addr));
      const char* reason = nullptr;
      EXPECT_EQ(rte_mbuf_check(mbuf, 1, &reason), 0) << reason;
      rte_pktmbuf_free(mbuf);
    }
  }
  ExpectEmpty(pool);
}

TEST_P(Exact, ALengthPastAPageBecomesAChainWithHeadroomInFrontAndTailroomBehind) {
  ExactFrag pool = Make(1000);
  for (uint32_t length : {4000u, 9000u, 40000u, 65535u, 200000u}) {
    rte_mbuf* mbuf = pool.Alloc(length, {256, 100});
    ASSERT_NE(mbuf, nullptr);
    EXPECT_EQ(mbuf->pkt_len, length);
    const char* reason = nullptr;
    EXPECT_EQ(rte_mbuf_check(mbuf, 1, &reason), 0) << reason;
    EXPECT_EQ(rte_pktmbuf_headroom(mbuf), 256);
    EXPECT_GE(rte_pktmbuf_tailroom(rte_pktmbuf_lastseg(mbuf)), 100);
    EXPECT_LE(mbuf->nb_segs, 1 + length / (std::min(GetParam(), 65536u) - 128 - 64 - 356));
    rte_pktmbuf_free(mbuf);
  }
  ExpectEmpty(pool);
}

TEST_P(Exact, NoMoreThanItsSizeIsOutAndARequestGetsWhatThereIs) {
  ExactFrag pool = Make(100);
  std::vector<uint32_t> lengths(64, 200);
  std::vector<rte_mbuf*> held(256);
  EXPECT_EQ(pool.AllocBulk(held.data(), lengths.data(), 64, {}), 64);
  EXPECT_EQ(pool.AllocBulk(held.data() + 64, lengths.data(), 64, {}), 36);
  EXPECT_EQ(pool.AllocBulk(held.data() + 100, lengths.data(), 64, {}), 0);
  EXPECT_EQ(pool.Alloc(100, {}), nullptr);
  rte_pktmbuf_free(held[99]);
  EXPECT_NE(held[99] = pool.Alloc(100, {}), nullptr);
  rte_pktmbuf_free_bulk(held.data(), 100);
  ExpectEmpty(pool);
}

TEST_P(Exact, AChainThatDoesNotFitThePoolLeavesNothingOut) {
  ExactFrag pool = Make(3);
  EXPECT_EQ(pool.Alloc(10 * GetParam(), {}), nullptr);
  ExpectEmpty(pool);
}

TEST_P(Exact, MemoryFollowsTheLengthsOfWhatIsOut) {
  ExactFrag pool = Make(8192);
  std::vector<rte_mbuf*> held(8192);
  for (rte_mbuf*& mbuf : held) mbuf = pool.Alloc(64, {0, 0});
  const PageFragStats stats = *ReadPageFragStats(pool.get());
  // A 64-byte frame takes a mbuf and a line; a page may end with less than that, and the last one is not full.
  EXPECT_LE(stats.pages_inflight, 8192 / (stats.page_size / 192) + 1);
  rte_pktmbuf_free_bulk(held.data(), 8192);
  ExpectEmpty(pool);
}

TEST_P(Exact, PlainAllocationsFromItGetARoomThatDriversCanUse) {
  ExactFrag pool = Make(500);
  rte_mbuf* burst[100];
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool.get(), burst, 100), 0);
  for (rte_mbuf* mbuf : burst) {
    EXPECT_EQ(mbuf->buf_len, rte_pktmbuf_data_room_size(pool.get()));
    EXPECT_EQ(rte_pktmbuf_headroom(mbuf), RTE_PKTMBUF_HEADROOM);
    std::memset(mbuf->buf_addr, 0x5a, mbuf->buf_len);
  }
  rte_mbuf* clone = rte_pktmbuf_clone(burst[0], pool.get());
  ASSERT_NE(clone, nullptr);
  rte_pktmbuf_free_bulk(burst, 100);
  rte_pktmbuf_free(clone);
  rte_mbuf* many[501];
  EXPECT_NE(rte_pktmbuf_alloc_bulk(pool.get(), many, 501), 0);
  ExpectEmpty(pool);
}

TEST_P(Exact, PagesServeExactAndWholeObjectPoolsInTurn) {
  for (int round = 0; round < 3; ++round) {
    ExactFrag exact = Make(2000);
    std::vector<rte_mbuf*> held(2000);
    std::mt19937 random(static_cast<unsigned>(round));
    for (rte_mbuf*& mbuf : held) ASSERT_NE(mbuf = exact.Alloc(random() % 2000, {}), nullptr);
    std::shuffle(held.begin(), held.end(), random);
    rte_pktmbuf_free_bulk(held.data(), 2000);
    ExpectEmpty(exact);
    PktmbufPoolConfig config = Small("page_frag", 1000, 0);
    config.page_frag.page_size = GetParam();
    auto whole = PktmbufPool::Create(config);
    ASSERT_TRUE(whole.ok());
    std::vector<void*> all = TakeAll(whole->get());
    EXPECT_EQ(all.size(), 1000u);
    for (void* object : all) EXPECT_EQ(static_cast<rte_mbuf*>(object)->buf_len, 2176);
    PutAll(whole->get(), all);
    whole->Flush();
    EXPECT_EQ(ReadPageFragStats(whole->get())->pages_inflight, 0u);
  }
}

// Stamped rooms, freed here, on another lcore and on a thread without an lcore id: no buffer is in two hands.
TEST_P(Exact, BuffersOfAnySizeFreedAnywhereStayApart) {
  ExactFrag pool = Make(4000);
  std::mt19937 random(5);
  std::vector<rte_mbuf*> held;
  uint64_t bad = 0;
  const auto check_and_free = [&bad](std::vector<rte_mbuf*> buffers) {
    for (rte_mbuf* mbuf : buffers) {
      const auto* bytes = static_cast<const uint8_t*>(mbuf->buf_addr);
      const auto stamp = static_cast<uint8_t>(reinterpret_cast<uintptr_t>(mbuf) >> 6);
      bad += static_cast<uint64_t>(
          std::count_if(bytes, bytes + mbuf->buf_len, [=](uint8_t byte) { return byte != stamp; }));
    }
    rte_pktmbuf_free_bulk(buffers.data(), static_cast<unsigned>(buffers.size()));
  };
  for (int round = 0; round < 300; ++round) {
    while (held.size() < 3000) {
      uint32_t lengths[32];
      rte_mbuf* burst[32];
      for (uint32_t& length : lengths) length = random() % 1600;
      const uint16_t n = pool.AllocBulk(burst, lengths, 32, {128, 0});
      if (n == 0) break;
      for (uint16_t i = 0; i < n; ++i) {
        std::memset(burst[i]->buf_addr, static_cast<int>(reinterpret_cast<uintptr_t>(burst[i]) >> 6),
                    burst[i]->buf_len);
      }
      held.insert(held.end(), burst, burst + n);
    }
    std::shuffle(held.begin(), held.end(), random);
    const size_t keep = random() % held.size();
    std::vector<rte_mbuf*> going(held.begin() + static_cast<std::ptrdiff_t>(keep), held.end());
    held.resize(keep);
    switch (round % 3) {
      case 0:
        check_and_free(going);
        break;
      case 1:
        OnWorker([&] { check_and_free(going); });
        break;
      default:
        std::thread([&] { check_and_free(going); }).join();
    }
  }
  check_and_free(held);
  EXPECT_EQ(bad, 0u);
  ExpectEmpty(pool);
}

INSTANTIATE_TEST_SUITE_P(PageSizes, Exact, testing::Values(4096, 32768, 131072),
                         [](const auto& size) { return std::to_string(size.param / 1024) + "KiB"; });

TEST(ExactFragPool, APageSizeThatIsNoneIsRefused) {
  ExactFragConfig config;
  config.page_size = 5000;
  EXPECT_FALSE(ExactFrag::Create(config).ok());
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(
      new halfpage::EalEnvironment({.memory_mib = 256, .extra_args = {"--lcores", "0@0,1@1"}}));
  return RUN_ALL_TESTS();
}
