// What a device does to frames besides passing them on: closed peers, changed ends, copies, chains of programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/counted_bursts.h"
#include "tests/support/eal_environment.h"
#include "tests/unit/pair_fixture.h"
#include "xdp_emul/convert.h"

namespace halfpage {
namespace {

using ::testing::ElementsAre;

TEST_F(Pair, AClosedPeerRefusesTheWholeBulkOfXdpFramesWithItsReason) {
  for (const Refusal reason : {Refusal::kPeerNoXdp, Refusal::kPeerDown}) {
    transmit_[0].xdp_closed = static_cast<int>(reason);
    for (const ProgramKind kind : {ProgramKind::kTx, ProgramKind::kRedirect}) {
      Attach(kind);
      Deliver(Frames(40));
    }
    EXPECT_EQ(Read(queue_.counters.tx_errors, reason), 40u);
    EXPECT_EQ(Read(queue_.counters.redirect_errors, reason), 40u);
    EXPECT_EQ(Read(transmit_[0].refused, reason), 80u);
  }
  EXPECT_EQ(queue_.counters.tx_sent.Read() + queue_.counters.redirect_sent.Read(), 0u);
  EXPECT_EQ(Back(), 0);
}

TEST_F(Pair, ADeviceThatIsDownRefusesFramesOfSourcesToo) {
  transmit_[0].closed = static_cast<int>(Refusal::kPeerDown);
  transmit_[0].frame_limit = 0;
  std::vector<rte_mbuf*> frames = Frames(5);
  const SendResult result = Send(transmit_[0], 0, frames.data(), 5, 16, Survey(frames.data(), 5));
  EXPECT_EQ(result.sent, 0);
  EXPECT_EQ(result.refused[static_cast<int>(Refusal::kPeerDown)], 5);
}

TEST_F(Pair, SixtyFourFramesLeaveInFourFlushesOfSixteenAndARestInOneMore) {
  std::vector<uint16_t> bursts;
  const rte_eth_rxtx_callback* counter = rte_eth_add_tx_callback(pair_->port(0), 0, CountBursts, &bursts);
  ASSERT_NE(counter, nullptr);
  for (const ProgramKind kind : {ProgramKind::kTx, ProgramKind::kRedirect}) {
    bursts.clear();
    Attach(kind);
    Deliver(Frames(64));
    EXPECT_THAT(bursts, ElementsAre(16, 16, 16, 16));
    bursts.clear();
    Deliver(Frames(35));
    EXPECT_THAT(bursts, ElementsAre(16, 16, 3));
    EXPECT_EQ(Back(), 99);
  }
  rte_eth_remove_tx_callback(pair_->port(0), 0, counter);
}

TEST_F(Pair, TheMostFramesThatWaitedAreRememberedAlsoPastTheBudget) {
  Attach(ProgramKind::kDrop);
  Deliver(Frames(10));
  EXPECT_EQ(queue_.counters.high_water.Read(), 10u);
  std::vector<rte_mbuf*> frames = Frames(200);
  ASSERT_EQ(rte_eth_tx_burst(pair_->port(1), 0, frames.data(), 200), 200);
  while (Poll(queue_) != 0) continue;
  EXPECT_EQ(queue_.counters.high_water.Read(), 200u);
}

TEST_F(Pair, AnAdjustmentWithoutRoomAbortsWithItsReasonAndTheProgramsName) {
  ProgramConfig config;
  config.kind = ProgramKind::kAdjust;
  config.name = "encap";
  config.adjust.push = 129;
  Attach(config);
  Deliver(Frames(3));
  config.adjust = {};
  config.adjust.trim = 60;
  Attach(config);
  Deliver(Frames(2));
  config.adjust = {};
  config.adjust.push = 8;
  config.adjust.grow = 8;
  Attach(config);
  Deliver(Frames(1));
  EXPECT_EQ(Verdict(XdpAction::kAborted), 5u);
  EXPECT_EQ(Read(queue_.counters.faults, Refusal::kAdjustHead), 3u);
  EXPECT_EQ(Read(queue_.counters.faults, Refusal::kAdjustTail), 2u);
  EXPECT_EQ(static_cast<Refusal>(queue_.counters.fault_cause.load()), Refusal::kAdjustHead);
  EXPECT_EQ(queue_.counters.fault_asked.load(), 129u);
  EXPECT_EQ(queue_.counters.fault_available.load(), 128u);
  EXPECT_NE(queue_.counters.fault_program.load(), nullptr);
  EXPECT_EQ(sink_.bytes.Read(), 80u) << "the sink sees the new length";
}

TEST_F(Pair, ASharedFrameIsCopiedBeforeItsAddressesAreSwapped) {
  ConverterConfig config;
  config.pools = {Pool("copies")};
  auto converter = Converter::Create(config);
  ASSERT_TRUE(converter.ok());
  queue_.converter = &*converter;
  Attach(ProgramKind::kTx);
  rte_mbuf* held = Frame(source_, 64);
  const Bytes before = Flat(held);
  Deliver({rte_pktmbuf_clone(held, source_), Frame(source_, 64)});
  EXPECT_EQ(Flat(held), before) << "the holder's bytes stay";
  EXPECT_EQ(converter->buffers[static_cast<int>(CopyCause::kShared)].Read(), 1u);
  EXPECT_EQ(Back(), 2);
  rte_pktmbuf_free(held);
}

TEST_F(Pair, AChainIsMadeLinearForAProgramWithoutFragsWhereOneBufferHoldsIt) {
  ConverterConfig config;
  config.pools = {Pool("copies", 4096)};
  config.linear = true;
  auto converter = Converter::Create(config);
  ASSERT_TRUE(converter.ok());
  queue_.converter = &*converter;
  Attach(ProgramKind::kPass);
  Deliver({Frame(source_, 3000, 1000), Frame(source_, 5000, 1000)});
  EXPECT_EQ(Verdict(XdpAction::kPass), 1u);
  EXPECT_EQ(sink_.bytes.Read(), 3000u);
  EXPECT_EQ(Read(queue_.counters.refused, Refusal::kFragsUnsupported), 1u);
}

TEST_F(Pair, EachLinkOfAChainSeesWhatThoseBeforeItHavePassed) {
  ProgramConfig gate;
  gate.kind = ProgramKind::kFilter;
  gate.name = "gate";
  gate.rules.resize(1);
  gate.rules[0].ethertype = 0x88f7;
  gate.rules[0].verdict = XdpAction::kDrop;
  ProgramConfig last;
  last.kind = ProgramKind::kTx;
  last.name = "last";
  const auto first = Program::Create(gate, {"a", "b"});
  const auto second = Program::Create(last, {"a", "b"});
  ProgramConfig chain;
  chain.kind = ProgramKind::kChain;
  chain.name = "all";
  chain.programs = {"gate", "gate", "last"};
  Attach(chain, {&*first, &*second});
  std::vector<rte_mbuf*> frames = Frames(64);
  for (size_t i = 0; i < 64; i += 3) {
    rte_pktmbuf_mtod(frames[i], uint8_t*)[12] = 0x88;
    rte_pktmbuf_mtod(frames[i], uint8_t*)[13] = 0xf7;
  }
  Deliver(frames);
  EXPECT_EQ(Verdict(XdpAction::kDrop), 22u);
  EXPECT_EQ(Verdict(XdpAction::kTx), 42u);
  EXPECT_EQ(Back(), 42);
  EXPECT_THAT(program_->hit_names(), ElementsAre("gate rule 0", "gate default", "gate rule 0", "gate default"));
  EXPECT_EQ(hits_[0].Read(), 22u);
  EXPECT_EQ(hits_[1].Read(), 42u);
  EXPECT_EQ(hits_[2].Read(), 0u);
  EXPECT_EQ(hits_[3].Read(), 42u);
  EXPECT_FALSE(Program::Create(chain, {"a", "b"}, {&*first}).ok());
}

// Peer x verdict x ring x MTU x chained or not: each frame in exactly one counter.
TEST_F(Pair, WhateverMeetsEveryFrameEndsInExactlyOneCounter) {
  std::mt19937 random(7);
  rte_mempool* copies = Pool("copies", 4096, 40);  // too few at times
  for (const int closed : {Transmit::kOpen, static_cast<int>(Refusal::kPeerNoXdp)}) {
    for (const ProgramKind kind : {ProgramKind::kPass, ProgramKind::kDrop, ProgramKind::kAborted, ProgramKind::kTx,
                                   ProgramKind::kRedirect, ProgramKind::kTouch, ProgramKind::kAdjust}) {
      for (const bool frags : {false, true}) {
        for (const bool copy : {false, true}) {
          ConverterConfig config;
          config.pools = {copies};
          config.linear = !frags;
          config.always = random() % 2 == 0;
          auto converter = Converter::Create(config);
          queue_.converter = copy ? &*converter : nullptr;
          queue_.look_at_simple = copy && converter->looks_at_simple();
          transmit_[0].xdp_closed = closed;
          transmit_[0].frame_limit = 2500;
          Attach(kind, frags);
          for (int round = 0; round < 16; ++round) {
            std::vector<rte_mbuf*> frames;
            for (unsigned n = 1 + random() % 64; n != 0; --n) {
              frames.push_back(Frame(source_, 14 + static_cast<uint32_t>(random()) % 5000, 1000));
            }
            Deliver(frames);
          }
          Back();  // until then the ring fills up
        }
      }
    }
  }
  const ReceiveCounters& counters = queue_.counters;
  const auto sum = [](const auto& all) {
    return std::accumulate(std::begin(all), std::end(all), uint64_t{0},
                           [](uint64_t total, const Counter& counter) { return total + counter.Read(); });
  };
  EXPECT_EQ(counters.packets.Read(), sum(counters.verdicts) + sum(counters.refused));
  EXPECT_EQ(Verdict(XdpAction::kTx), counters.tx_sent.Read() + sum(counters.tx_errors));
  EXPECT_EQ(Verdict(XdpAction::kRedirect), counters.redirect_sent.Read() + sum(counters.redirect_errors));
  EXPECT_EQ(Verdict(XdpAction::kPass), sink_.frames.Read());
  for (const Refusal reason : {Refusal::kRingFull, Refusal::kMtu, Refusal::kPeerNoXdp}) {
    EXPECT_GT(Read(counters.tx_errors, reason), 0u) << RefusalName(reason);
  }
  for (const Refusal reason : {Refusal::kFragsUnsupported, Refusal::kNoBuffer}) {
    EXPECT_GT(Read(counters.refused, reason), 0u) << RefusalName(reason);
  }
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(
      new halfpage::EalEnvironment({.memory_mib = 256, .extra_args = {"--lcores", "0@0,1@1"}}));
  return RUN_ALL_TESTS();
}
