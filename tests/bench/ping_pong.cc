#include "tests/bench/ping_pong.h"

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace halfpage {
namespace {

constexpr uint32_t kBatches = 10;
constexpr uint32_t kTripsPerBatch = 200;

struct alignas(RTE_CACHE_LINE_SIZE) Ball {
  std::atomic<uint32_t> touched{0};  // odd: on its way to the worker
};

int Return(void* argument) {
  auto* ball = static_cast<Ball*>(argument);
  for (uint32_t trip = 0; trip < kBatches * kTripsPerBatch; ++trip) {
    while (ball->touched.load(std::memory_order_acquire) != 2 * trip + 1) rte_pause();
    ball->touched.store(2 * trip + 2, std::memory_order_release);
  }
  return 0;
}

}  // namespace

double MeasureRoundTrip(unsigned worker) {
  Ball ball;
  if (rte_eal_remote_launch(Return, &ball, worker) != 0) return 0;
  std::array<double, kBatches> batches;
  uint32_t trip = 0;
  for (double& batch : batches) {
    const uint64_t began = rte_rdtsc_precise();
    for (uint32_t i = 0; i < kTripsPerBatch; ++i, ++trip) {
      ball.touched.store(2 * trip + 1, std::memory_order_release);
      while (ball.touched.load(std::memory_order_acquire) != 2 * trip + 2) rte_pause();
    }
    batch = static_cast<double>(rte_rdtsc_precise() - began) / kTripsPerBatch;
  }
  rte_eal_wait_lcore(worker);
  std::nth_element(batches.begin(), batches.begin() + kBatches / 2, batches.end());
  return batches[kBatches / 2] * 1e9 / static_cast<double>(rte_get_tsc_hz());
}

}  // namespace halfpage
