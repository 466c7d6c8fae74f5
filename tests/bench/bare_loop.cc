#include "tests/bench/bare_loop.h"

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <algorithm>
#include <utility>

#include "app/frame_copy.h"

namespace halfpage::bench {
namespace {

constexpr uint32_t kHead = kFrameHeadBytes;

void SwapAddresses(rte_mbuf* frame) {
  auto* ethernet = rte_pktmbuf_mtod(frame, rte_ether_hdr*);
  const rte_ether_addr source = ethernet->src_addr;
  ethernet->src_addr = ethernet->dst_addr;
  ethernet->dst_addr = source;
}

void SendAll(uint16_t port, rte_mbuf** burst, uint16_t n) {
  const uint16_t sent = rte_eth_tx_burst(port, 0, burst, n);
  if (sent != n) rte_pktmbuf_free_bulk(burst + sent, n - sent);
}

absl::StatusOr<std::unique_ptr<VethPair>> MakePair(const char* name, rte_mempool* pool) {
  VethPairOptions options;
  options.names[0] = std::string(name) + "0";
  options.names[1] = std::string(name) + "1";
  options.pool = pool;
  auto pair = VethPair::Create(options);
  if (!pair.ok()) return pair.status();
  return std::make_unique<VethPair>(*std::move(pair));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BareLoop>> BareLoop::Create(const Row& row, const std::string& ops) {
  std::unique_ptr<BareLoop> loop(new BareLoop(row));
  PktmbufPoolConfig config;
  config.name = "bare";
  config.ops = ops;
  config.size = kPoolSize;
  config.cache = kPoolCache;
  config.data_room = static_cast<uint16_t>(RoomFor(row.size));
  auto pool = PktmbufPool::Create(config);
  if (!pool.ok()) return pool.status();
  loop->pool_ = std::make_unique<PktmbufPool>(*std::move(pool));
  for (auto [pair, name] : {std::pair{&loop->front_, "front"}, std::pair{&loop->back_, "back"}}) {
    auto made = MakePair(name, loop->pool_->get());
    if (!made.ok()) return made.status();
    *pair = *std::move(made);
  }
  if (row.way == Way::kMix) {
    loop->whole_ = MakeFrames(row.size, MixFrames(row.size), true);
  } else {
    const auto frames = MakeFrames(row.size, kFlows, false);
    for (const auto& frame : frames) loop->heads_.insert(loop->heads_.end(), frame.begin(), frame.begin() + kHead);
    loop->tail_ = frames.front();
  }
  unsigned lcore = 0;
  RTE_LCORE_FOREACH_WORKER(lcore) {
    if (loop->lcores_.size() < row.lcores) loop->lcores_.push_back(lcore);
  }
  if (loop->lcores_.size() < row.lcores) return absl::FailedPreconditionError("too few lcores");
  return loop;
}

// Copies as a source does: what the ratios tell is not one copy against another.
uint16_t BareLoop::Fill(rte_mbuf** burst) {
  if (rte_pktmbuf_alloc_bulk(pool_->get(), burst, kBurst) != 0) return 0;
  const uint32_t size = row_.size;
  for (uint16_t i = 0; i < kBurst; ++i) {
    rte_mbuf* frame = burst[i];
    frame->data_len = static_cast<uint16_t>(size);
    frame->pkt_len = size;
    auto* data = rte_pktmbuf_mtod(frame, uint8_t*);
    if (whole_.empty()) {
      CopyFrame(data, &heads_[next_ * kHead], tail_.data(), size);
      next_ = next_ + 1 == kFlows ? 0 : next_ + 1;
    } else {
      CopyFrame(data, whole_[next_].data(), whole_[next_].data(), size);
      next_ = next_ + 1 == whole_.size() ? 0 : next_ + 1;
    }
  }
  return kBurst;
}

void BareLoop::Generate() {
  rte_mbuf* burst[kBurst];
  if (Fill(burst) != 0) SendAll(front_->port(1), burst, kBurst);
}

uint16_t BareLoop::Act(Way way, rte_mbuf** burst, uint16_t n) {
  switch (way) {
    case Way::kTx:
      for (uint16_t i = 0; i < n; ++i) SwapAddresses(burst[i]);
      SendAll(front_->port(0), burst, n);
      break;
    case Way::kUser:  // a ring of buffers is what stands for a user's four of chunks
    case Way::kRedirect:
      SendAll(back_->port(0), burst, n);
      n = rte_eth_rx_burst(back_->port(1), 0, burst, kBurst);
      rte_pktmbuf_free_bulk(burst, n);
      break;
    default:
      rte_pktmbuf_free_bulk(burst, n);
      break;
  }
  return n;
}

void BareLoop::Judge() {
  constexpr Way kTurns[] = {Way::kDrop, Way::kPass, Way::kTx, Way::kRedirect};
  rte_mbuf* burst[kBurst];
  const uint16_t n = rte_eth_rx_burst(front_->port(0), 0, burst, kBurst);
  if (n == 0) return;
  Act(row_.way == Way::kMix ? kTurns[turn_++ % 4] : row_.way, burst, n);
  frames_.store(frames_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

void BareLoop::ReceiveBack() {
  rte_mbuf* burst[kBurst];
  const uint16_t n = rte_eth_rx_burst(front_->port(1), 0, burst, kBurst);
  if (n != 0) rte_pktmbuf_free_bulk(burst, n);
}

int BareLoop::RunFirst(void* argument) {
  auto& loop = *static_cast<BareLoop*>(argument);
  const bool returns = loop.row_.way == Way::kTx || loop.row_.way == Way::kMix;
  while (!loop.stop_.load(std::memory_order_relaxed)) {
    loop.Generate();
    if (loop.row_.lcores == 1) loop.Judge();
    if (returns) loop.ReceiveBack();
  }
  return 0;
}

int BareLoop::RunSecond(void* argument) {
  auto& loop = *static_cast<BareLoop*>(argument);
  while (!loop.stop_.load(std::memory_order_relaxed)) loop.Judge();
  return 0;
}

absl::Status BareLoop::Start() {
  for (size_t i = 0; i < lcores_.size(); ++i) {
    const int result = rte_eal_remote_launch(i == 0 ? RunFirst : RunSecond, this, lcores_[i]);
    if (result != 0) return absl::ErrnoToStatus(-result, "an lcore does not start");
  }
  return absl::OkStatus();
}

void BareLoop::Stop() {
  stop_.store(true, std::memory_order_relaxed);
  for (const unsigned lcore : lcores_) rte_eal_wait_lcore(lcore);
}

}  // namespace halfpage::bench
