// Hot path: who had a buffer last, and when: written into the buffer's own mempool header while owners are tracked.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>

namespace halfpage {

// Lies in the part of the object header's cache line that DPDK does not use: struct rte_mempool_objhdr is the line's
// last 24 bytes, for pools of every handler whose objects start on a cache line. Buffers of an ExactFrag have no
// header.
struct BufferStamp {
  uint64_t tsc;    // of the hand-over
  uint32_t stage;  // who received it; what a number means is the application's
  uint32_t magic;  // kStampMagic once stamped
};
inline constexpr uint32_t kStampMagic = 0x68616c66;
static_assert(sizeof(BufferStamp) + sizeof(rte_mempool_objhdr) <= RTE_CACHE_LINE_SIZE);

inline BufferStamp* StampOf(void* object) {
  return reinterpret_cast<BufferStamp*>(static_cast<char*>(object) - RTE_CACHE_LINE_SIZE);
}

// Stamps all segments of a burst. The caller owns the frames.
inline void StampBurst(rte_mbuf* const* frames, uint16_t n, uint32_t stage, uint64_t tsc) {
  for (uint16_t i = 0; i < n; ++i) {
    for (rte_mbuf* segment = frames[i]; segment != nullptr; segment = segment->next) {
      *StampOf(segment) = {tsc, stage, kStampMagic};
    }
  }
}

}  // namespace halfpage
