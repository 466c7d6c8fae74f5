// Where a benchmark's buffers come from: pools of each handler, made at first use and kept, so that every round of a
// variant meets the same one.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

#include "mempool/exact_frag.h"

namespace halfpage {

inline constexpr unsigned kBurst = 32;
inline constexpr uint32_t kBenchPoolSize = 16384;
inline constexpr uint32_t kExactLength = 1500;

struct Variant {
  const char* name;
  const char* ops;
  uint32_t page_size = 0;
  uint32_t pages_in_rotation = 0;
  bool exact = false;     // not a pool of equal objects but an ExactFrag
  bool rotation = false;  // no allocator at all: the same buffers handed round, reset each time and never freed
  bool shuffled = false;  // the pool's objects were put back in random order once, as after a long life
  // With `exact`: the rejected form, a mbuf of a pool of headers and a room of the asked length attached to it.
  bool external = false;
};

struct Source {
  rte_mempool* pool = nullptr;
  ExactFrag* exact = nullptr;
  uint32_t lengths[kBurst] = {};
  rte_mempool* headers = nullptr;  // of the external form, whose rooms are cut from `exact`'s pages
  std::vector<rte_mbuf*>* rotation = nullptr;
  size_t at = 0;  // in `rotation`

  // A burst, by rte_pktmbuf_alloc_bulk() or as exact buffers of kExactLength bytes.
  bool Take(rte_mbuf** burst) {
    if (headers != nullptr) return TakeExternal(burst);
    if (rotation != nullptr) return TakeNext(burst);
    if (exact == nullptr) return rte_pktmbuf_alloc_bulk(pool, burst, kBurst) == 0;
    return exact->AllocBulk(burst, lengths, kBurst, ExactRoom{}) == kBurst;
  }
  // What a burst's owner does with it at the end.
  void GiveBack(rte_mbuf** burst, unsigned n) const {
    if (rotation == nullptr) return rte_pktmbuf_free_bulk(burst, n);
    for (unsigned i = 0; i < n; ++i) rte_pktmbuf_prefree_seg(burst[i]);
  }
  // Bytes of the pages that it carves; 0 for stock handlers.
  uint32_t page_size() const;

 private:
  bool TakeExternal(rte_mbuf** burst);
  bool TakeNext(rte_mbuf** burst) {
    for (unsigned i = 0; i < kBurst; ++i) {
      burst[i] = (*rotation)[at + i];
      rte_pktmbuf_reset(burst[i]);
    }
    at = at + kBurst == rotation->size() ? 0 : at + kBurst;
    return true;
  }
};

// Ends the program where the pool cannot be made.
Source SourceOf(const Variant& variant, uint32_t cache);

// Ends all pools; before EAL does.
void EndSources();

}  // namespace halfpage
