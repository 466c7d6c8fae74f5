#include "xdp_emul/bpf/array_map.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"

namespace halfpage::bpf {
namespace {

uint32_t IndexOf(const uint8_t* key) {
  uint32_t index;
  memcpy(&index, key, sizeof(index));
  return index;
}

// Words are written whole, so that a reader on another worker never sees half a counter.
void CopyValue(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  uint32_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word;
    memcpy(&word, from + at, 8);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to + at), word, __ATOMIC_RELAXED);
  }
  memcpy(to + at, from + at, bytes - at);
}

absl::Status CheckShape(const MapSpec& spec) {
  if (spec.key_size != 4) {
    return absl::InvalidArgumentError(absl::StrFormat("map %s (%s): its key has %d bytes; an index has 4; use __u32",
                                                      spec.name, MapTypeName(spec.type), spec.key_size));
  }
  if (spec.value_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("map %s (%s): its value has no size; give it a value type", spec.name, MapTypeName(spec.type)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ArrayMap::Allocate() {
  absl::Status status = CheckShape(spec_);
  if (!status.ok()) return status;
  region_.stride = RoundUp8(spec_.value_size);
  region_.last = spec_.value_size;
  const uint64_t block = uint64_t{region_.stride} * spec_.max_entries;
  if (per_worker()) worker_bytes_ = block;
  absl::StatusOr<MapMemory> memory = MapMemory::Create(spec_.name, per_worker() ? block * workers() : block);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  region_.base = memory_.data();
  region_.bytes = memory_.size();
  region_.writable = !IsReadOnly(spec_);
  memcpy(memory_.data(), spec_.initial.data(), std::min<uint64_t>(spec_.initial.size(), memory_.size()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Map>> ArrayMap::Create(const MapSpec& spec, Epochs* epochs) {
  auto map = std::unique_ptr<ArrayMap>(new ArrayMap(spec, epochs));
  const absl::Status status = map->Allocate();
  if (!status.ok()) return status;
  return map;
}

uint8_t* ArrayMap::Lookup(const uint8_t* key, uint32_t worker) {
  const uint32_t index = IndexOf(key);
  if (index >= spec_.max_entries) return nullptr;
  return region_.base + worker * worker_bytes_ + uint64_t{index} * region_.stride;
}

int ArrayMap::Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) {
  const bool locked = (flags & BPF_F_LOCK) != 0;
  flags &= ~static_cast<uint64_t>(BPF_F_LOCK);
  if (flags > BPF_EXIST) return -EINVAL;
  uint8_t* place = ArrayMap::Lookup(key, worker);
  if (place == nullptr) return -E2BIG;
  if (flags == BPF_NOEXIST) return -EEXIST;
  const bool has_lock = spec_.lock_offset != MapSpec::kNoLock;
  if (locked) return has_lock ? CopyLocked(place, value) : -EINVAL;
  if (has_lock) {
    CopyValueTo(place, value);
  } else {
    CopyValue(place, value, spec_.value_size);
  }
  return 0;
}

void ArrayMap::Each(uint32_t worker, VisitFunction visit, void* to) {
  for (uint32_t index = 0; index < spec_.max_entries; ++index) {
    const auto* key = reinterpret_cast<const uint8_t*>(&index);
    if (!visit(to, key, ArrayMap::Lookup(key, worker))) return;
  }
}

int ArrayMap::Delete(const uint8_t*) {
  return -EINVAL;
}

bool ArrayMap::NextKey(const uint8_t* key, uint8_t* next) {
  const uint32_t index = key == nullptr ? 0 : IndexOf(key) + 1;
  if (index >= spec_.max_entries) return false;
  memcpy(next, &index, sizeof(index));
  return true;
}

absl::StatusOr<std::unique_ptr<Map>> TargetArrayMap::Create(const MapSpec& spec, Epochs* epochs) {
  if (spec.value_size != 4 && spec.value_size != 8) {
    return absl::InvalidArgumentError(
        absl::StrFormat("map %s (%s): its value has %d bytes; a target has 4 or 8; use __u32", spec.name,
                        MapTypeName(spec.type), spec.value_size));
  }
  auto map = std::unique_ptr<TargetArrayMap>(new TargetArrayMap(spec, epochs));
  const absl::Status status = map->Allocate();
  if (!status.ok()) return status;
  return map;
}

uint8_t* TargetArrayMap::Lookup(const uint8_t* key, uint32_t worker) {
  const uint32_t index = IndexOf(key);
  if (index >= spec_.max_entries || !Leads(index)) return nullptr;
  return ArrayMap::Lookup(key, worker);
}

int TargetArrayMap::Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) {
  const uint32_t index = IndexOf(key);
  if (leads_ != nullptr) return -EPERM;
  if (flags > BPF_EXIST) return -EINVAL;
  if (index >= spec_.max_entries) return -E2BIG;
  const bool present = present_[index].load(std::memory_order_relaxed) != 0;
  if (flags == BPF_NOEXIST && (present || spec_.type != BPF_MAP_TYPE_XSKMAP)) return -EEXIST;
  if (flags == BPF_EXIST && !present && spec_.type == BPF_MAP_TYPE_XSKMAP) return -ENOENT;
  uint32_t target;
  memcpy(&target, value, sizeof(target));
  CopyValue(ArrayMap::Lookup(key, worker), value, spec_.value_size);
  // Interface 0 and a CPU's queue of length 0 mean: no target. A socket's number may be 0.
  present_[index].store(target != 0 || spec_.type == BPF_MAP_TYPE_XSKMAP, std::memory_order_release);
  return 0;
}

int TargetArrayMap::Delete(const uint8_t* key) {
  const uint32_t index = IndexOf(key);
  if (leads_ != nullptr) return -EPERM;
  if (index >= spec_.max_entries) return -EINVAL;
  present_[index].store(0, std::memory_order_release);
  return 0;
}

bool TargetArrayMap::NextKey(const uint8_t* key, uint8_t* next) {
  for (uint32_t index = key == nullptr ? 0 : IndexOf(key) + 1; index < spec_.max_entries; ++index) {
    if (!Leads(index)) continue;
    memcpy(next, &index, sizeof(index));
    return true;
  }
  return false;
}

}  // namespace halfpage::bpf
