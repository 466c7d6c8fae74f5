// Suspicion of a leak while a run goes on: buffers in use that only ever grow.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/types/optional.h"

namespace halfpage {

// Watches one pool. At constant load the lowest number of buffers in use over a window moves up and down; if it has
// risen in every one of several windows, buffers are taken and not given back. Short windows see a fast leak before the
// pool is empty, long ones a slow leak beneath a load that varies by more than the leak takes in a short one.
class LeakWatch {
 public:
  LeakWatch(std::string pool, uint64_t size) : pool_(std::move(pool)), size_(size) {}

  // Takes a sample at `seconds` (never decreasing). Gives one warning in the watch's life, with the slope and when the
  // pool will be empty.
  absl::optional<std::string> Sample(double seconds, uint64_t in_use);

 private:
  // Risen in a row. By chance alone one in 9! windows ends such a row.
  static constexpr size_t kWindows = 8;
  static constexpr uint64_t kLeastGrowth = 8;  // buffers over all windows: less may be chance

  struct Window {
    double end;
    uint64_t lowest;
  };
  struct Growth {
    double seconds;
    uint64_t buffers;
    uint64_t in_use;
  };
  // Windows of one length.
  struct Scale {
    double length;  // seconds
    double window_end = -1;
    uint64_t lowest = UINT64_MAX;
    std::deque<Window> windows = {};

    absl::optional<Growth> Sample(double seconds, uint64_t in_use);
  };

  std::string pool_;
  uint64_t size_;
  std::array<Scale, 4> scales_ = {Scale{0.05}, Scale{0.4}, Scale{3.2}, Scale{25.6}};
  bool warned_ = false;
};

}  // namespace halfpage
