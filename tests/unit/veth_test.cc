// Pairs, polls and verdicts on real ring ports. What frames look like afterwards is told by tests/packets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "xdp_emul/packet_headers.h"
#include "xdp_emul/receive_queue.h"
#include "xdp_emul/veth_pair.h"

namespace halfpage {
namespace {

class Veth : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    PktmbufPoolConfig config;
    config.ops = GetParam();
    config.size = 4096;
    config.cache = 32;
    auto pool = PktmbufPool::Create(config);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = std::make_unique<PktmbufPool>(*std::move(pool));
  }
  void TearDown() override {
    pool_->Flush();
    EXPECT_EQ(pool_->in_use(), 0u) << "buffers lost";
  }

  VethPairOptions Options(uint32_t ring = 256) {
    VethPairOptions options;
    options.names[0] = "a";
    options.names[1] = "b";
    options.ring = ring;
    options.pool = pool_->get();
    return options;
  }
  rte_mbuf* Frame(uint16_t length = 64) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_->get());
    std::memset(rte_pktmbuf_append(frame, length), 0x11, length);
    return frame;
  }
  std::vector<rte_mbuf*> Frames(size_t n) {
    std::vector<rte_mbuf*> frames;
    while (frames.size() < n) frames.push_back(Frame());
    return frames;
  }

  std::unique_ptr<PktmbufPool> pool_;
};

TEST_P(Veth, ARingOf256Holds256) {
  auto pair = VethPair::Create(Options());
  ASSERT_TRUE(pair.ok()) << pair.status();
  Transmit transmit;
  transmit.port = pair->port(1);
  transmit.frame_limit = 1518;
  uint16_t sent = 0;
  uint16_t refused = 0;
  for (int burst = 0; burst < 10; ++burst) {  // 300 frames, nobody receives
    std::vector<rte_mbuf*> frames = Frames(30);
    const SendResult result = Send(transmit, 0, frames.data(), 30, 16, Survey(frames.data(), 30));
    sent += result.sent;
    refused += result.refused[static_cast<int>(Refusal::kRingFull)];
  }
  EXPECT_EQ(sent, 256);
  EXPECT_EQ(refused, 44);
  EXPECT_EQ(transmit.sent.Read(), 256u);
  EXPECT_EQ(transmit.refused[static_cast<int>(Refusal::kRingFull)].Read(), 44u);
  EXPECT_EQ(pair->Waiting(0), 256u);
  EXPECT_THAT(pair->Close(), testing::ElementsAre(256, 0));
}

TEST_P(Veth, ClosingWithFramesInBothRingsReturnsThemAllToThePool) {
  auto pair = VethPair::Create(Options());
  ASSERT_TRUE(pair.ok());
  for (int end = 0; end < 2; ++end) {
    std::vector<rte_mbuf*> frames = Frames(100);
    EXPECT_EQ(rte_eth_tx_burst(pair->port(end), 0, frames.data(), 100), 100);
  }
  EXPECT_EQ(pool_->in_use(), 200u);
  EXPECT_THAT(pair->Close(), testing::ElementsAre(100, 100));
  EXPECT_EQ(pool_->in_use(), 0u);
  EXPECT_THAT(pair->Close(), testing::ElementsAre(0, 0)) << "closing again does nothing";
}

TEST_P(Veth, EachQueueIsARingOfItsOwn) {
  VethPairOptions options = Options();
  options.queues = 4;
  auto pair = VethPair::Create(options);
  ASSERT_TRUE(pair.ok()) << pair.status();
  for (uint16_t q = 0; q < 4; ++q) {
    std::vector<rte_mbuf*> frames = Frames(q + 1u);
    EXPECT_EQ(rte_eth_tx_burst(pair->port(0), q, frames.data(), q + 1), q + 1);
  }
  for (uint16_t q = 0; q < 4; ++q) {
    rte_mbuf* received[8];
    const uint16_t n = rte_eth_rx_burst(pair->port(1), q, received, 8);
    EXPECT_EQ(n, q + 1);
    rte_pktmbuf_free_bulk(received, n);
  }
}

TEST_P(Veth, ANameThatIsTakenUndoesTheWholePair) {
  auto first = VethPair::Create(Options());
  ASSERT_TRUE(first.ok());
  const uint16_t ports = rte_eth_dev_count_avail();
  VethPairOptions options = Options();
  options.names[0] = "other";  // its rings are made, then "b" is taken
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(VethPair::Create(options).ok());
  EXPECT_EQ(rte_eth_dev_count_avail(), ports);
  options.names[1] = "free";
  EXPECT_TRUE(VethPair::Create(options).ok()) << "something of the failed ones was left";
}

TEST_P(Veth, SixteenPairsFitAndTheNextOneIsRefused) {
  std::vector<VethPair> pairs;
  for (int p = 0; p < 16; ++p) {
    VethPairOptions options = Options(64);
    options.names[0] = "l" + std::to_string(p);
    options.names[1] = "r" + std::to_string(p);
    auto pair = VethPair::Create(options);
    ASSERT_TRUE(pair.ok()) << p << ": " << pair.status();
    pairs.push_back(*std::move(pair));
  }
  const auto one_more = VethPair::Create(Options());
  EXPECT_EQ(one_more.status().code(), absl::StatusCode::kResourceExhausted) << one_more.status();
}

// A device with a program on a pair, its peer's ring as the way back.
class Device {
 public:
  Device(const VethPair& pair, const ProgramConfig& config) {
    program_ = std::make_unique<Program>(*Program::Create(config, {"a", "b"}));
    transmit_[0].port = pair.port(0);
    transmit_[1].port = pair.port(1);
    for (Transmit& way : transmit_) way.frame_limit = 1518;
    queue.port = pair.port(0);
    queue.device = 0;
    queue.program = program_.get();
    queue.hits = hits_.get();
    queue.transmit = transmit_;
    queue.sink = &sink;
  }
  uint64_t Verdict(XdpAction action) const { return queue.counters.verdicts[static_cast<int>(action)].Read(); }

  ReceiveQueue queue;
  SinkLane sink;

 private:
  std::unique_ptr<Program> program_;
  std::unique_ptr<Counter[]> hits_ = std::make_unique<Counter[]>(16);
  Transmit transmit_[2];
};

TEST_P(Veth, APollTakesItsBudgetAndLeavesTheRest) {
  auto pair = VethPair::Create(Options());
  ASSERT_TRUE(pair.ok());
  ProgramConfig config;
  config.kind = ProgramKind::kDrop;
  Device device(*pair, config);
  std::vector<rte_mbuf*> frames = Frames(100);
  ASSERT_EQ(rte_eth_tx_burst(pair->port(1), 0, frames.data(), 100), 100);
  EXPECT_EQ(Poll(device.queue), 64);
  EXPECT_EQ(Poll(device.queue), 36);
  EXPECT_EQ(Poll(device.queue), 0);
  EXPECT_EQ(device.Verdict(XdpAction::kDrop), 100u);
  EXPECT_EQ(device.queue.counters.bytes.Read(), 6400u);
  EXPECT_EQ(device.queue.counters.empty_polls.Read(), 1u);
}

TEST_P(Veth, WhatTheRingBackRefusesIsAnErrorOfTxAndNotLost) {
  auto pair = VethPair::Create(Options(64));
  ASSERT_TRUE(pair.ok());
  ProgramConfig config;
  config.kind = ProgramKind::kTx;
  Device device(*pair, config);
  for (int round = 0; round < 3; ++round) {
    std::vector<rte_mbuf*> frames = Frames(50);
    ASSERT_EQ(rte_eth_tx_burst(pair->port(1), 0, frames.data(), 50), 50);
    Poll(device.queue);
  }
  EXPECT_EQ(device.Verdict(XdpAction::kTx), 150u);
  EXPECT_EQ(device.queue.counters.tx_sent.Read(), 64u);
  EXPECT_EQ(device.queue.counters.tx_errors[static_cast<int>(Refusal::kRingFull)].Read(), 86u);
}

TEST_P(Veth, AFrameThatSomebodyElseHoldsIsFreedWithoutHarmToTheHolder) {
  auto pair = VethPair::Create(Options());
  ASSERT_TRUE(pair.ok());
  ProgramConfig config;
  config.kind = ProgramKind::kDrop;
  Device device(*pair, config);
  rte_mbuf* held = Frame();
  rte_mbuf* burst[3] = {Frame(), held, rte_pktmbuf_clone(held, pool_->get())};
  rte_mbuf_refcnt_update(held, 1);
  ASSERT_EQ(rte_eth_tx_burst(pair->port(1), 0, burst, 3), 3);
  EXPECT_EQ(Poll(device.queue), 3);
  EXPECT_EQ(rte_mbuf_refcnt_read(held), 1);
  EXPECT_EQ(pool_->in_use(), 1u);
  rte_pktmbuf_free(held);
}

// Random verdicts by port: everything that goes in comes out in the counter of its rule.
TEST_P(Veth, EveryMixtureOfVerdictsInABurstAddsUp) {
  auto pair = VethPair::Create(Options(4096));
  ASSERT_TRUE(pair.ok());
  ProgramConfig config;
  config.kind = ProgramKind::kFilter;
  config.frags = true;
  for (int action = 0; action < kXdpActions; ++action) {
    FilterRule rule;
    rule.destination_port = PortRange{static_cast<uint16_t>(action), static_cast<uint16_t>(action)};
    rule.verdict = static_cast<XdpAction>(action);
    rule.target = "a";
    config.rules.push_back(rule);
  }
  Device device(*pair, config);
  std::mt19937 random(1);
  uint64_t expected[kXdpActions] = {};
  uint64_t passed_bytes = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<rte_mbuf*> frames;
    for (unsigned n = 1 + random() % 64; n != 0; --n) {
      const auto length = static_cast<uint16_t>(64 + random() % 1000);
      rte_mbuf* frame = Frame(length);
      auto* bytes = rte_pktmbuf_mtod(frame, uint8_t*);
      const int action = static_cast<int>(random() % kXdpActions);
      bytes[12] = 0x08;
      bytes[13] = 0x00;
      bytes[14] = 0x45;
      bytes[20] = bytes[21] = 0;
      bytes[23] = 17;
      bytes[36] = 0;
      bytes[37] = static_cast<uint8_t>(action);
      ++expected[action];
      if (action == static_cast<int>(XdpAction::kPass)) passed_bytes += length;
      frames.push_back(frame);
    }
    const auto n = static_cast<uint16_t>(frames.size());
    ASSERT_EQ(rte_eth_tx_burst(pair->port(1), 0, frames.data(), n), n);
    ASSERT_EQ(Poll(device.queue), n);
    rte_mbuf* back[64];
    while (const uint16_t came = rte_eth_rx_burst(pair->port(1), 0, back, 64)) rte_pktmbuf_free_bulk(back, came);
  }
  for (int action = 0; action < kXdpActions; ++action) {
    EXPECT_EQ(device.Verdict(static_cast<XdpAction>(action)), expected[action]) << "verdict " << action;
    EXPECT_EQ(device.queue.hits[action].Read(), expected[action]) << "rule " << action;
  }
  EXPECT_EQ(device.sink.frames.Read(), expected[static_cast<int>(XdpAction::kPass)]);
  EXPECT_EQ(device.sink.bytes.Read(), passed_bytes);
  EXPECT_EQ(device.queue.counters.tx_sent.Read(), expected[static_cast<int>(XdpAction::kTx)]);
  EXPECT_EQ(device.queue.counters.redirect_sent.Read(), expected[static_cast<int>(XdpAction::kRedirect)]);
}

// The same bytes in one segment or in many, cut anywhere: the walk finds the same, or nothing, and reads no byte too
// far.
TEST_P(Veth, HeadersReadTheSameHoweverTheFrameIsCutIntoSegments) {
  std::mt19937 random(2);
  int quick = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    uint8_t bytes[200];
    const unsigned length = 14 + random() % 120;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const uint16_t types[] = {0x0800, 0x86dd, 0x8100, 0x88a8};
    const uint16_t type = types[random() % 4];
    bytes[12] = static_cast<uint8_t>(type >> 8);
    bytes[13] = static_cast<uint8_t>(type);
    if (type == 0x0800) {
      bytes[14] = static_cast<uint8_t>(0x40 | (random() % 4 == 0 ? random() % 16 : 5));
      bytes[20] = bytes[21] = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0);
      bytes[23] = std::vector<uint8_t>{1, 6, 17, 132, 70, 81}[random() % 6];
    }
    if (type == 0x86dd) {
      bytes[14] = 0x60;
      bytes[20] = static_cast<uint8_t>(std::vector<int>{0, 6, 17, 43, 44, 60, 132}[random() % 7]);
    }
    rte_mbuf* whole = rte_pktmbuf_alloc(pool_->get());
    std::memcpy(rte_pktmbuf_append(whole, static_cast<uint16_t>(length)), bytes, length);
    rte_mbuf* chain = nullptr;
    for (unsigned at = 0; at < length;) {
      const unsigned piece = std::min<unsigned>(1 + random() % 20, length - at);
      rte_mbuf* segment = rte_pktmbuf_alloc(pool_->get());
      std::memcpy(rte_pktmbuf_append(segment, static_cast<uint16_t>(piece)), bytes + at, piece);
      if (chain == nullptr) {
        chain = segment;
      } else {
        ASSERT_EQ(rte_pktmbuf_chain(chain, segment), 0);
      }
      at += piece;
    }
    PacketHeaders one;
    PacketHeaders other;
    EXPECT_TRUE(ParseHeaders(whole, &one));
    EXPECT_TRUE(ParseHeaders(chain, &other));
    EXPECT_EQ(one.ethertype, other.ethertype);
    EXPECT_EQ(one.has_protocol, other.has_protocol);
    EXPECT_EQ(one.protocol, other.protocol);
    EXPECT_EQ(one.has_ports, other.has_ports);
    EXPECT_EQ(one.source_port, other.source_port);
    EXPECT_EQ(one.destination_port, other.destination_port);
    uint64_t key = 0;
    if (QuickKey(whole, &key)) {
      EXPECT_EQ(key, KeyOf(one)) << "the quick look and the walk";
      ++quick;
    }
    EXPECT_TRUE(chain->nb_segs == 1 || !QuickKey(chain, &key)) << "its first segment has at most 20 bytes";
    rte_pktmbuf_free(whole);
    rte_pktmbuf_free(chain);
  }
  EXPECT_GT(quick, 50);
}

TEST_P(Veth, TheFirstRuleThatMatchesDecidesHoweverManyThereAreAndWhateverTheyAskFor) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    ProgramConfig config;
    config.name = "many";
    config.kind = ProgramKind::kFilter;
    for (unsigned n = random() % 25; n != 0; --n) {
      FilterRule rule;
      if (random() % 4 == 0) rule.ethertype = random() % 2 == 0 ? 0x0800 : 0x86dd;
      if (random() % 3 == 0) rule.protocol = random() % 2 == 0 ? 6 : 17;
      const auto first = static_cast<uint16_t>(random() % 16);
      if (random() % 2 == 0) rule.source_port = PortRange{first, static_cast<uint16_t>(first + random() % 3)};
      if (random() % 2 == 0) rule.destination_port = PortRange{first, static_cast<uint16_t>(first + random() % 2)};
      rule.verdict = XdpAction::kDrop;
      config.rules.push_back(rule);
    }
    auto program = Program::Create(config, {});
    ASSERT_TRUE(program.ok()) << program.status();
    std::vector<Counter> hits(config.rules.size() + 1);
    for (int i = 0; i < 50; ++i) {
      rte_mbuf* frame = Frame(60);
      auto* bytes = rte_pktmbuf_mtod(frame, uint8_t*);
      std::memset(bytes + 12, 0, 48);
      const bool ipv4 = random() % 4 != 0;
      bytes[12] = ipv4 ? 0x08 : 0x86;
      bytes[13] = ipv4 ? 0x00 : 0xdd;
      bytes[14] = ipv4 ? 0x45 : 0x60;
      const uint8_t protocol = std::vector<uint8_t>{1, 6, 17}[random() % 3];
      bytes[ipv4 ? 23 : 20] = protocol;
      const auto source = static_cast<uint8_t>(random() % 18);
      const auto destination = static_cast<uint8_t>(random() % 18);
      bytes[ipv4 ? 35 : 55] = source;
      bytes[ipv4 ? 37 : 57] = destination;
      size_t expected = 0;
      for (; expected < config.rules.size(); ++expected) {
        const FilterRule& rule = config.rules[expected];
        const auto within = [protocol](const std::optional<PortRange>& range, uint16_t port) {
          return !range || (protocol != 1 && port >= range->first && port <= range->last);
        };
        if (rule.ethertype.value_or(ipv4 ? 0x0800 : 0x86dd) == (ipv4 ? 0x0800 : 0x86dd) &&
            rule.protocol.value_or(protocol) == protocol && within(rule.source_port, source) &&
            within(rule.destination_port, destination)) {
          break;
        }
      }
      Verdicts verdicts = {};
      const uint64_t before = hits[expected].Read();
      program->Run(&frame, 1, &verdicts, hits.data());
      EXPECT_EQ(hits[expected].Read(), before + 1) << "rule " << expected << " of " << config.rules.size();
      rte_pktmbuf_free(frame);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Veth, testing::Values("page_frag", "ring_mp_mc"),
                         [](const auto& ops) { return std::string(ops.param); });

}  // namespace
}  // namespace halfpage
