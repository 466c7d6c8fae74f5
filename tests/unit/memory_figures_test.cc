// What packet buffers take of memory, against what they may: counts of the arena and of EAL's heap, the same on every
// run. tools/bench prints them as rows, from the properties that each test records.
//
// Without hugepages, where a stock pool with them is reckoned (footprint_measured_test holds that against the real
// thing); with them when the argument --hugepages is given, where it is made.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mempool/exact_frag.h"
#include "mempool/footprint.h"
#include "mempool/page_frag.h"
#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"

namespace halfpage {
namespace {

constexpr uint32_t kMemoryMib = 320;
constexpr size_t kShortLife = 1024;  // allocations that most packets live for
constexpr size_t kLongLife = 100 * kShortLife;
constexpr uint32_t kPoolSize = 16384;
constexpr size_t kImixPackets = 48 * 171;

// 28 of 64 bytes, 16 of 570 and 4 of 1514, mixed.
uint32_t ImixLength(size_t i) {
  const size_t at = i % 12;
  return at == 11 ? 1514 : at % 3 == 2 || at == 9 ? 570 : 64;
}

// Records a row for tools/bench; every test has at least one. A target that is infinite is none.
void Record(const std::string& name, double measured, double target, bool at_most, const std::string& detail) {
  static int number = 0;
  const bool met = at_most ? measured <= target : measured >= target;
  testing::Test::RecordProperty(
      absl::StrCat("row", ++number),
      absl::StrCat(name, ";", absl::StrFormat("%.4g", measured), ";",
                   std::isinf(target) ? "-" : absl::StrFormat("%s %.4g", at_most ? "<=" : ">=", target), ";", met, ";",
                   detail));
}

void ExpectAtMost(const std::string& name, double measured, double target, const std::string& detail = "") {
  Record(name, measured, target, true, detail);
  EXPECT_LE(measured, target) << name << " " << detail;
}

PktmbufPoolConfig Buffers(const std::string& ops, uint32_t size, uint16_t room, uint32_t page_size, uint32_t cache) {
  PktmbufPoolConfig config = Small(ops, size, cache);
  config.name = absl::StrCat(ops, "_", room);
  config.data_room = room;
  config.page_frag.page_size = page_size;
  return config;
}

PktmbufPool Create(const PktmbufPoolConfig& config) {
  auto pool = PktmbufPool::Create(config);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

ExactFrag CreateExact(uint32_t page_size) {
  ExactFragConfig config;
  config.size = kPoolSize;
  config.page_size = page_size;
  auto pool = ExactFrag::Create(config);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

uint64_t HeapInUse() {
  uint64_t bytes = 0;
  for (int socket = 0; socket < RTE_MAX_NUMA_NODES; ++socket) {
    rte_malloc_socket_stats stats;
    if (rte_malloc_get_socket_stats(socket, &stats) == 0) bytes += stats.heap_allocsz_bytes;
  }
  return bytes;
}

// Starts each figure with an empty arena.
void GiveBack(rte_mempool* pool) {
  FlushPageFragPool(pool);
  TrimPageFragArena(pool);
}

uint64_t HeldPageBytes(const rte_mempool* pool) {
  const PageFragStats stats = *ReadPageFragStats(pool);
  return stats.pages_inflight * stats.page_size;
}

// Bytes of EAL's heap that a pool takes with all its buffers out.
uint64_t HeapBytesOf(const PktmbufPoolConfig& config) {
  const uint64_t before = HeapInUse();
  PktmbufPool pool = Create(config);
  const std::vector<void*> all = TakeAll(pool.get());
  EXPECT_EQ(all.size(), config.size);
  const uint64_t bytes = HeapInUse() - before;
  PutAll(pool.get(), all);
  pool.Flush();
  GiveBack(pool.get());
  return bytes;
}

// The same pools made by DPDK's default handler, with hugepages.
uint64_t StockBytes(std::vector<PktmbufPoolConfig> configs) {
  uint64_t bytes = 0;
  for (PktmbufPoolConfig& config : configs) {
    config.ops = "ring_mp_mc";
    bytes +=
        rte_eal_has_hugepages() != 0 ? HeapBytesOf(config) : ComputeStockFootprint(config, {.hugepages = true}).total();
  }
  return bytes;
}

// The most bytes of EAL's heap while each pool in turn has all its buffers out. Nothing is flushed between them.
uint64_t PeakInTurn(const std::vector<PktmbufPoolConfig>& configs) {
  const uint64_t before = HeapInUse();
  std::vector<PktmbufPool> pools;
  for (const PktmbufPoolConfig& config : configs) pools.push_back(Create(config));
  uint64_t peak = 0;
  for (const PktmbufPool& pool : pools) {
    const std::vector<void*> all = TakeAll(pool.get());
    EXPECT_EQ(all.size(), pool.config().size);
    peak = std::max(peak, HeapInUse() - before);
    PutAll(pool.get(), all);
  }
  for (PktmbufPool& pool : pools) pool.Flush();
  GiveBack(pools.front().get());
  return peak;
}

// Bytes of pages over bytes of live buffers, headers included: 1.00 wastes none.
struct Linger {
  double held = 0;     // of pages that the pool holds: carved, or waiting for their last buffer
  double touched = 0;  // of pages that have a live buffer
};

// Most packets live for kShortLife allocations, one in `one_in` for kLongLife. `take` gives a buffer, `bytes_of` what
// it takes of its page.
Linger LiveOn(uint32_t one_in, rte_mempool* pool, const std::function<rte_mbuf*()>& take,
              const std::function<uint64_t(const rte_mbuf*)>& bytes_of) {
  std::deque<rte_mbuf*> brief;
  std::deque<rte_mbuf*> lingering;
  const auto age = [](std::deque<rte_mbuf*>* lives, size_t most) {
    for (; lives->size() > most; lives->pop_front()) rte_pktmbuf_free(lives->front());
  };
  Linger sum;
  int samples = 0;
  for (size_t i = 0; i < 3 * kLongLife; ++i) {
    rte_mbuf* buffer = take();
    if (buffer == nullptr) {
      ADD_FAILURE() << "no buffer after " << i;
      break;
    }
    (i % one_in == one_in - 1 ? lingering : brief).push_back(buffer);
    age(&brief, kShortLife);
    age(&lingering, kLongLife / one_in);
    if (i < 2 * kLongLife || i % 997 != 0) continue;
    uint64_t live = 0;
    const uint32_t page_size = ReadPageFragStats(pool)->page_size;
    std::set<uintptr_t> pages;
    for (const auto* lives : {&brief, &lingering}) {
      for (const rte_mbuf* each : *lives) {
        live += bytes_of(each);
        pages.insert(reinterpret_cast<uintptr_t>(each) / page_size);
      }
    }
    sum.held += static_cast<double>(HeldPageBytes(pool)) / static_cast<double>(live);
    sum.touched += static_cast<double>(pages.size() * page_size) / static_cast<double>(live);
    ++samples;
  }
  age(&brief, 0);
  age(&lingering, 0);
  GiveBack(pool);
  return {sum.held / samples, sum.touched / samples};
}

// How often, of 2000 times, a buffer could be taken after one at random was freed, with all that could be taken out.
void ExpectTakenAgain(const std::string& limit, uint32_t size) {
  PktmbufPool pool = Create(Buffers("page_frag", size, 2176, 0, 0));
  std::vector<void*> all = TakeAll(pool.get());
  const size_t most = all.size();
  std::mt19937 random(3);
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    void*& victim = all[random() % all.size()];
    rte_mempool_put(pool.get(), victim);
    if (rte_mempool_get(pool.get(), &victim) == 0) {
      ++taken;
    } else {
      std::swap(victim, all.back());
      all.pop_back();
    }
  }
  PutAll(pool.get(), all);
  GiveBack(pool.get());
  Record(absl::StrCat("free 1, take 1 at the limit of ", limit), taken, 2000, false,
         absl::StrCat("2000 times, with ", most, " of ", size, " out"));
  EXPECT_EQ(taken, 2000) << limit;
}

uint64_t FreeHugepages() {
  uint64_t free = 0;
  std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> free;
  return free;
}

class MemoryFigures : public testing::Test {
 public:
  static void SkipAll() { skip_ = true; }

 protected:
  void SetUp() override {
    if (skip_) GTEST_SKIP() << FreeHugepages() << " hugepages of 2 MiB are free, " << kMemoryMib / 2 << " are needed";
  }

 private:
  static inline bool skip_ = false;
};

TEST_F(MemoryFigures, PagesWithLingeringBuffersAreFilledUpAgain) {
  struct Row {
    uint16_t room;
    uint32_t page_size;
    double targets[3];  // for one in 1000, 100 and 20 that linger
  };
  for (const Row& row :
       {Row{1856, 4096, {1.2, 1.2, 1.2}}, Row{2176, 32768, {1.6, 1.3, 1.3}}, Row{384, 32768, {3.2, 1.75, 1.75}}}) {
    for (int i = 0; i < 3; ++i) {
      const uint32_t one_in = i == 0 ? 1000 : i == 1 ? 100 : 20;
      PktmbufPool pool = Create(Buffers("page_frag", kPoolSize, row.room, row.page_size, 0));
      const uint32_t objects = ReadPageFragStats(pool.get())->objects_per_page;
      const Linger linger = LiveOn(
          one_in, pool.get(), [&] { return rte_pktmbuf_alloc(pool.get()); },
          [&](const rte_mbuf*) { return PktmbufObjectBytes(row.room); });
      ExpectAtMost(absl::StrCat("1 in ", one_in, " lingers, ", objects, " x ", row.room, " per ", row.page_size / 1024,
                                " KiB: pages held / live"),
                   linger.held, row.targets[i], absl::StrFormat("pages with a live buffer %.2f", linger.touched));
    }
  }
}

TEST_F(MemoryFigures, WhatLingeringExactBuffersPinIsKnown) {
  for (uint32_t page_size : {4096u, 32768u}) {
    for (uint32_t one_in : {1000u, 100u, 20u}) {
      ExactFrag pool = CreateExact(page_size);
      std::mt19937 random(1);  // which lengths linger is not to hang on a common divisor of 12 and `one_in`
      const Linger linger = LiveOn(
          one_in, pool.get(), [&] { return pool.Alloc(ImixLength(random()), ExactRoom{}); },
          [](const rte_mbuf* each) { return sizeof(rte_mbuf) + each->buf_len; });
      ExpectAtMost(
          absl::StrCat("1 in ", one_in, " lingers, exact IMIX on ", page_size / 1024, " KiB: pages held / live"),
          linger.held, HUGE_VAL, absl::StrFormat("pages with a live buffer %.2f", linger.touched));
    }
  }
}

TEST_F(MemoryFigures, ABufferFreedAtThePoolsSizeCanBeTakenAgain) {
  ExpectTakenAgain("buffers", 4000);
}

TEST_F(MemoryFigures, ExactImixTakesAThirdOfAStockPoolAtMost) {
  const double stock = static_cast<double>(StockBytes({Buffers("ring_mp_mc", kPoolSize, 2176, 0, 0)})) / kPoolSize;
  struct Row {
    uint16_t headroom;
    double target;
  };
  for (const Row& row : {Row{0, 0.22}, Row{128, 0.27}, Row{256, 0.33}}) {
    ExactFrag pool = CreateExact(32768);
    std::vector<rte_mbuf*> packets;
    for (size_t i = 0; i < kImixPackets; ++i) packets.push_back(pool.Alloc(ImixLength(i), {row.headroom, 0}));
    ASSERT_EQ(std::count(packets.begin(), packets.end(), nullptr), 0);
    const double bytes = static_cast<double>(HeldPageBytes(pool.get())) / kImixPackets;
    rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
    GiveBack(pool.get());
    ExpectAtMost(absl::StrCat("exact IMIX, headroom ", row.headroom, ": bytes a packet / stock"), bytes / stock,
                 row.target, absl::StrFormat("%.0f against %.0f bytes, 32 KiB pages", bytes, stock));
  }
}

// Against stock pools of their own; in the detail the same with mempool caches, which take memory beside the pools and
// keep buffers of idle ones.
void ExpectPeakAtMost(const std::string& name, std::vector<PktmbufPoolConfig> pools, double target) {
  double ratios[2];
  std::string details[2];
  for (const bool cached : {false, true}) {
    for (size_t i = 0; i < pools.size(); ++i) {
      pools[i].name = absl::StrCat("turn_", i);
      pools[i].cache = cached ? 256 : 0;
    }
    const auto stock = static_cast<double>(StockBytes(pools));
    const auto peak = static_cast<double>(PeakInTurn(pools));
    ratios[cached] = peak / stock;
    details[cached] = absl::StrFormat("%.1f against %.1f MiB", peak / 0x1p20, stock / 0x1p20);
  }
  ExpectAtMost(name, ratios[0], target,
               absl::StrFormat("%s; %.2f with mempool caches of 256, %s", details[0], ratios[1], details[1]));
}

TEST_F(MemoryFigures, IdlePoolsTakeNearlyNothing) {
  ExpectPeakAtMost("8 pools of 8192 x 2176, one busy at a time: peak / stock",
                   {8, Buffers("page_frag", 8192, 2176, 0, 0)}, 0.20);
}

TEST_F(MemoryFigures, PoolsOfDifferentRoomsUseOneMemoryInTurn) {
  ExpectPeakAtMost("8192 x 256, 8192 x 2176, 2048 x 9216 in turn: peak / stock",
                   {Buffers("page_frag", 8192, 256, 0, 0), Buffers("page_frag", 8192, 2176, 0, 0),
                    Buffers("page_frag", 2048, 9216, 0, 0)},
                   0.65);
}

TEST(WithoutHugepages, ABufferFreedWhenMemoryIsOutCanBeTakenAgain) {
  ExpectTakenAgain("memory", 900000);
}

TEST(WithoutHugepages, ABufferTakesItsRoomAndNotAPage) {
  // An arena ends with a chunk that is not full: up to 2 MiB, which tells in a small pool.
  constexpr uint32_t kMany = 4 * kPoolSize;
  const double stock = static_cast<double>(HeapBytesOf(Buffers("ring_mp_mc", kMany, 2176, 0, 0))) / kMany;
  const double ours = static_cast<double>(HeapBytesOf(Buffers("page_frag", kMany, 2176, 0, 0))) / kMany;
  const double few = static_cast<double>(HeapBytesOf(Buffers("page_frag", kPoolSize, 2176, 0, 0))) / kPoolSize;
  EXPECT_GE(stock, 4096);
  ExpectAtMost("bytes of EAL's heap a buffer of 2176, --no-huge", ours, 2600,
               absl::StrFormat("stock %.0f; of %u buffers, of %u it is %.0f", stock, kMany, kPoolSize, few));
}

TEST(WithoutHugepages, TwoFullFramesWithTheKernelsHeadroomShareAPage) {
  PktmbufPool pool = Create(Buffers("page_frag", kPoolSize, 256 + 1514, 4096, 0));
  const std::vector<void*> all = TakeAll(pool.get());
  ASSERT_EQ(all.size(), kPoolSize);
  const double bytes = static_cast<double>(HeldPageBytes(pool.get())) / kPoolSize;
  PutAll(pool.get(), all);
  GiveBack(pool.get());
  ExpectAtMost("bytes of pages a full frame with 256 headroom, 4 KiB pages", bytes, 2048);
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool hugepages = argc > 1 && std::string(argv[1]) == "--hugepages";
  if (hugepages)
    testing::GTEST_FLAG(filter) +=
        testing::GTEST_FLAG(filter).find('-') == std::string::npos ? "-WithoutHugepages.*" : ":WithoutHugepages.*";
  if (hugepages && halfpage::FreeHugepages() < halfpage::kMemoryMib / 2) {
    halfpage::MemoryFigures::SkipAll();
  } else {
    testing::AddGlobalTestEnvironment(new halfpage::EalEnvironment(
        {.memory_mib = halfpage::kMemoryMib, .hugepages = hugepages, .extra_args = {"-l", "0"}}));
  }
  return RUN_ALL_TESTS();
}
