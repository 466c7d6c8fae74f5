#include "app/generated_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/traffic_source.h"
#include "tests/support/eal_environment.h"
#include "tests/support/traffic_fixture.h"

namespace halfpage {
namespace {

using testing::HasSubstr;

uint32_t Read16(const FrameBytes& frame, size_t at) {
  return uint32_t{frame[at]} << 8 | frame[at + 1];
}
uint32_t Read32(const FrameBytes& frame, size_t at) {
  return Read16(frame, at) << 16 | Read16(frame, at + 2);
}
uint32_t FlowOf(const FrameBytes& frame) {
  return Read32(frame, 26) - 0x0a000000;
}

// As a source sends them.
class GeneratedTraffic : public TrafficFixture {};
HALFPAGE_FOR_EACH_HANDLER(GeneratedTraffic);

TEST_P(GeneratedTraffic, GeneratedFramesAreUdpWithValidChecksumsInEverySize) {
  const std::vector<uint32_t> lengths = {42,  43,  60,  63,   64,   65,   66,    100,
                                         127, 128, 129, 1513, 1514, 9014, 65534, 65535};
  for (const uint32_t length : lengths) {
    SCOPED_TRACE(length);
    TrafficConfig config = GeneratorTraffic({{length, 1}}, 7);
    config.destination_port = 9;
    config.ports = 4;
    TrafficSource source = CreateSource(config, Pool());
    const std::vector<FrameBytes> frames = Take(source, 14);
    ASSERT_EQ(frames.size(), 14u);
    for (uint32_t i = 0; i < 14; ++i) {
      FrameBytes frame = frames[i];
      const uint32_t flow = i % 7;
      ASSERT_EQ(frame.size(), length);
      EXPECT_EQ(frame[0] & 3, 2) << "destination is not locally administered unicast";
      EXPECT_EQ(frame[6] & 3, 2) << "source is not locally administered unicast";
      EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 12, frames[0].begin()));
      EXPECT_EQ(Read16(frame, 12), 0x0800u);
      EXPECT_EQ(frame[14], 0x45);
      EXPECT_EQ(Read16(frame, 16), length - 14);
      EXPECT_EQ(Read16(frame, 20), 0x4000u);
      EXPECT_EQ(frame[22], 64);
      EXPECT_EQ(frame[23], 17);
      EXPECT_EQ(Read32(frame, 26), 0x0a000000 + flow);
      EXPECT_EQ(Read32(frame, 30), 0x0a800001u);
      EXPECT_EQ(Read16(frame, 34), 1024 + flow);
      EXPECT_EQ(Read16(frame, 36), 9 + flow % 4);
      EXPECT_EQ(Read16(frame, 38), length - 34);
      EXPECT_NE(Read16(frame, 40), 0u);
      std::vector<uint8_t> packet(frame.begin() + 14, frame.end());  // aligned as DPDK wants it
      const auto* ip = reinterpret_cast<const rte_ipv4_hdr*>(packet.data());
      EXPECT_EQ(rte_raw_cksum(ip, sizeof(*ip)), 0xffff);
      auto* udp = reinterpret_cast<rte_udp_hdr*>(packet.data() + sizeof(*ip));
      const uint16_t checksum = udp->dgram_cksum;
      udp->dgram_cksum = 0;
      EXPECT_EQ(rte_ipv4_udptcp_cksum(ip, udp), checksum);
    }
  }
}

TEST_P(GeneratedTraffic, MixKeepsItsExactRatioInEveryCycle) {
  TrafficSource source = CreateSource(GeneratorTraffic({{64, 28}, {570, 16}, {1514, 4}}, 64), Pool());
  const std::vector<FrameBytes> frames = Take(source, 12 * 300, 7);
  ASSERT_EQ(frames.size(), 12u * 300);
  std::set<std::vector<size_t>> orders;
  for (size_t cycle = 0; cycle < 300; ++cycle) {
    std::map<size_t, int> count;
    std::vector<size_t> order;
    for (size_t i = 0; i < 12; ++i) {
      ++count[frames[cycle * 12 + i].size()];
      order.push_back(frames[cycle * 12 + i].size());
    }
    orders.insert(order);
    ASSERT_EQ(count, (std::map<size_t, int>{{64, 7}, {570, 4}, {1514, 1}})) << "cycle " << cycle;
  }
  EXPECT_GT(orders.size(), 20u) << "the same order over and over";
}

TEST_P(GeneratedTraffic, EveryFlowMeetsEverySizeInItsShare) {
  for (const uint32_t flows : {1u, 2u, 12u, 60u, 64u, 255u}) {
    SCOPED_TRACE(flows);
    TrafficSource source = CreateSource(GeneratorTraffic({{64, 7}, {100, 4}, {200, 1}}, flows), Pool());
    const uint32_t positions = 1020;  // 85 cycles of 12
    std::map<std::pair<uint32_t, size_t>, uint32_t> count;
    for (uint32_t i = 0; i < positions; ++i) {
      for (const FrameBytes& frame : Take(source, flows, 64)) ++count[{FlowOf(frame), frame.size()}];
    }
    ASSERT_EQ(count.size(), flows * 3);
    for (uint32_t flow = 0; flow < flows; ++flow) {
      ASSERT_EQ((count[{flow, 64}]), 595u) << flow;
      ASSERT_EQ((count[{flow, 100}]), 340u) << flow;
      ASSERT_EQ((count[{flow, 200}]), 85u) << flow;
    }
  }
}

TEST_P(GeneratedTraffic, AllOf65536FlowsAreDistinct) {
  TrafficSource source = CreateSource(GeneratorTraffic({{64, 1}}, 65536), Pool());
  std::set<std::pair<uint32_t, uint32_t>> flows;
  for (const FrameBytes& frame : Take(source, 65536, 64)) {
    const uint32_t port = Read16(frame, 34);
    EXPECT_GE(port, 1024u);
    flows.insert({Read32(frame, 26), port});
  }
  EXPECT_EQ(flows.size(), 65536u);
}

TEST_P(GeneratedTraffic, SameSeedGivesSameBytesWhateverTheBurst) {
  const TrafficConfig config = GeneratorTraffic({{64, 28}, {570, 16}, {1514, 4}}, 64);
  TrafficSource a = CreateSource(config, Pool(), 7);
  TrafficSource b = CreateSource(config, Pool(), 7);
  EXPECT_EQ(Take(a, 3000, 64), Take(b, 3000, 5));
}

TEST_P(GeneratedTraffic, OtherSeedGivesOtherOrderAndPayload) {
  const TrafficConfig config = GeneratorTraffic({{64, 28}, {570, 16}, {1514, 4}}, 64);
  TrafficSource a = CreateSource(config, Pool(), 1);
  TrafficSource b = CreateSource(config, Pool(), 2);
  const std::vector<FrameBytes> of_a = Take(a, 1000);
  const std::vector<FrameBytes> of_b = Take(b, 1000);
  std::vector<size_t> lengths_of_a, lengths_of_b;
  for (const FrameBytes& frame : of_a) lengths_of_a.push_back(frame.size());
  for (const FrameBytes& frame : of_b) lengths_of_b.push_back(frame.size());
  EXPECT_NE(lengths_of_a, lengths_of_b);
  EXPECT_NE(FrameBytes(of_a[0].begin() + 42, of_a[0].begin() + 64),
            FrameBytes(of_b[0].begin() + 42, of_b[0].begin() + 64));
}

TEST_P(GeneratedTraffic, BytesOfSeedOneAreTheSameOnEveryPlatform) {
  TrafficSource source = CreateSource(GeneratorTraffic({{64, 28}, {570, 16}, {1514, 4}}, 64), Pool());
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const FrameBytes& frame : Take(source, 2000)) {
    for (const uint8_t byte : frame) hash = (hash ^ byte) * 1099511628211ull;
  }
  EXPECT_EQ(hash, 2277724500636305648u);
}

TEST_P(GeneratedTraffic, SourcesOfOtherNamesHaveOtherAddresses) {
  TrafficConfig config = GeneratorTraffic({{64, 1}});
  TrafficSource a = CreateSource(config, Pool());
  config.name = "other";
  TrafficSource b = CreateSource(config, Pool());
  const FrameBytes of_a = Take(a, 1).at(0);
  const FrameBytes of_b = Take(b, 1).at(0);
  EXPECT_NE(FrameBytes(of_a.begin(), of_a.begin() + 12), FrameBytes(of_b.begin(), of_b.begin() + 12));
  EXPECT_EQ(FrameBytes(of_a.begin() + 12, of_a.end()), FrameBytes(of_b.begin() + 12, of_b.end()));
}

TEST(GeneratedFrames, ValuesNoFrameCanHaveAreRefusedWithTheLimit) {
  const auto refusal = [](const TrafficConfig& config) {
    const absl::Status status = GeneratedFrames::Check(config);
    EXPECT_EQ(GeneratedFrames::Create(config, 1).status(), status);
    EXPECT_THAT(std::string(status.message()), HasSubstr("traffic \"generated\": "));
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(GeneratorTraffic({})), HasSubstr("sizes: none"));
  EXPECT_THAT(refusal(GeneratorTraffic({{41, 1}})), HasSubstr("41 bytes is outside 42"));
  EXPECT_THAT(refusal(GeneratorTraffic({{65536, 1}})), HasSubstr("to 65535"));
  EXPECT_THAT(refusal(GeneratorTraffic({{64, 0}})), HasSubstr("weight 0"));
  EXPECT_THAT(refusal(GeneratorTraffic({{64, 1}}, 0)), HasSubstr("flows: 0"));
  EXPECT_THAT(refusal(GeneratorTraffic({{64, 1}}, 65537)), HasSubstr("1 to 65536"));
  EXPECT_THAT(refusal(GeneratorTraffic({{64, 1000003}, {65, 1000033}})), HasSubstr("rounder weights"));
  EXPECT_THAT(refusal(GeneratorTraffic({{64, UINT32_MAX}, {65, 1}})), HasSubstr("rounder weights"));
  TrafficConfig ports = GeneratorTraffic({{64, 1}});
  ports.destination_port = 65530;
  ports.ports = 7;
  EXPECT_THAT(refusal(ports), HasSubstr("past 65535"));
  ports.ports = 0;
  EXPECT_THAT(refusal(ports), HasSubstr("ports: 0"));
  EXPECT_THAT(refusal(GeneratorTraffic(std::vector<std::pair<uint32_t, uint32_t>>(17, {64, 1}), 65536)),
              HasSubstr("use at most 61680 flows"));
}

TEST(GeneratedFrames, OneSizeIsOnePositionWhateverItsWeight) {
  const absl::StatusOr<GeneratedFrames> frames = GeneratedFrames::Create(GeneratorTraffic({{64, 1000003}}, 64), 1);
  ASSERT_TRUE(frames.ok()) << frames.status();
  EXPECT_EQ(frames->order().size(), 1u);
  EXPECT_EQ(frames->skew(), 0u);
}

TEST(GeneratedFrames, HeadsStandOnCacheLines) {
  absl::StatusOr<GeneratedFrames> frames = GeneratedFrames::Create(GeneratorTraffic({{64, 1}, {128, 1}}, 3), 1);
  ASSERT_TRUE(frames.ok()) << frames.status();
  const GeneratedFrames moved = *std::move(frames);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved.heads(0)) % kFrameHeadBytes, 0u);
  EXPECT_EQ(moved.heads(1), moved.heads(0) + 3 * kFrameHeadBytes);
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new halfpage::EalEnvironment({.memory_mib = 1024}));
  return RUN_ALL_TESTS();
}
