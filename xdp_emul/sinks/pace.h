// Hot path: how much a reader may take now, so that it keeps to its rate.
#pragma once

#include <cstdint>

namespace halfpage {

// At most `1 / ticks` frames a tick, in turns as they come. What a reader was too late for is lost to it: it never
// makes up for a pause with a burst longer than one turn. One thread.
struct Pace {
  uint64_t ticks = 0;  // TSC ticks per frame, 0: no limit
  uint64_t next = 0;   // when the next frame is due; 0: when it is first asked for

  // How many of `most` frames may be taken at `now`.
  uint16_t Due(uint64_t now, uint16_t most) const {
    if (ticks == 0) return most;
    if (next == 0) return 1;
    if (now < next) return 0;
    const uint64_t due = (now - next) / ticks + 1;
    return due < most ? static_cast<uint16_t>(due) : most;
  }

  // Notes that `taken` of the frames that were due have been taken.
  void Took(uint64_t now, uint16_t taken, uint16_t most) {
    if (ticks == 0) return;
    if (next == 0) next = now;
    next += taken * ticks;
    if (next + most * ticks < now) next = now;
  }
};

}  // namespace halfpage
