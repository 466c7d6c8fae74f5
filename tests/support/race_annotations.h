// Hand-over between threads through DPDK's rings, told to ThreadSanitizer.
//
// Debian's DPDK is built without it. An enqueue and the dequeue that gets the object order everything before the one
// before everything after the other, but part of that ordering is in code that the sanitizer does not see. These
// wrappers say it in words it knows: what a thread wrote before Enqueue() is visible after Dequeue(). Without
// ThreadSanitizer they are the ring's own functions.
#pragma once

#include <rte_mempool.h>
#include <rte_ring.h>

#include <cstring>

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace halfpage {

inline void TellRelease([[maybe_unused]] void* at) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(at);
#endif
}

inline void TellAcquire([[maybe_unused]] void* at) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(at);
#endif
}

// Puts as many of `n` objects as there is room for; gives how many.
inline unsigned EnqueueBurst(rte_ring* ring, void* const* objects, unsigned n) {
  TellRelease(ring);
  return rte_ring_enqueue_burst(ring, objects, n, nullptr);
}

// Takes up to `n` objects; gives how many.
inline unsigned DequeueBurst(rte_ring* ring, void** objects, unsigned n) {
  const unsigned taken = rte_ring_dequeue_burst(ring, objects, n, nullptr);
  if (taken != 0) TellAcquire(ring);
  return taken;
}

// A stock handler's way from one thread's put to another's get is such code too. page_frag's is not: what it owes is
// what is being tested, so nothing is said for it.
inline bool IsStock(const rte_mempool* pool) {
  return std::strcmp(rte_mempool_get_ops(pool->ops_index)->name, "page_frag") != 0;
}

// rte_mempool_get_bulk(): 0, or negative and nothing taken.
inline int GetBulk(rte_mempool* pool, void** objects, unsigned n) {
  const int result = rte_mempool_get_bulk(pool, objects, n);
  if (result == 0 && IsStock(pool)) TellAcquire(pool);
  return result;
}

inline void PutBulk(rte_mempool* pool, void* const* objects, unsigned n) {
  if (IsStock(pool)) TellRelease(pool);
  rte_mempool_put_bulk(pool, objects, n);
}

}  // namespace halfpage
