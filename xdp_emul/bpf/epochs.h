// When memory that a program may still point at can be used again: workers say when they run programs, and what was
// taken out of a map waits until each that ran then has come out.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace halfpage::bpf {

class Epochs {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  explicit Epochs(uint32_t workers) : slots_(size_t{workers} + 1) {}

  uint32_t workers() const { return static_cast<uint32_t>(slots_.size()) - 1; }
  // The number behind the workers': of who reads maps from outside, one at a time (ControlRead).
  uint32_t outsider() const { return workers(); }

  // Around each burst that worker `worker` gives to programs; pointers into maps hold in between.
  void Enter(uint32_t worker) { slots_[worker].epoch.store(now_.load(), std::memory_order_seq_cst); }
  void Leave(uint32_t worker) { slots_[worker].epoch.store(kOutside, std::memory_order_release); }

  // A stamp for what was just made unreachable for new readers. Any thread.
  uint64_t Stamp() { return now_.fetch_add(1); }
  // Whether no worker but `except` can still hold what got `stamp`. Any thread.
  bool Passed(uint64_t stamp, uint32_t except = kNobody) const {
    for (uint32_t worker = 0; worker < slots_.size(); ++worker) {
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
  std::mutex outside_;
  friend class ControlRead;
};

// While it lives, what the control side has found in a map is not used again. Waits for another one to end.
class ControlRead {
 public:
  explicit ControlRead(Epochs* epochs) : epochs_(epochs), lock_(epochs->outside_) {
    epochs_->Enter(epochs_->outsider());
  }
  ~ControlRead() { epochs_->Leave(epochs_->outsider()); }
  ControlRead(const ControlRead&) = delete;
  ControlRead& operator=(const ControlRead&) = delete;

 private:
  Epochs* epochs_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace halfpage::bpf
