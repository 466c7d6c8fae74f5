#include "mempool/page_layout.h"

#include <gtest/gtest.h>

#include <set>

namespace halfpage {
namespace {

constexpr uint32_t kHeaders = 64 + 128;  // mempool object header and mbuf

TEST(PageLayout, TwoFullFramesWithHeadroomOf256FitOnePageOf4KiB) {
  const auto layout = LayOutPage(kHeaders + 256 + 1514, 4096, true);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->objects, 2u);
}

TEST(PageLayout, Room1856IsTheLastOfWhichTwoFitAPage) {
  EXPECT_EQ(LayOutPage(kHeaders + 1856, 4096, true)->objects, 2u);
  EXPECT_EQ(LayOutPage(kHeaders + 1857, 4096, true)->objects, 1u);
}

TEST(PageLayout, ThirteenDefaultMbufsFitThePageOf32KiBThatIsChosen) {
  const auto layout = LayOutPage(kHeaders + 2176, 0, true);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->page_size(), 32768u);
  EXPECT_EQ(layout->objects, 13u);
  EXPECT_EQ(layout->stride, 2368u);
}

TEST(PageLayout, SmallObjectsGetAPageThatOneWordOfBitsCovers) {
  for (uint32_t room = 64; room <= 512; room += 64) {
    const auto layout = LayOutPage(kHeaders + room, 0, true);
    ASSERT_TRUE(layout.has_value());
    EXPECT_LE(layout->page_size() / layout->stride, kMaxObjectsPerPage) << room;
  }
}

TEST(PageLayout, LargeObjectsGetALargerPage) {
  EXPECT_EQ(LayOutPage(kHeaders + 9216, 0, true)->page_size(), 32768u);
  EXPECT_EQ(LayOutPage(kHeaders + 16384, 0, true)->page_size(), 65536u);
  EXPECT_EQ(LayOutPage(kHeaders + 65535, 0, true)->page_size(), 131072u);
}

TEST(PageLayout, PageSizesThatAreNoPowerOfTwoFrom4KiBTo128KiBAreRefused) {
  for (uint32_t page : {1u, 2048u, 4095u, 4097u, 12288u, 262144u, 0x80000000u}) {
    EXPECT_FALSE(LayOutPage(2368, page, true).has_value()) << page;
  }
  EXPECT_FALSE(LayOutPage(4097, 4096, true).has_value()) << "an object larger than its page";
  EXPECT_FALSE(LayOutPage(0, 4096, true).has_value());
}

TEST(PageLayout, WithoutColourEveryPageStartsAtItsFirstByte) {
  EXPECT_EQ(LayOutPage(2368, 32768, false)->colour_mask, 0u);
}

// Every byte of every object, at every colour, of every shape: the index by multiplication is the index by division.
TEST(PageLayout, EveryObjectKeepsInsideItsPageAndKnowsItsIndexAtEveryColour) {
  std::set<uint32_t> strides;
  for (uint32_t object = 64; object <= 131072; object += object < 4096 ? 64 : 1088) strides.insert(object);
  for (uint32_t page = 4096; page <= 131072; page *= 2) {
    for (uint32_t object : strides) {
      const auto layout = LayOutPage(object, page, true);
      if (object > page) continue;
      ASSERT_TRUE(layout.has_value());
      for (uint32_t colour = 0; colour <= layout->colour_mask; ++colour) {
        for (uint32_t i = 0; i < layout->objects; ++i) {
          const uint32_t offset = layout->FirstOffset(colour) + i * layout->stride;
          ASSERT_LE(offset + object, page) << "object " << object << " page " << page;
          ASSERT_EQ(layout->IndexOf(offset), i) << "object " << object << " page " << page << " colour " << colour;
        }
      }
    }
  }
}

TEST(ChunkLayout, HeaderAndMetadataTakeTheFirstPages) {
  // 128 bytes of header and 32 for each page: 16512 bytes are five pages of 4 KiB, 2176 one of 32 KiB.
  EXPECT_EQ(LayOutChunk(12, false).first_page, 5u);
  EXPECT_EQ(LayOutChunk(12, false).pages, 507u);
  EXPECT_EQ(LayOutChunk(15, false).first_page, 1u);
  EXPECT_EQ(LayOutChunk(15, false).pages, 63u);
  EXPECT_EQ(LayOutChunk(17, false).pages, 15u);
}

TEST(ChunkLayout, LastChunkOfAnExtentHasOnePageLess) {
  for (uint32_t shift = kMinPageShift; shift <= kMaxPageShift; ++shift) {
    EXPECT_EQ(LayOutChunk(shift, true).pages + 1, LayOutChunk(shift, false).pages) << shift;
  }
}

TEST(ExtentSize, IsHalfOfWhatThereIsAndNoMoreThanIsMissing) {
  EXPECT_EQ(NextExtentChunks(0, 100), 1u);
  EXPECT_EQ(NextExtentChunks(20, 100), 10u);
  EXPECT_EQ(NextExtentChunks(20, 3), 3u);
  EXPECT_EQ(NextExtentChunks(1000, 500), kMaxExtentChunks);
}

TEST(ExtentSize, PastWhatPoolsCanFillItIsASixteenth) {
  EXPECT_EQ(NextExtentChunks(0, 0), 1u);
  EXPECT_EQ(NextExtentChunks(20, 0), 1u);
  EXPECT_EQ(NextExtentChunks(160, 0), 10u);
  EXPECT_EQ(NextExtentChunks(10'000, 0), kMaxExtentChunks);
}

}  // namespace
}  // namespace halfpage
