// Hot path: frames of a burst as bits of one word, bit i for frame i, so that what a burst holds is told without a
// branch for each frame.
#pragma once

#include <bit>
#include <cstdint>

#include "xdp_emul/program.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace halfpage {

using BurstMask = uint64_t;
static_assert(kMaxBurst == 64);

// Bytes beside each other that one comparison takes: arrays of a byte for each frame are read up to a multiple of it.
inline constexpr uint16_t kMaskBlock = 16;

// The first `n` (at most kMaxBurst) frames.
inline BurstMask FirstFrames(uint16_t n) {
  return n == kMaxBurst ? ~BurstMask{0} : (BurstMask{1} << n) - 1;
}

// Which of the first `n` of kMaxBurst bytes have this value.
inline BurstMask FramesWith(const uint8_t* bytes, uint8_t value, uint16_t n) {
  BurstMask mask = 0;
#ifdef __SSE2__
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(value));
  for (uint16_t i = 0; i < n; i += kMaskBlock) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    mask |= BurstMask{static_cast<uint16_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, wanted)))} << i;
  }
#else
  for (uint16_t i = 0; i < n; ++i) mask |= BurstMask{bytes[i] == value} << i;
#endif
  return mask & FirstFrames(n);
}

// Calls `visit(i)` for each frame of the mask, in order.
template <typename Visit>
inline void ForEachFrame(BurstMask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<uint16_t>(std::countr_zero(mask)));
}

}  // namespace halfpage
