// The ledger: each frame ends in exactly one counter, and every counter is kept twice by different hands.
#pragma once

#include <string>
#include <vector>

#include "app/snapshot.h"

namespace halfpage {

// Adds up a snapshot taken at rest (workers stopped, ports closed, pools flushed). Gives one sentence for each sum that
// does not come out, with both sides; none when all do. Buffers and pages still out are not its business.
std::vector<std::string> CheckLedger(const Snapshot& snapshot);

// Buffers or pages that nobody should hold any more, one sentence per pool; none when all are back.
std::vector<std::string> CheckLeaks(const Snapshot& snapshot);

}  // namespace halfpage
