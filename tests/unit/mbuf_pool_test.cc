// What any packet pool owes its user, over page_frag and ring_mp_mc alike.
#include "mempool/page_frag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "mempool/page_arena.h"
#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"

namespace halfpage {
namespace {

class MbufPool : public testing::TestWithParam<const char*> {
 protected:
  PktmbufPool Make(uint32_t size, uint32_t cache) {
    auto pool = PktmbufPool::Create(Small(GetParam(), size, cache));
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }
  static void ExpectFull(PktmbufPool& pool) {
    pool.Flush();
    EXPECT_EQ(pool.in_use(), 0u);
    const auto stats = ReadPageFragStats(pool.get());
    EXPECT_EQ(stats.has_value() ? stats->pages_inflight : 0, 0u);
  }
};

TEST_P(MbufPool, GivesExactlyAsManyBuffersAsItsSize) {
  for (uint32_t size : {1u, 13u, 127u, 1000u, 8191u}) {
    PktmbufPool pool = Make(size, 0);
    const std::vector<void*> all = TakeAll(pool.get());
    EXPECT_EQ(all.size(), size);
    EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), size) << "a buffer given twice";
    PutAll(pool.get(), all);
    ExpectFull(pool);
  }
}

TEST_P(MbufPool, BuffersAreReadyAndApart) {
  PktmbufPool pool = Make(500, 0);
  std::vector<void*> all = TakeAll(pool.get());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto* mbuf = static_cast<const rte_mbuf*>(all[i]);
    EXPECT_EQ(mbuf->pool, pool.get());
    EXPECT_EQ(mbuf->buf_len, 2176);
    EXPECT_EQ(mbuf->buf_addr, static_cast<const char*>(all[i]) + sizeof(rte_mbuf));
    EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
    EXPECT_EQ(mbuf->next, nullptr);
    EXPECT_EQ(mbuf->nb_segs, 1);
    EXPECT_EQ(rte_mempool_from_obj(all[i]), pool.get());
    EXPECT_EQ(rte_mempool_virt2iova(all[i]) + sizeof(rte_mbuf), mbuf->buf_iova);
    const auto* before = static_cast<const char*>(i == 0 ? nullptr : all[i - 1]);
    EXPECT_GE(static_cast<const char*>(all[i]) - before, 64 + 128 + 2176);
  }
  PutAll(pool.get(), all);
  ExpectFull(pool);
}

TEST_P(MbufPool, AskingForTooManyGivesNoneAndWritesNothing) {
  PktmbufPool pool = Make(100, 0);
  std::vector<void*> objects(200, &pool);
  EXPECT_NE(rte_mempool_ops_dequeue_bulk(pool.get(), objects.data(), 101), 0);
  EXPECT_NE(rte_mempool_ops_dequeue_bulk(pool.get(), objects.data(), UINT_MAX), 0);
  EXPECT_EQ(std::count(objects.begin(), objects.end(), &pool), 200);
  EXPECT_EQ(rte_mempool_ops_dequeue_bulk(pool.get(), objects.data(), 100), 0);
  EXPECT_NE(rte_mempool_ops_dequeue_bulk(pool.get(), objects.data() + 100, 1), 0);
  rte_mempool_ops_enqueue_bulk(pool.get(), objects.data(), 100);
  ExpectFull(pool);
}

TEST_P(MbufPool, RecoversFromExhaustionWithAHalfFullMempoolCache) {
  PktmbufPool pool = Make(600, 64);
  std::vector<void*> held;
  void* burst[32];
  for (int round = 0; round < 100; ++round) {
    while (rte_mempool_get_bulk(pool.get(), burst, 32) == 0) held.insert(held.end(), burst, burst + 32);
    EXPECT_EQ(std::set<void*>(held.begin(), held.end()).size(), held.size());
    EXPECT_GT(held.size(), 600u - 32);
    std::shuffle(held.begin(), held.end(), std::mt19937(static_cast<unsigned>(round)));
    const size_t keep = static_cast<size_t>(round) % held.size();
    PutAll(pool.get(), {held.begin() + static_cast<std::ptrdiff_t>(keep), held.end()});
    held.resize(keep);
  }
  PutAll(pool.get(), held);
  ExpectFull(pool);
}

TEST_P(MbufPool, AtItsLimitEveryFreedBufferCanBeTakenAgain) {
  PktmbufPool pool = Make(4000, 0);
  std::vector<void*> held = TakeAll(pool.get());
  std::mt19937 random(1);
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    void*& victim = held[random() % held.size()];
    rte_mempool_put(pool.get(), victim);
    taken += rte_mempool_get(pool.get(), &victim) == 0;
  }
  EXPECT_EQ(taken, 2000);
  PutAll(pool.get(), held);
  ExpectFull(pool);
}

TEST_P(MbufPool, CloneInTheSamePoolKeepsTheOriginalUntilBothAreFreed) {
  PktmbufPool pool = Make(10, 0);
  rte_mbuf* original = rte_pktmbuf_alloc(pool.get());
  std::memset(rte_pktmbuf_append(original, 100), 0x5a, 100);
  rte_mbuf* clone = rte_pktmbuf_clone(original, pool.get());
  ASSERT_NE(clone, nullptr);
  EXPECT_EQ(rte_mbuf_refcnt_read(original), 2);
  rte_pktmbuf_free(original);
  EXPECT_EQ(rte_mempool_in_use_count(pool.get()), 2u);
  EXPECT_EQ(*rte_pktmbuf_mtod_offset(clone, uint8_t*, 99), 0x5a);
  rte_pktmbuf_free(clone);
  ExpectFull(pool);
}

TEST_P(MbufPool, ThreadsWithoutAnLcoreIdMayUseIt) {
  PktmbufPool pool = Make(1000, 32);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      void* objects[16];
      for (int i = 0; i < 2000; ++i) {
        if (rte_mempool_get_bulk(pool.get(), objects, 16) == 0) rte_mempool_put_bulk(pool.get(), objects, 16);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectFull(pool);
}

TEST_P(MbufPool, WhatARegisteredThreadHeldBackReturnsWhenItsLcoreIdDoes) {
  PktmbufPool pool = Make(1000, 0);
  std::thread([&] {
    ASSERT_EQ(rte_thread_register(), 0);
    std::vector<void*> all = TakeAll(pool.get());
    PutAll(pool.get(), all);
    rte_thread_unregister();
  }).join();
  const std::vector<void*> all = TakeAll(pool.get());
  EXPECT_EQ(all.size(), 1000u);
  PutAll(pool.get(), all);
  ExpectFull(pool);
}

TEST_P(MbufPool, BufferFreedOnAnotherLcoreComesBack) {
  PktmbufPool pool = Make(2000, 0);
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> all = TakeAll(pool.get());
    EXPECT_GE(all.size(), 1700u) << "more than an eighth hidden by the other lcore";
    OnWorker([&] { PutAll(pool.get(), all); });
  }
  ExpectFull(pool);
}

#if defined(__SANITIZE_THREAD__)
constexpr int kRounds = 10000;
#else
constexpr int kRounds = 60000;
#endif

// Whole rooms are stamped with their address; a buffer in two hands at once shows as a wrong stamp.
TEST_P(MbufPool, TwoLcoresThatHandBuffersOverNeverShareOne) {
  PktmbufPool pool = Make(3000, 0);
  const auto stamp = [](void* object) {
    auto* words = reinterpret_cast<uint64_t*>(static_cast<char*>(object) + sizeof(rte_mbuf));
    std::fill_n(words, 2176 / 8, reinterpret_cast<uintptr_t>(object));
  };
  const auto intact = [](void* object) {
    const auto* words = reinterpret_cast<const uint64_t*>(static_cast<char*>(object) + sizeof(rte_mbuf));
    return std::all_of(words, words + 2176 / 8, [&](uint64_t w) { return w == reinterpret_cast<uintptr_t>(object); });
  };
  rte_ring* over = rte_ring_create("over", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  rte_ring* back = rte_ring_create("back", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  const auto work = [&](unsigned seed, rte_ring* out, rte_ring* in, uint64_t* bad) {
    std::mt19937 random(seed);
    std::vector<void*> held;
    for (int i = 0; i < kRounds; ++i) {
      void* objects[32];
      const unsigned n = 1 + random() % 32;
      if (held.size() < 600 && GetBulk(pool.get(), objects, n) == 0) {
        std::for_each(objects, objects + n, stamp);
        held.insert(held.end(), objects, objects + n);
      }
      const unsigned received = DequeueBurst(in, objects, n);
      held.insert(held.end(), objects, objects + received);
      for (unsigned k = 0; k < n && !held.empty(); ++k) {
        std::swap(held[random() % held.size()], held.back());
        void* object = held.back();
        *bad += !intact(object);
        if (random() % 2 == 0 || EnqueueBurst(out, &object, 1) == 0) PutBulk(pool.get(), &object, 1);
        held.pop_back();
      }
    }
    for (void* object : held) *bad += !intact(object);
    for (void* object : held) PutBulk(pool.get(), &object, 1);
  };
  uint64_t bad[2] = {0, 0};
  OnBothLcores([&] { work(1, over, back, &bad[0]); }, [&] { work(2, back, over, &bad[1]); });
  EXPECT_EQ(bad[0] + bad[1], 0u);
  void* object = nullptr;
  while (DequeueBurst(over, &object, 1) == 1 || DequeueBurst(back, &object, 1) == 1) {
    PutBulk(pool.get(), &object, 1);
  }
  rte_ring_free(over);
  rte_ring_free(back);
  ExpectFull(pool);
}

TEST_P(MbufPool, ObjectsThatAreNoMbufsAreLeftAsTheApplicationMadeThem) {
  rte_mempool* pool = rte_mempool_create_empty("plain", 100, 128, 0, 64, SOCKET_ID_ANY, 0);
  ASSERT_NE(pool, nullptr);
  ASSERT_EQ(rte_mempool_set_ops_byname(pool, GetParam(), nullptr), 0);
  ASSERT_EQ(rte_mempool_populate_default(pool), 100);
  rte_mempool_obj_iter(
      pool, [](rte_mempool*, void*, void* object, unsigned i) { std::memset(object, static_cast<int>(i), 128); },
      nullptr);
  std::vector<void*> all = TakeAll(pool);
  ASSERT_EQ(all.size(), 100u);
  std::set<int> seen;
  for (void* object : all) {
    const auto* bytes = static_cast<const uint8_t*>(object);
    seen.insert(bytes[0]);
    EXPECT_TRUE(std::all_of(bytes, bytes + 128, [&](uint8_t b) { return b == bytes[0]; }));
  }
  EXPECT_EQ(seen.size(), 100u);
  PutAll(pool, all);
  EXPECT_EQ(rte_mempool_avail_count(pool), 100u);
  rte_mempool_free(pool);
}

// R24: three buffers are held across the end of their pool.
TEST_P(MbufPool, DestroyWaitsABoundedTimeNamesWhatIsOutAndSucceedsOnceItIsBack) {
  for (const uint32_t cache : {0u, 32u}) {
    auto made = PktmbufPool::Create(Small(GetParam(), 500, cache));
    ASSERT_TRUE(made.ok()) << made.status();
    PktmbufPool pool = *std::move(made);
    std::vector<void*> held(3);
    ASSERT_EQ(rte_mempool_get_bulk(pool.get(), held.data(), 3), 0);
    const absl::Status late = pool.Destroy(0.05);
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(late.message()), testing::HasSubstr("pool small: 3 of 500 buffers"));
    EXPECT_THAT(std::string(late.message()), testing::HasSubstr("still out after 0.0"));
    EXPECT_EQ(pool.in_use(), 3u) << "and nothing has changed";
    OnWorker([&] { PutAll(pool.get(), held); });  // late frees find their pool
    EXPECT_TRUE(pool.Destroy(0).ok());
    EXPECT_EQ(rte_mempool_lookup("small"), nullptr);
  }
}

TEST_P(MbufPool, ASocketThatIsNotThereIsNamedWithTheWayOut) {
  PktmbufPoolConfig config = Small(GetParam(), 100, 0);
  config.socket = 7;
  const auto pool = PktmbufPool::Create(config);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(pool.status().message()), testing::HasSubstr("pool small: socket 7: without hugepages"));
  EXPECT_THAT(std::string(pool.status().message()), testing::HasSubstr("socket 0 or any (auto)"));
  config.socket = 0;
  EXPECT_TRUE(PktmbufPool::Create(config).ok());
}

// On a machine of one socket the other one is written into the chunks.
TEST(PageFragSockets, PagesFromAnotherSocketThanTheLcoresAreCounted) {
  PktmbufPoolConfig config = Small("page_frag", 13 * 10, 0);
  config.page_frag.recycle = RecycleMode::kOff;
  auto pool = PktmbufPool::Create(config);
  ASSERT_TRUE(pool.ok());
  const std::vector<void*> here = TakeAll(pool->get());
  EXPECT_EQ(ReadPageFragStats(pool->get())->alloc_waive, 0u);
  for (void* object : here) Chunk::Of(object)->socket = 1;
  PutAll(pool->get(), here);
  pool->Flush();
  const std::vector<void*> again = TakeAll(pool->get());
  EXPECT_EQ(again.size(), 130u) << "and used all the same";
  EXPECT_EQ(ReadPageFragStats(pool->get())->alloc_waive, 10u);
  for (void* object : again) Chunk::Of(object)->socket = 0;
  PutAll(pool->get(), again);
}

// R19: 10000 frames of 1500 bytes, a page each and half a page each.
TEST(PageFragHalves, TenThousandFullFramesTakeHalfThePagesInHalves) {
  const auto pages = [](uint16_t room) {
    PktmbufPoolConfig config = Small("page_frag", 10000, 0);
    config.data_room = room;
    config.page_frag.page_size = 4096;
    auto pool = PktmbufPool::Create(config);
    EXPECT_TRUE(pool.ok());
    std::vector<void*> all = TakeAll(pool->get());
    EXPECT_EQ(all.size(), 10000u);
    for (void* object : all) {
      auto* mbuf = static_cast<rte_mbuf*>(object);
      mbuf->data_off = 256;  // the kernel's headroom for XDP
      EXPECT_NE(rte_pktmbuf_append(mbuf, 1514), nullptr);
    }
    const uint64_t inflight = ReadPageFragStats(pool->get())->pages_inflight;
    PutAll(pool->get(), all);
    pool->Flush();
    TrimPageFragArena(pool->get());
    return inflight;
  };
  EXPECT_EQ(pages(3904), 10000u);
  EXPECT_EQ(pages(1856), 5000u);
}

INSTANTIATE_TEST_SUITE_P(Ops, MbufPool, testing::Values("page_frag", "ring_mp_mc"),
                         [](const auto& ops) { return std::string(ops.param); });

// Buffers taken here and freed on lcore 1.
struct FreedThere {
  rte_mbuf* buffers[52];
  static int Run(void* argument) {
    rte_pktmbuf_free_bulk(static_cast<FreedThere*>(argument)->buffers, 52);
    return 0;
  }
};

TEST(Rotation, PagesThatOtherLcoresFreeRestInTheRingForARotation) {
  for (const uint32_t rotation : {0u, 100u, 100000u}) {
    PktmbufPoolConfig config;
    config.ops = "page_frag";
    config.size = 4000;
    config.cache = 0;
    config.page_frag.page_size = 32768;
    config.page_frag.rotation = rotation;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok()) << pool.status();
    const uint64_t all = 4000 / ReadPageFragStats(pool->get())->objects_per_page + 1;
    FreedThere freed;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), freed.buffers, 52), 0);
      ASSERT_EQ(rte_eal_remote_launch(FreedThere::Run, &freed, 1), 0);
      ASSERT_EQ(rte_eal_wait_lcore(1), 0);
    }
    // What lies in caches on the way comes on top.
    const auto stats = *ReadPageFragStats(pool->get());
    const uint64_t fresh = stats.alloc_slow + stats.alloc_slow_ho;
    EXPECT_GE(fresh, std::min<uint64_t>(rotation, all));
    EXPECT_LE(fresh, std::min<uint64_t>(rotation, all) + 100) << "bounded by the pool's buffers";
    // At the pool's limit nothing is kept back. What lcore 1 still holds is out of reach here.
    pool->Flush();
    std::vector<rte_mbuf*> everything(4000);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), everything.data(), 4000), 0);
    rte_pktmbuf_free_bulk(everything.data(), 4000);
    pool->Flush();
    EXPECT_EQ(ReadPageFragStats(pool->get())->pages_inflight, 0u);
    TrimPageFragArena(pool->get());
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
