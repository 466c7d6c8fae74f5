// What a run says: the statistics block of a period, the final report as text and as JSON. All from snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/snapshot.h"

namespace halfpage {

// What the final report is made of.
struct RunResult {
  std::string config_file;
  Snapshot snapshot;
  uint64_t planned_page_bytes = 0;      // chunks that --plan foretells for all buffers out, 0: no page_frag pool
  uint64_t trimmed_bytes = 0;           // given back to EAL while the run went on
  std::vector<std::string> imbalances;  // of CheckLedger()
  std::vector<std::string> leaks;       // of CheckLeaks()
};

// The block of one period for every device, with testpmd's labels ("NIC statistics for port", "RX-packets:",
// "Rx-pps:"). Rates are those since `before`.
std::string StatisticsBlock(const Snapshot& now, const Snapshot& before);

// The block of one of them.
std::string PortStatistics(const Snapshot& now, const Snapshot& before, size_t device);

// Parts of the report: verdicts by device with their notes; a line or more for each pool, and for each object's
// program.
std::string VerdictText(const Snapshot& snapshot);
std::string PoolText(const Snapshot& snapshot);
std::string ObjectText(const Snapshot& snapshot);

// Tables of traffic, verdicts, rules, sinks and pools; the ledger, what is still out, the rate. Ends with a newline.
std::string TextReport(const RunResult& result);

// The same numbers as JSON, ends with a newline.
std::string JsonReport(const RunResult& result);

}  // namespace halfpage
