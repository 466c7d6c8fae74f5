#include "xdp_emul/bpf/ring_map.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>

#include "absl/strings/str_format.h"

namespace halfpage::bpf {
namespace {

constexpr uint32_t kSmallest = 4096;
constexpr uint32_t kLargestRing = 1 << 28;

}  // namespace

absl::StatusOr<std::unique_ptr<Map>> RingMap::Create(const MapSpec& spec, Epochs* epochs) {
  if (spec.key_size != 0 || spec.value_size != 0 || spec.max_entries > kLargestRing) {
    return absl::InvalidArgumentError(
        absl::StrFormat("map %s (ringbuf): key of %d, value of %d bytes, %d bytes of room; it has neither key nor "
                        "value, and max_entries is its room in bytes, at most %d",
                        spec.name, spec.key_size, spec.value_size, spec.max_entries, kLargestRing));
  }
  auto map = std::unique_ptr<RingMap>(new RingMap(spec, epochs));
  map->size_ = std::bit_ceil(std::max(spec.max_entries, kSmallest));
  map->spec_.max_entries = static_cast<uint32_t>(map->size_);
  absl::StatusOr<MapMemory> memory = MapMemory::Create(spec.name, 2 * map->size_);
  if (!memory.ok()) return memory.status();
  map->memory_ = std::move(*memory);
  map->headers_ = std::vector<std::atomic<uint32_t>>(map->size_ / kHeader);
  map->region_.base = map->memory_.data();
  map->region_.bytes = map->memory_.size();
  map->region_.stride = map->region_.last = static_cast<uint32_t>(map->memory_.size());
  return map;
}

uint8_t* RingMap::Reserve(uint64_t size) {
  if (size > size_) return nullptr;
  const std::lock_guard<SpinLock> lock(lock_);
  const uint64_t at = written_.load(std::memory_order_relaxed);
  const uint64_t behind = at + Whole(size);
  if (behind - read_.load(std::memory_order_acquire) > size_ - 1) return nullptr;
  HeaderAt(at).store(kBusy | static_cast<uint32_t>(size), std::memory_order_relaxed);
  written_.store(behind, std::memory_order_release);
  return memory_.data() + (at & (size_ - 1)) + kHeader;
}

void RingMap::Submit(const uint8_t* record, bool discard) {
  const auto at = static_cast<uint64_t>(record - memory_.data()) - kHeader;
  std::atomic<uint32_t>& header = HeaderAt(at);
  const uint32_t size = header.load(std::memory_order_relaxed) & ~kBusy;
  header.store(discard ? size | kDiscarded : size, std::memory_order_release);
}

uint64_t RingMap::Query(uint64_t what) const {
  const uint64_t read = read_.load(std::memory_order_acquire);
  const uint64_t written = written_.load(std::memory_order_acquire);
  switch (what) {
    case BPF_RB_AVAIL_DATA:
      return written - read;
    case BPF_RB_RING_SIZE:
      return size_;
    case BPF_RB_CONS_POS:
      return read;
    case BPF_RB_PROD_POS:
      return written;
    default:
      return 0;
  }
}

void RingMap::Read(TakeFunction take, void* to) {
  uint64_t at = read_.load(std::memory_order_relaxed);
  while (at < written_.load(std::memory_order_acquire)) {
    const uint32_t header = HeaderAt(at).load(std::memory_order_acquire);
    if ((header & kBusy) != 0) return;
    const uint32_t size = header & ~kDiscarded;
    if ((header & kDiscarded) == 0) take(to, *this, memory_.data() + (at & (size_ - 1)) + kHeader, size);
    at += Whole(size);
    read_.store(at, std::memory_order_release);
  }
}

int RingMap::Update(const uint8_t*, const uint8_t*, uint64_t, uint32_t) {
  return -EINVAL;
}

int RingMap::Delete(const uint8_t*) {
  return -EINVAL;
}

}  // namespace halfpage::bpf
