// Locks for a few instructions, in code that workers run.
#pragma once

#include <atomic>
#include <cstdint>

namespace halfpage::bpf {

class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

// A bpf_spin_lock: a word of a map's value, 0 while nobody holds it. False where it never gets free: a program may have
// written into it.
inline bool TakeLockWord(uint32_t* word) {
  constexpr uint32_t kPatience = 1 << 24;
  for (uint32_t tries = 0; tries < kPatience; ++tries) {
    if (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE) == 0) return true;
    while (__atomic_load_n(word, __ATOMIC_RELAXED) != 0 && ++tries < kPatience) __builtin_ia32_pause();
  }
  return false;
}
inline void GiveLockWord(uint32_t* word) {
  __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

}  // namespace halfpage::bpf
