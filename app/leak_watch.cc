#include "app/leak_watch.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace halfpage {

absl::optional<LeakWatch::Growth> LeakWatch::Scale::Sample(double seconds, uint64_t in_use) {
  lowest = std::min(lowest, in_use);
  if (window_end < 0) window_end = seconds + length;
  if (seconds < window_end) return absl::nullopt;
  if (!windows.empty() && lowest <= windows.back().lowest) windows.clear();
  windows.push_back({seconds, lowest});
  window_end = seconds + length;
  lowest = UINT64_MAX;
  if (windows.size() <= kWindows) return absl::nullopt;
  const Window first = windows.front();
  windows.pop_front();
  const uint64_t growth = windows.back().lowest - first.lowest;
  if (growth < kLeastGrowth) return absl::nullopt;
  return Growth{seconds - first.end, growth, windows.back().lowest};
}

absl::optional<std::string> LeakWatch::Sample(double seconds, uint64_t in_use) {
  if (warned_) return absl::nullopt;
  absl::optional<Growth> found;
  for (Scale& scale : scales_) {
    if (const auto growth = scale.Sample(seconds, in_use)) found = growth;
  }
  if (!found.has_value()) return absl::nullopt;
  warned_ = true;
  const double per_second = static_cast<double>(found->buffers) / found->seconds;
  const double left = static_cast<double>(size_ - std::min(size_, found->in_use)) / per_second;
  return absl::StrFormat(
      "pool %s: buffers in use have only grown for %.2f s, by %.0f a second, now %u of %u: a leak? The pool is empty "
      "in "
      "%.1f s; measure.track_owners: true tells who holds them",
      pool_, found->seconds, per_second, found->in_use, size_, left);
}

}  // namespace halfpage
