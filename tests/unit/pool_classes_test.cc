// Classes of pools, and the sources that take from them or from an exact pool.
#include "mempool/pool_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "app/traffic_source.h"
#include "mempool/exact_frag.h"
#include "mempool/page_frag.h"
#include "tests/support/eal_environment.h"
#include "tests/support/pool_contents.h"
#include "tests/support/traffic_fixture.h"
#include "xdp_emul/free_frames.h"

namespace halfpage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kHead = RTE_PKTMBUF_HEADROOM;

class Classes : public TrafficFixture {
 protected:
  // Rooms for frames of 64, 1514 and 9000 bytes, given in no order.
  PoolClasses Three(uint32_t shorts, uint32_t longs, uint32_t jumbos, bool borrow) {
    jumbo_ = Pool(jumbos, 9000 + kHead);
    short_ = Pool(shorts, 64 + kHead);
    long_ = Pool(longs, 1514 + kHead);
    rte_mempool* pools[] = {jumbo_, short_, long_};
    auto classes = PoolClasses::Create(pools, borrow);
    EXPECT_TRUE(classes.ok()) << classes.status();
    return *std::move(classes);
  }

  rte_mempool* short_ = nullptr;
  rte_mempool* long_ = nullptr;
  rte_mempool* jumbo_ = nullptr;
};

TEST_P(Classes, EachFrameTakesTheSmallestClassThatItFits) {
  PoolClasses classes = Three(100, 100, 100, true);
  const uint32_t lengths[] = {64, 65, 1514, 1515, 9000, 1, 60, 1000};
  rte_mempool* expected[] = {short_, long_, long_, jumbo_, jumbo_, short_, short_, long_};
  rte_mbuf* buffers[8];
  ASSERT_EQ(classes.AllocBulk(buffers, lengths, 8), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(buffers[i]->pool, expected[i]) << lengths[i];
    EXPECT_EQ(buffers[i]->pkt_len, lengths[i]);
    EXPECT_EQ(buffers[i]->data_len, lengths[i]);
    EXPECT_GE(rte_pktmbuf_tailroom(buffers[i]) + lengths[i], lengths[i]);
    EXPECT_EQ(rte_pktmbuf_headroom(buffers[i]), kHead);
  }
  EXPECT_EQ(classes.borrowed(0).Read() + classes.borrowed(1).Read() + classes.borrowed(2).Read(), 0u);
  rte_pktmbuf_free_bulk(buffers, 8);
}

// R12: only small frames, and their class is far too small.
TEST_P(Classes, AnEmptyClassBorrowsFromTheNextAndCountsIt) {
  PoolClasses classes = Three(10, 20, 30, true);
  std::vector<uint32_t> lengths(60, 64);
  std::vector<rte_mbuf*> buffers(60);
  ASSERT_EQ(classes.AllocBulk(buffers.data(), lengths.data(), 60), 60);
  EXPECT_EQ(classes.borrowed(0).Read(), 50u);
  EXPECT_EQ(classes.borrowed(1).Read(), 0u);
  EXPECT_EQ(classes.nobuf(0).Read(), 0u);
  EXPECT_EQ(rte_mempool_avail_count(short_) + rte_mempool_avail_count(long_) + rte_mempool_avail_count(jumbo_), 0u);
  rte_mbuf* more = nullptr;
  const uint32_t one = 64;
  EXPECT_EQ(classes.AllocBulk(&more, &one, 1), 0);
  EXPECT_EQ(classes.nobuf(0).Read(), 1u);
  rte_pktmbuf_free_bulk(buffers.data(), 60);
}

TEST_P(Classes, WithBorrowOffAnEmptyClassIsTheEnd) {
  PoolClasses classes = Three(10, 20, 30, false);
  std::vector<uint32_t> lengths(16, 64);
  lengths[3] = 1000;
  std::vector<rte_mbuf*> buffers(16);
  ASSERT_EQ(classes.AllocBulk(buffers.data(), lengths.data(), 16), 11) << "ten short ones, and the long one between";
  EXPECT_EQ(classes.borrowed(0).Read(), 0u);
  EXPECT_EQ(classes.nobuf(0).Read(), 5u);
  EXPECT_EQ(classes.nobuf(1).Read(), 0u);
  rte_pktmbuf_free_bulk(buffers.data(), 11);
}

TEST_P(Classes, NobodyBorrowsFromASmallerClassNorWhatTheBurstItselfNeeds) {
  PoolClasses classes = Three(40, 4, 30, true);
  // Two of the four long buffers are the burst's own; the third long frame goes to jumbo, and so do short ones.
  const uint32_t lengths[] = {1514, 1514, 1514, 1514, 1514, 9000};
  rte_mbuf* buffers[6];
  ASSERT_EQ(classes.AllocBulk(buffers, lengths, 6), 6);
  EXPECT_EQ(buffers[4]->pool, jumbo_);
  EXPECT_EQ(classes.borrowed(1).Read(), 1u);
  EXPECT_EQ(rte_mempool_avail_count(short_), 40u);
  rte_pktmbuf_free_bulk(buffers, 6);
}

TEST_P(Classes, AFrameWithoutABufferEndsTheBurstAndTheRestGoesBack) {
  PoolClasses classes = Three(50, 5, 2, true);
  std::vector<uint32_t> lengths(40, 64);
  for (const size_t at : {5, 10, 15, 20, 25, 30}) lengths[at] = 9000;  // the third finds none
  std::vector<rte_mbuf*> buffers(40);
  ASSERT_EQ(classes.AllocBulk(buffers.data(), lengths.data(), 40), 15);
  EXPECT_EQ(classes.nobuf(0).Read(), 21u);
  EXPECT_EQ(classes.nobuf(2).Read(), 4u);
  EXPECT_EQ(rte_mempool_avail_count(short_), 50u - 13u);
  rte_pktmbuf_free_bulk(buffers.data(), 15);
}

TEST_P(Classes, FramesPastTheLargestRoomAreChainsOfIt) {
  PoolClasses classes = Three(10, 10, 10, true);
  rte_mbuf* frame = classes.Alloc(60000);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->pkt_len, 60000u);
  EXPECT_EQ(frame->nb_segs, 7);
  uint32_t sum = 0;
  for (const rte_mbuf* segment = frame; segment != nullptr; segment = segment->next) {
    EXPECT_EQ(segment->pool, jumbo_);
    sum += segment->data_len;
  }
  EXPECT_EQ(sum, 60000u);
  EXPECT_EQ(rte_mbuf_check(frame, 1, nullptr), 0);
  EXPECT_EQ(classes.Alloc(60000), nullptr) << "three are left";
  EXPECT_EQ(classes.nobuf(2).Read(), 1u);
  EXPECT_EQ(rte_mempool_avail_count(jumbo_), 3u);
  rte_pktmbuf_free(frame);
}

// An end has no headroom: 192, 1642 and 9128 bytes are whole rooms.
TEST_P(Classes, TheEndOfAChainIsInTheSmallestClassThatHoldsIt) {
  PoolClasses classes = Three(10, 10, 10, true);
  const std::pair<uint32_t, rte_mempool*> ends[] = {{1, short_},   {128, short_},  {192, short_}, {193, long_},
                                                    {1642, long_}, {1643, jumbo_}, {9128, jumbo_}};
  for (const auto& [end, pool] : ends) {
    for (const uint32_t further : {0u, 2u}) {
      rte_mbuf* frame = classes.Alloc(9000 + further * 9128 + end);
      ASSERT_NE(frame, nullptr);
      EXPECT_EQ(frame->nb_segs, 2 + further) << end;
      EXPECT_EQ(rte_pktmbuf_lastseg(frame)->pool, pool) << end;
      EXPECT_EQ(rte_pktmbuf_lastseg(frame)->data_len, end);
      EXPECT_EQ(rte_mbuf_check(frame, 1, nullptr), 0);
      rte_pktmbuf_free(frame);
    }
  }
  std::vector<rte_mbuf*> held(10);
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(short_, held.data(), 10), 0);
  rte_mbuf* frame = classes.Alloc(9000 + 100);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->next->pool, jumbo_) << "the short class is empty";
  rte_pktmbuf_free(frame);
  rte_pktmbuf_free_bulk(held.data(), 10);
}

TEST_P(Classes, RandomBurstsKeepOrderAndLoseNothing) {
  PoolClasses classes = Three(30, 40, 20, true);
  std::mt19937 random(1);
  std::vector<rte_mbuf*> held;
  uint64_t given = 0;
  for (int round = 0; round < 2000; ++round) {
    uint32_t lengths[100];
    rte_mbuf* buffers[100];
    const auto n = static_cast<uint16_t>(1 + random() % 100);
    for (uint16_t i = 0; i < n; ++i) lengths[i] = std::vector<uint32_t>{64, 64, 64, 1514, 9000}[random() % 5];
    const uint16_t got = classes.AllocBulk(buffers, lengths, n);
    for (uint16_t i = 0; i < got; ++i) {
      ASSERT_GE(buffers[i]->buf_len, lengths[i] + kHead);
      ASSERT_EQ(buffers[i]->pkt_len, lengths[i]);
      held.push_back(buffers[i]);
    }
    given += got;
    const size_t keep = random() % 90;
    while (held.size() > keep) {
      std::swap(held[random() % held.size()], held.back());
      rte_pktmbuf_free(held.back());
      held.pop_back();
    }
  }
  EXPECT_GT(given, 10000u);
  EXPECT_GT(classes.borrowed(0).Read(), 0u);
  for (rte_mbuf* buffer : held) rte_pktmbuf_free(buffer);
}

TEST_P(Classes, BadClassesAreRefusedWithTheReason) {
  rte_mempool* tiny = Pool(10, kHead);
  rte_mempool* good = Pool(10, 2176);
  EXPECT_THAT(std::string(PoolClasses::Create({}, true).status().message()), HasSubstr("give 1 to 8"));
  rte_mempool* twice[] = {good, good};
  EXPECT_THAT(std::string(PoolClasses::Create(twice, true).status().message()), HasSubstr("name each pool once"));
  rte_mempool* small[] = {good, tiny};
  EXPECT_THAT(std::string(PoolClasses::Create(small, true).status().message()),
              HasSubstr("behind the headroom of 128"));
  rte_mempool* null[] = {good, nullptr};
  EXPECT_THAT(std::string(PoolClasses::Create(null, true).status().message()), HasSubstr("create it first"));
}

TEST_P(Classes, ASourceSendsTheSameFramesFromClassesAsFromOnePool) {
  const TrafficConfig config = GeneratorTraffic({{64, 28}, {570, 16}, {1514, 4}, {9000, 1}}, 7);
  TrafficSource reference = CreateSource(config, Pool(1024, 2176));
  rte_mempool* pools[] = {Pool(1024, 704), Pool(256, 64 + kHead), Pool(256, 1664)};
  auto source = TrafficSource::Create(config, 1, pools);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(Take(*source, 500), Take(reference, 500)) << "9000 bytes are a chain in both";
  ASSERT_NE(source->classes(), nullptr);
  EXPECT_EQ(source->classes()->borrowed(0).Read(), 0u);
  EXPECT_EQ(source->nobuf(), 0u);
}

// 704 and 1664 bytes of room: 1536 in front, then 1664 each, then 130 or 1464, 700 and 704.
TEST_P(Classes, ASourcesChainsEndInTheSmallestClassThatHoldsTheEnd) {
  const std::vector<uint32_t> lengths = {1666, 64, 3000, 5564, 1536 + 704, 1536 + 705, 60000, 1514};
  for (const uint32_t shorts : {512u, 5u, 1u}) {  // few: the others end in the long class
    rte_mempool* pools[] = {Pool(shorts, 704), Pool(512, 1664)};
    auto source = TrafficSource::Create(CaptureOf(lengths, true), 1, pools);
    ASSERT_TRUE(source.ok()) << source.status();
    size_t in_short = 0;
    for (int round = 0; round < 20; ++round) {
      rte_mbuf* out[13];
      const uint16_t n = source->Fill(out, 13);
      ASSERT_EQ(n, 13);
      for (uint16_t i = 0; i < n; ++i) {
        const size_t frame = (static_cast<size_t>(round) * 13 + i) % lengths.size();
        const rte_mbuf* last = rte_pktmbuf_lastseg(out[i]);
        if (shorts == 512) {
          const bool fits = lengths[frame] == 64 || (out[i]->nb_segs > 1 && last->data_len <= 704);
          EXPECT_EQ(last->pool, fits ? pools[0] : pools[1]) << lengths[frame];
        }
        in_short += last->pool == pools[0] ? 1 : 0;
        EXPECT_EQ(Flatten(out[i]), CapturedFrame(frame, lengths[frame]));
      }
      FreeFrames(out, n);
    }
    EXPECT_GT(in_short, 0u);
    EXPECT_EQ(source->nobuf(), 0u);
    for (rte_mempool* pool : pools) EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
  }
}

// 5000 bytes: 1536 in front, 2 x 1664 and 136.
TEST_P(Classes, ASourceShortOfBuffersForItsChainsGivesTheFirstOnesAndKeepsNothing) {
  rte_mempool* pools[] = {Pool(2, 704), Pool(8, 1664)};
  auto source = TrafficSource::Create(CaptureOf({5000, 5000, 5000}, true), 1, pools);
  ASSERT_TRUE(source.ok()) << source.status();
  rte_mbuf* out[32];
  uint16_t n = source->Fill(out, 32);
  n = static_cast<uint16_t>(n + source->Fill(out + n, 31));
  ASSERT_EQ(n, 2);
  EXPECT_EQ(source->nobuf(), 31u + 30u);
  EXPECT_EQ(source->Fill(out + n, 30), 0);
  EXPECT_EQ(rte_mempool_avail_count(pools[1]), 2u) << "what does not make a frame is there for others";
  for (uint16_t i = 0; i < n; ++i) EXPECT_EQ(Flatten(out[i]), CapturedFrame(i, 5000));
  FreeFrames(out, n);
  for (rte_mempool* pool : pools) EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
}

// Segments of seven pools in turn, held twice, indirect, or missing.
TEST_P(Classes, FramesOfManyPoolsAreFreedToTheirOwn) {
  std::vector<rte_mempool*> pools;
  for (int p = 0; p < 7; ++p) pools.push_back(Pool(700, 256));
  std::vector<rte_mbuf*> frames;
  std::vector<rte_mbuf*> held;
  for (uint32_t i = 0; i < 300; ++i) {
    rte_mbuf* first = nullptr;
    for (uint32_t s = 0; s < 1 + i % 4; ++s) {
      rte_mbuf* segment = rte_pktmbuf_alloc(pools[i % 2 == 0 ? (i + s) % 7 : s % 2]);
      ASSERT_NE(segment, nullptr);
      ASSERT_NE(rte_pktmbuf_append(segment, 10), nullptr);
      if (first == nullptr) {
        first = segment;
      } else {
        ASSERT_EQ(rte_pktmbuf_chain(first, segment), 0);
      }
    }
    if (i % 10 == 3) {
      rte_pktmbuf_refcnt_update(first, 1);
      held.push_back(first);
    }
    if (i % 10 == 7) {
      frames.push_back(rte_pktmbuf_clone(first, pools[6]));
      ASSERT_NE(frames.back(), nullptr);
    }
    frames.push_back(first);
    if (i % 50 == 0) frames.push_back(nullptr);
  }
  FreeFrames(frames.data(), static_cast<uint32_t>(frames.size()));
  size_t out = 0;
  for (rte_mempool* pool : pools) out += rte_mempool_in_use_count(pool);
  size_t kept = 0;
  for (const rte_mbuf* frame : held) {
    EXPECT_EQ(rte_mbuf_refcnt_read(frame), 1);
    kept += frame->nb_segs;
  }
  EXPECT_EQ(out, kept) << "every segment of a frame that another holds, nothing else";
  FreeFrames(held.data(), static_cast<uint32_t>(held.size()));
  for (rte_mempool* pool : pools) EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
}

TEST_P(Classes, ASourceWhoseShortClassIsEmptyLosesNothing) {
  const TrafficConfig config = CaptureOf(std::vector<uint32_t>(200, 64), false);
  rte_mempool* pools[] = {Pool(32, 64 + kHead), Pool(512, 1664)};
  auto source = TrafficSource::Create(config, 1, pools);
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<rte_mbuf*> out(200);
  size_t got = 0;
  while (const uint16_t n = source->Fill(out.data() + got, 50)) got += n;
  EXPECT_EQ(got, 200u);
  EXPECT_EQ(source->nobuf(), 0u);
  EXPECT_EQ(source->classes()->borrowed(0).Read(), 168u);
  for (size_t i = 0; i < got; ++i) EXPECT_EQ(Flatten(out[i]), CapturedFrame(i, 64)) << i;
  rte_pktmbuf_free_bulk(out.data(), static_cast<unsigned>(got));
}

HALFPAGE_FOR_EACH_HANDLER(Classes);

class ExactSource : public Classes {
 protected:
  static ExactFrag Exact(uint32_t size, uint32_t page_size) {
    auto exact = ExactFrag::Create({.name = "exact", .size = size, .page_size = page_size});
    EXPECT_TRUE(exact.ok()) << exact.status();
    return *std::move(exact);
  }
  static void ExpectHome(ExactFrag& exact) {
    exact.Flush();
    EXPECT_EQ(exact.in_use(), 0u);
    EXPECT_EQ(ReadPageFragStats(exact.get())->pages_inflight, 0u);
    TrimPageFragArena(exact.get());
  }
};

TEST_P(ExactSource, FramesAreTheSameAndBuffersAreAsLongAsTheFrame) {
  for (const uint32_t page : {4096u, 32768u}) {
    TrafficConfig config = GeneratorTraffic({{64, 28}, {570, 16}, {1514, 4}, {9000, 1}}, 5);
    TrafficSource reference = CreateSource(config, Pool(1024, 2176));
    ExactFrag exact = Exact(2000, page);
    config.buffers = TrafficConfig::Buffers::kExact;
    auto source = TrafficSource::Create(config, 1, {exact.get()});
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(Take(*source, 500), Take(reference, 500)) << page;
    rte_mbuf* frames[64];
    const uint16_t n = source->Fill(frames, 64);
    ASSERT_EQ(n, 64);
    for (const rte_mbuf* frame : frames) {
      if (frame->nb_segs == 1) {
        EXPECT_LT(frame->buf_len, kHead + frame->pkt_len + 64);
      }
    }
    rte_pktmbuf_free_bulk(frames, n);
    ExpectHome(exact);
  }
}

TEST_P(ExactSource, MemoryFollowsTheFramesLength) {
  const auto pages_for = [](uint32_t length) {
    ExactFrag exact = Exact(1000, 32768);
    TrafficConfig config = GeneratorTraffic({{length, 1}});
    config.buffers = TrafficConfig::Buffers::kExact;
    auto source = TrafficSource::Create(config, 1, {exact.get()});
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<rte_mbuf*> out(1000);
    size_t got = 0;
    while (got < 1000) got += source->Fill(out.data() + got, 50);
    const uint64_t pages = ReadPageFragStats(exact.get())->pages_inflight;
    rte_pktmbuf_free_bulk(out.data(), 1000);
    ExpectHome(exact);
    return pages;
  };
  EXPECT_EQ(pages_for(64), 10u);    // 320 bytes, 102 to a page
  EXPECT_EQ(pages_for(1514), 56u);  // 1792 bytes, 18 to a page
}

TEST_P(ExactSource, APoolThatRunsOutIsWaitedForAndNothingIsLost) {
  ExactFrag exact = Exact(100, 4096);
  TrafficConfig config = CaptureOf({60, 9000, 64, 9000, 100}, true);
  config.buffers = TrafficConfig::Buffers::kExact;
  auto source = TrafficSource::Create(config, 1, {exact.get()});
  ASSERT_TRUE(source.ok()) << source.status();
  size_t frame = 0;
  const uint32_t lengths[] = {60, 9000, 64, 9000, 100};
  for (int round = 0; round < 50; ++round) {
    rte_mbuf* out[64];
    const uint16_t n = source->Fill(out, 64);
    ASSERT_GT(n, 0);
    for (uint16_t i = 0; i < n; ++i, ++frame) {
      ASSERT_EQ(Flatten(out[i]), CapturedFrame(frame % 5, lengths[frame % 5])) << frame;
    }
    rte_pktmbuf_free_bulk(out, n);
  }
  EXPECT_GT(source->nobuf(), 0u);
  EXPECT_EQ(exact.in_use(), 0u);
  ExpectHome(exact);
}

TEST_P(ExactSource, APoolOfOneRoomIsRefusedWithTheWayOut) {
  TrafficConfig config = GeneratorTraffic({{64, 1}});
  config.buffers = TrafficConfig::Buffers::kExact;
  const auto source = TrafficSource::Create(config, 1, {Pool()});
  EXPECT_THAT(std::string(source.status().message()), HasSubstr("make it with ops page_frag and `exact`"));
  PktmbufPoolConfig cached = Small("page_frag", 1000, 64);
  cached.page_frag.exact = true;
  EXPECT_THAT(std::string(PktmbufPool::Create(cached).status().message()), HasSubstr("take cache 0"));
}

INSTANTIATE_TEST_SUITE_P(Handlers, ExactSource, testing::Values("page_frag"));

}  // namespace
}  // namespace halfpage
