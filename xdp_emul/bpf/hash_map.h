// Maps from keys of any size to values: HASH, PERCPU_HASH, LRU_HASH, LRU_PERCPU_HASH, DEVMAP_HASH.
//
// Everything is allocated when the map is made. An update of a key that is there links a new element and takes the old
// one out, so that a reader has one of the two whole; the old one is used again when no worker can point at it any
// more. Should a program replace so often within one packet that none is left, the one taken out longest ago is used.
#pragma once

#include <atomic>

#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/spin_lock.h"

namespace halfpage::bpf {

class HashMap : public Map {
 public:
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  uint8_t* Lookup(const uint8_t* key, uint32_t worker) override;
  LookupFunction lookup_function() const override;
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int UpdateAll(const uint8_t* key, const uint8_t* value, uint64_t flags) override;
  int Delete(const uint8_t* key) override;
  bool NextKey(const uint8_t* key, uint8_t* next) override;
  void Each(uint32_t worker, VisitFunction visit, void* to) override;

 private:
  // Before key and value of each element. Index 0 is nobody.
  struct alignas(8) Element {
    std::atomic<uint32_t> next;
    uint32_t hash;
    std::atomic<uint8_t> used;  // looked up since the clock hand passed (LRU)
    std::atomic<uint8_t> linked;
  };
  struct Retired {
    uint32_t index;
    uint64_t stamp;
  };
  static constexpr uint32_t kLocks = 64;  // each bucket has one; a lock may have several buckets

  HashMap(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs) {}
  absl::Status Allocate();

  Element* At(uint32_t index) const {
    return reinterpret_cast<Element*>(elements_.data() + uint64_t{index} * element_bytes_);
  }
  uint8_t* KeyOf(Element* element) const { return reinterpret_cast<uint8_t*>(element) + sizeof(Element); }
  uint8_t* ValueOf(uint32_t index, uint32_t worker) const;
  uint32_t Hash(const uint8_t* key) const { return HashSized<0>(key); }
  uint32_t Find(const uint8_t* key, uint32_t hash) const { return FindSized<0>(key, hash); }
  // With a key of kSize bytes, which is the map's, or 0 where it is not known when this is compiled.
  template <uint32_t kSize>
  uint32_t HashSized(const uint8_t* key) const;
  template <uint32_t kSize>
  uint32_t FindSized(const uint8_t* key, uint32_t hash) const;
  template <uint32_t kSize>
  static uint8_t* LookupSized(Map* map, const uint8_t* key, uint64_t worker);
  int Put(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker, bool all);
  std::atomic<uint32_t>* HeadOf(uint32_t hash) const;
  std::atomic<uint32_t>* LinkTo(uint32_t index, uint32_t hash) const;  // the one that leads to `index`
  void Unlink(uint32_t index, uint32_t hash);
  uint32_t TakeElement(uint32_t worker);
  void Retire(uint32_t index);
  bool MakeRoom();

  bool lru_ = false;
  uint32_t key_bytes_ = 0;  // padded to 8
  uint32_t element_bytes_ = 0;
  uint32_t capacity_ = 0;  // elements, spares included
  uint32_t mask_ = 0;      // of buckets
  uint64_t worker_bytes_ = 0;
  MapMemory elements_, buckets_, values_;  // values_: of per-worker maps only
  SpinLock locks_[kLocks];
  std::atomic<uint32_t> count_{0};

  SpinLock pool_lock_;  // of what follows
  std::vector<uint32_t> free_;
  std::vector<Retired> retired_;  // a ring
  uint32_t retired_first_ = 0, retired_count_ = 0;
  uint32_t hand_ = 1;
};

}  // namespace halfpage::bpf
