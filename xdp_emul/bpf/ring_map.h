// RINGBUF: records of any length, one behind the other, for one reader outside. Who reserves a record fills it in
// place; it can be read when it was submitted, and those before it.
#pragma once

#include <atomic>
#include <vector>

#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/spin_lock.h"

namespace halfpage::bpf {

class RingMap : public Map {
 public:
  // `max_entries` is the size in bytes, made up to a power of two of pages, as libbpf does.
  static absl::StatusOr<std::unique_ptr<Map>> Create(const MapSpec& spec, Epochs* epochs);

  // Room for `size` bytes, null where there is none: nobody read what is there. Any worker.
  uint8_t* Reserve(uint64_t size);
  // `record`: from Reserve(), once. Any worker.
  void Submit(const uint8_t* record, bool discard);
  // What bpf_ringbuf_query() answers: BPF_RB_AVAIL_DATA and the like. Any thread.
  uint64_t Query(uint64_t what) const;

  // Hands the records that are ready to `take`, oldest first, and frees their room. One reader at a time.
  using TakeFunction = void (*)(void* to, const RingMap& map, const uint8_t* data, uint64_t size);
  void Read(TakeFunction take, void* to);

  // There are no keys.
  uint8_t* Lookup(const uint8_t*, uint32_t) override { return nullptr; }
  int Update(const uint8_t* key, const uint8_t* value, uint64_t flags, uint32_t worker) override;
  int Delete(const uint8_t* key) override;
  bool NextKey(const uint8_t*, uint8_t*) override { return false; }

 private:
  static constexpr uint32_t kHeader = 8;  // before each record, as in the kernel's; kept where programs cannot write
  static constexpr uint32_t kBusy = 1u << 31;
  static constexpr uint32_t kDiscarded = 1u << 30;

  RingMap(const MapSpec& spec, Epochs* epochs) : Map(spec, epochs) {}
  std::atomic<uint32_t>& HeaderAt(uint64_t position) { return headers_[(position & (size_ - 1)) / kHeader]; }
  static uint64_t Whole(uint64_t bytes) { return (bytes + kHeader + 7) & ~uint64_t{7}; }

  uint64_t size_ = 0;
  MapMemory memory_;  // twice the size: a record that passes the end goes on behind it
  std::vector<std::atomic<uint32_t>> headers_;
  SpinLock lock_;  // of who reserves
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> read_{0};
};

}  // namespace halfpage::bpf
