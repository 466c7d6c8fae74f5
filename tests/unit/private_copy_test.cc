// Frames whose ends move, and private copies of frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/eal_environment.h"
#include "tests/unit/frame_fixture.h"
#include "xdp_emul/convert.h"
#include "xdp_emul/frame.h"

namespace halfpage {
namespace {

class PrivateCopy : public FrameFixture {};

// Frames whose ends move.

TEST_F(PrivateCopy, AFrameGrowsInFrontByItsHeadroomAndNotAByteMore) {
  rte_mempool* pool = Pool("p");
  rte_mbuf* frame = Frame(pool, 64);
  const Bytes before = Flat(frame);
  FrameView view(frame);
  EXPECT_FALSE(view.AdjustHead(-129));
  EXPECT_EQ(Flat(frame), before) << "a refusal changes nothing";
  ASSERT_TRUE(view.AdjustHead(-128));
  EXPECT_EQ(view.length(), 192u);
  EXPECT_FALSE(view.AdjustHead(-1));
  ASSERT_TRUE(view.AdjustHead(128));
  EXPECT_EQ(Flat(frame), before);
  EXPECT_FALSE(view.AdjustHead(51)) << "13 bytes would be left";
  ASSERT_TRUE(view.AdjustHead(50));
  EXPECT_EQ(view.data_end() - view.data(), 14);
  EXPECT_FALSE(view.AdjustHead(INT32_MAX));
  EXPECT_FALSE(view.AdjustHead(INT32_MIN));
  rte_pktmbuf_free(frame);
}

TEST_F(PrivateCopy, MetadataTakesHeadroomMovesWithTheHeadAndIsAMultipleOfFour) {
  rte_mempool* pool = Pool("p");
  rte_mbuf* frame = Frame(pool, 64);
  FrameView view(frame);
  for (const int32_t delta : {-1, -2, -3, 4, -256, INT32_MIN, INT32_MAX}) EXPECT_FALSE(view.AdjustMetadata(delta));
  EXPECT_FALSE(view.AdjustMetadata(-132)) << "128 bytes of headroom";
  ASSERT_TRUE(view.AdjustMetadata(-8));
  std::memcpy(view.data_meta(), "METADATA", 8);
  ASSERT_TRUE(view.AdjustHead(-120));
  EXPECT_EQ(std::memcmp(view.data_meta(), "METADATA", 8), 0);
  EXPECT_EQ(view.data() - view.data_meta(), 8);
  EXPECT_FALSE(view.AdjustHead(-1)) << "metadata stays within the buffer";
  ASSERT_TRUE(view.AdjustHead(100));
  EXPECT_EQ(std::memcmp(view.data_meta(), "METADATA", 8), 0);
  ASSERT_TRUE(view.AdjustMetadata(8));
  EXPECT_EQ(view.metadata(), 0);
  rte_pktmbuf_free(frame);
}

TEST_F(PrivateCopy, AFrameGrowsAtItsEndByZerosAsFarAsItsLastBufferGoes) {
  rte_mempool* pool = Pool("p", 512);
  for (const uint32_t piece : {65535u, 100u}) {
    rte_mbuf* frame = Frame(pool, 250, piece);
    const Bytes before = Flat(frame);
    FrameView view(frame);
    const uint32_t room = rte_pktmbuf_tailroom(rte_pktmbuf_lastseg(frame));
    EXPECT_FALSE(view.AdjustTail(static_cast<int32_t>(room) + 1));
    EXPECT_FALSE(view.AdjustTail(INT32_MAX));
    ASSERT_TRUE(view.AdjustTail(static_cast<int32_t>(room)));
    Bytes grown = before;
    grown.resize(250 + room);
    EXPECT_EQ(Flat(frame), grown);
    rte_pktmbuf_free(frame);
  }
}

TEST_F(PrivateCopy, CuttingTheEndOffAChainFreesBuffersThatBecomeEmptyAndKeepsTheRest) {
  rte_mempool* pool = Pool("p", 512);
  for (uint32_t cut = 0; cut <= 300; ++cut) {
    rte_mbuf* frame = Frame(pool, 300, 70);
    Bytes expected = Flat(frame);
    FrameView view(frame);
    ASSERT_EQ(view.AdjustTail(-static_cast<int32_t>(cut)), cut <= 286) << cut;
    if (cut <= 286) expected.resize(300 - cut);
    EXPECT_EQ(Flat(frame), expected);
    EXPECT_EQ(view.frags(), ((cut <= 286 ? 300 - cut : 300) + 69) / 70 - 1u) << cut;
    rte_pktmbuf_free(frame);
  }
}

// Private copies.

struct Cut {
  const char* name;
  CopyCut cut;
  std::vector<uint16_t> rooms;  // of ordinary pools; empty: one exact pool
};

TEST_F(PrivateCopy, EveryPolicyCopiesEveryFrameSizeByteForByteWithTheHeadroomAskedFor) {
  rte_mempool* source = Pool("source", 16384, 256);
  for (const Cut& cut : {Cut{"whole", CopyCut::kRooms, {3904}}, Cut{"half", CopyCut::kRooms, {1856}},
                         Cut{"fixed", CopyCut::kRooms, {700}}, Cut{"classes", CopyCut::kRooms, {9216, 512, 2176}},
                         Cut{"exact", CopyCut::kExact, {}}, Cut{"kernel", CopyCut::kKernel, {}}}) {
    SCOPED_TRACE(cut.name);
    ConverterConfig config;
    config.cut = cut.cut;
    config.always = true;
    for (const uint16_t room : cut.rooms)
      config.pools.push_back(Pool(std::string(cut.name) + std::to_string(room), room));
    if (cut.rooms.empty()) config.pools.push_back(Pool(cut.name, 2176, 1024, true));
    auto converter = Converter::Create(config);
    ASSERT_TRUE(converter.ok()) << converter.status();
    uint64_t bytes = 0;
    for (const uint32_t length : {14u, 60u, 64u, 65u, 256u, 257u, 1472u, 1473u, 1514u, 3520u, 3521u, 9014u, 65535u}) {
      rte_mbuf* frame = Frame(source, length);
      const Bytes expected = Flat(frame);
      ASSERT_EQ(converter->Convert(&frame, 1), 1);
      EXPECT_EQ(Flat(frame), expected) << length;
      EXPECT_EQ(rte_pktmbuf_headroom(frame), 256) << length;
      EXPECT_NE(frame->pool, source);
      rte_pktmbuf_free(frame);
      bytes += length;
    }
    EXPECT_EQ(converter->bytes[static_cast<int>(CopyCause::kAlways)].Read(), bytes);
  }
}

TEST_F(PrivateCopy, CopiesOfPolicyKernelHaveTheKernelsRoomAndCharge) {
  ConverterConfig config;
  config.cut = CopyCut::kKernel;
  config.always = true;
  config.pools = {Pool("kernel", 2176, 1024, true)};
  auto converter = Converter::Create(config);
  ASSERT_TRUE(converter.ok());
  rte_mempool* source = Pool("source");
  const auto copied = [&](uint32_t length) {
    const uint64_t before = converter->truesize.Read();
    rte_mbuf* frame = Frame(source, length);
    EXPECT_EQ(converter->Convert(&frame, 1), 1);
    const uint32_t room = frame->buf_len;
    rte_pktmbuf_free(frame);
    return std::pair<uint32_t, uint64_t>(room, converter->truesize.Read() - before);
  };
  EXPECT_THAT(copied(1472), testing::Pair(2048, 2304));
  EXPECT_THAT(copied(1473), testing::Pair(4096, 4352));
  EXPECT_THAT(copied(64), testing::Pair(640, 896));
}

TEST_F(PrivateCopy, PolicyKernelCopies73152BytesInto18BuffersAndNotOneByteMore) {
  ConverterConfig config;
  config.cut = CopyCut::kKernel;
  config.always = true;
  config.pools = {Pool("kernel", 2176, 1024, true)};
  auto converter = Converter::Create(config);
  ASSERT_TRUE(converter.ok());
  rte_mempool* source = Pool("source", 16384, 64);
  rte_mbuf* frames[] = {Frame(source, 73152), Frame(source, 73153)};
  const Bytes expected = Flat(frames[0]);
  ASSERT_EQ(converter->Convert(frames, 2), 1);
  EXPECT_EQ(Flat(frames[0]), expected);
  EXPECT_EQ(frames[0]->nb_segs, 18);
  EXPECT_EQ(converter->truesize.Read(), 256u + 18 * 4096);
  EXPECT_EQ(converter->no_buffer.Read(), 1u);
  rte_pktmbuf_free(frames[0]);
}

TEST_F(PrivateCopy, EachReasonToCopyIsCountedAndWhatHasNoneIsLeftAlone) {
  rte_mempool* source = Pool("source");
  ConverterConfig config;
  config.pools = {Pool("copies", 4096)};
  config.linear = true;
  config.headroom_wanted = 100;
  auto converter = Converter::Create(config);
  ASSERT_TRUE(converter.ok());
  EXPECT_TRUE(converter->looks_at_simple());
  rte_mbuf* plain = Frame(source, 64);
  rte_mbuf* shared = Frame(source, 64);
  rte_mbuf* clone = rte_pktmbuf_clone(shared, source);
  rte_mbuf* low = Frame(source, 64);
  rte_pktmbuf_prepend(low, 40);
  rte_mbuf* chain = Frame(source, 3000, 1500);
  rte_mbuf* long_chain = Frame(source, 6000, 1500);
  rte_mbuf* burst[] = {plain, shared, clone, low, chain, long_chain};
  ASSERT_EQ(converter->Convert(burst, 6), 6);
  EXPECT_EQ(burst[0], plain);
  EXPECT_EQ(burst[5], long_chain) << "no single buffer holds it";
  EXPECT_EQ(burst[4]->nb_segs, 1);
  // The original of a clone is alone again once the clone's copy is made; the first look finds both holding it.
  EXPECT_EQ(converter->buffers[static_cast<int>(CopyCause::kShared)].Read(), 2u);
  EXPECT_EQ(converter->buffers[static_cast<int>(CopyCause::kHeadroom)].Read(), 1u);
  EXPECT_EQ(converter->buffers[static_cast<int>(CopyCause::kChained)].Read(), 1u);
  for (rte_mbuf* frame : burst) rte_pktmbuf_free(frame);
}

TEST_F(PrivateCopy, WithoutABufferForItsCopyAFrameIsDroppedAndCounted) {
  rte_mempool* source = Pool("source");
  ConverterConfig config;
  config.pools = {Pool("copies", 2176, 3)};
  config.always = true;
  auto converter = Converter::Create(config);
  ASSERT_TRUE(converter.ok());
  rte_mbuf* burst[5];
  for (rte_mbuf*& frame : burst) frame = Frame(source, 64);
  EXPECT_EQ(converter->Convert(burst, 5), 3);
  EXPECT_EQ(converter->no_buffer.Read(), 2u);
  rte_pktmbuf_free_bulk(burst, 3);
}

}  // namespace
}  // namespace halfpage
