#include "xdp_emul/bpf/lpm_map.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"

namespace halfpage::bpf {
namespace {

uint32_t LengthOf(const uint8_t* key) {
  uint32_t length;
  memcpy(&length, key, sizeof(length));
  return length;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Map>> LpmMap::Create(const MapSpec& spec, Epochs* epochs) {
  if (spec.key_size < 5 || spec.key_size > 4 + kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("map %s (lpm_trie): its key has %d bytes; it is a length of 4 and an address of 1 to %d",
                        spec.name, spec.key_size, kMostBytes));
  }
  auto map = std::unique_ptr<LpmMap>(new LpmMap(spec, epochs));
  MapSpec hash = spec;
  hash.type = BPF_MAP_TYPE_HASH;
  absl::StatusOr<std::unique_ptr<Map>> prefixes = Map::Create(hash, epochs);
  if (!prefixes.ok()) return prefixes.status();
  map->prefixes_ = std::move(*prefixes);
  map->region_ = map->prefixes_->region();
  return map;
}

void LpmMap::Cut(const uint8_t* key, uint32_t length, Key* cut) const {
  memcpy(cut->data(), &length, sizeof(length));
  const uint32_t whole = length / 8;
  memcpy(cut->data() + 4, key + 4, whole);
  memset(cut->data() + 4 + whole, 0, spec_.key_size - 4 - whole);
  if (length % 8 != 0) (*cut)[4 + whole] = key[4 + whole] & static_cast<uint8_t>(0xff00 >> (length % 8));
}

uint8_t* LpmMap::Lookup(const uint8_t* key, uint32_t worker) {
  Key cut;
  for (uint32_t length = std::min(LengthOf(key), bits()) + 1; length-- > 0;) {
    if (entries_[length].load(std::memory_order_acquire) == 0) continue;
    Cut(key, length, &cut);
    uint8_t* value = prefixes_->Lookup(cut.data(), worker);
    if (value != nullptr) return value;
  }
  return nullptr;
}

int LpmMap::Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) {
  const uint32_t length = LengthOf(key);
  if (length > bits() || flags > BPF_EXIST) return -EINVAL;
  Key cut;
  Cut(key, length, &cut);
  entries_[length].fetch_add(1);  // before it can be found
  const int added = prefixes_->Update(cut.data(), value, BPF_NOEXIST, worker);
  if (added == 0 && flags == BPF_EXIST) {
    prefixes_->Delete(cut.data());
    entries_[length].fetch_sub(1);
    return -ENOENT;
  }
  if (added == 0) return 0;
  entries_[length].fetch_sub(1);
  if (added == -E2BIG) return -ENOSPC;
  if (added != -EEXIST || flags == BPF_NOEXIST) return added;
  return prefixes_->Update(cut.data(), value, BPF_EXIST, worker);
}

int LpmMap::Delete(const uint8_t* key) {
  const uint32_t length = LengthOf(key);
  if (length > bits()) return -EINVAL;
  Key cut;
  Cut(key, length, &cut);
  const int error = prefixes_->Delete(cut.data());
  if (error == 0) entries_[length].fetch_sub(1);
  return error;
}

}  // namespace halfpage::bpf
