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

}  // namespace
}  // namespace halfpage
