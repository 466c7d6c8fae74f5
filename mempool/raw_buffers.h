// Hot path: buffers of a pool as they are, for callers that write the mbuf's fields themselves.
//
// A buffer in a pool has no next segment, a segment count of 1 and one owner; it is got so and must be put back so.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>

namespace halfpage {

// All or nothing. With mbuf debugging DPDK's own calls do it, for their checks.
inline bool GetRaw(rte_mempool* pool, rte_mbuf** buffers, uint32_t n) {
#ifdef RTE_LIBRTE_MBUF_DEBUG
  return rte_pktmbuf_alloc_bulk(pool, buffers, n) == 0;
#else
  return rte_mempool_get_bulk(pool, reinterpret_cast<void**>(buffers), n) == 0;
#endif
}

// Gives back buffers of one pool that were got and not used.
inline void PutRaw(rte_mempool* pool, rte_mbuf** buffers, uint32_t n) {
#ifdef RTE_LIBRTE_MBUF_DEBUG
  rte_pktmbuf_free_bulk(buffers, n);
#else
  if (n != 0) rte_mempool_put_bulk(pool, reinterpret_cast<void**>(buffers), n);
#endif
}

// As many of `n` as the pool has. One by one where it has not got them all, which happens under shortage only.
inline uint16_t GetSomeRaw(rte_mempool* pool, rte_mbuf** buffers, uint16_t n) {
  if (GetRaw(pool, buffers, n)) return n;
  uint16_t got = 0;
  while (got < n && GetRaw(pool, buffers + got, 1)) ++got;
  return got;
}

}  // namespace halfpage
