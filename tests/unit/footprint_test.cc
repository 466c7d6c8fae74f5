#include "mempool/footprint.h"

#include <cstdint>

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

TEST(Footprint, PageFragPoolIsPagesASparePerWorkerAndMetadata) {
  const PoolFootprint one = ComputePoolFootprint(Pool("page_frag", 16384, 2176), {.workers = 1});
  EXPECT_EQ(one.objects_per_page, 13u);
  EXPECT_EQ(one.pages, 1261u + 1u);
  EXPECT_EQ(one.buffer_bytes, 1262u * 32768u);
  EXPECT_EQ(one.other_bytes, 1262u * 512u);
  EXPECT_EQ(one.cache_bytes, 0u);
  EXPECT_EQ(ComputePoolFootprint(Pool("page_frag", 16384, 2176), {.workers = 4}).pages, 1265u);
}

TEST(Footprint, CacheCostsEveryLcoreHoweverSmall) {
  for (const uint32_t cache : {1u, 512u}) {
    EXPECT_EQ(ComputePoolFootprint(Pool("page_frag", 1024, 2176, cache), {}).cache_bytes, 128u * 8256u);
    EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", 1024, 2176, cache), {}).cache_bytes, 128u * 8256u);
  }
}

TEST(Footprint, StockObjectNeverCrossesASmallPage) {
  // Measured on DPDK 22.11: 4096 bytes a default buffer, 2048 where two fit, three pages for a jumbo one.
  EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", 1000, 2176), {}).total(), 1000u * 4096u);
  EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", 1000, 1664), {}).total(), 500u * 4096u);
  EXPECT_EQ(ComputePoolFootprint(Pool("stack", 1000, 9600), {}).total(), 1000u * 3u * 4096u);
}

TEST(Footprint, StockObjectsLieBackToBackInHugepages) {
  const PoolFootprint footprint = ComputePoolFootprint(Pool("ring_mp_mc", 1000, 2176), {.hugepages = true});
  EXPECT_EQ(footprint.total(), 1000u * 2368u);
  EXPECT_EQ(footprint.page_bytes, 0u);
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
        for (const uint64_t available : {uint64_t{2} << 20, (uint64_t{100} << 20) + 12345, uint64_t{1} << 36}) {
          const FootprintTerms terms = {.hugepages = hugepages, .workers = 2};
          PktmbufPoolConfig pool = Pool(ops, 1, room, 256);
          pool.size = LargestPoolSize(pool, terms, available);
          ASSERT_GT(pool.size, 0u);
          EXPECT_LE(ComputePoolFootprint(pool, terms).total(), available) << ops << " " << room;
          ++pool.size;
          EXPECT_GT(ComputePoolFootprint(pool, terms).total(), available) << ops << " " << room;
        }
      }
    }
  }
}

TEST(Footprint, NothingFitsWhereNotEvenTheCachesDo) {
  EXPECT_EQ(LargestPoolSize(Pool("page_frag", 1, 2176, 1), {}, 1000), 0u);
  EXPECT_EQ(LargestPoolSize(Pool("ring_mp_mc", 1, 2176), {}, 0), 0u);
}

TEST(Footprint, LargestSizesDoNotOverflow) {
  EXPECT_EQ(ComputePoolFootprint(Pool("ring_mp_mc", UINT32_MAX, 65535), {}).total(), uint64_t{UINT32_MAX} * 17 * 4096);
  EXPECT_GT(ComputePoolFootprint(Pool("page_frag", UINT32_MAX, 65535), {}).total(), uint64_t{UINT32_MAX} * 131072);
}

}  // namespace
}  // namespace halfpage
