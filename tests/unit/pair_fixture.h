// A pair of devices: the test sends through its second end, the first one judges.
#pragma once

#include <rte_ethdev.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "tests/unit/frame_fixture.h"
#include "xdp_emul/maps.h"
#include "xdp_emul/receive_queue.h"
#include "xdp_emul/veth_pair.h"

namespace halfpage {

class Pair : public FrameFixture {
 protected:
  void SetUp() override {
    source_ = Pool("source", 2176, 3072);
    VethPairOptions options;
    options.names[0] = "a";
    options.names[1] = "b";
    options.pool = source_;
    pair_.emplace(*VethPair::Create(options));
    for (int end = 0; end < 2; ++end) {
      transmit_[end].port = pair_->port(end);
      transmit_[end].frame_limit = 9018;
    }
    queue_.port = pair_->port(0);
    queue_.device = 0;
    queue_.ring = pair_->ring(0, 0);
    queue_.transmit = transmit_;
    queue_.hits = hits_.get();
    queue_.sink = &sink_;
  }
  void TearDown() override {
    pair_->Close();
    FrameFixture::TearDown();
  }
  void Attach(const ProgramConfig& config, const std::vector<const Program*>& links = {}) {
    auto program = Program::Create(config, names_, links, 1, maps_.get());
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = std::make_unique<Program>(*std::move(program));
    queue_.program = program_.get();
    queue_.reshapes = program_->reshapes();
  }
  void Attach(ProgramKind kind, bool frags = false) {
    ProgramConfig config;
    config.kind = kind;
    config.frags = frags;
    config.target = "a";
    Attach(config);
  }
  void Deliver(std::vector<rte_mbuf*> frames) {
    const auto n = static_cast<uint16_t>(frames.size());
    ASSERT_EQ(rte_eth_tx_burst(pair_->port(1), 0, frames.data(), n), n);
    ASSERT_EQ(Poll(queue_), n);
  }
  // Frees what was sent back and gives how much it was.
  uint16_t Back() {
    rte_mbuf* frames[256];
    const uint16_t n = rte_eth_rx_burst(pair_->port(1), 0, frames, 256);
    rte_pktmbuf_free_bulk(frames, n);
    return n;
  }
  std::vector<rte_mbuf*> Frames(size_t n, uint32_t length = 64) {
    std::vector<rte_mbuf*> frames;
    while (frames.size() < n) frames.push_back(Frame(source_, length));
    return frames;
  }
  uint64_t Verdict(XdpAction action) const { return queue_.counters.verdicts[static_cast<int>(action)].Read(); }
  static uint64_t Read(const Counter (&counters)[kRefusals], Refusal reason) {
    return counters[static_cast<int>(reason)].Read();
  }

  rte_mempool* source_ = nullptr;
  std::vector<std::string> names_ = {"a", "b"};
  std::unique_ptr<RedirectMaps> maps_;
  absl::optional<VethPair> pair_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Counter[]> hits_ = std::make_unique<Counter[]>(64);
  Transmit transmit_[2];
  SinkLane sink_;
  ReceiveQueue queue_;
};

}  // namespace halfpage
