// Programs of kind forward on frames in pieces, cut short, or shared. What they make of whole ones tests/e2e compares
// with a model and with dpdk-testpmd.
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/unit/pair_fixture.h"

namespace halfpage {
namespace {

constexpr ForwardMode kModes[] = {ForwardMode::kMac, ForwardMode::kMacswap, ForwardMode::kCsum, ForwardMode::kIcmpecho,
                                  ForwardMode::kFiveTupleSwap};

Bytes Hex(const std::string& text) {
  const std::string bytes = absl::HexStringToBytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

// With wrong checksums: UDP over IPv4 with a tag and options, TCP over IPv6 with hop-by-hop options, UDP whose words
// add up with many carries, an echo request, an ARP request.
std::vector<Bytes> Packets() {
  const std::string ethernet = "020000000002020000000001";
  return {Hex(ethernet + "81000005" + "0800" + "4600002900070000401111110a0000010a000002" + "01010101" +
              "03e800350011abcd" + "0102030405060708090a0b0c0d"),
          Hex(ethernet + "86dd" + "6000000000200040" + "20010db8000000000000000000000001" +
              "20010db8000000000000000000000002" + "0600010400000000" + "03e8005000000001000000025010020099990000" +
              "0102030405"),
          Hex(ethernet + "0800" + "4500004100070000401111110a0000010a000002" + "03e80035002dabcd" +
              "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0dfdedddcdb"),
          Hex(ethernet + "0800" + "4500001d0007000040011111" + "0a0000010a000002" + "08001234004d0001" + "77"),
          Hex(ethernet + "0806" + "0001080006040001" + "0200000000010a000001" + "0000000000000a000002")};
}

class ForwardModes : public Pair {
 protected:
  // What a mode makes of the frame; empty where it is not sent back.
  Bytes Sent(ForwardMode mode, rte_mbuf* frame) {
    ProgramConfig config;
    config.kind = ProgramKind::kForward;
    config.mode = mode;
    config.frags = true;
    config.verdict = XdpAction::kTx;
    Attach(config);
    for (uint8_t i = 0; i < sizeof(queue_.origin.leaving); ++i)
      queue_.origin.leaving[i] = static_cast<uint8_t>(0xa0 + i);
    Deliver({frame});
    rte_mbuf* back = nullptr;
    if (rte_eth_rx_burst(pair_->port(1), 0, &back, 1) == 0) return {};
    Bytes bytes = Flat(back);
    rte_pktmbuf_free(back);
    return bytes;
  }
  // A frame of these bytes, in pieces of at most `piece`, the first one at least as long as an Ethernet header.
  rte_mbuf* Made(const Bytes& bytes, size_t first, size_t piece) {
    rte_mbuf* head = nullptr;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = std::min(at == 0 ? first : piece, bytes.size() - at);
      rte_mbuf* segment = rte_pktmbuf_alloc(source_);
      std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), n, rte_pktmbuf_append(segment, static_cast<uint16_t>(n)));
      if (head == nullptr) {
        head = segment;
      } else {
        EXPECT_EQ(rte_pktmbuf_chain(head, segment), 0);
      }
      at += n;
    }
    return head;
  }
};

TEST_F(ForwardModes, FramesInPiecesAreTreatedAsInOneWhereverTheyAreCut) {
  for (const Bytes& packet : Packets()) {
    for (const ForwardMode mode : kModes) {
      const Bytes whole = Sent(mode, Made(packet, packet.size(), 1));
      for (size_t first = 14; first < packet.size(); ++first) {
        for (const size_t piece : {1, 3, 7, 64}) {
          ASSERT_EQ(Sent(mode, Made(packet, first, piece)), whole) << static_cast<int>(mode) << ", " << first;
        }
      }
    }
  }
}

TEST_F(ForwardModes, WhatIsCutShortKeepsWhatIsThereAndOnlyWithoutAnEthernetHeaderIsAborted) {
  for (const Bytes& packet : Packets()) {
    for (const ForwardMode mode : kModes) {
      for (size_t length = 1; length <= packet.size(); ++length) {
        const uint64_t aborted = Verdict(XdpAction::kAborted);
        const Bytes cut(packet.begin(), packet.begin() + static_cast<ptrdiff_t>(length));
        const Bytes sent = Sent(mode, Made(cut, length, 1));
        EXPECT_EQ(Verdict(XdpAction::kAborted) - aborted, length < 14 ? 1u : 0u);
        if (mode != ForwardMode::kIcmpecho) {
          EXPECT_EQ(sent.size(), length < 14 ? 0 : length);
        }
      }
    }
  }
  EXPECT_EQ(Verdict(XdpAction::kTx) + Verdict(XdpAction::kDrop) + Verdict(XdpAction::kAborted),
            queue_.counters.packets.Read());
}

TEST_F(ForwardModes, FramesForSegmentationKeepTheChecksumThatTheyGetWhenTheyAreCut) {
  const Bytes packet = Packets()[1];
  rte_mbuf* frame = Made(packet, packet.size(), 1);
  frame->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
  transmit_[0].takes_gso = true;
  const Bytes sent = Sent(ForwardMode::kCsum, frame);
  ASSERT_EQ(sent.size(), packet.size());
  EXPECT_TRUE(std::equal(sent.begin() + 12, sent.end(), packet.begin() + 12));
}

TEST_F(ForwardModes, TheyWriteSoSharedFramesAreCopiedFirst) {
  for (const ForwardMode mode : kModes) {
    ProgramConfig config;
    config.kind = ProgramKind::kForward;
    config.mode = mode;
    Attach(config);
    EXPECT_TRUE(program_->writes());
    EXPECT_FALSE(program_->reshapes());
  }
}

}  // namespace
}  // namespace halfpage
