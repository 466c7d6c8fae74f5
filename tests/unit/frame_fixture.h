// Pools that must be full again after each test, and frames of known bytes from them.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "mempool/pktmbuf_pool.h"

namespace halfpage {

using Bytes = std::vector<uint8_t>;

inline Bytes Flat(const rte_mbuf* frame) {
  Bytes bytes;
  uint16_t segments = 0;
  for (const rte_mbuf* segment = frame; segment != nullptr; segment = segment->next, ++segments) {
    const auto* data = rte_pktmbuf_mtod(segment, const uint8_t*);
    bytes.insert(bytes.end(), data, data + segment->data_len);
  }
  EXPECT_EQ(bytes.size(), frame->pkt_len);
  EXPECT_EQ(segments, frame->nb_segs);
  const char* reason = nullptr;
  EXPECT_EQ(rte_mbuf_check(frame, 1, &reason), 0) << reason;
  return bytes;
}

class FrameFixture : public testing::Test {
 protected:
  void TearDown() override {
    for (auto& pool : pools_) {
      pool->Flush();
      EXPECT_EQ(pool->in_use(), 0u) << "buffers lost of " << pool->config().name;
    }
  }
  rte_mempool* Pool(const std::string& name, uint16_t data_room = 2176, uint32_t size = 1024, bool exact = false) {
    PktmbufPoolConfig config;
    config.name = name;
    config.size = size;
    config.data_room = data_room;
    config.cache = 0;
    config.page_frag.exact = exact;
    if (exact) config.page_frag.page_size = 32768;
    auto pool = PktmbufPool::Create(config);
    EXPECT_TRUE(pool.ok()) << pool.status();
    pools_.push_back(std::make_unique<PktmbufPool>(*std::move(pool)));
    return pools_.back()->get();
  }
  // A frame of `length` bytes, in pieces of at most `piece`.
  static rte_mbuf* Frame(rte_mempool* pool, uint32_t length, uint32_t piece = 65535) {
    rte_mbuf* first = nullptr;
    uint8_t next = 1;
    for (uint32_t left = length; left != 0;) {
      rte_mbuf* segment = rte_pktmbuf_alloc(pool);
      const uint32_t n = std::min({left, piece, uint32_t{rte_pktmbuf_tailroom(segment)}});
      auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(segment, static_cast<uint16_t>(n)));
      for (uint32_t i = 0; i < n; ++i) bytes[i] = next++;
      left -= n;
      if (first == nullptr) {
        first = segment;
      } else {
        EXPECT_EQ(rte_pktmbuf_chain(first, segment), 0);
      }
    }
    return first;
  }

  std::vector<std::unique_ptr<PktmbufPool>> pools_;
};

}  // namespace halfpage
