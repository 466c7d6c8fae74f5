#include "xdp_emul/bpf/queue_map.h"

#include <cerrno>
#include <cstring>
#include <mutex>

#include "absl/strings/str_format.h"

namespace halfpage::bpf {

absl::Status KeylessMap::CheckShape(const MapSpec& spec) {
  if (spec.key_size == 0 && spec.value_size != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("map %s (%s): key of %d, value of %d bytes; it has no key, and values of at least one byte",
                      spec.name, MapTypeName(spec.type), spec.key_size, spec.value_size));
}

absl::StatusOr<std::unique_ptr<Map>> QueueMap::Create(const MapSpec& spec, Epochs* epochs) {
  const absl::Status status = CheckShape(spec);
  if (!status.ok()) return status;
  auto map = std::unique_ptr<QueueMap>(new QueueMap(spec, epochs));
  absl::StatusOr<MapMemory> memory =
      MapMemory::Create(spec.name, uint64_t{RoundUp8(spec.value_size)} * spec.max_entries);
  if (!memory.ok()) return memory.status();
  map->memory_ = std::move(*memory);
  return map;
}

int QueueMap::Push(const uint8_t* value, uint64_t flags) {
  if (flags != BPF_ANY && flags != BPF_EXIST) return -EINVAL;
  const std::lock_guard<SpinLock> lock(lock_);
  if (count_ == spec_.max_entries) {
    if (flags != BPF_EXIST) return -E2BIG;
    ++first_;  // the oldest makes room
    --count_;
  }
  memcpy(At(first_ + count_), value, spec_.value_size);
  ++count_;
  return 0;
}

int QueueMap::Next(uint8_t* value, bool take) {
  const std::lock_guard<SpinLock> lock(lock_);
  if (count_ == 0) {
    memset(value, 0, spec_.value_size);
    return -ENOENT;
  }
  const bool queue = spec_.type == BPF_MAP_TYPE_QUEUE;
  memcpy(value, At(queue ? first_ : first_ + count_ - 1), spec_.value_size);
  if (!take) return 0;
  if (queue) ++first_;
  --count_;
  return 0;
}

int KeylessMap::Update(const uint8_t*, const uint8_t* value, uint64_t flags, uint32_t) {
  return Push(value, flags);
}

int KeylessMap::Delete(const uint8_t*) {
  return -EINVAL;
}

}  // namespace halfpage::bpf
