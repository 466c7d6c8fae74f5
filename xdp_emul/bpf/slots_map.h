// Maps whose slots hold no values but things of the run: programs (PROG_ARRAY), maps (ARRAY_OF_MAPS, HASH_OF_MAPS), and
// who reads events (PERF_EVENT_ARRAY, where nobody does).
#pragma once

#include <atomic>

#include "xdp_emul/bpf/map.h"

namespace halfpage::bpf {

class Program;

// By index. What a slot holds stays as long as the set of maps.
class SlotsMap : public Map {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  void* Get(uint32_t index) const {
    return index < spec_.max_entries ? slots_[index].load(std::memory_order_acquire) : nullptr;
  }
  // False past the end. Any thread.
  bool Put(uint32_t index, void* what);

  // Of a map of maps: the map itself.
  uint8_t* Lookup(const uint8_t* key, uint32_t worker) override;
  // Empties a slot: what there is to put into one has no bytes.
  int Delete(const uint8_t* key) override;
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  bool NextKey(const uint8_t* key, uint8_t* next) override;

 private:
  SlotsMap(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs), slots_(spec.max_entries) {}
  std::vector<std::atomic<void*>> slots_;
};

// HASH_OF_MAPS: by a key of any size. What the object puts in has its slot's number as key.
class HashOfMaps : public Map {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  // False where its keys are no numbers of 4 bytes, or it is full. Set-up code.
  bool Put(uint32_t key, Map* what);

  // The map itself.
  uint8_t* Lookup(const uint8_t* key, uint32_t worker) override;
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int Delete(const uint8_t* key) override { return entries_->Delete(key); }
  bool NextKey(const uint8_t*, uint8_t*) override { return false; }

 private:
  HashOfMaps(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs) {}
  std::unique_ptr<Map> entries_;  // from keys to addresses of maps
};

}  // namespace halfpage::bpf
