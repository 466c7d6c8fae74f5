#include "app/run.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "app/eal.h"
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

// Waits until the run is over. Gives false when standard output has failed other than by its reader's going away.
bool Wait(const Topology& topology, const MeasureConfig& measure) {
  const double start = Now();
  double next_block = measure.stats_period > 0 ? start + measure.stats_period : 0;
  Snapshot before = topology.Read();
  std::vector<LeakWatch> watches;
  for (const PoolSnapshot& pool : before.pools) watches.emplace_back(pool.name, pool.size);
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
    SleepShortly();
  }
  return true;
}

// The most that the arenas of the configuration's sockets ever had.
uint64_t PeakPageBytes(const Config& config) {
  std::set<int> sockets;
  for (const PktmbufPoolConfig& pool : config.pools) {
    if (pool.ops == "page_frag") sockets.insert(pool.socket);
  }
  uint64_t bytes = 0;
  for (const int socket : sockets) bytes += PageFragPeakBytes(socket);
  return bytes;
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
  bool good = Wait(**topology, config.measure);
  const absl::Status stopped = (*topology)->Stop(config.measure.drain_timeout);
  RunResult result;
  result.config_file = config.file;
  result.snapshot = (*topology)->Read();
  result.planned_page_bytes = PlannedChunkBytes(config);
  result.peak_page_bytes = PeakPageBytes(config);
  result.imbalances = CheckLedger(result.snapshot);
  result.leaks = CheckLeaks(result.snapshot);
  good = Report(result, config.report) && good;
  for (const std::string& leak : result.leaks) std::fprintf(stderr, "halfpage: %s\n", leak.c_str());
  if (!stopped.ok()) return Fail(stopped);
  if (!result.imbalances.empty() || !result.leaks.empty()) return kExitImbalance;
  return good ? kExitGood : kExitFailed;
}

}  // namespace halfpage
