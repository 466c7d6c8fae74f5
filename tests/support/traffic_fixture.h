// What tests of traffic sources share: pools of one mempool handler that must be full and clean again, captures on
// disk.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/config.h"
#include "app/traffic_source.h"
#include "mempool/pktmbuf_pool.h"

namespace halfpage {

using FrameBytes = std::vector<uint8_t>;

// A generator named "generated".
TrafficConfig GeneratorTraffic(std::vector<std::pair<uint32_t, uint32_t>> sizes, uint32_t flows = 1);

// Frame `i` of CaptureOf(): bytes that tell which frame and offset they are.
FrameBytes CapturedFrame(size_t i, uint32_t length);

// All bytes of a frame, after a look at what every receiver relies on.
FrameBytes Flatten(const rte_mbuf* frame);

// The next `n` frames, freed again. Fewer where the source ends or the pool is short.
std::vector<FrameBytes> Take(TrafficSource& source, size_t n, uint16_t burst = 32);

TrafficSource CreateSource(const TrafficConfig& config, rte_mempool* pool, uint64_t seed = 1);

// The parameter is the mempool handler's name; a handler that is not loaded skips its tests.
class TrafficFixture : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;
  // Fails where a buffer is out, or in the pool in a state that TrafficSource::Fill() does not build on.
  void TearDown() override;

  rte_mempool* Pool(uint32_t size = 1024, uint16_t data_room = 2176, uint32_t cache = 0);
  // Traffic named "captured" from a file with frames of these lengths, frame i recorded i * i ms after the first. One
  // file per test.
  TrafficConfig CaptureOf(const std::vector<uint32_t>& lengths, bool loop) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::unique_ptr<PktmbufPool>> pools_;
};

#define HALFPAGE_FOR_EACH_HANDLER(fixture)                                                         \
  INSTANTIATE_TEST_SUITE_P(Handlers, fixture, testing::Values("ring_mp_mc", "stack", "page_frag"), \
                           [](const auto& handler) { return std::string(handler.param); })

}  // namespace halfpage
