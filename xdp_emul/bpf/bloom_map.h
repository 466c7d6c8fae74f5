// BLOOM_FILTER: says of a value that it was never put in, or that it may have been.
#pragma once

#include <atomic>
#include <vector>

#include "xdp_emul/bpf/queue_map.h"

namespace halfpage::bpf {

class BloomMap : public KeylessMap {
 public:
  // The lowest 4 bits of spec.extra say how many hashes a value has, 0 means 5.
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  int Push(const uint8_t* value, uint64_t flags) override;
  // 0 where `value` may have been put in, -ENOENT where it never was. Nothing can be taken out.
  int Next(uint8_t* value, bool take) override;

 private:
  BloomMap(const MapSpec& spec, Epochs* epochs) : KeylessMap(spec, epochs) {}
  // Which bit stands for hash `number` of a value.
  uint64_t Bit(const uint8_t* value, uint32_t number) const;

  uint32_t hashes_ = 5;
  uint64_t mask_ = 0;  // of bits
  std::vector<std::atomic<uint64_t>> words_;
};

}  // namespace halfpage::bpf
