// Sinks that keep frames for a reader: the UDP socket's queue and the user's rings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mempool/pktmbuf_pool.h"
#include "tests/support/eal_environment.h"
#include "xdp_emul/sinks/sink.h"
#include "xdp_emul/sinks/udp_socket.h"
#include "xdp_emul/sinks/user_rings.h"
#include "xdp_emul/transmit.h"
#include "xdp_emul/veth_pair.h"

namespace halfpage {
namespace {

class Sinks : public testing::TestWithParam<const char*> {
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
    socket_.reset();
    rings_.reset();
    pool_->Flush();
    EXPECT_EQ(pool_->in_use(), 0u) << "buffers lost";
  }

  // UDP over IPv4 to port 9, its payload numbered.
  rte_mbuf* Frame(uint16_t length = 64, uint16_t port = 9, uint8_t protocol = 17) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_->get());
    auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, length));
    for (uint16_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(i + made_);
    ++made_;
    if (length < 42) return frame;
    bytes[12] = 0x08;
    bytes[13] = 0x00;
    bytes[14] = 0x45;
    bytes[20] = bytes[21] = 0;
    bytes[23] = protocol;
    bytes[36] = static_cast<uint8_t>(port >> 8);
    bytes[37] = static_cast<uint8_t>(port);
    return frame;
  }
  // The same in two buffers.
  rte_mbuf* Chain(uint16_t head, uint16_t rest, uint16_t tailroom) {
    rte_mbuf* whole = Frame(static_cast<uint16_t>(head + rest));
    rte_mbuf* second = rte_pktmbuf_alloc(pool_->get());
    std::memcpy(rte_pktmbuf_append(second, rest), rte_pktmbuf_mtod_offset(whole, char*, head), rest);
    rte_pktmbuf_trim(whole, rest);
    // Moves the data to where just this tailroom is left.
    const auto to = static_cast<uint16_t>(whole->buf_len - tailroom - head);
    std::memmove(static_cast<char*>(whole->buf_addr) + to, rte_pktmbuf_mtod(whole, char*), head);
    whole->data_off = to;
    EXPECT_EQ(rte_pktmbuf_chain(whole, second), 0);
    return whole;
  }

  void Open(const UdpSocketOptions& options) {
    auto made = UdpSocket::Create(options);
    ASSERT_TRUE(made.ok()) << made.status();
    socket_ = *std::move(made);
    lane_ = std::make_unique<UdpLane>();
    lane_->socket = socket_.get();
    lane_->worker = 1;
    reader_ = std::make_unique<UdpReader>();
    reader_->socket = socket_.get();
    reader_->worker = 1;
    reader_->datagram = std::make_unique<uint8_t[]>(kLongestDatagram);
  }
  void Pass(std::vector<rte_mbuf*> frames) { Enqueue(*lane_, frames.data(), static_cast<uint16_t>(frames.size())); }
  // One frame at a time until rcvbuf is full. Gives how many the socket holds.
  uint32_t FillWith(uint16_t length) {
    while (lane_->rcvbuf_errors.Read() == 0) Pass({Frame(length)});
    return socket_->Waiting();
  }

  uint32_t made_ = 0;
  std::unique_ptr<PktmbufPool> pool_;
  std::unique_ptr<UdpSocket> socket_;
  std::unique_ptr<UdpLane> lane_;
  std::unique_ptr<UdpReader> reader_;
  std::unique_ptr<UserRings> rings_;
};

// What tests/unit/truesize is to the kernel: charges that were measured there.
TEST_P(Sinks, KernelAccountingChargesWhatTheKernelWasMeasuredToCharge) {
  struct {
    uint16_t length;
    uint32_t charge;
  } const cases[] = {{64, 896}, {300, 1152}, {1472, 2304}, {1473, 4352}, {1500, 4352}};
  for (const auto& [length, charge] : cases) {
    rte_mbuf* frame = Frame(length);
    EXPECT_EQ(Truesize(frame, Accounting::kKernel, nullptr), charge) << length;
    rte_pktmbuf_free(frame);
  }
}

TEST_P(Sinks, OurAccountingChargesTheWholeBufferOfEachSegment) {
  rte_mbuf* single = Frame(64);
  const uint32_t buffer = pool_->get()->header_size + 128 + single->buf_len;
  EXPECT_EQ(Truesize(single, Accounting::kBuffers, nullptr), buffer);
  rte_mbuf* chain = Chain(60, 40, 0);
  EXPECT_EQ(Truesize(chain, Accounting::kBuffers, nullptr), 2 * buffer);
  rte_pktmbuf_free(single);
  rte_pktmbuf_free(chain);
}

TEST_P(Sinks, HeldAtTheSameRcvbufFollowsAccountingAndCondensing) {
  struct {
    const char* what;
    Accounting accounting;
    bool condense;
    uint16_t length;
    uint32_t held;
  } const cases[] = {
      // 131072 / 2368; with condensing 28 whole ones pass half, then 192 bytes each
      {"kernel 64", Accounting::kKernel, false, 64, 146},
      {"kernel 64 condensing gains nothing in one buffer", Accounting::kKernel, true, 64, 146},
      {"kernel 300", Accounting::kKernel, false, 300, 113},
      {"kernel 1472", Accounting::kKernel, false, 1472, 56},
      {"kernel 1473", Accounting::kKernel, false, 1473, 30},
      {"kernel 1500", Accounting::kKernel, false, 1500, 30},
      {"whole buffers", Accounting::kBuffers, false, 64, 55},
      {"condensed", Accounting::kBuffers, true, 64, 28 + (131072 - 28 * 2368) / 192},
      {"nothing to gain from full-size frames", Accounting::kBuffers, true, 1514, 55},
  };
  for (const auto& each : cases) {
    Open({.name = "s", .rcvbuf = 131072, .condense = each.condense, .accounting = each.accounting});
    EXPECT_EQ(FillWith(each.length), each.held) << each.what;
    EXPECT_LE(socket_->charged.load(), 131072u) << each.what;
    EXPECT_EQ(lane_->most_held.Read(), each.held) << each.what;
    EXPECT_EQ(lane_->queued.Read(), each.held) << each.what;
    EXPECT_EQ(socket_->Flush(), each.held) << each.what;
    socket_.reset();
  }
}

TEST_P(Sinks, ACondensedFrameKeepsItsBytesAndGivesItsBufferBackAtOnce) {
  Open({.name = "s", .rcvbuf = 8192});
  Pass({Frame(64), Frame(64)});  // 4736 of 8192 charged: more than half
  const uint32_t before = pool_->in_use();
  Pass({Frame(100), Frame(200)});
  EXPECT_EQ(pool_->in_use(), before) << "the two buffers are home";
  EXPECT_EQ(lane_->condensed.Read(), 2u);
  EXPECT_EQ(lane_->bytes_saved.Read(), 2u * 2368 - 256 - 384);
  EXPECT_EQ(socket_->charged.load(), 2u * 2368 + 256 + 384);
  const uint16_t lengths[] = {64, 64, 100, 200};
  reader_->budget = 1;
  for (uint8_t i = 0; i < 4; ++i) {
    ASSERT_EQ(ReadSocket(*reader_, 0), 1);
    EXPECT_EQ(reader_->datagram[50], static_cast<uint8_t>(50 + i)) << int{i};
    EXPECT_EQ(reader_->datagram[lengths[i] - 1], static_cast<uint8_t>(lengths[i] - 1 + i)) << int{i};
  }
  EXPECT_EQ(socket_->charged.load(), 0u);
  EXPECT_EQ(reader_->bytes.Read(), 428u);
  socket_->small->Flush();
  EXPECT_EQ(socket_->small->in_use(), 0u);
}

TEST_P(Sinks, AChainIsPulledIntoItsHeadWhereTheTailroomHoldsTheRest) {
  for (const Accounting accounting : {Accounting::kBuffers, Accounting::kKernel}) {
    Open({.name = "s", .rcvbuf = 12288, .accounting = accounting});
    socket_->charged = 6400;
    Pass({Chain(60, 40, 40)});
    EXPECT_EQ(lane_->condensed.Read(), 1u);
    EXPECT_EQ(socket_->charged.load() - 6400, accounting == Accounting::kKernel ? 896u : 2368u);
    Pass({Chain(60, 40, 39)});  // one byte too few
    const bool copied = accounting == Accounting::kBuffers;
    EXPECT_EQ(lane_->condensed.Read(), copied ? 2u : 1u);
    EXPECT_EQ(lane_->condense_failed.Read(), copied ? 0u : 1u);
    for (uint8_t i = 0; i < 2; ++i) {
      reader_->budget = 1;
      ASSERT_EQ(ReadSocket(*reader_, 0), 1);
      const auto first = static_cast<uint8_t>(made_ - 2 + i);
      for (uint8_t at : {50, 59, 60, 99}) EXPECT_EQ(reader_->datagram[at], static_cast<uint8_t>(at + first));
    }
    EXPECT_EQ(socket_->charged.load(), 6400u);
    socket_.reset();
  }
}

TEST_P(Sinks, ASharedHeadIsNeverWrittenInto) {
  Open({.name = "s", .rcvbuf = 12288, .accounting = Accounting::kKernel});
  socket_->charged = 6400;
  rte_mbuf* chain = Chain(60, 40, 100);
  rte_mbuf_refcnt_update(chain, 1);
  Pass({chain});
  EXPECT_EQ(lane_->condensed.Read(), 0u);
  EXPECT_EQ(chain->data_len, 60);
  EXPECT_EQ(chain->nb_segs, 2);
  socket_->Flush();
  // The holder's reference keeps the head only: freeing took the rest.
  rte_pktmbuf_free_seg(chain);
}

TEST_P(Sinks, OnlyUdpToItsPortIsQueued) {
  Open({.name = "s", .port = 9});
  rte_mbuf* fragment = Frame();
  rte_pktmbuf_mtod(fragment, uint8_t*)[21] = 1;
  Pass({Frame(), Frame(64, 10), Frame(64, 9, 6), Frame(10), fragment, Frame(100)});
  EXPECT_EQ(lane_->queued.Read(), 2u);
  EXPECT_EQ(lane_->no_port.Read(), 1u);
  EXPECT_EQ(lane_->not_udp.Read(), 3u);
  EXPECT_EQ(ReadSocket(*reader_, 0), 2);
}

TEST_P(Sinks, WithoutSmallBuffersFramesStayAsTheyAreAndTheLimitHolds) {
  Open({.name = "s", .rcvbuf = 8192});
  std::vector<rte_mbuf*> taken;
  while (rte_mbuf* buffer = socket_->small->Alloc(1, {0, 0})) taken.push_back(buffer);
  Pass({Frame(), Frame(), Frame(), Frame(), Frame()});
  EXPECT_EQ(lane_->queued.Read(), 3u);
  EXPECT_EQ(lane_->rcvbuf_errors.Read(), 2u);
  EXPECT_EQ(lane_->condensed.Read(), 0u);
  EXPECT_EQ(socket_->charged.load(), 3u * 2368);
  rte_pktmbuf_free_bulk(taken.data(), static_cast<unsigned>(taken.size()));
}

TEST_P(Sinks, AReaderElsewhereReleasesRemotely) {
  Open({.name = "s"});
  UdpReader other;
  other.socket = socket_.get();
  other.worker = 2;
  other.datagram = std::make_unique<uint8_t[]>(kLongestDatagram);
  Pass({Frame(), Frame(), Frame()});
  reader_->budget = 2;
  ReadSocket(*reader_, 0);
  ReadSocket(other, 0);
  EXPECT_EQ(reader_->local.Read(), 2u);
  EXPECT_EQ(reader_->remote.Read(), 0u);
  EXPECT_EQ(other.local.Read(), 0u);
  EXPECT_EQ(other.remote.Read(), 1u);
}

TEST(SinkPace, AReaderKeepsItsRateAndNeverMakesUpForAPauseWithMoreThanOneTurn) {
  Pace pace = {.ticks = 100};
  uint64_t read = 0;
  for (uint64_t now = 1000000; now < 2000000; now += 37) {
    const uint16_t due = pace.Due(now, 64);
    pace.Took(now, due, 64);
    read += due;
  }
  EXPECT_NEAR(static_cast<double>(read), 10000, 66);
  EXPECT_EQ(pace.Due(9000000, 64), 64);
  pace.Took(9000000, 64, 64);
  EXPECT_EQ(pace.Due(9000100, 64), 2);
  Pace fresh = {.ticks = 100};
  EXPECT_EQ(fresh.Due(5000, 64), 1) << "nothing was due before it began";
  fresh.Took(5000, 1, 64);
  EXPECT_EQ(fresh.Due(5099, 64), 0);
  EXPECT_EQ(Pace{}.Due(0, 7), 7) << "no rate, no limit";
}

class UserSink : public Sinks {
 protected:
  void OpenRings(UserRingsOptions options) {
    options.name = "u";
    rings_.reset();
    auto made = UserRings::Create(options);
    ASSERT_TRUE(made.ok()) << made.status();
    rings_ = *std::move(made);
    user_ = std::make_unique<UserLane>();
    user_->rings = rings_.get();
    serving_ = std::make_unique<UserReader>();
    Bind(*serving_, rings_.get());
  }
  void Send64(uint16_t n) {
    std::vector<rte_mbuf*> frames;
    while (frames.size() < n) frames.push_back(Frame());
    Receive(*user_, frames.data(), n);
  }
  std::unique_ptr<UserLane> user_;
  std::unique_ptr<UserReader> serving_;
};

TEST_P(UserSink, AFullRxRingAndAnEmptyFillRingAreCountedApart) {
  OpenRings({.ring = 16, .chunks = 100});
  Send64(20);  // 16 chunks on the fill ring, 16 slots on the rx ring
  EXPECT_EQ(user_->queued.Read(), 16u);
  EXPECT_EQ(user_->rx_ring_full.Read(), 4u);
  EXPECT_EQ(ServeUser(*serving_, 0), 16);
  EXPECT_EQ(serving_->freed.Read(), 16u);
  OpenRings({.ring = 64, .chunks = 10});
  Send64(20);
  EXPECT_EQ(user_->queued.Read(), 10u);
  EXPECT_EQ(user_->fill_ring_empty.Read(), 10u);
  EXPECT_EQ(user_->most_held.Read(), 10u);
  EXPECT_EQ(rings_->Flush(), 10u);
}

TEST_P(UserSink, ChunksGoRoundForeverAndNoneIsLost) {
  OpenRings({.ring = 32, .chunks = 50});
  for (int round = 0; round < 1000; ++round) {
    Send64(static_cast<uint16_t>(1 + round % 32));
    EXPECT_EQ(ServeUser(*serving_, 0), 1 + round % 32);
  }
  EXPECT_EQ(user_->queued.Read(), serving_->frames.Read());
  EXPECT_EQ(user_->fill_ring_empty.Read() + user_->rx_ring_full.Read(), 0u);
}

TEST_P(UserSink, WhatItSendsBackHasItsAddressesSwappedAndIsCompletedTakenOrNot) {
  VethPairOptions pair_options;
  pair_options.names[0] = "a";
  pair_options.names[1] = "b";
  pair_options.ring = 32;
  pair_options.pool = pool_->get();
  auto pair = VethPair::Create(pair_options);
  ASSERT_TRUE(pair.ok()) << pair.status();
  Transmit way;
  way.port = pair->port(0);
  way.frame_limit = 1518;
  OpenRings({.ring = 8, .chunks = 64});
  serving_->way = &way;
  for (int round = 0; round < 10; ++round) {
    Send64(8);
    ASSERT_EQ(ServeUser(*serving_, 0), 8);
  }
  EXPECT_EQ(serving_->sent.Read(), 32u);
  EXPECT_EQ(serving_->send_errors[static_cast<int>(Refusal::kRingFull)].Read(), 48u);
  rte_mbuf* back[32];
  ASSERT_EQ(rte_eth_rx_burst(pair->port(1), 0, back, 32), 32);
  for (uint8_t i = 0; i < 32; ++i) {
    const uint8_t* bytes = rte_pktmbuf_mtod(back[i], const uint8_t*);
    EXPECT_EQ(bytes[0], static_cast<uint8_t>(i + 6)) << "source in front";
    EXPECT_EQ(bytes[6], i) << "destination behind";
  }
  rte_pktmbuf_free_bulk(back, 32);
}

TEST_P(UserSink, ASinkLaneHandsOverWhatPasses) {
  OpenRings({.ring = 64, .chunks = 64});
  Open({.name = "s"});
  SinkLane to_user;
  to_user.user = user_.get();
  SinkLane to_socket;
  to_socket.socket = lane_.get();
  for (SinkLane* sink : {&to_user, &to_socket}) {
    rte_mbuf* frames[3] = {Frame(), Frame(), Frame()};
    Consume(*sink, 0, frames, 3, Survey(frames, 3));
    EXPECT_EQ(sink->frames.Read(), 3u);
  }
  EXPECT_EQ(rings_->Waiting(), 3u);
  EXPECT_EQ(socket_->Waiting(), 3u);
}

// Two lcores pass frames while this thread reads: every frame is in exactly one counter, and charges come back to 0.
TEST_P(UserSink, SeveralSendersAndOneReaderLoseNothing) {
  OpenRings({.ring = 64, .chunks = 80, .many_senders = true});
  Open({.name = "s", .rcvbuf = 65536, .many_senders = true});
  constexpr int kRounds = 2000;
  UserLane users[2];
  UdpLane sockets[2];
  std::atomic<int> running{2};
  const auto send = [&](int which) {
    for (int round = 0; round < kRounds; ++round) {
      rte_mbuf* burst[16];
      for (int half = 0; half < 2; ++half) {
        if (rte_pktmbuf_alloc_bulk(pool_->get(), burst, 16) != 0) continue;
        for (rte_mbuf* frame : burst) {
          auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, 64));
          std::memset(bytes, 0, 64);
          bytes[12] = 8;
          bytes[14] = 0x45;
          bytes[23] = 17;
        }
        if (half == 0) {
          Receive(users[which], burst, 16);
        } else {
          Enqueue(sockets[which], burst, 16);
        }
      }
    }
    --running;
  };
  for (int which = 0; which < 2; ++which) {
    users[which].rings = rings_.get();
    sockets[which].socket = socket_.get();
  }
  std::vector<unsigned> lcores;
  unsigned lcore = 0;
  RTE_LCORE_FOREACH_WORKER(lcore) {
    lcores.push_back(lcore);
  }
  ASSERT_EQ(lcores.size(), 2u);
  struct Job {
    decltype(send)* run;
    int which;
  } jobs[2] = {{&send, 0}, {&send, 1}};
  for (size_t i = 0; i < 2; ++i) {
    rte_eal_remote_launch(
        [](void* argument) {
          auto* job = static_cast<Job*>(argument);
          (*job->run)(job->which);
          return 0;
        },
        &jobs[i], lcores[i]);
  }
  while (running != 0 || rings_->Waiting() + socket_->Waiting() != 0) {
    ServeUser(*serving_, 0);
    ReadSocket(*reader_, 0);
  }
  rte_eal_mp_wait_lcore();
  const auto sum = [](const auto& lanes, auto counter) {
    return (lanes[0].*counter).Read() + (lanes[1].*counter).Read();
  };
  EXPECT_EQ(sum(users, &UserLane::queued), serving_->frames.Read());
  EXPECT_EQ(sum(sockets, &UdpLane::queued), reader_->frames.Read());
  EXPECT_EQ(socket_->charged.load(), 0u);
  EXPECT_EQ(serving_->spare_count + rte_ring_count(rings_->fill.get()), 80u) << "all chunks are back";
}

INSTANTIATE_TEST_SUITE_P(Ops, Sinks, testing::Values("page_frag", "ring_mp_mc"),
                         [](const auto& ops) { return std::string(ops.param); });
INSTANTIATE_TEST_SUITE_P(Ops, UserSink, testing::Values("page_frag", "ring_mp_mc"),
                         [](const auto& ops) { return std::string(ops.param); });

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(
      new halfpage::EalEnvironment({.memory_mib = 256, .extra_args = {"--lcores", "0@0,1@1,2@0"}}));
  return RUN_ALL_TESTS();
}
