// QUEUE and STACK: values without keys, first in first out or last in first out.
#pragma once

#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/spin_lock.h"

namespace halfpage::bpf {

// What bpf_map_push_elem(), _peek_elem() and _pop_elem() work on. There are no keys.
class KeylessMap : public Map {
 public:
  // 0 or a negative errno, the kernel's for the same case. Any worker.
  virtual int Push(const uint8_t* value, uint64_t flags) = 0;
  // Copies the next value to `value`, zeros where there is none, and takes it out if `take`.
  virtual int Next(uint8_t* value, bool take) = 0;

  uint8_t* Lookup(const uint8_t*, uint32_t) override { return nullptr; }
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int Delete(const uint8_t* key) override;
  bool NextKey(const uint8_t*, uint8_t*) override { return false; }

 protected:
  KeylessMap(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs) {}
  // Errors: InvalidArgument for a map with keys or without values.
  static absl::Status CheckShape(const MapSpec& spec);
};

class QueueMap : public KeylessMap {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  int Push(const uint8_t* value, uint64_t flags) override;
  int Next(uint8_t* value, bool take) override;

 private:
  QueueMap(const MapSpec& spec, Epochs* epochs) : KeylessMap(spec, epochs) {}
  uint8_t* At(uint64_t place) const { return memory_.data() + place % spec_.max_entries * RoundUp8(spec_.value_size); }

  MapMemory memory_;
  SpinLock lock_;
  uint64_t first_ = 0;
  uint64_t count_ = 0;
};

}  // namespace halfpage::bpf
