// A counter that one thread writes and any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace halfpage {

// One writer, relaxed stores: no locked instruction. Readers see some recent value; it never goes backwards. "Clear" is
// a baseline that the reader subtracts.
class Counter {
 public:
  void Add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  uint64_t Read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace halfpage
