// Hot path: TrafficSource::Fill(), a burst of buffers with the next frames in them.
//
// The buffers come from the mempool as they are: one that was freed has no next segment, a segment count of 1 and one
// owner (rte_pktmbuf_free and its kin see to that, and so must who frees in bulk). So in place of
// rte_pktmbuf_alloc_bulk, which resets each of them on two cache lines, 32 bytes in a row set all that a receiver would
// look at. Fields behind them (vlan_tci_outer, tx_offload, dynamic fields) keep what they had; they mean something only
// with a flag in ol_flags, and that is 0.
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string.h>

#include <bit>
#include <cstddef>

#include "app/traffic_source.h"
#include "mempool/raw_buffers.h"
#include "xdp_emul/gso.h"

namespace halfpage {
namespace {

constexpr uint32_t kBlock = kFrameHeadBytes;
// From here on the C library's copy, whose vectors are as wide as the CPU has, wins over what its call costs.
constexpr uint32_t kLibraryCopy = 512;
constexpr uint16_t kMaxFill = 64;
// A 65535-byte frame in the smallest rooms that Create() admits: one byte in the first, 129 in each other.
constexpr uint32_t kMaxSegments = 1 + (65534 + RTE_PKTMBUF_HEADROOM) / (RTE_PKTMBUF_HEADROOM + 1);

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

// Two blocks that meet or overlap: exact for lengths of `kBytes` to twice as much.
template <uint32_t kBytes>
inline void CopyTwo(uint8_t* to, const uint8_t* from, uint32_t length) {
  memcpy(to, from, kBytes);
  memcpy(to + length - kBytes, from + length - kBytes, kBytes);
}

// A whole frame of at least 14 bytes, not one byte past its end on either side. The last block overlaps the one before;
// in a frame below 128 bytes it overlaps the head too, which is therefore written last.
inline void CopyFrame(uint8_t* to, const uint8_t* head, const uint8_t* tail, uint32_t length) {
  if (length >= kBlock) {
    if (length >= kLibraryCopy) {
      memcpy(to + kBlock, tail + kBlock, length - kBlock);
    } else if (length > kBlock) {
      for (uint32_t at = kBlock; at + kBlock < length; at += kBlock) memcpy(to + at, tail + at, kBlock);
      memcpy(to + length - kBlock, tail + length - kBlock, kBlock);
    }
    memcpy(to, head, kBlock);
  } else if (length >= 32) {
    CopyTwo<32>(to, head, length);
  } else if (length >= 16) {
    CopyTwo<16>(to, head, length);
  } else {
    CopyTwo<8>(to, head, length);
  }
}

// Bytes `at` to `at` + `n` of a frame.
void CopyPart(uint8_t* to, const uint8_t* head, const uint8_t* tail, uint32_t at, uint32_t n) {
  if (at < kBlock) {
    const uint32_t from_head = RTE_MIN(n, kBlock - at);
    memcpy(to, head + at, from_head);
    to += from_head;
    at += from_head;
    n -= from_head;
  }
  memcpy(to, tail + at, n);
}

}  // namespace

// Puts a frame longer than a room into `first` and as many more buffers as it takes. False, with nothing taken and
// `first` as it was, where the pool has not got them.
bool TrafficSource::FillChain(rte_mempool* pool, rte_mbuf* first, const Template& frame, const uint8_t* head,
                              uint32_t room) {
  const uint32_t data_room = room + RTE_PKTMBUF_HEADROOM;  // further segments use all of it
  const uint32_t further = (frame.length - room + data_room - 1) / data_room;
  rte_mbuf* segments[kMaxSegments];
  if (!GetRaw(pool, segments, further)) return false;
  // What is copied meanwhile drives mbufs out of the first-level cache: each segment's lines are asked for ahead.
  for (uint32_t i = 0; i < further; ++i) {
    __builtin_prefetch(segments[i], 1);
    __builtin_prefetch(&segments[i]->next, 1);
  }

  StartBuffer(first, RTE_PKTMBUF_HEADROOM, static_cast<uint16_t>(1 + further), frame.length,
              static_cast<uint16_t>(room));
  CopyPart(FrameStart(first), head, frame.tail, 0, room);
  rte_mbuf* last = first;
  uint32_t at = room;
  for (uint32_t i = 0; i < further; ++i) {
    const uint32_t length = RTE_MIN(data_room, frame.length - at);
    StartBuffer(segments[i], 0, 1, length, static_cast<uint16_t>(length));
    CopyPart(static_cast<uint8_t*>(segments[i]->buf_addr), head, frame.tail, at, length);
    at += length;
    last->next = segments[i];
    last = segments[i];
  }
  return true;
}

// As many of `n` buffers as there are, for the next frames in their order.
uint16_t TrafficSource::GetBuffers(rte_mbuf** frames, uint16_t n) {
  if (classes_ == nullptr) return GetSomeRaw(pool_, frames, n);
  uint32_t lengths[kMaxFill];
  for (uint16_t i = 0; i < n; ++i) lengths[i] = LengthAhead(i);
  return classes_->TakeBulk(frames, lengths, n);
}

void TrafficSource::GiveBack(rte_mbuf** frames, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) PutRaw(frames[i]->pool, frames + i, 1);
}

// Allocates and copies: the buffers come with all their fields written. One bulk from each long frame to the next.
uint16_t TrafficSource::FillExact(rte_mbuf** frames, uint16_t n) {
  constexpr ExactRoom kRoom = {RTE_PKTMBUF_HEADROOM, 0};
  uint32_t lengths[kMaxFill];
  for (uint16_t i = 0; i < n; ++i) lengths[i] = LengthAhead(i);
  uint16_t got = 0;
  while (got < n) {
    uint16_t fit = got;
    while (fit < n && lengths[fit] <= room_) ++fit;
    const auto wanted = static_cast<uint16_t>(fit - got);
    const uint16_t given = wanted == 0 ? uint16_t{0} : exact_->AllocBulk(frames + got, lengths + got, wanted, kRoom);
    got = static_cast<uint16_t>(got + given);
    if (given != wanted) break;
    if (got == n) break;
    frames[got] = exact_->Alloc(lengths[got], kRoom);
    if (frames[got] == nullptr) break;
    ++got;
  }
  return got;
}

void TrafficSource::CopyInto(rte_mbuf* first, const Template& frame, const uint8_t* head) {
  if (first->nb_segs == 1) {
    CopyFrame(FrameStart(first), head, frame.tail, frame.length);
    return;
  }
  uint32_t at = 0;
  for (rte_mbuf* segment = first; segment != nullptr; segment = segment->next) {
    CopyPart(rte_pktmbuf_mtod(segment, uint8_t*), head, frame.tail, at, segment->data_len);
    at += segment->data_len;
  }
}

uint16_t TrafficSource::Due(uint64_t now, uint16_t most) {
  const size_t size = times_.size();
  uint64_t lap = filled_ / size * lap_;
  if (!clock_started_) {
    clock_ = now - lap - times_[next_];
    clock_started_ = true;
  }
  uint16_t due = 0;
  for (size_t at = next_; due < most && static_cast<int64_t>(now - clock_ - lap - times_[at]) >= 0; ++due) {
    if (++at == size) {
      at = 0;
      lap += lap_;
    }
  }
  return due;
}

uint16_t TrafficSource::Fill(rte_mbuf** frames, uint16_t n) {
  if (n == 0 || filled_ >= limit_) return 0;
  const uint64_t left = limit_ - filled_;
  const uint16_t wanted = left < n ? static_cast<uint16_t>(left) : n;
  const bool exact = exact_.has_value();
  uint16_t got = exact ? FillExact(frames, wanted) : GetBuffers(frames, wanted);

  const Template* const templates = templates_.data();
  const size_t size = templates_.size();
  const uint32_t room = room_;
  const uint32_t longest_unmarked = longest_unmarked_;
  size_t next = next_;
  uint32_t flow = flow_;
  uint16_t filled = 0;
  for (; filled < got; ++filled) {
    const Template& frame = templates[next];
    const uint8_t* head = frame.head + static_cast<size_t>(flow) * frame.stride;
    rte_mbuf* first = frames[filled];
    if (exact) {
      CopyInto(first, frame, head);
    } else if (frame.length <= room) {
      StartBuffer(first, RTE_PKTMBUF_HEADROOM, 1, frame.length, static_cast<uint16_t>(frame.length));
      CopyFrame(FrameStart(first), head, frame.tail, frame.length);
    } else if (!FillChain(pool_, first, frame, head, room)) {
      // The buffers kept for later frames of this burst may be the very ones that are short.
      GiveBack(frames + filled + 1, static_cast<uint16_t>(got - filled - 1));
      got = static_cast<uint16_t>(filled + 1);
      if (!FillChain(pool_, first, frame, head, room)) {
        GiveBack(&first, 1);
        break;
      }
    }
    if (__builtin_expect(frame.length > longest_unmarked, 0)) MarkForSegmentation(first, gso_);
    ++flow;
    if (++next == size) {
      next = 0;
      flow += skew_;
    }
    if (flow >= flows_) flow -= flows_;
  }
  next_ = next;
  flow_ = flow;
  filled_ += filled;
  nobuf_ += static_cast<uint64_t>(wanted - filled);
  return filled;
}

}  // namespace halfpage
