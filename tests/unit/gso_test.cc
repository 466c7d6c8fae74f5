// Segmentation: what librte_gso's output is worth, where frames are cut and where not, and every sink with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/eal_environment.h"
#include "tests/support/traffic_fixture.h"
#include "xdp_emul/gso.h"
#include "xdp_emul/sinks/pcap_sink.h"
#include "xdp_emul/sinks/sink.h"
#include "xdp_emul/sinks/udp_socket.h"
#include "xdp_emul/sinks/user_rings.h"
#include "xdp_emul/transmit.h"
#include "xdp_emul/veth_pair.h"

namespace halfpage {
namespace {

constexpr uint32_t kSuper = 64000;
constexpr uint16_t kSegment = 1448;
constexpr size_t kSegments = (kSuper - 54 + kSegment - 1) / kSegment;  // 45

class Gso : public TrafficFixture {
 protected:
  // A frame of the generator, marked, in one buffer or, from small rooms, in many.
  rte_mbuf* Super(rte_mempool* pool, uint32_t size = kSuper, uint16_t segment = kSegment) {
    TrafficConfig config = GeneratorTraffic({{size, 1}});
    config.gso = segment;
    TrafficSource source = CreateSource(config, pool);
    rte_mbuf* frame = nullptr;
    EXPECT_EQ(source.Fill(&frame, 1), 1);
    return frame;
  }

  static FrameBytes Bytes(const rte_mbuf* frame) {
    FrameBytes bytes(frame->pkt_len);
    const void* at = rte_pktmbuf_read(frame, 0, frame->pkt_len, bytes.data());
    if (at != bytes.data()) std::memcpy(bytes.data(), at, bytes.size());
    return bytes;
  }

  std::vector<rte_mbuf*> Segments(rte_mbuf* frame, rte_mempool* pool) {
    rte_mbuf* segments[kMaxGsoSegments];
    Refusal reason;
    const uint16_t n = SegmentFrame(frame, pool, segments, &reason);
    rte_pktmbuf_free(frame);
    EXPECT_GT(n, 0);
    return {segments, segments + n};
  }

  // An end that frames are sent through, and who receives them.
  struct Pair {
    VethPair pair;
    Transmit transmit;
  };
  std::unique_ptr<Pair> Joined(rte_mempool* pool, uint32_t ring = 256) {
    VethPairOptions options;
    options.names[0] = "a";
    options.names[1] = "b";
    options.ring = ring;
    options.pool = pool;
    auto pair = VethPair::Create(options);
    EXPECT_TRUE(pair.ok()) << pair.status();
    auto joined = std::unique_ptr<Pair>(new Pair{*std::move(pair), {}});
    joined->transmit.port = joined->pair.port(1);
    joined->transmit.frame_limit = 1518;
    joined->transmit.spare = pool;
    return joined;
  }
  static std::vector<rte_mbuf*> Received(const Pair& joined) {
    rte_mbuf* frames[64];
    const uint16_t n = rte_eth_rx_burst(joined.pair.port(0), 0, frames, 64);
    return {frames, frames + n};
  }
  static SendResult SendAll(Transmit& transmit, std::vector<rte_mbuf*> frames) {
    const auto n = static_cast<uint16_t>(frames.size());
    return Send(transmit, 0, frames.data(), n, 16, Survey(frames.data(), n));
  }
};

// Checksums over a whole segment come out as all ones where they are right (RFC 1071).
void ExpectValid(FrameBytes segment, uint32_t sequence, bool last) {
  auto* ip = reinterpret_cast<rte_ipv4_hdr*>(segment.data() + 14);
  auto* tcp = reinterpret_cast<rte_tcp_hdr*>(segment.data() + 34);
  ASSERT_EQ(rte_be_to_cpu_16(ip->total_length), segment.size() - 14);
  EXPECT_EQ(rte_raw_cksum(ip, 20), 0xffff);
  EXPECT_EQ(rte_ipv4_udptcp_cksum(ip, tcp), 0);  // the complement of all ones
  EXPECT_EQ(rte_be_to_cpu_32(tcp->sent_seq), sequence);
  EXPECT_EQ((tcp->tcp_flags & RTE_TCP_PSH_FLAG) != 0, last);
}

TEST_P(Gso, SegmentsCarryThePayloadOnceInOrderWithValidChecksums) {
  for (const uint16_t room : {uint16_t{65535}, uint16_t{2176}, uint16_t{777}}) {
    for (const auto& [size, segment] : {std::pair<uint32_t, uint16_t>{kSuper, kSegment}, {65000, 536}, {1600, 1400}}) {
      rte_mempool* pool = Pool(room == 65535 ? 511 : 2047, room);
      rte_mbuf* frame = Super(pool, size, segment);
      const FrameBytes whole = Bytes(frame);
      const std::vector<rte_mbuf*> segments = Segments(frame, pool);
      ASSERT_EQ(segments.size(), (size - 54 + segment - 1) / segment);
      FrameBytes payload;
      for (size_t i = 0; i < segments.size(); ++i) {
        const FrameBytes bytes = Bytes(segments[i]);
        EXPECT_LE(bytes.size(), 54u + segment);
        EXPECT_EQ(segments[i]->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK, 0u);
        ExpectValid(bytes, 1 + static_cast<uint32_t>(payload.size()), i + 1 == segments.size());
        payload.insert(payload.end(), bytes.begin() + 54, bytes.end());
      }
      EXPECT_EQ(payload, FrameBytes(whole.begin() + 54, whole.end()));
      for (rte_mbuf* each : segments) rte_pktmbuf_free(each);
    }
  }
}

TEST_P(Gso, TheGeneratorMarksFramesOfMorePayloadThanASegmentAndNoOthers) {
  rte_mempool* pool = Pool();
  for (const uint32_t size : {60u, 54u + kSegment, 55u + kSegment}) {
    rte_mbuf* frame = Super(pool, size);
    EXPECT_EQ((frame->ol_flags & RTE_MBUF_F_TX_TCP_SEG) != 0, size > 54u + kSegment) << size;
    ExpectValid(Bytes(frame), 1, true);
    rte_pktmbuf_free(frame);
  }
}

TEST_P(Gso, AShortPoolRefusesTheFrameAndTakesNothing) {
  rte_mempool* big = Pool();
  rte_mempool* small = Pool(63);
  rte_mbuf* frame = Super(big);
  rte_mbuf* segments[kMaxGsoSegments];
  Refusal reason;
  EXPECT_EQ(SegmentFrame(frame, small, segments, &reason), 0);
  EXPECT_EQ(reason, Refusal::kNoBuffer);
  EXPECT_EQ(rte_mempool_in_use_count(small), 0u);
  EXPECT_EQ(SegmentFrame(frame, nullptr, segments, &reason), 0);
  EXPECT_EQ(reason, Refusal::kNoBuffer);
  rte_pktmbuf_free(frame);
}

TEST_P(Gso, WhatIsNotTcpOverIpv4IsRefused) {
  rte_mempool* pool = Pool();
  rte_mbuf* segments[kMaxGsoSegments];
  for (const uint64_t flags :
       {RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_IPV4, RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_IPV6}) {
    rte_mbuf* frame = Super(pool);
    frame->ol_flags = flags;
    Refusal reason;
    EXPECT_EQ(SegmentFrame(frame, pool, segments, &reason), 0);
    EXPECT_EQ(reason, Refusal::kGsoUnsupported);
    rte_pktmbuf_free(frame);
  }
}

TEST_P(Gso, AReceiverThatTakesFragsGetsTheFrameWhole) {
  rte_mempool* pool = Pool();
  auto joined = Joined(pool);
  joined->transmit.takes_gso = true;
  rte_mbuf* frame = Super(pool);
  EXPECT_EQ(SendAll(joined->transmit, {frame}).sent, 1);
  EXPECT_THAT(Received(*joined), testing::ElementsAre(frame));
  EXPECT_EQ(joined->transmit.segmented.Read(), 0u);
  rte_pktmbuf_free(frame);
}

TEST_P(Gso, AnyOtherGetsSegmentsInOrderBetweenOtherFramesAndAllIsCounted) {
  rte_mempool* pool = Pool();
  auto joined = Joined(pool);
  rte_mbuf* before = Super(pool, 100);
  rte_mbuf* after = Super(pool, 200);
  rte_mbuf* unmarked = Super(pool, 3000);
  unmarked->ol_flags = 0;
  const SendResult result = SendAll(joined->transmit, {before, Super(pool), unmarked, after});
  EXPECT_EQ(result.sent, 3);
  EXPECT_EQ(result.refused[static_cast<int>(Refusal::kMtu)], 1);
  const std::vector<rte_mbuf*> received = Received(*joined);
  ASSERT_EQ(received.size(), kSegments + 2);
  EXPECT_EQ(received.front(), before);
  EXPECT_EQ(received.back(), after);
  const Transmit& through = joined->transmit;
  EXPECT_EQ(through.sent.Read(), received.size());
  EXPECT_EQ(through.segmented.Read(), 1u);
  EXPECT_EQ(through.segments.Read(), kSegments);
  EXPECT_EQ(through.segments_lost.Read(), 0u);
  for (rte_mbuf* frame : received) rte_pktmbuf_free(frame);
}

TEST_P(Gso, SegmentsThatARingHasNoSlotForAreFreedAndCounted) {
  rte_mempool* pool = Pool();
  auto joined = Joined(pool, 32);
  EXPECT_EQ(SendAll(joined->transmit, {Super(pool)}).sent, 1);
  EXPECT_EQ(joined->transmit.segments.Read(), 32u);
  EXPECT_EQ(joined->transmit.segments_lost.Read(), kSegments - 32);
  const SendResult full = SendAll(joined->transmit, {Super(pool)});
  EXPECT_EQ(full.sent, 0);
  EXPECT_EQ(full.refused[static_cast<int>(Refusal::kRingFull)], 1);
  EXPECT_EQ(joined->transmit.segments_lost.Read(), kSegments - 32) << "a frame refused whole counts as one";
  for (rte_mbuf* frame : Received(*joined)) rte_pktmbuf_free(frame);
}

// A real port: what the driver cannot know is done before.
TEST_P(Gso, ARealPortGetsPlainFramesOfItsMtuAndChainsOnlyWhereItsDriverSendsThem) {
  rte_mempool* pool = Pool();
  auto joined = Joined(pool);
  Transmit& transmit = joined->transmit;
  transmit.real = true;
  transmit.frame_limit = 0;
  transmit.real_limit = 1518;
  transmit.sends_chains = false;
  EXPECT_EQ(SendAll(transmit, {Super(pool)}).sent, 1);
  EXPECT_EQ(transmit.gathered.Read(), kSegments);
  for (rte_mbuf* frame : Received(*joined)) {
    EXPECT_EQ(frame->nb_segs, 1);
    rte_pktmbuf_free(frame);
  }
  // 1515 bytes need a tag.
  rte_mbuf* untagged = Super(pool, 1515, 60000);
  rte_mbuf* tagged = Super(pool, 1515, 60000);
  rte_pktmbuf_mtod(tagged, rte_ether_hdr*)->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
  const SendResult result = SendAll(transmit, {untagged, tagged});
  EXPECT_EQ(result.refused[static_cast<int>(Refusal::kMtu)], 1);
  EXPECT_THAT(Received(*joined), testing::ElementsAre(tagged));
  rte_pktmbuf_free(tagged);
}

TEST_P(Gso, EverySinkTakesChainedAndAttachedSegments) {
  rte_mempool* pool = Pool();
  const std::string file = std::filesystem::temp_directory_path() / ("halfpage_gso_" + std::to_string(getpid()));
  auto capture = PcapSink::Create(file, 65535, 0);
  auto rings = UserRings::Create({.name = "gso"});
  auto socket = UdpSocket::Create({.name = "gso"});
  ASSERT_TRUE(capture.ok() && rings.ok() && socket.ok());
  auto joined = Joined(pool);
  UserLane user;
  user.rings = rings->get();
  UserReader reader;
  Bind(reader, rings->get());
  ServeUser(reader, 0);  // puts chunks on the fill ring
  UdpLane udp;
  udp.socket = socket->get();
  SinkLane lanes[5];
  lanes[1].capture = capture->get();
  lanes[2].onward = &joined->transmit;
  lanes[3].user = &user;
  lanes[4].socket = &udp;
  for (SinkLane& lane : lanes) {
    std::vector<rte_mbuf*> segments = Segments(Super(pool), pool);
    for (rte_mbuf* each : segments) *rte_pktmbuf_mtod_offset(each, uint8_t*, 23) = 17;  // for the socket to take it
    const auto n = static_cast<uint16_t>(segments.size());
    Consume(lane, 0, segments.data(), n, Survey(segments.data(), n));
    EXPECT_EQ(lane.frames.Read(), kSegments);
    EXPECT_EQ(lane.bytes.Read(), kSuper + (kSegments - 1) * 54);
  }
  EXPECT_TRUE((*capture)->Close().ok());
  EXPECT_EQ((*capture)->written(), kSegments);
  std::filesystem::remove(file);
  EXPECT_EQ(lanes[2].sent.Read(), kSegments);
  for (rte_mbuf* frame : Received(*joined)) rte_pktmbuf_free(frame);
  EXPECT_EQ(user.queued.Read(), kSegments);
  while (ServeUser(reader, 0) != 0) {
  }
  EXPECT_EQ(reader.frames.Read(), kSegments);
  EXPECT_EQ(udp.queued.Read() + udp.rcvbuf_errors.Read(), kSegments);
  EXPECT_GT(udp.queued.Read(), 0u);
  (*socket)->Flush();
}

HALFPAGE_FOR_EACH_HANDLER(Gso);

}  // namespace
}  // namespace halfpage
