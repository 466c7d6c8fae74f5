#include "xdp_emul/bpf/hash_map.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "absl/strings/str_format.h"

namespace halfpage::bpf {
namespace {

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
constexpr uint32_t kMostSpares = 1024;
constexpr uint64_t kSpareBytes = 64 << 20;  // of address space; what nobody replaces is never touched

uint64_t Load(const uint8_t* from, uint32_t bytes) {
  uint64_t word = 0;
  memcpy(&word, from, bytes);
  return word;
}

// Reads that match how programs write their keys: one that spans several stores would wait until they are in the cache.
uint64_t LoadTail(const uint8_t* from, uint32_t bytes) {
  switch (bytes) {
    case 1:
      return from[0];
    case 2:
      return Load(from, 2);
    case 4:
      return Load(from, 4);
    case 6:
      return Load(from, 4) | Load(from + 4, 2) << 32;
    case 8:
      return Load(from, 8);
    default: {
      uint64_t word = 0;
      for (uint32_t i = 0; i < bytes; ++i) word |= uint64_t{from[i]} << (8 * i);
      return word;
    }
  }
}

uint64_t Mix(uint64_t state, uint64_t word) {
  const auto product = static_cast<unsigned __int128>(state ^ word) * kSpread;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

absl::Status HashMap::Allocate() {
  if (spec_.key_size == 0 || spec_.key_size > 512 || spec_.value_size == 0 || spec_.value_size > (1u << 24) ||
      spec_.max_entries > (1u << 26)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "map %s (%s): key of %d, value of %d bytes, %d entries; a key has 1 to 512 bytes, a value 1 to 16777216, and "
        "there are at most 67108864 entries",
        spec_.name, MapTypeName(spec_.type), spec_.key_size, spec_.value_size, spec_.max_entries));
  }
  lru_ = spec_.type == BPF_MAP_TYPE_LRU_HASH || spec_.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
  key_bytes_ = RoundUp8(spec_.key_size);
  const uint32_t value_bytes = RoundUp8(spec_.value_size);
  element_bytes_ = static_cast<uint32_t>(RoundUp8(sizeof(Element))) + key_bytes_ + (per_worker() ? 0 : value_bytes);
  const auto spares = static_cast<uint32_t>(std::clamp<uint64_t>(kSpareBytes / element_bytes_, 16, kMostSpares));
  capacity_ = spec_.max_entries + spares + workers();
  mask_ = std::bit_ceil(std::max(spec_.max_entries, 8u)) - 1;

  absl::StatusOr<MapMemory> memory = MapMemory::Create(spec_.name, uint64_t{capacity_ + 1} * element_bytes_);
  if (!memory.ok()) return memory.status();
  elements_ = std::move(*memory);
  memory = MapMemory::Create(spec_.name, (uint64_t{mask_} + 1) * sizeof(uint32_t));
  if (!memory.ok()) return memory.status();
  buckets_ = std::move(*memory);
  region_.writable = !IsReadOnly(spec_);
  if (per_worker()) {
    worker_bytes_ = uint64_t{capacity_ + 1} * value_bytes;
    memory = MapMemory::Create(spec_.name, worker_bytes_ * workers());
    if (!memory.ok()) return memory.status();
    values_ = std::move(*memory);
    region_.base = values_.data();
    region_.bytes = values_.size();
    region_.stride = value_bytes;
    region_.last = spec_.value_size;
  } else {
    region_.base = elements_.data();
    region_.bytes = elements_.size();
    region_.stride = element_bytes_;
    region_.first = element_bytes_ - value_bytes;
    region_.last = region_.first + spec_.value_size;
  }
  free_.reserve(capacity_);
  for (uint32_t i = capacity_; i > 0; --i) free_.push_back(i);
  retired_.resize(capacity_);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Map>> HashMap::Create(const MapSpec& spec, Epochs* epochs) {
  auto map = std::unique_ptr<HashMap>(new HashMap(spec, epochs));
  const absl::Status status = map->Allocate();
  if (!status.ok()) return status;
  return map;
}

uint8_t* HashMap::ValueOf(uint32_t index, uint32_t worker) const {
  if (!per_worker()) return region_.base + uint64_t{index} * element_bytes_ + region_.first;
  return region_.base + worker * worker_bytes_ + uint64_t{index} * region_.stride;
}

template <uint32_t kSize>
uint32_t HashMap::HashSized(const uint8_t* key) const {
  uint64_t state = kSpread ^ spec_.key_size;
  uint32_t left = kSize != 0 ? kSize : spec_.key_size;
  for (; left > 8; left -= 8, key += 8) state = Mix(state, Load(key, 8));
  return static_cast<uint32_t>(Mix(state, LoadTail(key, left)) >> 8);
}

template <uint32_t kSize>
uint32_t HashMap::FindSized(const uint8_t* key, uint32_t hash) const {
  const auto same = [&](const uint8_t* stored, const uint8_t* wanted) {
    uint32_t left = kSize != 0 ? kSize : spec_.key_size;
    for (; left > 8; left -= 8, stored += 8, wanted += 8) {
      if (Load(stored, 8) != Load(wanted, 8)) return false;
    }
    return Load(stored, 8) == LoadTail(wanted, left);  // a stored key is padded with zeros
  };
  uint32_t index = HeadOf(hash)->load(std::memory_order_acquire);
  while (index != 0) {
    Element* element = At(index);
    if (element->hash == hash && same(KeyOf(element), key)) return index;
    index = element->next.load(std::memory_order_acquire);
  }
  return 0;
}

template <uint32_t kSize>
uint8_t* HashMap::LookupSized(Map* map, const uint8_t* key, uint64_t worker) {
  auto* hash_map = static_cast<HashMap*>(map);
  const uint32_t index = hash_map->FindSized<kSize>(key, hash_map->HashSized<kSize>(key));
  if (index == 0) return nullptr;
  if (hash_map->lru_) {
    std::atomic<uint8_t>& used = hash_map->At(index)->used;
    if (used.load(std::memory_order_relaxed) == 0) used.store(1, std::memory_order_relaxed);
  }
  return hash_map->ValueOf(index, static_cast<uint32_t>(worker));
}

// Sizes that programs have for ports and addresses.
Map::LookupFunction HashMap::lookup_function() const {
  switch (spec_.key_size) {
    case 2:
      return LookupSized<2>;
    case 4:
      return LookupSized<4>;
    case 6:
      return LookupSized<6>;
    case 8:
      return LookupSized<8>;
    case 16:
      return LookupSized<16>;
    default:
      return LookupSized<0>;
  }
}

uint8_t* HashMap::Lookup(const uint8_t* key, uint32_t worker) {
  return LookupSized<0>(this, key, worker);
}

int HashMap::Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) {
  return Put(key, value, flags, worker, false);
}

int HashMap::UpdateAll(const uint8_t* key, const uint8_t* value, uint64_t flags) {
  return Put(key, value, flags, 0, true);
}

int HashMap::Put(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker, bool all) {
  const bool locked = (flags & BPF_F_LOCK) != 0;
  flags &= ~static_cast<uint64_t>(BPF_F_LOCK);
  const bool has_lock = spec_.lock_offset != MapSpec::kNoLock;
  if (flags > BPF_EXIST || (locked && !has_lock)) return -EINVAL;
  const uint32_t hash = Hash(key);
  if (lru_) {
    while (count_.load(std::memory_order_relaxed) >= spec_.max_entries && Find(key, hash) == 0) {
      if (!MakeRoom()) return -ENOMEM;
    }
  }
  const std::lock_guard<SpinLock> lock(locks_[(hash & mask_) % kLocks]);
  const uint32_t old = Find(key, hash);
  if (old != 0 && flags == BPF_NOEXIST) return -EEXIST;
  if (old == 0 && flags == BPF_EXIST) return -ENOENT;
  if (old != 0 && locked) return CopyLocked(ValueOf(old, 0), value);
  if (old != 0 && per_worker()) {
    for (uint32_t w = 0; w < workers(); ++w) {
      if (all || w == worker) memcpy(ValueOf(old, w), value, spec_.value_size);
    }
    return 0;
  }
  if (old == 0 && count_.fetch_add(1) >= spec_.max_entries && !lru_) {
    count_.fetch_sub(1);
    return -E2BIG;
  }
  const uint32_t index = TakeElement(all ? Epochs::kNobody : worker);
  if (index == 0) {
    if (old == 0) count_.fetch_sub(1);
    return -EBUSY;
  }
  Element* element = At(index);
  element->hash = hash;
  element->used.store(lru_ ? 0 : 1, std::memory_order_relaxed);
  memset(KeyOf(element), 0, key_bytes_);
  memcpy(KeyOf(element), key, spec_.key_size);
  if (per_worker()) {
    for (uint32_t w = 0; w < workers(); ++w) {
      uint8_t* place = ValueOf(index, w);
      memset(place, 0, region_.stride);
      if (all || w == worker) memcpy(place, value, spec_.value_size);
    }
  } else {
    if (has_lock) memset(ValueOf(index, 0), 0, spec_.value_size);
    CopyValueTo(ValueOf(index, 0), value);
  }
  // A new value takes the old one's place on the list. At its head, a reader that is past the head already would find
  // neither.
  std::atomic<uint32_t>* const place = old == 0 ? HeadOf(hash) : LinkTo(old, hash);
  const std::atomic<uint32_t>& rest = old == 0 ? *place : At(old)->next;
  element->next.store(rest.load(std::memory_order_relaxed), std::memory_order_relaxed);
  place->store(index, std::memory_order_release);
  element->linked.store(1, std::memory_order_release);
  if (old != 0) {
    At(old)->linked.store(0, std::memory_order_release);
    Retire(old);
  }
  return 0;
}

std::atomic<uint32_t>* HashMap::HeadOf(uint32_t hash) const {
  return reinterpret_cast<std::atomic<uint32_t>*>(buckets_.data()) + (hash & mask_);
}

// Under the bucket's lock.
std::atomic<uint32_t>* HashMap::LinkTo(uint32_t index, uint32_t hash) const {
  std::atomic<uint32_t>* link = HeadOf(hash);
  while (link->load(std::memory_order_relaxed) != index) link = &At(link->load(std::memory_order_relaxed))->next;
  return link;
}

// Under the bucket's lock. The element keeps its `next`, for readers who stand on it.
void HashMap::Unlink(uint32_t index, uint32_t hash) {
  LinkTo(index, hash)->store(At(index)->next.load(std::memory_order_relaxed), std::memory_order_release);
  At(index)->linked.store(0, std::memory_order_release);
  Retire(index);
}

int HashMap::Delete(const uint8_t* key) {
  const uint32_t hash = Hash(key);
  const std::lock_guard<SpinLock> lock(locks_[(hash & mask_) % kLocks]);
  const uint32_t index = Find(key, hash);
  if (index == 0) return -ENOENT;
  Unlink(index, hash);
  count_.fetch_sub(1);
  return 0;
}

// 0 while all spare elements wait for another worker: what that one may be reading is not written. What only `worker`
// itself may still point at is used again when nothing else is left, as in the kernel.
uint32_t HashMap::TakeElement(uint32_t worker) {
  const std::lock_guard<SpinLock> lock(pool_lock_);
  while (retired_count_ > 0) {
    const Retired& oldest = retired_[retired_first_];
    if (!epochs_->Passed(oldest.stamp, free_.empty() ? worker : Epochs::kNobody)) break;
    free_.push_back(oldest.index);
    retired_first_ = (retired_first_ + 1) % capacity_;
    --retired_count_;
    if (free_.size() > 1) break;
  }
  if (free_.empty()) return 0;
  const uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void HashMap::Retire(uint32_t index) {
  const std::lock_guard<SpinLock> lock(pool_lock_);
  retired_[(retired_first_ + retired_count_) % capacity_] = {index, epochs_->Stamp()};
  ++retired_count_;
}

// Takes the first element out that nobody looked up since the hand last passed it. False where there is none to take.
bool HashMap::MakeRoom() {
  for (uint32_t step = 0; step < 2 * capacity_; ++step) {
    uint32_t index;
    {
      const std::lock_guard<SpinLock> lock(pool_lock_);
      index = hand_;
      hand_ = hand_ % capacity_ + 1;
    }
    Element* element = At(index);
    if (element->linked.load(std::memory_order_acquire) == 0) continue;
    if (element->used.exchange(0, std::memory_order_relaxed) != 0) continue;
    const uint32_t hash = element->hash;
    const std::lock_guard<SpinLock> lock(locks_[(hash & mask_) % kLocks]);
    // It may have been taken out, and even used again, in between.
    if (element->linked.load(std::memory_order_relaxed) == 0 || element->hash != hash) continue;
    Unlink(index, hash);
    count_.fetch_sub(1);
    return true;
  }
  return false;
}

// No more than there can be elements: the callback may put in and take out while it is called.
void HashMap::Each(uint32_t worker, VisitFunction visit, void* to) {
  const auto* heads = reinterpret_cast<const std::atomic<uint32_t>*>(buckets_.data());
  uint32_t left = capacity_;
  for (uint32_t bucket = 0; bucket <= mask_; ++bucket) {
    uint32_t index = heads[bucket].load(std::memory_order_acquire);
    for (; index != 0 && left != 0; --left) {
      Element* element = At(index);
      uint8_t* const value = ValueOf(index, worker);
      index = element->next.load(std::memory_order_acquire);
      if (!visit(to, KeyOf(element), value)) return;
    }
  }
}

bool HashMap::NextKey(const uint8_t* key, uint8_t* next) {
  const auto* heads = reinterpret_cast<const std::atomic<uint32_t>*>(buckets_.data());
  uint32_t bucket = 0;
  uint32_t index = 0;
  if (key != nullptr) {
    const uint32_t hash = Hash(key);
    const uint32_t at = Find(key, hash);
    if (at != 0) {
      bucket = (hash & mask_) + 1;
      index = At(at)->next.load(std::memory_order_acquire);
    }
  }
  while (index == 0 && bucket <= mask_) index = heads[bucket++].load(std::memory_order_acquire);
  if (index == 0) return false;
  memcpy(next, KeyOf(At(index)), spec_.key_size);
  return true;
}

}  // namespace halfpage::bpf
