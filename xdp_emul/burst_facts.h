// Hot path: what one look at each mbuf's first cache line tells of a burst, and freeing by that knowledge.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "xdp_emul/free_frames.h"

namespace halfpage {

struct BurstFacts {
  uint64_t bytes = 0;
  uint32_t longest = 0;
  // Every frame is one direct buffer that nobody else holds, all from `pool`: it can go back without another look.
  bool simple = true;
  bool alone = true;     // as `simple`, but of whatever pools
  bool chained = false;  // some frame has more than one segment
  rte_mempool* pool = nullptr;
};

// data_off, refcnt, nb_segs and port: one word that drivers write at once, too. Read as rte_mbuf_refcnt_read() reads.
inline uint64_t RearmWord(const rte_mbuf* frame) {
  static_assert(std::endian::native == std::endian::little);
  static_assert(offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, rearm_data) + 2);
  static_assert(offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, rearm_data) + 4);
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(&frame->rearm_data), __ATOMIC_RELAXED);
}
inline constexpr uint64_t kHoldersAndSegments = 0x0000'ffff'ffff'0000;
inline constexpr uint64_t kOneHolderOneSegment = 0x0000'0001'0001'0000;

// Not for ThreadSanitizer, to which a vector's load of what another lcore's reference count may change is a race.
#if defined(__SSE4_1__) && !defined(__SANITIZE_THREAD__)

// One pass over a burst of at least one frame: of each, two vectors and the pool.
inline BurstFacts Survey(rte_mbuf* const* frames, uint16_t n) {
  static_assert(offsetof(rte_mbuf, ol_flags) == offsetof(rte_mbuf, rearm_data) + 8);
  static_assert(offsetof(rte_mbuf, packet_type) == offsetof(rte_mbuf, rearm_data) + 16);
  static_assert(offsetof(rte_mbuf, pkt_len) == offsetof(rte_mbuf, packet_type) + 4);
  BurstFacts facts;
  facts.pool = frames[0]->pool;
  const __m128i usual = _mm_set_epi64x(0, kOneHolderOneSegment);
  uint64_t foreign = 0;
  __m128i unusual = _mm_setzero_si128();  // holders and segments, flags
  __m128i bytes = _mm_setzero_si128();    // low half
  __m128i longest = _mm_setzero_si128();  // lowest quarter
  for (uint16_t i = 0; i < n; ++i) {
    const auto* words = reinterpret_cast<const __m128i*>(&frames[i]->rearm_data);
    unusual = _mm_or_si128(unusual, _mm_xor_si128(_mm_loadu_si128(words), usual));
    const __m128i length = _mm_srli_epi64(_mm_loadu_si128(words + 1), 32);
    bytes = _mm_add_epi64(bytes, length);
    longest = _mm_max_epu32(longest, length);
    foreign |= reinterpret_cast<uintptr_t>(frames[i]->pool) ^ reinterpret_cast<uintptr_t>(facts.pool);
  }
  facts.bytes = static_cast<uint64_t>(_mm_cvtsi128_si64(bytes));
  facts.longest = static_cast<uint32_t>(_mm_cvtsi128_si32(longest));
  const uint64_t holders_and_segments = static_cast<uint64_t>(_mm_cvtsi128_si64(unusual)) & kHoldersAndSegments;
  const auto flags = static_cast<uint64_t>(_mm_extract_epi64(unusual, 1));
  facts.chained = holders_and_segments >> 32 != 0;
  facts.alone = (holders_and_segments | (flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL))) == 0;
  facts.simple = facts.alone && foreign == 0;
  return facts;
}

#else

// One pass over a burst of at least one frame.
inline BurstFacts Survey(rte_mbuf* const* frames, uint16_t n) {
  BurstFacts facts;
  facts.pool = frames[0]->pool;
  uint64_t foreign = 0;
  uint64_t flags = 0;
  uint64_t holders_and_segments = 0;
  for (uint16_t i = 0; i < n; ++i) {
    const rte_mbuf* frame = frames[i];
    const uint32_t length = frame->pkt_len;
    facts.bytes += length;
    facts.longest = length > facts.longest ? length : facts.longest;
    foreign |= reinterpret_cast<uintptr_t>(frame->pool) ^ reinterpret_cast<uintptr_t>(facts.pool);
    flags |= frame->ol_flags;
    holders_and_segments |= RearmWord(frame) ^ kOneHolderOneSegment;
  }
  holders_and_segments &= kHoldersAndSegments;
  facts.chained = holders_and_segments >> 32 != 0;
  facts.alone = (holders_and_segments | (flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL))) == 0;
  facts.simple = facts.alone && foreign == 0;
  return facts;
}

#endif

// The end of the frames from `begin` on that are of its pool. By eight: the branches cost more than the comparisons.
inline uint16_t EndOfPool(rte_mbuf* const* frames, uint16_t begin, uint16_t n) {
  constexpr uint32_t kBlock = 8;
  const auto pool = reinterpret_cast<uintptr_t>(frames[begin]->pool);
  uint32_t end = begin + 1u;
  while (end + kBlock <= n) {
    uintptr_t foreign = 0;
    for (uint32_t i = 0; i < kBlock; ++i) foreign |= reinterpret_cast<uintptr_t>(frames[end + i]->pool) ^ pool;
    if (foreign != 0) break;
    end += kBlock;
  }
  while (end < n && reinterpret_cast<uintptr_t>(frames[end]->pool) == pool) ++end;
  return static_cast<uint16_t>(end);
}

// Frees a burst that `facts` was taken of. A freed direct mbuf has refcnt 1, next null and nb_segs 1 (rte_mbuf.h),
// which simple frames have already.
inline void FreeBurst(rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
#ifndef RTE_LIBRTE_MBUF_DEBUG
  if (facts.simple) {
    rte_mempool_put_bulk(facts.pool, reinterpret_cast<void* const*>(frames), n);
    return;
  }
  if (facts.alone) {  // frames of one source stand together
    for (uint16_t begin = 0; begin < n;) {
      const uint16_t end = EndOfPool(frames, begin, n);
      rte_mempool_put_bulk(frames[begin]->pool, reinterpret_cast<void* const*>(frames + begin), end - begin);
      begin = end;
    }
    return;
  }
#endif
  FreeFrames(frames, n);
}

}  // namespace halfpage
