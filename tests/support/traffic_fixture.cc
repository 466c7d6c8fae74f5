#include "tests/support/traffic_fixture.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/capture_bytes.h"

namespace halfpage {
namespace {

// Fill() builds on buffers being clean while they are in the pool.
void ExpectCleanBuffers(rte_mempool* pool) {
  std::vector<rte_mbuf*> all(pool->size);
  size_t got = 0;
  while (got < all.size() && rte_mempool_get(pool, reinterpret_cast<void**>(&all[got])) == 0) ++got;
  EXPECT_EQ(got, all.size());
  for (size_t i = 0; i < got; ++i) {
    EXPECT_EQ(all[i]->next, nullptr);
    EXPECT_EQ(all[i]->nb_segs, 1);
    EXPECT_EQ(rte_mbuf_refcnt_read(all[i]), 1);
    rte_mempool_put(pool, all[i]);
  }
}

}  // namespace

TrafficConfig GeneratorTraffic(std::vector<std::pair<uint32_t, uint32_t>> sizes, uint32_t flows) {
  TrafficConfig config;
  config.name = "generated";
  config.sizes = std::move(sizes);
  config.flows = flows;
  return config;
}

FrameBytes CapturedFrame(size_t i, uint32_t length) {
  FrameBytes frame(length);
  for (uint32_t at = 0; at < length; ++at) frame[at] = static_cast<uint8_t>(at * 7 + at / 251 + i * 31);
  return frame;
}

FrameBytes Flatten(const rte_mbuf* frame) {
  const char* reason = nullptr;
  EXPECT_EQ(rte_mbuf_check(frame, 1, &reason), 0) << reason;
  EXPECT_EQ(frame->data_off, RTE_PKTMBUF_HEADROOM);
  EXPECT_EQ(frame->port, RTE_MBUF_PORT_INVALID);
  EXPECT_EQ(frame->packet_type, 0u);
  EXPECT_EQ(frame->vlan_tci, 0u);
  FrameBytes bytes;
  for (const rte_mbuf* segment = frame; segment != nullptr; segment = segment->next) {
    EXPECT_EQ(segment->ol_flags, 0u);
    EXPECT_EQ(rte_mbuf_refcnt_read(segment), 1);
    EXPECT_GT(segment->data_len, 0);
    EXPECT_LE(segment->data_off + segment->data_len, segment->buf_len);
    EXPECT_TRUE(segment == frame || segment->nb_segs == 1);
    const uint8_t* data = rte_pktmbuf_mtod(segment, const uint8_t*);
    bytes.insert(bytes.end(), data, data + segment->data_len);
  }
  EXPECT_EQ(bytes.size(), frame->pkt_len);
  return bytes;
}

std::vector<FrameBytes> Take(TrafficSource& source, size_t n, uint16_t burst) {
  std::vector<FrameBytes> frames;
  while (frames.size() < n) {
    rte_mbuf* mbufs[64];
    const uint16_t got = source.Fill(mbufs, static_cast<uint16_t>(std::min<size_t>(burst, n - frames.size())));
    if (got == 0) break;
    for (uint16_t i = 0; i < got; ++i) frames.push_back(Flatten(mbufs[i]));
    rte_pktmbuf_free_bulk(mbufs, got);
  }
  return frames;
}

TrafficSource CreateSource(const TrafficConfig& config, rte_mempool* pool, uint64_t seed) {
  absl::StatusOr<TrafficSource> source = TrafficSource::Create(config, seed, absl::MakeConstSpan(&pool, 1));
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

void TrafficFixture::SetUp() {
  std::string pattern = (std::filesystem::temp_directory_path() / "halfpage_traffic_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  PktmbufPoolConfig config;
  config.name = "probe";
  config.ops = GetParam();
  config.size = 63;
  config.cache = 0;
  const absl::StatusOr<PktmbufPool> probe = PktmbufPool::Create(config);
  if (absl::IsNotFound(probe.status())) GTEST_SKIP() << probe.status();
  ASSERT_TRUE(probe.ok()) << probe.status();
}

void TrafficFixture::TearDown() {
  for (const auto& pool : pools_) {
    EXPECT_EQ(pool->in_use(), 0u);
    ExpectCleanBuffers(pool->get());
    pool->Flush();
  }
  pools_.clear();
  std::filesystem::remove_all(folder_);
}

rte_mempool* TrafficFixture::Pool(uint32_t size, uint16_t data_room, uint32_t cache) {
  PktmbufPoolConfig config;
  config.name = absl::StrCat("pool", pools_.size());
  config.ops = GetParam();
  config.size = size;
  config.data_room = data_room;
  config.cache = cache;
  absl::StatusOr<PktmbufPool> pool = PktmbufPool::Create(config);
  EXPECT_TRUE(pool.ok()) << pool.status();
  if (!pool.ok()) return nullptr;
  pools_.push_back(std::make_unique<PktmbufPool>(*std::move(pool)));
  return pools_.back()->get();
}

TrafficConfig TrafficFixture::CaptureOf(const std::vector<uint32_t>& lengths, bool loop) const {
  CaptureBytes bytes;
  bytes.PcapHeader();
  for (size_t i = 0; i < lengths.size(); ++i) {
    const FrameBytes frame = CapturedFrame(i, lengths[i]);
    bytes.PcapRecordOf(std::string(frame.begin(), frame.end()), i * i * 1000);
  }
  TrafficConfig config;
  config.name = "captured";
  config.source = TrafficConfig::Source::kCapture;
  config.file = (folder_ / "in.pcap").string();
  config.loop = loop;
  std::ofstream(config.file, std::ios::binary) << bytes.str();
  return config;
}

}  // namespace halfpage
