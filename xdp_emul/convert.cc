#include "xdp_emul/convert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace halfpage {

absl::string_view CopyCauseName(CopyCause cause) {
  static constexpr absl::string_view kNames[kCopyCauses] = {"shared", "headroom", "chained", "always"};
  return kNames[static_cast<int>(cause)];
}

// Counters start anew: a converter is moved before its worker runs.
Converter::Converter(Converter&& other) noexcept
    : config_(std::move(other.config_)),
      room_count_(other.room_count_),
      exact_(std::move(other.exact_)),
      longest_(other.longest_) {
  std::copy(std::begin(other.rooms_), std::end(other.rooms_), rooms_);
  std::copy(std::begin(other.room_bytes_), std::end(other.room_bytes_), room_bytes_);
}

absl::StatusOr<Converter> Converter::Create(const ConverterConfig& config) {
  if (config.pools.empty() || config.pools.size() > kMostCopyPools) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d pools for copies; give 1 to %d", config.pools.size(), kMostCopyPools));
  }
  Converter converter;
  converter.config_ = config;
  const uint32_t kept = config.headroom + config.tailroom;
  if (config.cut != CopyCut::kRooms) {
    auto exact = ExactFrag::Over(config.pools.front());
    if (!exact.ok()) return exact.status();
    converter.exact_ = *std::move(exact);
    converter.longest_ =
        config.cut == CopyCut::kKernel ? kKernelFirst : converter.exact_->longest({config.headroom, config.tailroom});
    return converter;
  }
  std::vector<rte_mempool*> pools = config.pools;
  std::stable_sort(pools.begin(), pools.end(), [](rte_mempool* a, rte_mempool* b) {
    return rte_pktmbuf_data_room_size(a) < rte_pktmbuf_data_room_size(b);
  });
  for (rte_mempool* pool : pools) {
    const uint32_t room = rte_pktmbuf_data_room_size(pool);
    if (room < kept + 60) {
      return absl::InvalidArgumentError(
          absl::StrFormat("pool %s: room %u has no place for a frame behind %u headroom and %u tailroom; use a larger "
                          "data_room, or less of them",
                          pool->name, room, config.headroom, config.tailroom));
    }
    converter.rooms_[converter.room_count_] = pool;
    converter.room_bytes_[converter.room_count_++] = room - kept;
  }
  converter.longest_ = converter.room_bytes_[converter.room_count_ - 1];
  return converter;
}

}  // namespace halfpage
