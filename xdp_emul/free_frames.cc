// Hot path: FreeFrames().
#include "xdp_emul/free_frames.h"

#include <rte_mempool.h>

namespace halfpage {
namespace {

constexpr uint32_t kPools = 4;  // of which buffers are collected at the same time
constexpr uint32_t kMost = 64;  // buffers in one put

struct Collected {
  rte_mempool* pool = nullptr;
  uint32_t n = 0;
  void* buffers[kMost];

  void PutBack() {
    if (n != 0) rte_mempool_put_bulk(pool, buffers, n);
    n = 0;
  }
};

// Where buffers of `pool` are collected. One pool more than there are places for takes the place of the first.
inline Collected* PlaceOf(rte_mempool* pool, Collected* places) {
  for (uint32_t i = 0; i < kPools; ++i) {
    if (places[i].pool == pool) return &places[i];
    if (places[i].pool == nullptr) {
      places[i].pool = pool;
      return &places[i];
    }
  }
  places[0].PutBack();
  places[0].pool = pool;
  return &places[0];
}

}  // namespace

void FreeFrames(rte_mbuf** frames, uint32_t n) {
#ifdef RTE_LIBRTE_MBUF_DEBUG
  rte_pktmbuf_free_bulk(frames, n);
#else
  Collected places[kPools];
  Collected* at = places;
  Collected* before = places + 1;  // where the last change of the pool came from: segments alternate
  for (uint32_t i = 0; i < n; ++i) {
    for (rte_mbuf* segment = frames[i]; segment != nullptr;) {
      rte_mbuf* next = segment->next;
      rte_mbuf* free = rte_pktmbuf_prefree_seg(segment);
      segment = next;
      if (free == nullptr) continue;
      if (free->pool != at->pool) {
        Collected* const to = free->pool == before->pool ? before : PlaceOf(free->pool, places);
        before = at;
        at = to;
      }
      if (__builtin_expect(at->n == kMost, 0)) at->PutBack();
      at->buffers[at->n++] = free;
    }
  }
  for (Collected& place : places) place.PutBack();
#endif
}

}  // namespace halfpage
