// Suspicion of a leak while a run goes on: buffers in use that only ever grow.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "absl/types/optional.h"

namespace halfpage {

// Watches one pool. At constant load the lowest number of buffers in use over a short window moves up and down; if it
// has risen in every one of several windows, buffers are taken and not given back.
class LeakWatch {
 public:
  LeakWatch(std::string pool, uint64_t size) : pool_(std::move(pool)), size_(size) {}

  // Takes a sample at `seconds` (never decreasing). Gives one warning in the watch's life, with the slope and when the
  // pool will be empty.
  absl::optional<std::string> Sample(double seconds, uint64_t in_use);

 private:
  static constexpr double kWindow = 0.05;      // seconds
  static constexpr size_t kWindows = 5;        // risen in a row
  static constexpr uint64_t kLeastGrowth = 8;  // buffers over all windows: less may be chance

  struct Window {
    double end;
    uint64_t lowest;
  };

  std::string pool_;
  uint64_t size_;
  bool warned_ = false;
  double window_end_ = -1;
  uint64_t lowest_ = UINT64_MAX;
  std::deque<Window> windows_;
};

}  // namespace halfpage
