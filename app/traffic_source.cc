#include "app/traffic_source.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

absl::Status CheckPool(const TrafficConfig& config, const rte_mempool* pool, uint32_t data_room, uint32_t longest) {
  if (data_room <= RTE_PKTMBUF_HEADROOM) {
    return absl::InvalidArgumentError(
        absl::StrFormat("traffic \"%s\": pool \"%s\": data_room %d leaves nothing behind the headroom of %d; raise it",
                        config.name, pool->name, data_room, RTE_PKTMBUF_HEADROOM));
  }
  const uint32_t room = data_room - RTE_PKTMBUF_HEADROOM;
  const uint32_t segments = longest <= room ? 1 : 1 + (longest - room + data_room - 1) / data_room;
  if (segments > pool->size) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "traffic \"%s\": a frame of %d bytes takes %d buffers with data_room %d, pool \"%s\" has %d; raise "
        "its size or data_room",
        config.name, longest, segments, data_room, pool->name, pool->size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrafficSource> TrafficSource::Create(const TrafficConfig& config, uint64_t seed, rte_mempool* pool) {
  if (pool == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("traffic \"%s\": pool \"%s\" does not exist; create it first", config.name, config.pool));
  }
  // Fill() stores whole mbuf fields in one go and would lose the mark of external memory.
  if ((rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "traffic \"%s\": pool \"%s\" pins external memory to its mbufs; use a pool with its own data room", config.name,
        pool->name));
  }

  TrafficSource source;
  uint32_t longest = 0;
  source.limit_ = config.count == 0 ? UINT64_MAX : config.count;
  if (config.source == TrafficConfig::Source::kCapture) {
    absl::StatusOr<Capture> read = Capture::Read(config.file);
    if (!read.ok()) return read.status();
    source.capture_ = std::make_unique<Capture>(*std::move(read));
    const Capture& capture = *source.capture_;
    source.templates_.reserve(capture.size());
    for (size_t i = 0; i < capture.size(); ++i) {
      const absl::Span<const uint8_t> frame = capture.frame(i);
      source.templates_.push_back({frame.data(), frame.data(), static_cast<uint32_t>(frame.size()), 0});
    }
    longest = capture.longest();
    if (!config.loop) source.limit_ = std::min<uint64_t>(source.limit_, capture.size());
  } else {
    absl::StatusOr<GeneratedFrames> made = GeneratedFrames::Create(config, seed);
    if (!made.ok()) return made.status();
    source.generated_ = std::make_unique<GeneratedFrames>(*std::move(made));
    const GeneratedFrames& generated = *source.generated_;
    source.templates_.reserve(generated.order().size());
    for (const uint32_t size : generated.order()) {
      source.templates_.push_back(
          {generated.heads(size), generated.tail(), generated.lengths()[size], kFrameHeadBytes});
    }
    source.flows_ = generated.flows();
    source.skew_ = generated.skew();
    longest = *std::max_element(generated.lengths().begin(), generated.lengths().end());
  }

  const uint32_t data_room = rte_pktmbuf_data_room_size(pool);
  if (absl::Status status = CheckPool(config, pool, data_room, longest); !status.ok()) return status;
  source.pool_ = pool;
  source.room_ = data_room - RTE_PKTMBUF_HEADROOM;
  return source;
}

void TrafficSource::LimitTo(uint64_t frames) {
  if (frames != 0) limit_ = std::min(limit_, frames);
}

}  // namespace halfpage
