#include "app/run.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "app/eal.h"
#include "app/fault_log.h"
#include "app/leak_watch.h"
#include "app/ledger.h"
#include "app/output.h"
#include "app/plan.h"
#include "app/process.h"
#include "app/report.h"
#include "app/topology.h"
#include "mempool/page_frag.h"
#include "xdp_emul/device_string.h"

namespace halfpage {
namespace {

constexpr double kLookForFaults = 0.1;  // seconds between looks at what programs aborted

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void SleepShortly() {
  timespec pause = {0, 2'000'000};
  nanosleep(&pause, nullptr);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "halfpage: %s\n", std::string(status.message()).c_str());
  return kExitFailed;
}

void WatchForLeaks(const Topology& topology, double seconds, std::vector<LeakWatch>& watches) {
  const std::vector<uint64_t> in_use = topology.BuffersInUse();
  // What stands in rings is on its way: rings that fill up at the start, or behind a slow worker, are no leak.
  const uint64_t waiting = topology.FramesWaiting();
  for (size_t p = 0; p < watches.size(); ++p) {
    if (const auto warning = watches[p].Sample(seconds, in_use[p] - std::min(in_use[p], waiting))) {
      std::fprintf(stderr, "halfpage: warning: %s\n", warning->c_str());
    }
  }
}

void TellOfFaults(const Topology& topology, double seconds, FaultLog& log) {
  for (const std::string& line : log.Sample(topology.Read(), seconds)) {
    std::fprintf(stderr, "halfpage: warning: %s\n", line.c_str());
  }
}

// Waits until the run is over; adds what it gave back to EAL meanwhile to `trimmed`. Gives false when standard output
// has failed other than by its reader's going away.
bool Wait(const Topology& topology, const Config& config, uint64_t* trimmed) {
  const MeasureConfig& measure = config.measure;
  const double start = Now();
  double next_block = measure.stats_period > 0 ? start + measure.stats_period : 0;
  double next_trim = start + config.arena.trim;
  Snapshot before = topology.Read();
  std::vector<LeakWatch> watches;
  for (const PoolSnapshot& pool : before.pools) watches.emplace_back(pool.name, pool.size);
  FaultLog fault_log;
  double next_look = start;
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
    WatchForLeaks(topology, now - start, watches);
    if (config.arena.trim > 0 && now >= next_trim) {
      for (const int socket : ArenaSockets(config)) *trimmed += ShrinkPageFragArena(socket);
      next_trim = now + config.arena.trim;
    }
    if (now >= next_look) {
      TellOfFaults(topology, now - start, fault_log);
      next_look = now + kLookForFaults;
    }
    SleepShortly();
  }
  return true;
}

std::vector<std::string> PciAddresses(const Config& config) {
  std::vector<std::string> addresses;
  for (const PortConfig& port : config.ports) {
    if (ParseDeviceString(port.device).pci) addresses.push_back(port.device);
  }
  return addresses;
}

bool Report(const RunResult& result, const ReportConfig& report) {
  bool good = true;
  if (!report.json.empty()) good = WriteFile(report.json, JsonReport(result), "the report");
  if (report.json != "-") good = WriteOut(TextReport(result)) != Written::kFailed && good;
  return good;
}

}  // namespace

int RunJob(const Config& config) {
  CatchSignals();
  auto eal = Eal::Start(EalArguments(config.eal, config.lcores.workers.size(), AllowedCpus(), PciAddresses(config)));
  if (!eal.ok()) return Fail(eal.status());
  auto topology = Topology::Create(config);
  if (!topology.ok()) return Fail(topology.status());
  absl::Status started = (*topology)->Start();
  if (!started.ok()) return Fail(started);
  uint64_t trimmed = 0;
  bool good = Wait(**topology, config, &trimmed);
  const absl::Status stopped = (*topology)->Stop(config.measure.drain_timeout);
  RunResult result;
  result.config_file = config.file;
  result.snapshot = (*topology)->Read();
  result.planned_page_bytes = PlannedChunkBytes(config);
  result.trimmed_bytes = trimmed;
  result.imbalances = CheckLedger(result.snapshot);
  result.leaks = CheckLeaks(result.snapshot);
  good = Report(result, config.report) && good;
  for (const std::string& leak : result.leaks) std::fprintf(stderr, "halfpage: %s\n", leak.c_str());
  for (const std::string& lost : Topology::End(*std::move(topology))) {
    std::fprintf(stderr, "halfpage: %s\n", lost.c_str());
  }
  if (!stopped.ok()) return Fail(stopped);
  if (!result.imbalances.empty() || !result.leaks.empty()) return kExitImbalance;
  return good ? kExitGood : kExitFailed;
}

}  // namespace halfpage
