// Frames longer than a room, as chains of buffers.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "mempool/pool_classes.h"

namespace halfpage {

// A frame's first kFrameHeadBytes are at `head` + flow * `stride`, the others at `tail` + their offset in the frame. A
// captured frame has both in one place and a stride of 0.
struct FrameTemplate {
  const uint8_t* head;
  const uint8_t* tail;
  uint32_t length;
  uint8_t stride;
  // Of a chain, set by ChainFiller:
  uint8_t end_class = 0;  // the smallest class whose whole room holds its last segment
  uint16_t between = 0;   // segments between its first and its last, of the last class
};

// The chains of one burst at a time. What they take behind their first segments is got for all of them in as few calls
// as possible: of the last class, and the end of each from the smallest class that holds it, or from the last while
// that is empty. One thread.
class ChainFiller {
 public:
  // For a cyclic list of frames, which it lays out, over one pool or over classes (null: `pool` alone). All of them
  // outlive it. Null where every frame fits into `room` bytes, that is one buffer of the last class.
  static std::unique_ptr<ChainFiller> Create(absl::Span<FrameTemplate> frames, rte_mempool* pool,
                                             const PoolClasses* classes, uint32_t room);

  ChainFiller(const ChainFiller&) = delete;
  ChainFiller& operator=(const ChainFiller&) = delete;

  // Hot. Puts the frame at `position` of the list, which is longer than a room, into `first` and as many more buffers
  // as it takes. `later` more frames of the burst follow. False, with nothing taken and `first` as it was, where the
  // pools have not got them.
  bool Fill(rte_mbuf* first, const uint8_t* head, size_t position, uint32_t later);

  // Hot. Ends the burst: what is held for frames that did not come goes back.
  void PutBack();

 private:
  static constexpr size_t kClasses = PoolClasses::kMostClasses;
  static constexpr uint32_t kMostFrames = 64;
  // A 65535-byte frame in the smallest rooms that a source admits: one byte in the first, 129 in each other.
  static constexpr uint32_t kMostSegments = 1 + (65534 + RTE_PKTMBUF_HEADROOM) / (RTE_PKTMBUF_HEADROOM + 1);

  // Buffers of one class.
  struct Stock {
    rte_mempool* pool = nullptr;
    uint32_t wanted = 0;  // by the frames of the burst still to be filled, beyond those held
    uint32_t held = 0;
    uint32_t most = 0;
    rte_mbuf** buffers = nullptr;
  };

  ChainFiller() = default;
  void Prepare(size_t position, uint32_t frames);
  rte_mbuf** Take(Stock& stock, uint32_t n);
  static bool Refill(Stock& stock, uint32_t n);

  const FrameTemplate* frames_ = nullptr;
  size_t size_ = 0;
  uint32_t room_ = 0;
  bool prepared_ = false;
  size_t last_ = 0;  // class
  Stock stocks_[kClasses];
  rte_mbuf* segments_[kMostSegments];
  rte_mbuf* ends_[kClasses][kMostFrames];
};

}  // namespace halfpage
