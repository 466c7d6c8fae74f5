#include "app/traffic_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/eal_environment.h"
#include "tests/support/traffic_fixture.h"

namespace halfpage {
namespace {

using testing::HasSubstr;

class TrafficSourceOverHandler : public TrafficFixture {};
HALFPAGE_FOR_EACH_HANDLER(TrafficSourceOverHandler);

TEST_P(TrafficSourceOverHandler, CapturedFramesOfEveryLengthStayAsTheyAreInEveryRoom) {
  for (const uint32_t data_room : {129u, 160u, 192u, 256u, 2176u, 9216u, 65535u}) {
    SCOPED_TRACE(data_room);
    std::set<uint32_t> lengths = {1513, 1514, 1515, 9014, 16384, 65534, 65535};
    for (uint32_t length = 14; length <= 260; ++length) lengths.insert(length);
    const uint32_t room = data_room - RTE_PKTMBUF_HEADROOM;
    for (const uint32_t whole : {0u, 1u, 2u}) {
      for (const uint32_t beside : {0u, 1u, 2u})
        lengths.insert(std::min(65535u, std::max(14u, room + whole * data_room + beside - 1)));
    }
    const std::vector<uint32_t> list(lengths.begin(), lengths.end());
    TrafficSource source = CreateSource(CaptureOf(list, false), Pool(600, static_cast<uint16_t>(data_room)));
    for (size_t i = 0; i < list.size(); ++i) {
      rte_mbuf* frame = nullptr;
      ASSERT_EQ(source.Fill(&frame, 1), 1);
      EXPECT_EQ(Flatten(frame), CapturedFrame(i, list[i])) << list[i];
      EXPECT_EQ(frame->nb_segs, list[i] <= room ? 1 : 1 + (list[i] - room + data_room - 1) / data_room) << list[i];
      rte_pktmbuf_free(frame);
    }
    EXPECT_TRUE(source.done());
  }
}

TEST_P(TrafficSourceOverHandler, NothingIsWrittenBesideAFrame) {
  constexpr uint8_t kMark = 0xee;
  rte_mempool* pool = Pool(63);
  std::set<rte_mbuf*> marked;  // by hand, as handlers differ in which buffer comes back when
  for (uint32_t length = 14; length <= 300; ++length) {
    TrafficSource source = CreateSource(CaptureOf({length}, true), pool);
    bool checked = false;
    for (int attempt = 0; attempt < 1000 && !checked; ++attempt) {
      rte_mbuf* frame = nullptr;
      ASSERT_EQ(source.Fill(&frame, 1), 1);
      auto* buffer = static_cast<uint8_t*>(frame->buf_addr);
      checked = !marked.insert(frame).second;
      if (checked) {
        const auto untouched = [](uint8_t byte) { return byte == kMark; };
        EXPECT_TRUE(std::all_of(buffer, buffer + RTE_PKTMBUF_HEADROOM, untouched)) << length;
        EXPECT_TRUE(std::all_of(buffer + RTE_PKTMBUF_HEADROOM + length, buffer + frame->buf_len, untouched)) << length;
      }
      memset(buffer, kMark, frame->buf_len);
      rte_pktmbuf_free(frame);
    }
    EXPECT_TRUE(checked) << length;
  }
}

TEST_P(TrafficSourceOverHandler, WhatAFormerUserLeftInABufferIsGone) {
  rte_mempool* pool = Pool(40, 256);
  rte_mbuf* mbufs[40];
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool, mbufs, 40), 0);
  for (rte_mbuf* mbuf : mbufs) {
    mbuf->data_off = 7;
    mbuf->port = 3;
    mbuf->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_TX_UDP_CKSUM;
    mbuf->packet_type = RTE_PTYPE_L4_TCP;
    mbuf->pkt_len = 99;
    mbuf->data_len = 99;
    mbuf->vlan_tci = 5;
  }
  rte_pktmbuf_free_bulk(mbufs, 40);
  TrafficSource source = CreateSource(CaptureOf({60, 3000, 61}, false), pool);
  const std::vector<FrameBytes> frames = Take(source, 3);  // Flatten() looks at the fields
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[1], CapturedFrame(1, 3000));
}

TEST_P(TrafficSourceOverHandler, PrivateAreaOfBuffersIsRespected) {
  rte_mempool* pool = rte_pktmbuf_pool_create_by_ops("private", 63, 0, 64, 2176, SOCKET_ID_ANY, GetParam());
  ASSERT_NE(pool, nullptr);
  {
    TrafficSource source = CreateSource(CaptureOf({60, 5000}, false), pool);
    const std::vector<FrameBytes> frames = Take(source, 2);
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(frames[0], CapturedFrame(0, 60));
    EXPECT_EQ(frames[1], CapturedFrame(1, 5000));
  }
  EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
  rte_mempool_free(pool);
}

TEST_P(TrafficSourceOverHandler, ExhaustedPoolGivesWhatItHasAndTheRestComesLater) {
  const TrafficConfig config = GeneratorTraffic({{64, 3}, {570, 2}, {1514, 1}}, 5);
  TrafficSource reference = CreateSource(config, Pool());
  const std::vector<FrameBytes> expected = Take(reference, 200);

  TrafficSource source = CreateSource(config, Pool(50));
  rte_mbuf* held[96];
  uint16_t out = source.Fill(held, 32);
  ASSERT_EQ(out, 32);
  EXPECT_EQ(source.nobuf(), 0u);
  out = static_cast<uint16_t>(out + source.Fill(held + out, 32));
  ASSERT_EQ(out, 50);
  EXPECT_EQ(source.filled(), 50u);
  EXPECT_EQ(source.nobuf(), 14u);
  EXPECT_EQ(source.Fill(held + out, 32), 0);
  EXPECT_EQ(source.nobuf(), 46u);
  EXPECT_FALSE(source.done());

  std::vector<FrameBytes> frames;
  for (uint16_t i = 0; i < out; ++i) frames.push_back(Flatten(held[i]));
  rte_pktmbuf_free_bulk(held, out);
  for (FrameBytes& frame : Take(source, 150)) frames.push_back(std::move(frame));
  EXPECT_EQ(frames, expected);
  EXPECT_EQ(source.nobuf(), 46u);
}

TEST_P(TrafficSourceOverHandler, ShortageWithinAChainLosesNeitherBufferNorFrame) {
  for (const uint32_t size : {36u, 37u, 70u, 71u, 72u, 73u, 100u}) {
    SCOPED_TRACE(size);
    std::vector<uint32_t> lengths;  // 36 buffers each, with frames of one buffer in between
    for (int i = 0; i < 10; ++i) lengths.insert(lengths.end(), {9000, 60, 100});
    rte_mempool* pool = Pool(size, 256);
    TrafficSource source = CreateSource(CaptureOf(lengths, false), pool);
    size_t frame = 0;
    for (int calls = 0; !source.done(); ++calls) {
      ASSERT_LT(calls, 100) << "no progress";
      rte_mbuf* mbufs[64];
      const uint16_t got = source.Fill(mbufs, 32);
      uint32_t buffers = 0;
      for (uint16_t i = 0; i < got; ++i, ++frame) {
        buffers += mbufs[i]->nb_segs;
        EXPECT_EQ(Flatten(mbufs[i]), CapturedFrame(frame, lengths[frame]));
      }
      EXPECT_EQ(rte_mempool_in_use_count(pool), buffers);
      rte_pktmbuf_free_bulk(mbufs, got);
      ASSERT_GT(got, 0);
    }
    EXPECT_EQ(frame, lengths.size());
    EXPECT_GT(source.nobuf(), 0u);
  }
}

TEST_P(TrafficSourceOverHandler, ChainThatFindsNoBuffersAtAllGivesItsFirstOneBack) {
  rte_mempool* pool = Pool(36, 256);
  TrafficSource source = CreateSource(CaptureOf({9000}, false), pool);
  rte_mbuf* held = rte_pktmbuf_alloc(pool);
  rte_mbuf* frame = nullptr;
  EXPECT_EQ(source.Fill(&frame, 1), 0);
  EXPECT_EQ(source.nobuf(), 1u);
  EXPECT_EQ(rte_mempool_in_use_count(pool), 1u);
  rte_pktmbuf_free(held);
  ASSERT_EQ(source.Fill(&frame, 1), 1);
  EXPECT_EQ(Flatten(frame), CapturedFrame(0, 9000));
  rte_pktmbuf_free(frame);
}

TEST_P(TrafficSourceOverHandler, PoolWithCacheRunsDryAndRecovers) {
  TrafficSource source = CreateSource(GeneratorTraffic({{64, 1}, {3000, 1}}, 3), Pool(200, 256, 64));
  for (int round = 0; round < 5; ++round) {
    std::vector<rte_mbuf*> held;
    for (;;) {
      rte_mbuf* mbufs[64];
      const uint16_t got = source.Fill(mbufs, 64);
      if (got == 0) break;
      held.insert(held.end(), mbufs, mbufs + got);
    }
    EXPECT_GT(held.size(), 20u);
    for (rte_mbuf* frame : held) Flatten(frame);
    rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
  }
}

TEST_P(TrafficSourceOverHandler, CountEndsTheSource) {
  TrafficConfig config = GeneratorTraffic({{64, 1}});
  config.count = 40;
  TrafficSource source = CreateSource(config, Pool());
  EXPECT_FALSE(source.done());
  EXPECT_EQ(Take(source, 1000).size(), 40u);
  EXPECT_TRUE(source.done());
  EXPECT_EQ(source.filled(), 40u);
  EXPECT_EQ(source.nobuf(), 0u);
  rte_mbuf* frame = nullptr;
  EXPECT_EQ(source.Fill(&frame, 1), 0);
}

TEST_P(TrafficSourceOverHandler, LimitToOnlyEverLowersTheLimit) {
  TrafficConfig config = GeneratorTraffic({{64, 1}});
  config.count = 40;
  TrafficSource source = CreateSource(config, Pool());
  source.LimitTo(0);
  source.LimitTo(100);
  EXPECT_EQ(Take(source, 10).size(), 10u);
  source.LimitTo(33);
  EXPECT_EQ(Take(source, 1000).size(), 23u);
  EXPECT_TRUE(source.done());
  source.LimitTo(5);
  EXPECT_TRUE(source.done());
  EXPECT_EQ(Take(source, 1).size(), 0u);
}

TEST_P(TrafficSourceOverHandler, CaptureWithoutLoopEndsAfterItsLastFrame) {
  TrafficSource source = CreateSource(CaptureOf({60, 61, 62}, false), Pool());
  ASSERT_NE(source.capture(), nullptr);
  EXPECT_EQ(source.capture()->size(), 3u);
  EXPECT_EQ(Take(source, 100).size(), 3u);
  EXPECT_TRUE(source.done());
}

TEST_P(TrafficSourceOverHandler, CountBeyondACaptureWithoutLoopChangesNothing) {
  TrafficConfig config = CaptureOf({60, 61, 62}, false);
  config.count = 10;
  TrafficSource longer = CreateSource(config, Pool());
  EXPECT_EQ(Take(longer, 100).size(), 3u);
  config.count = 2;
  TrafficSource shorter = CreateSource(config, Pool());
  EXPECT_EQ(Take(shorter, 100).size(), 2u);
}

TEST_P(TrafficSourceOverHandler, CaptureWithLoopBeginsAgain) {
  TrafficSource source = CreateSource(CaptureOf({60, 61, 62}, true), Pool());
  const std::vector<FrameBytes> frames = Take(source, 100, 64);
  ASSERT_EQ(frames.size(), 100u);
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i], CapturedFrame(i % 3, static_cast<uint32_t>(60 + i % 3)));
  }
  EXPECT_FALSE(source.done());
}

TEST_P(TrafficSourceOverHandler, CaptureWithItsOwnTimesIsDueByThemLateFramesAtOnceAndAPauseIsNotMadeUpFor) {
  TrafficConfig config = CaptureOf({60, 61, 62, 63}, true);  // at 0, 1, 4 and 9 ms; a lap takes 12
  config.timing = TrafficConfig::Timing::kCapture;
  TrafficSource source = CreateSource(config, Pool());
  const auto at = [](double ms) {
    return UINT64_MAX / 2 + static_cast<uint64_t>(ms * static_cast<double>(rte_get_tsc_hz()) / 1e3);
  };
  std::vector<uint16_t> due;
  for (const double ms : {0.0, 0.9, 1.1, 3.9, 8.9, 9.1, 11.9, 12.1, 13.1, 100.5}) {
    due.push_back(source.Due(at(ms), 64));
    EXPECT_EQ(Take(source, std::min<uint16_t>(due.back(), 5)).size(), std::min<uint16_t>(due.back(), 5));
  }
  // From that of 16 ms to the ninth lap's of 100 ms.
  EXPECT_THAT(due, testing::ElementsAre(1, 0, 1, 0, 1, 1, 0, 1, 1, 29));
  EXPECT_EQ(source.Due(at(100.5), 7), 7) << "no more than a burst";
  source.RestartClock();
  EXPECT_EQ(source.Due(at(200), 64), 1) << "whichever is next, at once";
  EXPECT_EQ(Take(source, 1).size(), 1u);
  EXPECT_EQ(source.Due(at(200.5), 64), 0);
}

TEST_P(TrafficSourceOverHandler, MovedSourceGoesOnWhereItWas) {
  const TrafficConfig config = GeneratorTraffic({{64, 1}, {100, 1}}, 3);
  TrafficSource reference = CreateSource(config, Pool());
  const std::vector<FrameBytes> expected = Take(reference, 50);
  TrafficSource source = CreateSource(config, Pool());
  std::vector<FrameBytes> frames = Take(source, 20);
  TrafficSource moved = std::move(source);
  for (FrameBytes& frame : Take(moved, 30)) frames.push_back(std::move(frame));
  EXPECT_EQ(frames, expected);
}

TEST_P(TrafficSourceOverHandler, PoolThatCannotHoldOneFrameIsRefused) {
  const absl::StatusOr<TrafficSource> source = TrafficSource::Create(CaptureOf({9000}, true), 1, {Pool(35, 256)});
  EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(source.status().message()), HasSubstr("9000 bytes takes 36 buffers"));
}

TEST_P(TrafficSourceOverHandler, PoolWithoutRoomBehindTheHeadroomIsRefused) {
  rte_mempool* pool = rte_pktmbuf_pool_create_by_ops("narrow", 63, 0, 0, 128, SOCKET_ID_ANY, GetParam());
  ASSERT_NE(pool, nullptr);
  EXPECT_THAT(std::string(TrafficSource::Create(GeneratorTraffic({{64, 1}}), 1, {pool}).status().message()),
              HasSubstr("leaves nothing behind the headroom"));
  rte_mempool_free(pool);
}

// What does not depend on the handler.
TEST(TrafficSource, MissingPoolIsRefused) {
  rte_mempool* none = nullptr;
  EXPECT_EQ(TrafficSource::Create(GeneratorTraffic({{64, 1}}), 1, {none}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TrafficSource, PoolOfExternalMemoryIsRefused) {
  rte_mempool* pool = rte_pktmbuf_pool_create("external", 63, 0, 0, 2176, SOCKET_ID_ANY);
  ASSERT_NE(pool, nullptr);
  static_cast<rte_pktmbuf_pool_private*>(rte_mempool_get_priv(pool))->flags |= RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF;
  EXPECT_THAT(std::string(TrafficSource::Create(GeneratorTraffic({{64, 1}}), 1, {pool}).status().message()),
              HasSubstr("pins external memory"));
  rte_mempool_free(pool);
}

TEST(TrafficSource, CaptureErrorsAreThoseOfReading) {
  rte_mempool* pool = rte_pktmbuf_pool_create("plain", 63, 0, 0, 2176, SOCKET_ID_ANY);
  ASSERT_NE(pool, nullptr);
  TrafficConfig config;
  config.source = TrafficConfig::Source::kCapture;
  config.file = "/nonexistent/in.pcap";
  EXPECT_EQ(TrafficSource::Create(config, 1, {pool}).status().code(), absl::StatusCode::kNotFound);
  rte_mempool_free(pool);
}

}  // namespace
}  // namespace halfpage
