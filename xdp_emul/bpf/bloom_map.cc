#include "xdp_emul/bpf/bloom_map.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"

namespace halfpage::bpf {

absl::StatusOr<std::unique_ptr<Map>> BloomMap::Create(const MapSpec& spec, Epochs* epochs) {
  constexpr uint32_t kMostEntries = 1 << 28;
  const absl::Status status = CheckShape(spec);
  if (!status.ok()) return status;
  if (spec.extra > 15 || spec.max_entries > kMostEntries) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "map %s (bloom_filter): %d entries, map_extra %d; there are at most %d entries and 15 hashes (map_extra)",
        spec.name, spec.max_entries, spec.extra, kMostEntries));
  }
  auto map = std::unique_ptr<BloomMap>(new BloomMap(spec, epochs));
  if (spec.extra != 0) map->hashes_ = static_cast<uint32_t>(spec.extra);
  // Half of the bits are set when it is full: entries * hashes / ln 2.
  const uint64_t bits = std::bit_ceil(std::max<uint64_t>(uint64_t{spec.max_entries} * map->hashes_ * 3 / 2, 64));
  map->mask_ = bits - 1;
  map->words_ = std::vector<std::atomic<uint64_t>>(bits / 64);
  return map;
}

uint64_t BloomMap::Bit(const uint8_t* value, uint32_t number) const {
  uint64_t hash = 0x9e3779b97f4a7c15 * (number + 1);
  for (uint32_t at = 0; at < spec_.value_size; at += 8) {
    uint64_t word = 0;
    memcpy(&word, value + at, std::min<uint32_t>(8, spec_.value_size - at));
    const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xd6e8feb86659fd93;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (hash << 7);
  }
  return (hash ^ hash >> 29) & mask_;
}

int BloomMap::Push(const uint8_t* value, uint64_t flags) {
  if (flags != BPF_ANY) return -EINVAL;
  for (uint32_t i = 0; i < hashes_; ++i) {
    const uint64_t bit = Bit(value, i);
    words_[bit / 64].fetch_or(uint64_t{1} << bit % 64, std::memory_order_relaxed);
  }
  return 0;
}

int BloomMap::Next(uint8_t* value, bool take) {
  if (take) return -EOPNOTSUPP;
  for (uint32_t i = 0; i < hashes_; ++i) {
    const uint64_t bit = Bit(value, i);
    if ((words_[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) == 0) return -ENOENT;
  }
  return 0;
}

}  // namespace halfpage::bpf
