#include "xdp_emul/bpf/slots_map.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"
#include "xdp_emul/bpf/hash_map.h"

namespace halfpage::bpf {
namespace {

uint32_t IndexAt(const uint8_t* key) {
  uint32_t index;
  memcpy(&index, key, sizeof(index));
  return index;
}

constexpr uint32_t kMostEntries = 1 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Map>> SlotsMap::Create(const MapSpec& spec, Epochs* epochs) {
  if (spec.key_size != 4 || spec.max_entries > kMostEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("map %s (%s): key of %d bytes, %d entries; an index has 4, and "
                        "there are at most %d entries",
                        spec.name, MapTypeName(spec.type), spec.key_size, spec.max_entries, kMostEntries));
  }
  auto map = std::unique_ptr<SlotsMap>(new SlotsMap(spec, epochs));
  map->region_.writable = false;
  return map;
}

bool SlotsMap::Put(uint32_t index, void* what) {
  if (index >= spec_.max_entries) return false;
  slots_[index].store(what, std::memory_order_release);
  return true;
}

uint8_t* SlotsMap::Lookup(const uint8_t* key, uint32_t) {
  return static_cast<uint8_t*>(Get(IndexAt(key)));
}

int SlotsMap::Update(const uint8_t*, const uint8_t*, uint64_t, uint32_t) {
  return -EINVAL;
}

int SlotsMap::Delete(const uint8_t* key) {
  return Put(IndexAt(key), nullptr) ? 0 : -ENOENT;
}

absl::StatusOr<std::unique_ptr<Map>> HashOfMaps::Create(const MapSpec& spec, Epochs* epochs) {
  auto map = std::unique_ptr<HashOfMaps>(new HashOfMaps(spec, epochs));
  MapSpec entries = spec;
  entries.type = BPF_MAP_TYPE_HASH;
  entries.value_size = sizeof(Map*);
  absl::StatusOr<std::unique_ptr<Map>> made = HashMap::Create(entries, epochs);
  if (!made.ok()) return made.status();
  map->entries_ = std::move(*made);
  return map;
}

bool HashOfMaps::Put(uint32_t key, Map* what) {
  if (spec_.key_size != sizeof(key)) return false;
  return entries_->UpdateAll(reinterpret_cast<const uint8_t*>(&key), reinterpret_cast<const uint8_t*>(&what),
                             BPF_ANY) == 0;
}

uint8_t* HashOfMaps::Lookup(const uint8_t* key, uint32_t worker) {
  const uint8_t* entry = entries_->Lookup(key, worker);
  uint8_t* found = nullptr;
  if (entry != nullptr) memcpy(&found, entry, sizeof(found));
  return found;
}

int HashOfMaps::Update(const uint8_t*, const uint8_t*, uint64_t, uint32_t) {
  return -EINVAL;
}

// Nothing to print: values have no bytes.
bool SlotsMap::NextKey(const uint8_t*, uint8_t*) {
  return false;
}

}  // namespace halfpage::bpf
