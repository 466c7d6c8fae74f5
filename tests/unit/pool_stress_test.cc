// Three pools of different rooms and page sizes on one arena that is too small for them, two lcores that hand buffers
// to each other at random: whole rooms are stamped and looked at, and in the end everything is where it came from.
#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "mempool/page_frag.h"
#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"
#include "tests/support/race_annotations.h"

namespace halfpage {
namespace {

struct Shape {
  uint16_t room;
  uint32_t page_size;
  uint32_t size;
};
// 64 MiB of EAL memory hold about a third of what these have buffers for.
constexpr Shape kShapes[] = {{256, 4096, 30000}, {2176, 32768, 24000}, {9216, 65536, 4000}};
constexpr uint32_t kMemoryMib = 64;
constexpr size_t kBurst = 32;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 4000;
#else
constexpr int kRounds = 20000;
#endif

uint64_t* Words(const rte_mbuf* mbuf) {
  return static_cast<uint64_t*>(mbuf->buf_addr);
}

void Stamp(const rte_mbuf* mbuf) {
  std::fill_n(Words(mbuf), mbuf->buf_len / 8, reinterpret_cast<uintptr_t>(mbuf));
}

bool Intact(const rte_mbuf* mbuf) {
  const uint64_t* words = Words(mbuf);
  return std::all_of(words, words + mbuf->buf_len / 8,
                     [&](uint64_t word) { return word == reinterpret_cast<uintptr_t>(mbuf); });
}

// What every handler owes whoever takes a buffer without rte_pktmbuf_reset(): a freed mbuf is left like this.
bool AsFreed(const rte_mbuf* mbuf) {
  return rte_mbuf_refcnt_read(mbuf) == 1 && mbuf->next == nullptr && mbuf->nb_segs == 1;
}

struct Tally {
  uint64_t taken = 0;
  uint64_t handed_over = 0;
  uint64_t refused = 0;  // requests that found no memory
  uint64_t bad_stamps = 0;
  uint64_t bad_headers = 0;
};

// One lcore's part. Buffers come from all pools, wait a while in `held_`, and leave to the other lcore or to their
// pool, alone or in a bulk of one pool.
class Player {
 public:
  Player(const std::vector<rte_mempool*>& pools, rte_ring* out, rte_ring* in, unsigned seed)
      : pools_(pools), out_(out), in_(in), random_(seed) {}

  void Play() {
    for (int round = 0; round < kRounds; ++round) {
      // Waves: memory is taken until there is none, then let go to the last buffer, so that pages change pools.
      const bool ebb = round / 1000 % 2 == 1;
      if (!ebb) Take();
      Receive();
      const size_t leave = ebb ? 2 * kBurst : random_() % (kBurst / 4);
      for (size_t i = 0; i < leave && !held_.empty(); ++i) LetGo(PickHeld());
      if (random_() % 16 == 0) LetGoBulk();
    }
    Receive();
    while (!held_.empty()) Free(PickHeld());
  }
  const Tally& tally() const { return tally_; }

 private:
  void Take() {
    rte_mempool* pool = pools_[random_() % pools_.size()];
    void* objects[kBurst];
    const auto n = static_cast<unsigned>(1 + random_() % kBurst);
    if (rte_mempool_get_bulk(pool, objects, n) != 0) {
      ++tally_.refused;
      return;
    }
    tally_.taken += n;
    for (unsigned i = 0; i < n; ++i) {
      auto* mbuf = static_cast<rte_mbuf*>(objects[i]);
      tally_.bad_headers += !AsFreed(mbuf) || mbuf->pool != pool;
      Stamp(mbuf);
      held_.push_back(mbuf);
    }
  }

  void Receive() {
    void* objects[kBurst];
    const unsigned n = DequeueBurst(in_, objects, kBurst);
    for (unsigned i = 0; i < n; ++i) held_.push_back(static_cast<rte_mbuf*>(objects[i]));
  }

  rte_mbuf* PickHeld() {
    std::swap(held_[random_() % held_.size()], held_.back());
    rte_mbuf* mbuf = held_.back();
    held_.pop_back();
    return mbuf;
  }

  void LetGo(rte_mbuf* mbuf) {
    void* object = mbuf;
    if (random_() % 2 == 0 && EnqueueBurst(out_, &object, 1) == 1) {
      ++tally_.handed_over;
    } else {
      Free(mbuf);
    }
  }

  // Half of them by way of rte_pktmbuf_free(), after having been changed as a user changes a packet.
  void Free(rte_mbuf* mbuf) {
    tally_.bad_stamps += !Intact(mbuf);
    if (random_() % 2 == 0) {
      rte_pktmbuf_reset(mbuf);
      rte_pktmbuf_append(mbuf, 100);
      rte_pktmbuf_free(mbuf);
    } else {
      rte_mempool_put(mbuf->pool, mbuf);
    }
  }

  void LetGoBulk() {
    if (held_.empty()) return;
    rte_mempool* pool = held_.back()->pool;
    const auto rest =
        std::partition(held_.begin(), held_.end(), [&](const rte_mbuf* mbuf) { return mbuf->pool != pool; });
    const size_t n = std::min<size_t>(kBurst, static_cast<size_t>(held_.end() - rest));
    std::vector<void*> bulk(held_.end() - static_cast<std::ptrdiff_t>(n), held_.end());
    held_.resize(held_.size() - n);
    for (void* object : bulk) tally_.bad_stamps += !Intact(static_cast<rte_mbuf*>(object));
    rte_mempool_put_bulk(pool, bulk.data(), static_cast<unsigned>(n));
  }

  std::vector<rte_mempool*> pools_;
  rte_ring* out_;
  rte_ring* in_;
  std::mt19937 random_;
  std::vector<rte_mbuf*> held_;
  Tally tally_;
};

// Parameters: size of the mempool caches, and where whole pages go.
class PoolStress : public testing::TestWithParam<std::tuple<uint32_t, RecycleMode>> {};

TEST_P(PoolStress, NoBufferIsEverInTwoHandsAndAllPagesComeHome) {
  std::vector<PktmbufPool> owners;
  std::vector<rte_mempool*> pools;
  for (const Shape& shape : kShapes) {
    PktmbufPoolConfig config = Small("page_frag", shape.size, std::get<0>(GetParam()));
    config.name = "stress_" + std::to_string(shape.room);
    config.data_room = shape.room;
    config.page_frag.page_size = shape.page_size;
    config.page_frag.recycle = std::get<1>(GetParam());
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok()) << pool.status();
    owners.push_back(*std::move(pool));
    pools.push_back(owners.back().get());
  }
  rte_ring* over = rte_ring_create("over", 2048, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  rte_ring* back = rte_ring_create("back", 2048, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  ASSERT_NE(over, nullptr);
  ASSERT_NE(back, nullptr);

  Player here(pools, over, back, 1);
  Player there(pools, back, over, 2);
  // All the while a control thread gives back what it can, idle lanes' pages too, lowers and lifts the limit, and holds
  // both lcores to walk what is out.
  std::atomic<bool> over_now{false};
  std::atomic<uint64_t> too_many_out{0};
  std::thread control([&] {
    for (int look = 0; !over_now.load(); ++look) {
      ShrinkPageFragArena(-1);
      LimitPageFragArena(-1, look % 4 == 3 ? 40ull << 20 : 0);
      ReadPageFragArena(-1);
      uint64_t out = 0;
      const auto count = [](void*, void* counted) { ++*static_cast<uint64_t*>(counted); };
      if (look % 8 == 0 && ForEachPageFragObjectOut(pools[0], count, &out) == 0 && out > kShapes[0].size) {
        too_many_out.fetch_add(1);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  OnBothLcores([&] { here.Play(); }, [&] { there.Play(); });
  over_now.store(true);
  control.join();
  LimitPageFragArena(-1, 0);
  EXPECT_EQ(too_many_out.load(), 0u);

  void* object = nullptr;
  while (DequeueBurst(over, &object, 1) == 1 || DequeueBurst(back, &object, 1) == 1) {
    EXPECT_TRUE(Intact(static_cast<rte_mbuf*>(object)));
    rte_mempool_put(static_cast<rte_mbuf*>(object)->pool, object);
  }
  rte_ring_free(over);
  rte_ring_free(back);
  for (const Tally& tally : {here.tally(), there.tally()}) {
    EXPECT_EQ(tally.bad_stamps, 0u);
    EXPECT_EQ(tally.bad_headers, 0u);
    EXPECT_GT(tally.taken, 10000u);
    EXPECT_GT(tally.handed_over, 1000u);
    EXPECT_GT(tally.refused, 0u) << "memory never ran out: the limit was not tested";
  }
  for (PktmbufPool& pool : owners) {
    pool.Flush();
    EXPECT_EQ(pool.in_use(), 0u) << pool.config().name;
    EXPECT_EQ(ReadPageFragStats(pool.get())->pages_inflight, 0u) << pool.config().name;
  }
  TrimPageFragArena(pools[0]);
  EXPECT_EQ(ReadPageFragStats(pools[0])->bytes_resident, 0u);
}

// Bursts of 24 MiB that end with all buffers free: extents leave and come again under the lcores' hands.
TEST(PoolTrim, ExtentsGoBackAndComeAgainWhileBothLcoresTakeAndFree) {
  for (const RecycleMode mode : {RecycleMode::kLifo, RecycleMode::kOff}) {
    PktmbufPoolConfig config = Small("page_frag", 24000, 0);
    config.page_frag.recycle = mode;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok()) << pool.status();
    constexpr uint64_t kOften = 16u << 20;
    std::atomic<uint64_t> bad{0};
    std::atomic<uint64_t> given_back{0};
    const auto play = [&] {
      std::vector<rte_mbuf*> held(10000);
      // On a slow or busy machine the other thread is late: bursts go on until memory has left often enough.
      for (int round = 0; round < kRounds / 400 || (given_back.load() <= kOften && round < kRounds); ++round) {
        size_t n = 0;
        while (n < held.size() && rte_mempool_get(pool->get(), reinterpret_cast<void**>(&held[n])) == 0) ++n;
        for (size_t i = 0; i < n; ++i) Stamp(held[i]);
        for (size_t i = 0; i < n; ++i) {
          bad.fetch_add(Intact(held[i]) ? 0 : 1);
          rte_mempool_put(pool->get(), held[i]);
        }
      }
    };
    std::atomic<bool> over_now{false};
    std::thread control([&] {
      while (!over_now.load()) {
        given_back.fetch_add(ShrinkPageFragArena(-1));
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    OnBothLcores(play, play);
    over_now.store(true);
    control.join();
    EXPECT_EQ(bad.load(), 0u);
    EXPECT_GT(given_back.load(), kOften) << "extents hardly ever left while lcores went on";
    pool->Flush();
    EXPECT_EQ(pool->in_use(), 0u);
    TrimPageFragArena(pool->get());
    EXPECT_EQ(ReadPageFragArena(-1).bytes, 0u);
  }
}

TEST(PoolWalk, WhatIsOutCanBeWalkedWhileAnLcoreGoesOn) {
  auto pool = PktmbufPool::Create(Small("page_frag", 3000, 0));
  ASSERT_TRUE(pool.ok());
  std::vector<void*> held(100);
  for (void*& each : held) ASSERT_EQ(rte_mempool_get(pool->get(), &each), 0);
  std::atomic<bool> over{false};
  uint64_t rounds = 0;
  int walks = 0;
  OnBothLcores(
      [&] {
        for (int i = 0; i < 200; ++i) {
          std::vector<void*> out;
          const auto collect = [](void* object, void* list) {
            static_cast<std::vector<void*>*>(list)->push_back(object);
          };
          if (ForEachPageFragObjectOut(pool->get(), collect, &out) != 0) continue;
          ++walks;
          EXPECT_LE(out.size(), 100u + 64);
          std::sort(out.begin(), out.end());
          for (void* each : held) EXPECT_TRUE(std::binary_search(out.begin(), out.end(), each));
        }
        over.store(true);
      },
      [&] {
        void* burst[64];
        for (; !over.load(); ++rounds) {
          const unsigned n = 1 + static_cast<unsigned>(rounds % 64);
          if (rte_mempool_get_bulk(pool->get(), burst, n) == 0) rte_mempool_put_bulk(pool->get(), burst, n);
        }
      });
  EXPECT_GT(walks, 150) << "an lcore in a call is waited for";
  EXPECT_GT(rounds, 100u);
  PutAll(pool->get(), held);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<uint32_t, RecycleMode>>& info) {
  const auto [cache, mode] = info.param;
  const char* name = mode == RecycleMode::kLifo ? "Lifo" : mode == RecycleMode::kRing ? "Ring" : "Off";
  return std::string(name) + "Cache" + std::to_string(cache);
}

INSTANTIATE_TEST_SUITE_P(Modes, PoolStress,
                         testing::Values(std::tuple(0u, RecycleMode::kLifo), std::tuple(64u, RecycleMode::kLifo),
                                         std::tuple(0u, RecycleMode::kRing), std::tuple(0u, RecycleMode::kOff)),
                         NameOf);

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(
      new halfpage::EalEnvironment({.memory_mib = halfpage::kMemoryMib, .extra_args = {"--lcores", "0@0,1@1"}}));
  return RUN_ALL_TESTS();
}
