// The yardstick: what an application of stock DPDK calls does that moves the same frames over the same rings and
// nothing else. No program, no counter, no ledger, no check; verdicts are known beforehand.
#pragma once

#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mempool/pktmbuf_pool.h"
#include "tests/bench/path_rows.h"
#include "xdp_emul/veth_pair.h"

namespace halfpage::bench {

class BareLoop {
 public:
  // The pool, rings and frames of a row.
  static absl::StatusOr<std::unique_ptr<BareLoop>> Create(const Row& row, const std::string& ops);

  // Runs on the lcores that Start() launches it on, until Stop().
  absl::Status Start();
  void Stop();

  uint64_t frames() const { return frames_.load(std::memory_order_relaxed); }

 private:
  explicit BareLoop(const Row& row) : row_(row) {}
  static int RunFirst(void* loop);
  static int RunSecond(void* loop);

  uint16_t Fill(rte_mbuf** burst);
  uint16_t Act(Way way, rte_mbuf** burst, uint16_t n);
  void Generate();
  void ReceiveBack();
  void Judge();

  Row row_;
  std::unique_ptr<PktmbufPool> pool_;
  std::unique_ptr<VethPair> front_;
  std::unique_ptr<VethPair> back_;
  std::vector<uint8_t> heads_;  // the first cache line of each frame; the rest is the same in all
  std::vector<uint8_t> tail_;
  std::vector<std::vector<uint8_t>> whole_;  // kMix: frames as in a capture
  uint32_t next_ = 0;
  uint32_t turn_ = 0;  // kMix: whose turn it is
  std::vector<unsigned> lcores_;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<uint64_t> frames_{0};
};

}  // namespace halfpage::bench
