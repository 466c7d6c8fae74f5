// Hot path: the fields and the bytes of a buffer that a frame is put into.
//
// The buffers come from the mempool as they are: one that was freed has no next segment, a segment count of 1 and one
// owner (rte_pktmbuf_free and its kin see to that, and so must who frees in bulk). So in place of
// rte_pktmbuf_alloc_bulk, which resets each of them on two cache lines, 32 bytes in a row set all that a receiver would
// look at. Fields behind them (vlan_tci_outer, tx_offload, dynamic fields) keep what they had; they mean something only
// with a flag in ol_flags, and that is 0.
#pragma once

#include <rte_mbuf.h>
#include <string.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "app/generated_frames.h"

namespace halfpage {

// All of an mbuf from rearm_data to the RSS hash, as four words. (Built as a struct and copied, the copy waits for the
// narrower stores that made it: 30 cycles a frame.)
inline void StartBuffer(rte_mbuf* buffer, uint16_t data_off, uint16_t segments, uint32_t pkt_len, uint16_t data_len) {
  static_assert(std::endian::native == std::endian::little);
  static_assert(offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2);
  static_assert(offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, data_off) + 4);
  static_assert(offsetof(rte_mbuf, port) == offsetof(rte_mbuf, data_off) + 6);
  static_assert(offsetof(rte_mbuf, ol_flags) == offsetof(rte_mbuf, data_off) + 8);
  static_assert(offsetof(rte_mbuf, packet_type) == offsetof(rte_mbuf, data_off) + 16);
  static_assert(offsetof(rte_mbuf, pkt_len) == offsetof(rte_mbuf, data_off) + 20);
  static_assert(offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, data_off) + 24);
  static_assert(offsetof(rte_mbuf, vlan_tci) == offsetof(rte_mbuf, data_off) + 26);
  static_assert(offsetof(rte_mbuf, hash.rss) == offsetof(rte_mbuf, data_off) + 28);
  constexpr uint64_t kOneOwner = uint64_t{1} << 16;
  constexpr uint64_t kNoPort = uint64_t{RTE_MBUF_PORT_INVALID} << 48;
  const uint64_t words[4] = {data_off | kOneOwner | uint64_t{segments} << 32 | kNoPort,
                             0,  // no flags
                             uint64_t{pkt_len} << 32, data_len};
  uint8_t* to = reinterpret_cast<uint8_t*>(buffer) + offsetof(rte_mbuf, data_off);
  memcpy(to, &words[0], 8);
  memcpy(to + 8, &words[1], 8);
  memcpy(to + 16, &words[2], 8);
  memcpy(to + 24, &words[3], 8);
}

// Where the first segment's bytes go. Not read back from the data_off that was just stored.
inline uint8_t* FrameStart(const rte_mbuf* buffer) {
  return static_cast<uint8_t*>(buffer->buf_addr) + RTE_PKTMBUF_HEADROOM;
}

// From here on the C library's copy, whose vectors are as wide as the CPU has, wins over what its call costs.
inline constexpr uint32_t kLibraryCopyBytes = 512;

// Two blocks that meet or overlap: exact for lengths of `kBytes` to twice as much.
template <uint32_t kBytes>
inline void CopyTwo(uint8_t* to, const uint8_t* from, uint32_t length) {
  memcpy(to, from, kBytes);
  memcpy(to + length - kBytes, from + length - kBytes, kBytes);
}

// A whole frame of at least 14 bytes, not one byte past its end on either side. The last block overlaps the one before;
// in a frame below 128 bytes it overlaps the head too, which is therefore written last.
inline void CopyFrame(uint8_t* to, const uint8_t* head, const uint8_t* tail, uint32_t length) {
  if (length >= kFrameHeadBytes) {
    if (length >= kLibraryCopyBytes) {
      memcpy(to + kFrameHeadBytes, tail + kFrameHeadBytes, length - kFrameHeadBytes);
    } else if (length > kFrameHeadBytes) {
      for (uint32_t at = kFrameHeadBytes; at + kFrameHeadBytes < length; at += kFrameHeadBytes)
        memcpy(to + at, tail + at, kFrameHeadBytes);
      memcpy(to + length - kFrameHeadBytes, tail + length - kFrameHeadBytes, kFrameHeadBytes);
    }
    memcpy(to, head, kFrameHeadBytes);
  } else if (length >= 32) {
    CopyTwo<32>(to, head, length);
  } else if (length >= 16) {
    CopyTwo<16>(to, head, length);
  } else {
    CopyTwo<8>(to, head, length);
  }
}

// Bytes `at` to `at` + `n` of a frame.
inline void CopyPart(uint8_t* to, const uint8_t* head, const uint8_t* tail, uint32_t at, uint32_t n) {
  if (at < kFrameHeadBytes) {
    const uint32_t from_head = RTE_MIN(n, kFrameHeadBytes - at);
    memcpy(to, head + at, from_head);
    to += from_head;
    at += from_head;
    n -= from_head;
  }
  memcpy(to, tail + at, n);
}

}  // namespace halfpage
