// What is said while a run goes on of frames that programs aborted.
#pragma once

#include <string>
#include <vector>

#include "app/snapshot.h"

namespace halfpage {

// One line for each device whose program aborted frames since the last line, with the program, the causes and how
// many. A device's first line comes at once, the next after a second, then after twice as long each time, up to a
// minute. Owned by the control thread.
class FaultLog {
 public:
  // Looks at counters read `seconds` after the start and gives the lines that are due.
  std::vector<std::string> Sample(const Snapshot& snapshot, double seconds);

 private:
  struct Told {
    uint64_t aborted = 0;
    RefusalCounts faults = {};
    double next = 0;  // no line before
    double pause = 1;
  };
  std::vector<Told> devices_;
};

}  // namespace halfpage
