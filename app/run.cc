#include "app/run.h"

#include <time.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "app/eal.h"
#include "app/ledger.h"
#include "app/metrics.h"
#include "app/output.h"
#include "app/plan.h"
#include "app/process.h"
#include "app/prompt/prompt.h"
#include "app/report.h"
#include "app/telemetry.h"
#include "app/top_screen.h"
#include "app/topology.h"
#include "app/watch.h"
#include "xdp_emul/device_string.h"

namespace halfpage {
namespace {

void SleepShortly() {
  timespec pause = {0, 2'000'000};
  nanosleep(&pause, nullptr);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "halfpage: %s\n", std::string(status.message()).c_str());
  return kExitFailed;
}

// Waits until the run is over. Gives false when standard output has failed other than by its reader's going away.
bool Wait(const Topology& topology, const MeasureConfig& measure, Watch& watch) {
  const absl::Cleanup leave = [&watch] { watch.LeaveScreen(); };
  if (watch.ClearScreen() != Written::kYes) return false;
  while (!StopRequested() && !topology.SourcesDone()) {
    if (measure.duration > 0 && watch.seconds() >= measure.duration) break;
    watch.Look();
    const Written written = watch.PrintStatistics(measure.stats_period);
    if (written != Written::kYes) return written == Written::kReaderGone;
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

int RunJob(const Config& config, const PromptOptions& prompt) {
  if (config.report.top && !CanDraw()) {
    std::fputs(
        "halfpage: --top needs a terminal, and standard output is none: use --stats-period TIME or --json FILE\n",
        stderr);
    return kExitUsage;
  }
  CatchSignals();
  auto eal = Eal::Start(EalArguments(config.eal, config.lcores.workers.size(), AllowedCpus(), PciAddresses(config)));
  if (!eal.ok()) return Fail(eal.status());
  auto topology = Topology::Create(config);
  if (!topology.ok()) return Fail(topology.status());
  auto telemetry = Telemetry::Start(**topology);
  if (!telemetry.ok()) return Fail(telemetry.status());
  absl::optional<Metrics> metrics;
  if (!prompt.metrics.empty()) {
    auto served = Metrics::Start(prompt.metrics, **topology);
    if (!served.ok()) return Fail(served.status());
    metrics.emplace(*std::move(served));
    std::fprintf(stderr, "halfpage: metrics at port %d, /metrics\n", metrics->port());
  }
  PromptEnd asked;
  if (prompt.interactive || !prompt.cmdline_file.empty()) {
    Watch watch(**topology, config);
    asked = RunPrompt(**topology, prompt, [&watch] { watch.Look(); });
  }
  bool good = true;
  uint64_t trimmed = 0;
  if (!asked.ended) {
    absl::Status started = (*topology)->forwarding() ? absl::OkStatus() : (*topology)->Start();
    if (!started.ok()) return Fail(started);
    Watch watch(**topology, config);
    good = Wait(**topology, config.measure, watch);
    trimmed = watch.trimmed();
  }
  // Who asks from now on is told nothing: what they would read goes.
  metrics.reset();
  { const Telemetry ended = *std::move(telemetry); }
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
  if (asked.code != kExitGood) return asked.code;
  return good ? kExitGood : kExitFailed;
}

}  // namespace halfpage
