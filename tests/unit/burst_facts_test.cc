// What one pass over a burst tells is what a look at each of its frames tells.
#include "xdp_emul/burst_facts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xdp_emul/burst_mask.h"

namespace halfpage {
namespace {

using ::testing::ElementsAreArray;

// A burst of mbufs that no pool has made: of each, only its first cache line is looked at.
class Burst {
 public:
  explicit Burst(uint16_t n) : mbufs_(n) {
    for (rte_mbuf& mbuf : mbufs_) {
      std::memset(static_cast<void*>(&mbuf), 0xa5, sizeof(mbuf));  // what must not matter
      mbuf.refcnt = 1;
      mbuf.nb_segs = 1;
      mbuf.ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_TX_IPV4;
      mbuf.pkt_len = 64;
      mbuf.pool = reinterpret_cast<rte_mempool*>(uintptr_t{0x1000});
      frames_.push_back(&mbuf);
    }
  }
  rte_mbuf& operator[](size_t i) { return mbufs_[i]; }
  BurstFacts Facts() const { return Survey(frames_.data(), static_cast<uint16_t>(frames_.size())); }

 private:
  std::vector<rte_mbuf> mbufs_;
  std::vector<rte_mbuf*> frames_;
};

TEST(Survey, UsualFramesAreSimpleWhateverTheirOtherFieldsHold) {
  for (const uint16_t n : {1, 2, 31, 64}) {
    const BurstFacts facts = Burst(n).Facts();
    EXPECT_TRUE(facts.simple && facts.alone) << n;
    EXPECT_FALSE(facts.chained);
    EXPECT_EQ(facts.bytes, 64u * n);
    EXPECT_EQ(facts.longest, 64u);
    EXPECT_EQ(facts.pool, reinterpret_cast<rte_mempool*>(uintptr_t{0x1000}));
  }
}

TEST(Survey, OneUnusualFrameAnywhereIsSeen) {
  for (size_t at = 0; at < 33; ++at) {
    const auto with = [&](auto change) {
      Burst burst(33);
      change(burst[at]);
      return burst.Facts();
    };
    const BurstFacts held = with([](rte_mbuf& mbuf) { mbuf.refcnt = 2; });
    EXPECT_FALSE(held.simple || held.alone) << at;
    EXPECT_FALSE(held.chained) << at;
    EXPECT_FALSE(with([](rte_mbuf& mbuf) { mbuf.refcnt = 0x8001; }).simple) << at;
    for (const uint16_t segments : {2, 0x100, 0x8001}) {
      const BurstFacts chained = with([&](rte_mbuf& mbuf) { mbuf.nb_segs = segments; });
      EXPECT_FALSE(chained.simple || chained.alone) << at;
      EXPECT_TRUE(chained.chained) << at;
    }
    for (const uint64_t flag : {RTE_MBUF_F_INDIRECT, RTE_MBUF_F_EXTERNAL}) {
      const BurstFacts attached = with([&](rte_mbuf& mbuf) { mbuf.ol_flags |= flag; });
      EXPECT_FALSE(attached.simple || attached.alone) << at;
      EXPECT_FALSE(attached.chained) << at;
    }
    const BurstFacts foreign =
        with([](rte_mbuf& mbuf) { mbuf.pool = reinterpret_cast<rte_mempool*>(uintptr_t{1} << 46); });
    EXPECT_TRUE(foreign.alone && !foreign.simple) << at;
    EXPECT_EQ(with([](rte_mbuf& mbuf) { mbuf.pkt_len = UINT32_MAX; }).longest, UINT32_MAX) << at;
  }
}

TEST(Survey, BytesOfAnyLengthsAreAddedAndTheLongestIsKept) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<uint16_t>(1 + random() % 64);
    Burst burst(n);
    uint64_t bytes = 0;
    uint32_t longest = 0;
    for (size_t i = 0; i < n; ++i) {
      burst[i].pkt_len = random() % 4 == 0 ? static_cast<uint32_t>(random()) : random() % 9000;
      bytes += burst[i].pkt_len;
      longest = std::max(longest, burst[i].pkt_len);
    }
    EXPECT_EQ(burst.Facts().bytes, bytes);
    EXPECT_EQ(burst.Facts().longest, longest);
  }
}

TEST(BurstMask, HasABitForEachOfTheFirstFramesWithTheValueAndNoOther) {
  std::mt19937 random(11);
  for (uint16_t n = 0; n <= kMaxBurst; ++n) {
    alignas(kMaskBlock) std::array<uint8_t, kMaxBurst> bytes;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 2 == 0 ? 0xff : random() % 3);
    for (const uint8_t value : {0, 1, 2, 0xff}) {
      std::vector<uint16_t> expected;
      for (uint16_t i = 0; i < n; ++i) {
        if (bytes[i] == value) expected.push_back(i);
      }
      std::vector<uint16_t> visited;
      ForEachFrame(FramesWith(bytes.data(), value, n), [&](uint16_t i) { visited.push_back(i); });
      EXPECT_THAT(visited, ElementsAreArray(expected)) << n;
    }
  }
}

}  // namespace
}  // namespace halfpage
