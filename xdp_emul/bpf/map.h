// Maps: what programs keep between packets, shared by all workers and the control side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "xdp_emul/bpf/epochs.h"
#include "xdp_emul/bpf/object.h"

namespace halfpage::bpf {

// Memory of a map: zeroed, between two pages that nobody can touch, there until the map goes.
class MapMemory {
 public:
  MapMemory() = default;
  MapMemory(MapMemory&& other) noexcept;
  MapMemory& operator=(MapMemory&& other) noexcept;
  ~MapMemory();

  // Errors: ResourceExhausted naming the map and the bytes.
  static absl::StatusOr<MapMemory> Create(const std::string& map, uint64_t bytes);

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  void* mapping_ = nullptr;
  uint64_t mapped_ = 0;
};

// Where a program may read and write: bytes [first, last) of each element of `stride` bytes.
struct ValueRegion {
  uint8_t* base = nullptr;
  uint64_t bytes = 0;
  uint32_t stride = 1;
  uint32_t first = 0;
  uint32_t last = 0;
  bool writable = true;

  bool Contains(uint64_t address, uint64_t size) const {
    const uint64_t offset = address - reinterpret_cast<uint64_t>(base);
    if (offset >= bytes) return false;
    const uint64_t inside = offset % stride;
    return inside >= first && inside <= last && size <= last - inside;
  }
};

// One map. Lookup, Update and Delete are what programs call: any worker, between Epochs::Enter() and Leave(), with key
// and value as long as the spec says. They give 0 or a negative errno, the kernel's for the same case.
class Map {
 public:
  // `workers`: copies of each value in a per-CPU map. Errors: InvalidArgument for what the type does not allow, naming
  // map, limit and what to do; Unimplemented for a type that is not there; ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  virtual ~Map() = default;
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  const MapSpec& spec() const { return spec_; }
  const ValueRegion& region() const { return region_; }

  // The value of `key` for `worker`, null where there is none. Valid until the worker leaves the epoch.
  virtual uint8_t* Lookup(const uint8_t* key, uint32_t worker) = 0;
  // The same without a virtual call, for compiled code.
  using LookupFunction = uint8_t* (*)(Map* map, const uint8_t* key, uint64_t worker);
  virtual LookupFunction lookup_function() const { return LookupVirtual; }
  // `flags`: BPF_ANY, BPF_NOEXIST or BPF_EXIST. A reader sees the old value or the new one, never a mixture.
  virtual int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) = 0;
  virtual int Delete(const uint8_t* key) = 0;

  // Control side. Keys in a fixed order; null for the first. False at the end.
  virtual bool NextKey(const uint8_t* key, uint8_t* next) = 0;
  // A value for all workers.
  virtual int UpdateAll(const uint8_t* key, const uint8_t* value, uint64_t flags);

  // Calls `visit` for each element, with the value for `worker`, until it gives false; it may take out what it sees.
  // Only for maps that bpf_for_each_map_elem() takes.
  using VisitFunction = bool (*)(void* to, const uint8_t* key, uint8_t* value);
  virtual void Each(uint32_t /*worker*/, VisitFunction /*visit*/, void* /*to*/) {}

  bool per_worker() const;
  uint32_t workers() const { return epochs_->workers(); }

 protected:
  Map(const MapSpec& spec, Epochs* epochs) : spec_(spec), epochs_(epochs) {}

  static uint8_t* LookupVirtual(Map* map, const uint8_t* key, uint64_t worker) {
    return map->Lookup(key, static_cast<uint32_t>(worker));
  }

  // Puts `from` where a value is, but for its lock.
  void CopyValueTo(uint8_t* to, const uint8_t* from) const;
  // The same while the value's lock is held. 0 or -EBUSY.
  int CopyLocked(uint8_t* to, const uint8_t* from) const;

  MapSpec spec_;
  Epochs* epochs_;
  ValueRegion region_;
};

// Whether programs may only read its values: who redirects reads what is in maps of targets.
bool IsReadOnly(const MapSpec& spec);

// "percpu_hash" for BPF_MAP_TYPE_PERCPU_HASH; "type 33" for one without a name here.
std::string MapTypeName(bpf_map_type type);

inline constexpr uint32_t RoundUp8(uint32_t bytes) {
  return (bytes + 7) & ~7u;
}

}  // namespace halfpage::bpf
