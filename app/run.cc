#include "app/run.h"

#include <errno.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "app/eal.h"
#include "app/ledger.h"
#include "app/process.h"
#include "app/report.h"
#include "app/topology.h"

namespace halfpage {
namespace {

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void SleepShortly() {
  timespec pause = {0, 2'000'000};
  nanosleep(&pause, nullptr);
}

enum class Written { kYes, kReaderGone, kFailed };

// Writes to standard output at once. A reader who has gone away (`| head -1`) wants no more; anything else that goes
// wrong is told.
Written WriteOut(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return Written::kYes;
  if (errno == EPIPE) return Written::kReaderGone;
  std::fprintf(stderr, "halfpage: standard output: %s\n", std::strerror(errno));
  return Written::kFailed;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "halfpage: %s\n", std::string(status.message()).c_str());
  return kExitFailed;
}

// Waits until the run is over. Gives false when standard output has failed other than by its reader's going away.
bool Wait(const Topology& topology, const MeasureConfig& measure) {
  const double start = Now();
  double next_block = measure.stats_period > 0 ? start + measure.stats_period : 0;
  Snapshot before = topology.Read();
  while (!StopRequested() && !topology.SourcesDone()) {
    const double now = Now();
    if (measure.duration > 0 && now - start >= measure.duration) break;
    if (next_block != 0 && now >= next_block) {
      Snapshot snapshot = topology.Read();
      const Written written = WriteOut(StatisticsBlock(snapshot, before));
      if (written != Written::kYes) return written == Written::kReaderGone;
      before = std::move(snapshot);
      next_block += measure.stats_period;
    }
    SleepShortly();
  }
  return true;
}

bool WriteJson(const std::string& path, const std::string& json) {
  if (path == "-") return WriteOut(json) != Written::kFailed;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << json;
  file.close();
  if (file) return true;
  std::fprintf(stderr, "halfpage: %s: the report cannot be written: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

bool Report(const RunResult& result, const ReportConfig& report) {
  bool good = true;
  if (!report.json.empty()) good = WriteJson(report.json, JsonReport(result));
  if (report.json != "-") good = WriteOut(TextReport(result)) != Written::kFailed && good;
  return good;
}

}  // namespace

int RunJob(const Config& config) {
  CatchSignals();
  auto eal = Eal::Start(EalArguments(config.eal, config.lcores.workers.size(), AllowedCpus()));
  if (!eal.ok()) return Fail(eal.status());
  auto topology = Topology::Create(config);
  if (!topology.ok()) return Fail(topology.status());
  absl::Status started = (*topology)->Start();
  if (!started.ok()) return Fail(started);
  bool good = Wait(**topology, config.measure);
  const absl::Status stopped = (*topology)->Stop(config.measure.drain_timeout);
  RunResult result;
  result.config_file = config.file;
  result.snapshot = (*topology)->Read();
  result.imbalances = CheckLedger(result.snapshot);
  result.leaks = CheckLeaks(result.snapshot);
  good = Report(result, config.report) && good;
  for (const std::string& leak : result.leaks) std::fprintf(stderr, "halfpage: %s\n", leak.c_str());
  if (!stopped.ok()) return Fail(stopped);
  if (!result.imbalances.empty() || !result.leaks.empty()) return kExitImbalance;
  return good ? kExitGood : kExitFailed;
}

}  // namespace halfpage
