#include "app/leak_watch.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace halfpage {

absl::optional<std::string> LeakWatch::Sample(double seconds, uint64_t in_use) {
  if (warned_) return absl::nullopt;
  lowest_ = std::min(lowest_, in_use);
  if (window_end_ < 0) window_end_ = seconds + kWindow;
  if (seconds < window_end_) return absl::nullopt;
  if (!windows_.empty() && lowest_ <= windows_.back().lowest) windows_.clear();
  windows_.push_back({seconds, lowest_});
  window_end_ = seconds + kWindow;
  lowest_ = UINT64_MAX;
  if (windows_.size() <= kWindows) return absl::nullopt;
  const Window first = windows_.front();
  windows_.pop_front();
  const uint64_t growth = windows_.back().lowest - first.lowest;
  if (growth < kLeastGrowth) return absl::nullopt;
  warned_ = true;
  const double per_second = static_cast<double>(growth) / (seconds - first.end);
  const double left = static_cast<double>(size_ - std::min(size_, windows_.back().lowest)) / per_second;
  return absl::StrFormat(
      "pool %s: buffers in use have only grown for %.2f s, by %.0f a second, now %u of %u: a leak? The pool is empty "
      "in "
      "%.1f s; measure.track_owners: true tells who holds them",
      pool_, seconds - first.end, per_second, windows_.back().lowest, size_, left);
}

}  // namespace halfpage
