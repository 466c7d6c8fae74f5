#include "app/traffic_source.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/gso_limits.h"

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

absl::StatusOr<TrafficSource> TrafficSource::Create(const TrafficConfig& config, uint64_t seed,
                                                    absl::Span<rte_mempool* const> pools) {
  const std::vector<std::string> names = config.PoolNames();
  for (size_t p = 0; p < pools.size(); ++p) {
    if (pools[p] == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat("traffic \"%s\": pool \"%s\" does not exist; create it first",
                                                        config.name, p < names.size() ? names[p] : ""));
    }
    // Fill() stores whole mbuf fields in one go and would lose the mark of external memory.
    if ((rte_pktmbuf_priv_flags(pools[p]) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("traffic \"%s\": pool \"%s\" pins external memory to its mbufs; use a pool with its own data "
                          "room",
                          config.name, pools[p]->name));
    }
  }
  TrafficSource source;
  absl::Status status = source.PrepareFrames(config, seed);
  if (status.ok()) status = source.ChoosePools(config, pools);
  if (!status.ok()) return status;
  return source;
}

// Stamps of damaged files may be centuries apart: a frame that far away is never due, and no sum of ticks wraps.
void TrafficSource::KeepTimes() {
  constexpr double kLongest = 1e17;  // ticks: a year at 3 GHz
  const double ticks = static_cast<double>(rte_get_tsc_hz()) / 1e9;
  for (size_t i = 0; i < capture_->size(); ++i) {
    times_.push_back(static_cast<uint64_t>(std::min(kLongest, static_cast<double>(capture_->time_ns(i)) * ticks)));
  }
  // Between the last frame and the first of the next lap as much as between two frames on average.
  lap_ = times_.back() + times_.back() / std::max<size_t>(times_.size() - 1, 1);
}

absl::Status TrafficSource::PrepareFrames(const TrafficConfig& config, uint64_t seed) {
  limit_ = config.count == 0 ? UINT64_MAX : config.count;
  if (config.source == TrafficConfig::Source::kCapture) {
    absl::StatusOr<Capture> read = Capture::Read(config.file);
    if (!read.ok()) return read.status();
    capture_ = std::make_unique<Capture>(*std::move(read));
    templates_.reserve(capture_->size());
    for (size_t i = 0; i < capture_->size(); ++i) {
      const absl::Span<const uint8_t> frame = capture_->frame(i);
      templates_.push_back(
          {.head = frame.data(), .tail = frame.data(), .length = static_cast<uint32_t>(frame.size()), .stride = 0});
    }
    if (config.timing == TrafficConfig::Timing::kCapture) KeepTimes();
    if (!config.loop) limit_ = std::min<uint64_t>(limit_, capture_->size());
    return absl::OkStatus();
  }
  absl::StatusOr<GeneratedFrames> made = GeneratedFrames::Create(config, seed);
  if (!made.ok()) return made.status();
  generated_ = std::make_unique<GeneratedFrames>(*std::move(made));
  const GeneratedFrames& generated = *generated_;
  templates_.reserve(generated.order().size());
  for (const uint32_t size : generated.order()) {
    templates_.push_back({.head = generated.heads(size),
                          .tail = generated.tail(),
                          .length = generated.lengths()[size],
                          .stride = kFrameHeadBytes});
  }
  flows_ = generated.flows();
  skew_ = generated.skew();
  if (config.gso != 0) {
    gso_ = config.gso;
    longest_unmarked_ = kGsoHeaderBytes + config.gso;
  }
  return absl::OkStatus();
}

uint32_t TrafficSource::LongestFrame() const {
  if (capture_ != nullptr) return capture_->longest();
  return *std::max_element(generated_->lengths().begin(), generated_->lengths().end());
}

absl::Status TrafficSource::ChoosePools(const TrafficConfig& config, absl::Span<rte_mempool* const> pools) {
  auto classes = PoolClasses::Create(pools, config.borrow);
  // One pool without room behind the headroom is told below, in the source's words.
  if (!classes.ok() && pools.size() != 1) return classes.status();
  pool_ = pools.size() == 1 ? pools.front() : classes->pool(classes->size() - 1);
  uint32_t data_room = rte_pktmbuf_data_room_size(pool_);
  if (config.buffers == TrafficConfig::Buffers::kExact) {
    auto exact = ExactFrag::Over(pool_);
    if (!exact.ok()) return exact.status();
    exact_ = *std::move(exact);
    data_room = exact_->longest({0, 0});
  } else if (pools.size() > 1) {
    classes_ = std::make_unique<PoolClasses>(*classes);
    const auto class_of = [this](const Template& frame) { return classes_->ClassOf(frame.length); };
    const size_t first = class_of(templates_.front());
    if (std::all_of(templates_.begin(), templates_.end(),
                    [&](const Template& frame) { return class_of(frame) == first; })) {
      only_class_ = classes_->pool(first);
    }
  }
  room_ = data_room - RTE_PKTMBUF_HEADROOM;
  const absl::Status status = CheckPool(config, pool_, data_room, LongestFrame());
  if (status.ok() && !exact_.has_value()) {
    chains_ = ChainFiller::Create(absl::MakeSpan(templates_), pool_, classes_.get(), room_);
  }
  return status;
}

void TrafficSource::LimitTo(uint64_t frames) {
  if (frames != 0) limit_ = std::min(limit_, frames);
}

}  // namespace halfpage
