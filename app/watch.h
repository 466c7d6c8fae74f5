// What is looked after while a run goes on: leaks, faults of programs, memory to give back, statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/fault_log.h"
#include "app/leak_watch.h"
#include "app/output.h"
#include "app/snapshot.h"
#include "app/topology.h"

namespace halfpage {

// Of the control thread, from the run's start on.
class Watch {
 public:
  // Both outlive it.
  Watch(const Topology& topology, const Config& config);

  // Looks at what is due; cheap enough for every few milliseconds. Warnings go to standard error, and while there is a
  // screen onto it; where standard error is that terminal, it gets them from LeaveScreen() only.
  void Look();
  // With report.top, an empty screen for the first statistics.
  Written ClearScreen();
  // The screen stays as it is and is drawn no more.
  void LeaveScreen();
  // Prints a block of statistics, or draws report.top's screen, where `period` seconds have gone by since the last; 0:
  // never, and the screen each second.
  Written PrintStatistics(double period);

  // Since it was made.
  double seconds() const;
  // Bytes given back to EAL.
  uint64_t trimmed() const { return trimmed_; }

 private:
  void Warn(double now, const std::string& text);

  const Topology& topology_;
  const Config& config_;
  double start_;
  double next_block_ = 0;
  double next_trim_;
  double next_look_ = 0;
  uint64_t trimmed_ = 0;
  Snapshot before_;
  std::vector<LeakWatch> leaks_;
  FaultLog faults_;
  bool drawing_ = false;
  std::vector<std::string> warnings_;   // with their times, while there is a screen
  std::vector<std::string> held_back_;  // of these, what standard error has not got
};

}  // namespace halfpage
