#include "app/watch.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/plan.h"
#include "app/report.h"
#include "app/top_screen.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

constexpr size_t kMostWarnings = 64;    // that are kept for a screen
constexpr double kLookForFaults = 0.1;  // seconds between looks at what programs aborted

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Watch::Watch(const Topology& topology, const Config& config)
    : topology_(topology), config_(config), start_(Now()), next_trim_(config.arena.trim), before_(topology.Read()) {
  for (const PoolSnapshot& pool : before_.pools) leaks_.emplace_back(pool.name, pool.size);
}

double Watch::seconds() const {
  return Now() - start_;
}

void Watch::Look() {
  const double now = seconds();
  const std::vector<uint64_t> in_use = topology_.BuffersInUse();
  // What stands in rings is on its way: rings that fill up at the start, or behind a slow worker, are no leak.
  const uint64_t waiting = topology_.FramesWaiting();
  for (size_t p = 0; p < leaks_.size(); ++p) {
    if (const auto warning = leaks_[p].Sample(now, in_use[p] - std::min(in_use[p], waiting))) {
      Warn(now, *warning);
    }
  }
  if (config_.arena.trim > 0 && now >= next_trim_) {
    for (const int socket : ArenaSockets(config_)) trimmed_ += ShrinkPageFragArena(socket);
    next_trim_ = now + config_.arena.trim;
  }
  if (now < next_look_) return;
  for (const std::string& line : faults_.Sample(topology_.Read(), now)) {
    Warn(now, line);
  }
  next_look_ = now + kLookForFaults;
}

void Watch::Warn(double now, const std::string& text) {
  const std::string line = absl::StrCat("halfpage: warning: ", text, "\n");
  if (drawing_) warnings_.push_back(absl::StrFormat("%.0f s: %s", now, text));
  if (warnings_.size() > kMostWarnings) warnings_.erase(warnings_.begin());
  if (drawing_ && isatty(STDERR_FILENO) == 1) {
    held_back_.push_back(line);
  } else {
    std::fputs(line.c_str(), stderr);
  }
}

Written Watch::ClearScreen() {
  if (!config_.report.top) return Written::kYes;
  drawing_ = true;
  return WriteOut("\033[2J");
}

void Watch::LeaveScreen() {
  drawing_ = false;
  if (!held_back_.empty()) std::fputc('\n', stderr);  // the cursor stands behind the screen's last line
  for (const std::string& line : held_back_) std::fputs(line.c_str(), stderr);
  held_back_.clear();
}

Written Watch::PrintStatistics(double period) {
  const bool top = config_.report.top;
  if (top && period == 0) period = 1;
  if (period <= 0 || seconds() < next_block_ + period) return Written::kYes;
  next_block_ += period;
  Snapshot now = topology_.Read();
  const Written written =
      top ? DrawTop(config_.file, now, before_, warnings_) : WriteOut(StatisticsBlock(now, before_));
  before_ = std::move(now);
  return written;
}

}  // namespace halfpage
