// Where redirects into maps end: devices, several of them, a user's rings, other workers, nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ring.h>

#include <numeric>
#include <utility>
#include <vector>

#include "tests/unit/pair_fixture.h"
#include "xdp_emul/map_redirect.h"
#include "xdp_emul/owned_ring.h"
#include "xdp_emul/sinks/user_rings.h"

namespace halfpage {
namespace {

using ::testing::HasSubstr;

// Three pairs: a-b, whose a judges; c-d and e-f, into which it may redirect.
class Maps : public Pair {
 protected:
  static constexpr DeviceIndex kA = 0, kC = 2, kE = 4;

  void SetUp() override {
    Pair::SetUp();
    names_ = {"a", "b", "c", "d", "e", "f"};
    for (const char* ends : {"cd", "ef"}) {
      VethPairOptions options;
      options.names[0] = std::string(1, ends[0]);
      options.names[1] = std::string(1, ends[1]);
      options.pool = source_;
      pairs_.push_back(*VethPair::Create(options));
    }
    for (int device = 0; device < 6; ++device) {
      devices_[device].port = device < 2 ? pair_->port(device) : pairs_[device / 2 - 1].port(device % 2);
      devices_[device].frame_limit = 9018;
    }
    queue_.transmit = devices_;
  }
  void TearDown() override {
    pairs_.clear();
    Pair::TearDown();
  }

  // A program that redirects into the only map.
  void Redirect(RedirectMapConfig map, uint32_t key = 0) {
    map.name = "map";
    auto maps = RedirectMaps::Create({map});
    ASSERT_TRUE(maps.ok()) << maps.status();
    maps_ = *std::move(maps);
    routed_ = std::make_unique<Counter[]>(maps_->targets());
    ways_.maps = maps_.get();
    ways_.copies = source_;
    ways_.routed = routed_.get();
    queue_.ways = &ways_;
    ProgramConfig config;
    config.kind = ProgramKind::kRedirect;
    config.frags = true;
    config.map = "map";
    config.key = key;
    Attach(config);
  }
  // Frees what waits at the far end of a device and gives how much it was.
  uint16_t Came(DeviceIndex device) {
    rte_mbuf* frames[256];
    const uint16_t port = device < 2 ? pair_->port(1) : pairs_[device / 2 - 1].port(1);
    const uint16_t n = rte_eth_rx_burst(port, 0, frames, 256);
    rte_pktmbuf_free_bulk(frames, n);
    return n;
  }
  void ExpectBalance() {
    const ReceiveCounters& counters = queue_.counters;
    uint64_t errors = 0;
    for (const Counter& counter : counters.redirect_errors) errors += counter.Read();
    EXPECT_EQ(Verdict(XdpAction::kRedirect) + counters.redirect_copies.Read(), counters.redirect_sent.Read() + errors);
  }

  std::vector<VethPair> pairs_;
  Transmit devices_[6];
  MapWays ways_;
  std::unique_ptr<Counter[]> routed_;
};

TEST_F(Maps, ASlotLeadsToItsDeviceAndMayBeChangedWhileFramesCome) {
  Redirect({.size = 8}, 5);
  maps_->at(0).Put(5, kC);
  Deliver(Frames(40));
  EXPECT_EQ(Came(kC), 40);
  maps_->at(0).Put(5, kE);
  Deliver(Frames(3));
  EXPECT_EQ(Came(kE), 3);
  EXPECT_EQ(Came(kC), 0);
  EXPECT_EQ(routed_[5].Read(), 43u);
  EXPECT_TRUE(program_->CanRedirectTo(kE));
  EXPECT_FALSE(program_->CanRedirectTo(kC));
  ExpectBalance();
}

TEST_F(Maps, AFiltersDefaultMayLeadIntoAMap) {
  Redirect({.size = 8}, 0);
  maps_->at(0).Put(2, kC);
  ProgramConfig config;
  config.kind = ProgramKind::kFilter;
  config.name = "rest";
  config.rules.resize(1);
  config.rules[0].ethertype = 0x88f7;
  config.rules[0].verdict = XdpAction::kDrop;
  config.fallback = XdpAction::kRedirect;
  config.fallback_map = "map";
  config.fallback_key = 2;
  Attach(config);
  Deliver(Frames(40));
  EXPECT_EQ(Came(kC), 40);
  EXPECT_EQ(routed_[2].Read(), 40u);
  EXPECT_TRUE(program_->CanRedirectTo(kC));
  maps_->at(0).Put(2, kNoDevice);
  Deliver(Frames(3));
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kBadTarget), 3u);
  ExpectBalance();
}

TEST_F(Maps, AnEmptySlotAndAKeyPastTheEndAreBadTargets) {
  Redirect({.size = 8}, 5);
  Deliver(Frames(10));
  Redirect({.size = 8}, 8);
  Deliver(Frames(7));
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kBadTarget), 17u);
  EXPECT_EQ(queue_.counters.redirect_sent.Read(), 0u);
  ExpectBalance();
}

TEST_F(Maps, TheKeyMayBeTheQueueThatReceived) {
  Redirect({.size = 8}, kKeyOfQueue);
  maps_->at(0).Put(0, kC);
  maps_->at(0).Put(3, kE);
  Deliver(Frames(10));
  EXPECT_EQ(Came(kC), 10);
  devices_[kE].queues = 1;
  rte_mbuf* frame = Frame(source_, 64);
  queue_.queue = 3;
  Judge(queue_, &frame, 1, Survey(&frame, 1));
  EXPECT_EQ(Came(kE), 1);
  frame = Frame(source_, 64);
  queue_.queue = 9;  // past the map's end
  Judge(queue_, &frame, 1, Survey(&frame, 1));
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kBadTarget), 1u);
}

TEST_F(Maps, ABroadcastGivesEachDeviceItsOwnFrameAndTheLedgerCountsCopies) {
  Redirect({.size = 8, .broadcast = true});
  maps_->at(0).Put(1, kC);
  maps_->at(0).Put(4, kA);
  maps_->at(0).Put(7, kE);
  std::vector<rte_mbuf*> frames = Frames(20);
  frames.push_back(Frame(source_, 3000, 1000));
  const Bytes sent = Flat(frames.back());
  Deliver(frames);
  for (const uint16_t port : {pair_->port(1), pairs_[0].port(1), pairs_[1].port(1)}) {
    rte_mbuf* came[64];
    ASSERT_EQ(rte_eth_rx_burst(port, 0, came, 64), 21);
    EXPECT_EQ(Flat(came[20]), sent);
    EXPECT_EQ(rte_mbuf_refcnt_read(came[20]), 1) << "nobody shares it";
    rte_pktmbuf_free_bulk(came, 21);
  }
  EXPECT_EQ(Verdict(XdpAction::kRedirect), 21u);
  EXPECT_EQ(queue_.counters.redirect_copies.Read(), 42u);
  EXPECT_EQ(queue_.counters.redirect_sent.Read(), 63u);
  ExpectBalance();
}

TEST_F(Maps, ExcludeIngressSparesTheDeviceThatReceived) {
  Redirect({.size = 8, .broadcast = true, .exclude_ingress = true});
  maps_->at(0).Put(0, kA);
  maps_->at(0).Put(1, kC);
  Deliver(Frames(20));
  EXPECT_EQ(Came(kA), 0);
  EXPECT_EQ(Came(kC), 20);
  EXPECT_EQ(queue_.counters.redirect_copies.Read(), 0u);
  maps_->at(0).Put(1, kNoDevice);
  Deliver(Frames(2));
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kBadTarget), 2u) << "to nobody at all";
  ExpectBalance();
}

TEST_F(Maps, WhereCopiesFindNoBufferOrNoRoomTheOthersAreDeliveredAllTheSame) {
  Redirect({.size = 8, .broadcast = true});
  ways_.copies = Pool("few", 2176, 10);
  maps_->at(0).Put(0, kC);
  maps_->at(0).Put(1, kE);
  Deliver(Frames(30));
  EXPECT_EQ(Came(kC), 10);
  EXPECT_EQ(Came(kE), 30);
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kNoBuffer), 20u);
  ways_.copies = source_;
  for (int round = 0; round < 5; ++round) Deliver(Frames(64));  // c and e hold 256
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kRingFull), 2 * 64u);
  EXPECT_EQ(Came(kC), 256);
  EXPECT_EQ(Came(kE), 256);
  ExpectBalance();
}

TEST_F(Maps, AUsersRingsTakeWhatAnXskmapSends) {
  auto rings = UserRings::Create({.name = "user", .ring = 16, .chunks = 64});
  ASSERT_TRUE(rings.ok());
  UserReader reader;
  Bind(reader, rings->get());
  UserLane user;
  user.rings = rings->get();
  SinkLane lane;
  lane.user = &user;
  SinkLane* sinks[] = {nullptr, &lane};
  ways_.sinks = sinks;
  Redirect({.kind = MapKind::kXskmap, .size = 4}, kKeyOfQueue);
  maps_->at(0).Put(0, SinkTarget(1));
  Deliver(Frames(20, 100));
  EXPECT_EQ(lane.frames.Read(), 20u);
  EXPECT_EQ(lane.bytes.Read(), 2000u);
  EXPECT_EQ(user.queued.Read(), 16u);
  EXPECT_EQ(user.rx_ring_full.Read() + user.fill_ring_empty.Read(), 4u);
  EXPECT_EQ(queue_.counters.redirect_to_sinks.Read(), 20u);
  EXPECT_EQ(ServeUser(reader, 0), 16);
  EXPECT_EQ(sink_.frames.Read(), 0u) << "the stack never sees them";
  ExpectBalance();
}

class CpuMap : public Maps {
 protected:
  void SetUp() override {
    Maps::SetUp();
    auto ring = MakeRing({.name = "lane", .slots = 64, .element_bytes = sizeof(RemoteFrame), .many_producers = true});
    ASSERT_TRUE(ring.ok()) << ring.status();
    ring_ = *std::move(ring);
    lane_.ring = remote_.ring = ring_.get();
    ways_.lanes = &lane_;
    for (DeviceIndex device = 0; device < 6; ++device) {
      judges_[device].device = device;
      judges_[device].remote = true;
      judges_[device].sink = &remote_sink_;
      judges_[device].transmit = devices_;
      judges_[device].ways = &ways_;
      judges_[device].hits = hits_.get();
    }
    remote_.queues = judges_;
    Redirect({.kind = MapKind::kCpumap, .size = 2}, 1);
    maps_->at(0).Put(1, LaneTarget(0));
  }

  OwnedRing ring_;
  CpuLane lane_;
  CpuQueue remote_;
  ReceiveQueue judges_[6];
  SinkLane remote_sink_;
};

TEST_F(CpuMap, FramesPassOnTheOtherWorkerToTheSinkOfTheirDevice) {
  Deliver(Frames(50, 100));
  EXPECT_EQ(rte_ring_count(ring_.get()), 50u);
  EXPECT_EQ(PollRemote(remote_), 50);
  EXPECT_EQ(PollRemote(remote_), 0);
  EXPECT_EQ(remote_sink_.frames.Read(), 50u);
  EXPECT_EQ(remote_sink_.bytes.Read(), 5000u);
  EXPECT_EQ(queue_.counters.redirect_to_lanes.Read(), 50u);
  EXPECT_EQ(judges_[0].counters.packets.Read(), 50u);
  EXPECT_EQ(judges_[0].counters.verdicts[static_cast<int>(XdpAction::kPass)].Read(), 50u);
  ExpectBalance();
}

TEST_F(CpuMap, AFullRingRefusesTheRestAsRingFull) {
  Deliver(Frames(60));
  Deliver(Frames(10));
  EXPECT_EQ(Read(queue_.counters.redirect_errors, Refusal::kRingFull), 6u);
  while (PollRemote(remote_) != 0) continue;
  EXPECT_EQ(remote_sink_.frames.Read(), 64u);
  ExpectBalance();
}

TEST_F(CpuMap, ASecondProgramJudgesWhatComesFromSeveralQueuesAndCannotSendBack) {
  ProgramConfig config;
  config.kind = ProgramKind::kTx;
  const auto back = Program::Create(config, names_);
  config.kind = ProgramKind::kRedirect;
  config.target = "c";
  const auto onward = Program::Create(config, names_);
  judges_[0].program = &*onward;
  judges_[2].program = &*back;
  std::vector<rte_mbuf*> frames = Frames(30);
  PutRemote(lane_, 0, 0, frames.data(), 10);
  PutRemote(lane_, 2, 1, frames.data() + 10, 5);
  PutRemote(lane_, 0, 1, frames.data() + 15, 15);
  EXPECT_EQ(PollRemote(remote_), 30);
  EXPECT_EQ(Came(kC), 25);
  EXPECT_EQ(judges_[0].counters.redirect_sent.Read(), 25u);
  EXPECT_EQ(Read(judges_[2].counters.tx_errors, Refusal::kBadTarget), 5u);
}

TEST(RedirectMaps, SizesAreBoundedAndMapsFoundByName) {
  RedirectMapConfig config;
  config.name = "m";
  config.size = 0;
  EXPECT_THAT(RedirectMaps::Create({config}).status().message(), HasSubstr("map m: 0 slots; give it 1 to 4096"));
  config.size = kMostMapSlots;
  const std::vector<RedirectMapConfig> many(16, config);
  EXPECT_THAT(RedirectMaps::Create(many).status().message(), HasSubstr("make them smaller"));
  auto maps = RedirectMaps::Create({config});
  ASSERT_TRUE(maps.ok());
  EXPECT_EQ((*maps)->Find("m"), &(*maps)->at(0));
  EXPECT_EQ((*maps)->Find("n"), nullptr);
  EXPECT_EQ((*maps)->at(0).Slot(kMostMapSlots), kNoDevice);
  EXPECT_EQ((*maps)->at(0).Read(kMostMapSlots), kNoDevice);
  EXPECT_EQ((*maps)->Of(3), nullptr);
  EXPECT_EQ((*maps)->Of(kNoDevice), nullptr);
  EXPECT_TRUE((*maps)->Leads(3, 3)) << "direct numbers lead to themselves";
  EXPECT_FALSE((*maps)->Leads(kNoDevice, kNoDevice));
}

}  // namespace
}  // namespace halfpage
