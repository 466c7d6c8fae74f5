// DPDK's spinlock, held for a scope.
#pragma once

#include <rte_spinlock.h>

namespace halfpage {

class Locked {
 public:
  explicit Locked(rte_spinlock_t* lock) : lock_(lock) { rte_spinlock_lock(lock_); }
  ~Locked() { rte_spinlock_unlock(lock_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  rte_spinlock_t* lock_;
};

}  // namespace halfpage
