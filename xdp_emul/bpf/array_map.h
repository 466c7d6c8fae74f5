// Maps whose key is an index: arrays of values, per-CPU arrays, global variables, and arrays of redirect targets.
#pragma once

#include <atomic>

#include "xdp_emul/bpf/map.h"

namespace halfpage::bpf {

class ArrayMap : public Map {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  uint8_t* Lookup(const uint8_t* key, uint32_t worker) override;
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int Delete(const uint8_t* key) override;
  bool NextKey(const uint8_t* key, uint8_t* next) override;
  void Each(uint32_t worker, VisitFunction visit, void* to) override;

  // For code that looks values up by itself: value i of worker w begins at base + w * worker_bytes + i * stride.
  uint64_t worker_bytes() const { return worker_bytes_; }

 protected:
  ArrayMap(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs) {}
  absl::Status Allocate();

  MapMemory memory_;
  uint64_t worker_bytes_ = 0;  // 0 where all workers share one value
};

// DEVMAP, XSKMAP, CPUMAP by index: an entry is there once it was put there. What it holds is for who redirects.
class TargetArrayMap : public ArrayMap {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  uint8_t* Lookup(const uint8_t* key, uint32_t worker) override;
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int Delete(const uint8_t* key) override;
  bool NextKey(const uint8_t* key, uint8_t* next) override;

  // From here on `leads(table, key)` says whether a key leads somewhere, and nothing is put into the map or taken out
  // of it (EPERM). Set-up code.
  using LeadsFunction = bool (*)(const void* table, uint32_t key);
  void Bind(LeadsFunction leads, const void* table) {
    leads_ = leads;
    table_ = table;
  }

 private:
  TargetArrayMap(const MapSpec& spec, Epochs* epochs) : ArrayMap(spec, epochs), present_(spec.max_entries) {}
  bool Leads(uint32_t index) const {
    return leads_ != nullptr ? leads_(table_, index) : present_[index].load(std::memory_order_acquire) != 0;
  }

  std::vector<std::atomic<uint8_t>> present_;
  LeadsFunction leads_ = nullptr;
  const void* table_ = nullptr;
};

}  // namespace halfpage::bpf
