#include "app/ledger.h"

#include "app/fault_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace halfpage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kPass = static_cast<size_t>(XdpAction::kPass);
constexpr auto kDrop = static_cast<size_t>(XdpAction::kDrop);
constexpr auto kTx = static_cast<size_t>(XdpAction::kTx);
constexpr auto kRedirect = static_cast<size_t>(XdpAction::kRedirect);

// 100 frames into b, judged at a: 20 dropped, 30 passed, 25 sent back of which 5 were refused, 20 redirected back of
// which 2 were, 5 chained ones refused; 38 passed at b, none left in a ring.
Snapshot Balanced() {
  Snapshot snapshot;
  TrafficSnapshot& source = snapshot.traffic.emplace_back();
  source.name = "t";
  source.generated = 110;
  source.sent = 100;
  source.refused = {7, 3, 0};
  DeviceSnapshot& a = snapshot.devices.emplace_back();
  a.name = "a";
  a.peer = 1;
  a.received = 100;
  a.verdicts[kDrop] = 20;
  a.verdicts[kPass] = 30;
  a.verdicts[kTx] = 25;
  a.verdicts[kRedirect] = 20;
  a.refused[static_cast<size_t>(Refusal::kFragsUnsupported)] = 5;
  a.tx_sent = 20;
  a.tx_errors = {5, 0, 0};
  a.redirect_sent = 18;
  a.redirect_errors = {0, 2, 0};
  a.sent_through = 38;
  DeviceSnapshot& b = snapshot.devices.emplace_back();
  b.name = "b";
  b.peer = 0;
  b.received = 36;
  b.left_in_ring = 2;
  b.verdicts[kPass] = 36;
  b.sent_through = 100;
  SinkSnapshot& sink = snapshot.sinks.emplace_back();
  sink.name = "s";
  sink.frames = 66;
  return snapshot;
}

TEST(Ledger, BalancesWhenEveryFrameIsInOneCounterOnBothSides) {
  EXPECT_THAT(CheckLedger(Balanced()), IsEmpty());
}

// A sink that keeps frames: each of its sums, off by one, is told.
TEST(Ledger, WhatASinkKeepsForItsReaderIsDroppedReadOrLeft) {
  Snapshot balanced;
  DeviceSnapshot& device = balanced.devices.emplace_back();
  device.name = "d";
  device.peer = -1;
  device.received = device.verdicts[kPass] = 100;
  device.sent_through = 21;
  SinkSnapshot& held = balanced.sinks.emplace_back();
  held.name = "socket";
  held.held = true;
  held.frames = 100;
  held.kept = 1;
  held.dropped = {{"rcvbuf_errors", 7}, {"not_udp", 2}};
  held.queued = 90;
  held.read = 80;
  held.left = 10;
  held.freed = 50;
  held.sent = 21;
  held.refused = {9};
  EXPECT_THAT(CheckLedger(balanced), IsEmpty());
  for (uint64_t SinkSnapshot::*field : {&SinkSnapshot::kept, &SinkSnapshot::left, &SinkSnapshot::freed}) {
    Snapshot off = balanced;
    ++(off.sinks[0].*field);
    EXPECT_THAT(CheckLedger(off), ElementsAre(HasSubstr("sink socket: ")));
  }
  Snapshot off = balanced;
  ++off.sinks[0].dropped[1].second;
  EXPECT_THAT(CheckLedger(off), ElementsAre(HasSubstr("frames = kept + dropped + queued: 100 against 101")));
}

TEST(Ledger, AnEmptyRunBalances) {
  EXPECT_THAT(CheckLedger(Snapshot()), IsEmpty());
}

TEST(Ledger, NamesTheSumThatDoesNotComeOutWithBothSides) {
  Snapshot snapshot = Balanced();
  snapshot.traffic[0].generated = 111;
  EXPECT_THAT(CheckLedger(snapshot), ElementsAre("traffic t: generated = sent + refused: 111 against 110"));
}

// One frame too many or too few in any counter must show.
TEST(Ledger, OneFrameMoreInAnyCounterIsFound) {
  const std::vector<std::function<uint64_t*(Snapshot&)>> counters = {
      [](Snapshot& s) { return &s.traffic[0].sent; },
      [](Snapshot& s) { return &s.traffic[0].refused[1]; },
      [](Snapshot& s) { return &s.devices[0].received; },
      [](Snapshot& s) { return &s.devices[0].verdicts[0]; },
      [](Snapshot& s) { return &s.devices[0].verdicts[kDrop]; },
      [](Snapshot& s) { return &s.devices[0].verdicts[kPass]; },
      [](Snapshot& s) { return &s.devices[0].verdicts[kTx]; },
      [](Snapshot& s) { return &s.devices[0].verdicts[kRedirect]; },
      [](Snapshot& s) { return &s.devices[0].refused[static_cast<size_t>(Refusal::kFragsUnsupported)]; },
      [](Snapshot& s) { return &s.devices[0].tx_sent; },
      [](Snapshot& s) { return &s.devices[0].tx_errors[0]; },
      [](Snapshot& s) { return &s.devices[0].redirect_sent; },
      [](Snapshot& s) { return &s.devices[0].redirect_errors[1]; },
      [](Snapshot& s) { return &s.devices[0].sent_through; },
      [](Snapshot& s) { return &s.devices[1].left_in_ring; },
      [](Snapshot& s) { return &s.sinks[0].frames; },
  };
  for (size_t c = 0; c < counters.size(); ++c) {
    for (int change : {-1, 1}) {
      Snapshot snapshot = Balanced();
      *counters[c](snapshot) += static_cast<uint64_t>(change);
      EXPECT_FALSE(CheckLedger(snapshot).empty()) << "counter " << c << " changed by " << change;
    }
  }
}

TEST(Leaks, ABufferOrAPageThatIsStillOutIsNamedWithItsPool) {
  Snapshot snapshot;
  snapshot.pools.emplace_back().name = "full";
  EXPECT_THAT(CheckLeaks(snapshot), IsEmpty());
  PoolSnapshot& pool = snapshot.pools.emplace_back();
  pool.name = "leaky";
  pool.buffers_in_use = 3;
  pool.page_frag = true;
  pool.pages_in_flight = 2;
  EXPECT_THAT(CheckLeaks(snapshot), ElementsAre(HasSubstr("pool leaky: 3 buffers are still out, on 2 pages")));
  pool.leaks = {{"sink s", 2, 5.0, 1.25}, {"", 1, 0, 0}};
  EXPECT_THAT(
      CheckLeaks(snapshot),
      ElementsAre(HasSubstr("sink s holds 2, the oldest for 5.00 s, the youngest for 1.25 s; 1 with no owner")));
}

TEST(FaultLog, NamesProgramCausesAndCountsAndKeepsQuietLongerEachTime) {
  Snapshot snapshot;
  DeviceSnapshot& device = snapshot.devices.emplace_back();
  device.name = "veth0";
  device.program = "encap";
  uint64_t& aborted = device.verdicts[static_cast<size_t>(XdpAction::kAborted)];
  FaultLog log;
  EXPECT_THAT(log.Sample(snapshot, 0), testing::IsEmpty());
  aborted = 5;
  device.faults[static_cast<size_t>(Refusal::kAdjustHead)] = 3;
  device.fault = "program encap: adjust_head";
  EXPECT_THAT(log.Sample(snapshot, 0.5),
              testing::ElementsAre("veth0: program encap aborted 5 frames: adjust_head 3, verdict of the program 2 "
                                   "(first: program encap: adjust_head)"));
  EXPECT_THAT(log.Sample(snapshot, 9), testing::IsEmpty()) << "nothing new";
  aborted = 6;
  EXPECT_THAT(log.Sample(snapshot, 9), testing::SizeIs(1));
  aborted = 7;
  EXPECT_THAT(log.Sample(snapshot, 10.9), testing::IsEmpty());
  EXPECT_THAT(log.Sample(snapshot, 11),
              testing::ElementsAre(testing::HasSubstr("aborted 1 frame: verdict of the program 1")));
}

}  // namespace
}  // namespace halfpage
