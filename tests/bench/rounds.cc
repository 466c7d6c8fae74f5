#include "tests/bench/rounds.h"

#include <benchmark/benchmark.h>

#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

class Lines : public benchmark::BenchmarkReporter {
 public:
  explicit Lines(int round) : round_(round) {}

  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const std::string name = run.benchmark_name();
      if (run.error_occurred) {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), run.error_message.c_str());
        failed_ = true;
        continue;
      }
      const bool real = absl::EndsWith(name, "/real_time");
      std::string line = absl::StrFormat(R"({"round": %d, "name": "%s", "ns": %.6g)", round_, name,
                                         real ? run.GetAdjustedRealTime() : run.GetAdjustedCPUTime());
      for (const auto& [counter, value] : run.counters) {
        absl::StrAppendFormat(&line, R"(, "%s": %.6g)", counter, value.value);
      }
      std::printf("%s}\n", line.c_str());
    }
    std::fflush(stdout);
  }

  bool failed() const { return failed_; }

 private:
  int round_;
  bool failed_ = false;
};

}  // namespace

int RunRounds(const std::vector<std::string>& names, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    Lines lines(round);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[round % 2 == 0 ? i : names.size() - 1 - i];
      if (benchmark::RunSpecifiedBenchmarks(&lines, absl::StrCat("^", name, "$")) == 0) {
        std::fprintf(stderr, "no benchmark is called %s\n", name.c_str());
        return 1;
      }
    }
    if (lines.failed()) return 1;
  }
  return 0;
}

}  // namespace halfpage
