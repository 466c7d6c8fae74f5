#include "mempool/footprint.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace halfpage {
namespace {

PktmbufPoolConfig Pool(const char* ops, uint32_t size, uint16_t data_room, uint32_t cache = 0) {
  PktmbufPoolConfig pool;
  pool.ops = ops;
  pool.size = size;
  pool.data_room = data_room;
  pool.cache = cache;
  return pool;
}

TEST(Footprint, ObjectIsHeaderMbufAndRoomInWholeLines) {
  EXPECT_EQ(PktmbufObjectBytes(192), 384u);
  EXPECT_EQ(PktmbufObjectBytes(2176), 2368u);
  EXPECT_EQ(PktmbufObjectBytes(2177), 2432u);
  EXPECT_EQ(PktmbufObjectBytes(1664), 1856u);
  EXPECT_EQ(PktmbufObjectBytes(65535), 65728u);
}

TEST(Footprint, PageFragPoolIsItsPagesAndOneMoreForEachFurtherWorker) {
  const PoolFootprint one = ComputePoolFootprint(Pool("page_frag", 16384, 2176), {.workers = 1});
  EXPECT_EQ(one.objects_per_page, 13u);
  EXPECT_EQ(one.pages, 1261u);
  EXPECT_EQ(one.buffer_bytes, 1261u * 32768u);
  EXPECT_EQ(one.cache_bytes, 0u);
  EXPECT_EQ(one.other_bytes, kMempoolBytes + kCarvedPoolBytes + 2 * kLaneBytes);
  EXPECT_EQ(ComputePoolFootprint(Pool("page_frag", 16384, 2176), {.workers = 4}).pages, 1264u);
}

// By hand: a chunk has 63 usable pages of 32 KiB, the last one of an extent 62. Extents: 1 1 1 1 2 3 4 6, then the 2
// that hold the last 72 pages.
TEST(Footprint, ArenaGrowsByHalvesAndNoFurtherThanItsPoolsReach) {
  const MemoryFootprint memory = ComputeFootprint({Pool("page_frag", 16384, 2176)}, {});
  ASSERT_EQ(memory.arenas.size(), 1u);
  EXPECT_EQ(memory.arenas[0].chunks, 21u);
  EXPECT_EQ(memory.arenas[0].chunk_bytes, 21 * (2u << 20) - 9 * 4096u);
  EXPECT_EQ(memory.arenas[0].page_bytes, 1261 * 32768u);
  EXPECT_EQ(memory.arenas[0].header_bytes, 21 * 32768u);
  EXPECT_EQ(memory.total, memory.arenas[0].chunk_bytes + memory.arenas[0].other_bytes + memory.pools[0].other_bytes);
}

// 63 chunks' worth of pages must not take 94 chunks.
TEST(Footprint, ArenaTakesAtMostTwoChunksMoreThanItsPagesFill) {
  for (uint32_t size = 1000; size < 400'000; size += size / 7) {
    const MemoryFootprint memory = ComputeFootprint({Pool("page_frag", size, 2176)}, {});
    const uint64_t least = (memory.pools[0].pages + 62) / 63;
    EXPECT_LE(memory.arenas[0].chunks, least + 1 + least / 50) << size;
  }
}

TEST(Footprint, PoolsOfOneSocketShareAnArenaAndItsLastChunk) {
  const PktmbufPoolConfig small = Pool("page_frag", 100, 2176);  // 8 pages of 32 KiB
  PktmbufPoolConfig other = small;
  EXPECT_EQ(ComputeFootprint({small, other}, {}).arenas.size(), 1u);
  EXPECT_EQ(ComputeFootprint({small, other}, {}).arenas[0].chunks, 1u);
  other.socket = 0;
  EXPECT_EQ(ComputeFootprint({small, other}, {}).arenas.size(), 2u);
  other.ops = "ring_mp_mc";
  EXPECT_EQ(ComputeFootprint({small, other}, {}).arenas.size(), 1u);
}

TEST(Footprint, CacheCostsEveryLcoreHoweverSmall) {
  for (const uint32_t cache : {1u, 512u}) {
    EXPECT_EQ(ComputePoolFootprint(Pool("page_frag", 1024, 2176, cache), {}).cache_bytes, 128u * 8256u);
    EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", 1024, 2176, cache), {}).cache_bytes, 128u * 8256u);
  }
}

// Measured on DPDK 22.11: 4096 bytes a default buffer, 2048 where two fit, three pages for a jumbo one; of a page that
// is used in part, no more than that part.
TEST(Footprint, StockObjectNeverCrossesASmallPage) {
  EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", 1001, 2176), {}).buffer_bytes, 1000u * 4096u + 2368u);
  EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", 1000, 1664), {}).buffer_bytes, 499u * 4096u + 2 * 1856u);
  EXPECT_EQ(ComputePoolFootprint(Pool("stack", 1000, 9600), {}).buffer_bytes, 1000u * 3u * 4096u);
}

TEST(Footprint, StockObjectsAreAnOddNumberOfLinesApart) {
  // 64 + 128 + 192 bytes are six lines; DPDK makes seven of them, against collisions of memory channels.
  EXPECT_EQ(ComputeStockFootprint(Pool("page_frag", 1, 192), {}).object_bytes, 448u);
  EXPECT_EQ(ComputeStockFootprint(Pool("page_frag", 1, 2176), {}).object_bytes, 2368u);
}

TEST(Footprint, StockObjectsLieBackToBackInHugepages) {
  const PoolFootprint footprint = ComputePoolFootprint(Pool("ring_mp_mc", 1000, 2176), {.hugepages = true});
  EXPECT_EQ(footprint.objects_per_page, 885u);
  EXPECT_EQ(footprint.buffer_bytes, (2u << 20) + 115 * 2368u);
}

TEST(Footprint, PageFragTakesHalfOfStockWithoutHugepages) {
  const uint64_t stock = ComputePoolFootprint(Pool("ring_mp_mc", 155456, 2176, 256), {}).total();
  const uint64_t carved = ComputePoolFootprint(Pool("page_frag", 155456, 2176, 256), {}).total();
  EXPECT_LT(carved * 100, stock * 65);
}

TEST(Footprint, PageThatHoldsNothingHasNoFootprint) {
  PktmbufPoolConfig pool = Pool("page_frag", 1024, 9216, 256);
  pool.page_frag.page_size = 4096;
  EXPECT_EQ(ComputePoolFootprint(pool, {}).total(), 0u);
}

TEST(Footprint, LargestSizeFitsAndOneMoreDoesNot) {
  for (const char* ops : {"page_frag", "ring_mp_mc"}) {
    for (const uint16_t room : {192, 2176, 9216, 65535}) {
      for (const bool hugepages : {false, true}) {
        for (const uint64_t available : {uint64_t{7} << 20, (uint64_t{100} << 20) + 12345, uint64_t{1} << 33}) {
          const FootprintTerms terms = {.hugepages = hugepages, .workers = 2};
          std::vector<PktmbufPoolConfig> pools = {Pool("page_frag", 500, 2176), Pool(ops, 1, room, 256)};
          pools[1].size = LargestPoolSize(pools, 1, terms, available);
          ASSERT_GT(pools[1].size, 0u) << ops << " " << room << " " << available;
          EXPECT_LE(ComputeFootprint(pools, terms).total, available) << ops << " " << room;
          ++pools[1].size;
          EXPECT_GT(ComputeFootprint(pools, terms).total, available) << ops << " " << room;
        }
      }
    }
  }
}

TEST(Footprint, NothingFitsWhereNotEvenTheCachesDo) {
  EXPECT_EQ(LargestPoolSize({Pool("page_frag", 1, 2176, 1)}, 0, {}, 1000), 0u);
  EXPECT_EQ(LargestPoolSize({Pool("ring_mp_mc", 1, 2176)}, 0, {}, 0), 0u);
}

TEST(Footprint, LargestSizesDoNotOverflow) {
  EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", UINT32_MAX, 65535), {}).buffer_bytes,
            uint64_t{UINT32_MAX} * 17 * 4096);
  EXPECT_GT(ComputePoolFootprint(Pool("page_frag", UINT32_MAX, 65535), {}).total(), uint64_t{UINT32_MAX} * 131072);
}

// Where packing changes.
PackingCliff CliffOf(const char* ops, uint16_t room, uint32_t page, bool hugepages = false) {
  PktmbufPoolConfig pool = Pool(ops, 1000, room);
  pool.page_frag.page_size = page;
  return FindPackingCliff(pool, {.hugepages = hugepages});
}

TEST(PackingCliff, Room1920OnSmallPagesIs64BytesFromTwoToAPage) {
  const PackingCliff cliff = CliffOf("page_frag", 1920, 4096);
  EXPECT_EQ(cliff.objects_per_page, 1u);
  EXPECT_EQ(cliff.next_room, 1856u);
  EXPECT_EQ(cliff.next_objects, 2u);
  EXPECT_EQ(cliff.largest_room, 4096u - 192u);
}

TEST(PackingCliff, Room1856IsTheLargestThatGoesTwiceIntoASmallPage) {
  const PackingCliff cliff = CliffOf("page_frag", 1700, 4096);
  EXPECT_EQ(cliff.objects_per_page, 2u);
  EXPECT_EQ(cliff.largest_room, 1856u);
  EXPECT_EQ(cliff.next_room, 0u) << "three would need rooms of less than 1160";
}

TEST(PackingCliff, StockWithoutHugepagesHasACliffToo) {
  // Two objects of 31 lines fit into 64 lines; 32 lines become 33.
  const PackingCliff cliff = CliffOf("ring_mp_mc", 1920, 0);
  EXPECT_EQ(cliff.objects_per_page, 1u);
  EXPECT_EQ(cliff.next_room, 31 * 64u - 192u);
  EXPECT_EQ(cliff.next_objects, 2u);
}

TEST(PackingCliff, StockInHugepagesHasNone) {
  EXPECT_EQ(CliffOf("ring_mp_mc", 1920, 0, true).page_bytes, 0u);
}

TEST(PackingCliff, NeighboursOfEveryCliffPackAsItSays) {
  for (uint32_t room = 188; room <= 20'000; room += 37) {
    for (const uint32_t page : {0u, 4096u, 65536u}) {
      const PackingCliff cliff = CliffOf("page_frag", static_cast<uint16_t>(room), page);
      if (cliff.page_bytes == 0) continue;
      const auto objects = [&](uint32_t data_room) {
        PktmbufPoolConfig pool = Pool("page_frag", 1, static_cast<uint16_t>(data_room));
        pool.page_frag.page_size = cliff.page_bytes;
        return ComputePoolFootprint(pool, {}).objects_per_page;
      };
      ASSERT_EQ(objects(cliff.largest_room), cliff.objects_per_page);
      ASSERT_LT(objects(cliff.largest_room + 1), cliff.objects_per_page);
      if (cliff.next_room == 0) continue;
      ASSERT_EQ(objects(cliff.next_room), cliff.next_objects);
      ASSERT_EQ(objects(cliff.next_room + 1), cliff.objects_per_page);
    }
  }
}

// By hand: 64 bytes with 128 of headroom and 128 of mbuf take 320, and 102 of them 32640 of 32768 bytes.
TEST(Footprint, ExactBuffersOfOneLengthLieBackToBack) {
  const ExactPacking packing = PackExact({{64, 1}}, 32768);
  EXPECT_EQ(packing.buffer_bytes, 320);
  EXPECT_NEAR(packing.per_page, 102, 0.1);
  PktmbufPoolConfig pool;
  pool.size = 10200;
  pool.page_frag.exact = true;
  pool.page_frag.page_size = 32768;
  pool.cache = 0;
  const PoolFootprint footprint = ComputePoolFootprint(pool, {.exact = {{pool.name, {{64, 1}}}}});
  EXPECT_NEAR(static_cast<double>(footprint.pages), 100, 1);
  EXPECT_EQ(footprint.object_bytes, 320u);
}

// Frames past a page are cut into whole pages and a rest.
TEST(Footprint, ExactFramesPastAPageAreChains) {
  const ExactPacking packing = PackExact({{9000, 1}}, 4096);
  // 9128 bytes with headroom: 3968, 3968 and 1192, which with its mbuf takes 1344.
  EXPECT_NEAR(packing.buffer_bytes, (4096 + 4096 + 1344) / 3.0, 0.01);
  EXPECT_NEAR(packing.per_page, 1, 0.01) << "the third has its page to itself: the next frame begins with a whole one";
}

}  // namespace
}  // namespace halfpage
