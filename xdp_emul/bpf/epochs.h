// When memory that a program may still point at can be used again: workers say when they run programs, and what was
// taken out of a map waits until each that ran then has come out.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace halfpage::bpf {

class Epochs {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  explicit Epochs(uint32_t workers) : slots_(workers) {}

  uint32_t workers() const { return static_cast<uint32_t>(slots_.size()); }

  // Around each burst that worker `worker` gives to programs; pointers into maps hold in between.
  void Enter(uint32_t worker) { slots_[worker].epoch.store(now_.load(), std::memory_order_seq_cst); }
  void Leave(uint32_t worker) { slots_[worker].epoch.store(kOutside, std::memory_order_release); }

  // A stamp for what was just made unreachable for new readers. Any thread.
  uint64_t Stamp() { return now_.fetch_add(1); }
  // Whether no worker but `except` can still hold what got `stamp`. Any thread.
  bool Passed(uint64_t stamp, uint32_t except = kNobody) const {
    for (uint32_t worker = 0; worker < workers(); ++worker) {
      if (worker != except && slots_[worker].epoch.load() <= stamp) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kOutside = UINT64_MAX;
  struct alignas(64) Slot {
    std::atomic<uint64_t> epoch{kOutside};
  };
  alignas(64) std::atomic<uint64_t> now_{1};
  std::vector<Slot> slots_;
};

}  // namespace halfpage::bpf
