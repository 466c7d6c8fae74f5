// Sources of frames: each fills bursts of mbufs, from a capture or from a recipe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "app/capture.h"
#include "app/chain_filler.h"
#include "app/config.h"
#include "app/generated_frames.h"
#include "mempool/exact_frag.h"
#include "mempool/pool_classes.h"

struct rte_mbuf;
struct rte_mempool;

namespace halfpage {

// Frames prepared ahead of the run, so that filling a burst is allocation, copy and nothing else.
//
// A capture's frames stand as they are; a generator's are UDP/IPv4 frames with valid checksums, their sizes drawn ahead
// from `seed` (see generated_frames.h). Both are a cyclic list of byte ranges for the hot part (traffic_fill.cc).
class TrafficSource {
 public:
  // Prepares the frames. `seed` drives every random choice. `pools` outlive the source: one, or those that are its
  // classes (in any order); one made with PageFragSettings::exact where `config.buffers` says so. Errors: those of
  // Capture::Read for a capture, those of GeneratedFrames::Create for a generator, those of PoolClasses::Create and
  // ExactFrag::Over, InvalidArgument for a pool whose buffers have no room behind the headroom, are external memory, or
  // are too few to hold the longest frame at all.
  static absl::StatusOr<TrafficSource> Create(const TrafficConfig& config, uint64_t seed,
                                              absl::Span<rte_mempool* const> pools);

  TrafficSource(TrafficSource&&) = default;
  TrafficSource& operator=(TrafficSource&&) = default;

  // Hot. Fills up to `n` (at most 64) buffers with the next frames and gives how many it filled. A frame longer than a
  // room becomes a chain (only the first segment keeps the headroom). Fewer than `n`: the pool ran short (`nobuf`
  // counts the frames that found no buffer; they come again with the next call), or the source is at its end. Worker
  // that owns the source only.
  uint16_t Fill(rte_mbuf** frames, uint16_t n);

  // Hot. Of a capture with times of its own (`timing: capture`): how many of the next `most` frames are due at `now`,
  // in TSC ticks. The clock starts with the first call, so that the frame that is next then is due at once; what comes
  // late is made up for, so that the capture takes as long as it took. Owning worker only.
  uint16_t Due(uint64_t now, uint16_t most);
  // The clock starts again with the next Due(), after a pause that is not to be made up for.
  void RestartClock() { clock_started_ = false; }

  // True when the capture has ended (`loop` off) or `count` frames were filled.
  bool done() const { return filled_ >= limit_; }
  // Frames that Fill() gave out, and frames that it had no buffer for (counted again by each call they wait for).
  uint64_t filled() const { return filled_; }
  uint64_t nobuf() const { return nobuf_; }
  const Capture* capture() const { return capture_.get(); }
  // The classes that its buffers come from, with their counters; null where there is one pool.
  const PoolClasses* classes() const { return classes_.get(); }
  // Lowers the frame limit (`--count` split over sources); 0 leaves it.
  void LimitTo(uint64_t frames);

 private:
  using Template = FrameTemplate;
  TrafficSource() = default;

  void KeepTimes();
  absl::Status PrepareFrames(const TrafficConfig& config, uint64_t seed);
  absl::Status ChoosePools(const TrafficConfig& config, absl::Span<rte_mempool* const> pools);
  uint32_t LongestFrame() const;

  void LengthsAhead(uint32_t* lengths, uint16_t n) const;
  uint16_t GetBuffers(rte_mbuf** frames, uint16_t n);
  void GiveBack(rte_mbuf** frames, uint16_t n);
  uint16_t FillExact(rte_mbuf** frames, uint16_t n);
  static void CopyInto(rte_mbuf* first, const Template& frame, const uint8_t* head);

  // The worker writes these with every burst.
  size_t next_ = 0;    // position in `templates_`
  uint32_t flow_ = 0;  // of the next frame
  uint64_t filled_ = 0;
  uint64_t nobuf_ = 0;
  uint64_t clock_ = 0;  // TSC when the very first frame was due, had there been no pause
  bool clock_started_ = false;
  // Fixed before the run.
  uint64_t limit_ = 0;  // UINT64_MAX: none
  uint32_t flows_ = 1;
  uint32_t skew_ = 0;                       // added to the flow at each end of `templates_`
  uint32_t room_ = 0;                       // usable bytes of a first segment (data room less headroom)
  uint32_t longest_unmarked_ = UINT32_MAX;  // longer frames are marked for segmentation
  std::vector<uint64_t> times_;             // TSC ticks from the first frame to each; empty: without `timing: capture`
  uint64_t lap_ = 0;                        // from the first frame to the same one in the next lap
  uint16_t gso_ = 0;                        // into segments of so much payload
  rte_mempool* pool_ = nullptr;             // the only one, or that of the last class, which chains are of
  std::unique_ptr<PoolClasses> classes_;
  rte_mempool* only_class_ = nullptr;  // of all frames, where they are of one class
  absl::optional<ExactFrag> exact_;
  std::vector<Template> templates_;
  std::unique_ptr<ChainFiller> chains_;         // null where every frame fits a room
  std::unique_ptr<Capture> capture_;            // what templates point into,
  std::unique_ptr<GeneratedFrames> generated_;  // one or the other
};

}  // namespace halfpage
