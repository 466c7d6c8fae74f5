// LPM_TRIE: values by the longest prefix that holds an address. One hash of all prefixes, and which lengths there are.
#pragma once

#include <array>
#include <atomic>

#include "xdp_emul/bpf/map.h"

namespace halfpage::bpf {

// A key is a length in bits (4 bytes) and as many bytes as the longest address has.
class LpmMap : public Map {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  uint8_t* Lookup(const uint8_t* key, uint32_t worker) override;
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int Delete(const uint8_t* key) override;
  bool NextKey(const uint8_t* key, uint8_t* next) override { return prefixes_->NextKey(key, next); }

 private:
  static constexpr uint32_t kMostBytes = 256;
  using Key = std::array<uint8_t, sizeof(uint32_t) + kMostBytes>;

  LpmMap(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs) {}
  // `key` cut to `length` bits.
  void Cut(const uint8_t* key, uint32_t length, Key* cut) const;
  uint32_t bits() const { return 8 * (spec_.key_size - 4); }

  std::unique_ptr<Map> prefixes_;
  std::array<std::atomic<uint32_t>, 8 * kMostBytes + 1> entries_ = {};  // by length
};

}  // namespace halfpage::bpf
