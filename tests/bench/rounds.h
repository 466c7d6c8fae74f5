// Rounds of registered benchmarks, for programs that compare: within a round each runs once, one after the other.
#pragma once

#include <string>
#include <vector>

namespace halfpage {

// Runs the benchmarks called `names` in this order, then in the reverse one, and so on, `rounds` times, and prints a
// line of JSON for each run: {"round": 0, "name": "...", "ns": time of one iteration, and the run's counters}. The
// clock is the one that the benchmark counts by. Gives the program's exit code: 1 for a name that is not registered or
// a benchmark that failed, with its reason on stderr.
int RunRounds(const std::vector<std::string>& names, int rounds);

}  // namespace halfpage
