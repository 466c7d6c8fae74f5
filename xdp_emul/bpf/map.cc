#include "xdp_emul/bpf/map.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/bpf/array_map.h"
#include "xdp_emul/bpf/bloom_map.h"
#include "xdp_emul/bpf/hash_map.h"
#include "xdp_emul/bpf/lpm_map.h"
#include "xdp_emul/bpf/queue_map.h"
#include "xdp_emul/bpf/ring_map.h"
#include "xdp_emul/bpf/slots_map.h"
#include "xdp_emul/bpf/spin_lock.h"

namespace halfpage::bpf {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostBytes = uint64_t{16} << 30;

constexpr const char* kTypeNames[] = {
    "unspec",
    "hash",
    "array",
    "prog_array",
    "perf_event_array",
    "percpu_hash",
    "percpu_array",
    "stack_trace",
    "cgroup_array",
    "lru_hash",
    "lru_percpu_hash",
    "lpm_trie",
    "array_of_maps",
    "hash_of_maps",
    "devmap",
    "sockmap",
    "cpumap",
    "xskmap",
    "sockhash",
    "cgroup_storage",
    "reuseport_sockarray",
    "percpu_cgroup_storage",
    "queue",
    "stack",
    "sk_storage",
    "devmap_hash",
    "struct_ops",
    "ringbuf",
    "inode_storage",
    "task_storage",
    "bloom_filter",
    "user_ringbuf",
    "cgrp_storage",
};

}  // namespace

absl::StatusOr<MapMemory> MapMemory::Create(const std::string& map, uint64_t bytes) {
  MapMemory memory;
  const uint64_t whole = (std::max<uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  const uint64_t mapped = whole + 2 * kPage;
  void* mapping = MAP_FAILED;
  if (bytes <= kMostBytes) {
    mapping = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("map %s needs %d bytes, which are not to be had; lower its max_entries", map, bytes));
  }
  memory.mapping_ = mapping;
  memory.mapped_ = mapped;
  memory.data_ = static_cast<uint8_t*>(mapping) + kPage;
  memory.size_ = bytes;
  if (mprotect(memory.data_, whole, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("map %s needs %d bytes, which are not to be had; lower its max_entries", map, bytes));
  }
  return memory;
}

MapMemory::MapMemory(MapMemory&& other) noexcept {
  *this = std::move(other);
}

MapMemory& MapMemory::operator=(MapMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

MapMemory::~MapMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

std::string MapTypeName(bpf_map_type type) {
  const auto number = static_cast<size_t>(type);
  return number < std::size(kTypeNames) ? kTypeNames[number] : absl::StrCat("type ", number);
}

bool IsReadOnly(const MapSpec& spec) {
  return (spec.flags & BPF_F_RDONLY_PROG) != 0 || spec.type == BPF_MAP_TYPE_DEVMAP ||
         spec.type == BPF_MAP_TYPE_DEVMAP_HASH || spec.type == BPF_MAP_TYPE_XSKMAP || spec.type == BPF_MAP_TYPE_CPUMAP;
}

bool Map::per_worker() const {
  return spec_.type == BPF_MAP_TYPE_PERCPU_ARRAY || spec_.type == BPF_MAP_TYPE_PERCPU_HASH ||
         spec_.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

void Map::CopyValueTo(uint8_t* to, const uint8_t* from) const {
  const uint32_t lock = spec_.lock_offset;
  if (lock == MapSpec::kNoLock) {
    memcpy(to, from, spec_.value_size);
    return;
  }
  const uint32_t behind = lock + sizeof(uint32_t);
  memcpy(to, from, lock);
  memcpy(to + behind, from + behind, spec_.value_size - behind);
}

int Map::CopyLocked(uint8_t* to, const uint8_t* from) const {
  auto* const word = reinterpret_cast<uint32_t*>(to + spec_.lock_offset);
  if (!TakeLockWord(word)) return -EBUSY;
  CopyValueTo(to, from);
  GiveLockWord(word);
  return 0;
}

int Map::UpdateAll(const uint8_t* key, const uint8_t* value, uint64_t flags) {
  const uint32_t copies = per_worker() ? workers() : 1;
  for (uint32_t worker = 0; worker < copies; ++worker) {
    const int error = Update(key, value, flags, worker);
    if (error != 0) return error;
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<Map>> Map::Create(const MapSpec& spec, Epochs* epochs) {
  switch (spec.type) {
    case BPF_MAP_TYPE_ARRAY:
    case BPF_MAP_TYPE_PERCPU_ARRAY:
      return ArrayMap::Create(spec, epochs);
    case BPF_MAP_TYPE_DEVMAP:
    case BPF_MAP_TYPE_XSKMAP:
    case BPF_MAP_TYPE_CPUMAP:
      return TargetArrayMap::Create(spec, epochs);
    case BPF_MAP_TYPE_HASH:
    case BPF_MAP_TYPE_PERCPU_HASH:
    case BPF_MAP_TYPE_LRU_HASH:
    case BPF_MAP_TYPE_LRU_PERCPU_HASH:
    case BPF_MAP_TYPE_DEVMAP_HASH:
      return HashMap::Create(spec, epochs);
    case BPF_MAP_TYPE_LPM_TRIE:
      return LpmMap::Create(spec, epochs);
    case BPF_MAP_TYPE_QUEUE:
    case BPF_MAP_TYPE_STACK:
      return QueueMap::Create(spec, epochs);
    case BPF_MAP_TYPE_PROG_ARRAY:
    case BPF_MAP_TYPE_ARRAY_OF_MAPS:
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
      return SlotsMap::Create(spec, epochs);
    case BPF_MAP_TYPE_HASH_OF_MAPS:
      return HashOfMaps::Create(spec, epochs);
    case BPF_MAP_TYPE_RINGBUF:
      return RingMap::Create(spec, epochs);
    case BPF_MAP_TYPE_BLOOM_FILTER:
      return BloomMap::Create(spec, epochs);
    default:
      return absl::UnimplementedError(
          absl::StrFormat("map %s is of type %s, which is not there for programs in user space; use array, "
                          "percpu_array, hash, percpu_hash, lru_hash, lru_percpu_hash, lpm_trie, queue, stack, "
                          "bloom_filter, ringbuf, array_of_maps, hash_of_maps, prog_array, perf_event_array, devmap, "
                          "devmap_hash, xskmap or cpumap",
                          spec.name, MapTypeName(spec.type)));
  }
}

}  // namespace halfpage::bpf
