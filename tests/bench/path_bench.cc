// halfpage's packet path against a bare loop over the same rings, slice by slice in one process. tools/bench path runs
// it; by itself: path_bench [--rounds N] [--slice-ms N] [--only TEXT] with EAL's options in HALFPAGE_BENCH_EAL.
//
// halfpage's side is the program itself: a configuration, a Topology, its workers, and a ledger that must balance after
// every slice. Each slice is a line of JSON on standard output.
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "app/config.h"
#include "app/eal.h"
#include "app/ledger.h"
#include "app/topology.h"
#include "tests/bench/bare_loop.h"
#include "tests/bench/path_rows.h"

namespace halfpage::bench {
namespace {

struct Settings {
  int rounds = 3;
  int slice_ms = 40;
  std::string only;
};

struct Slice {
  double pps = 0;
  double frames_per_burst = kBurst;
};

struct Variant {
  bool halfpage;
  const char* ops;
};
constexpr Variant kVariants[] = {
    {true, "page_frag"}, {false, "page_frag"}, {true, "ring_mp_mc"}, {false, "ring_mp_mc"}};

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "path_bench: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// Sleeps, and gives the seconds that really passed.
double Pass(int milliseconds) {
  const uint64_t begin = rte_rdtsc();
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
  return static_cast<double>(rte_rdtsc() - begin) / static_cast<double>(rte_get_tsc_hz());
}

Config Load(const std::string& text) {
  char path[] = "/tmp/halfpage_path_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    Fail(absl::InternalError("cannot write a configuration to /tmp"));
  }
  close(file);
  LoadedConfig loaded = LoadConfig(path, {});
  unlink(path);
  for (const ConfigFault& fault : loaded.faults) std::fprintf(stderr, "path_bench: %s\n", fault.ToString().c_str());
  if (!loaded.faults.empty()) std::exit(1);
  return loaded.config;
}

// What the reader of a user's rings has taken: frames that they refused are not its rate.
uint64_t ReadByUser(const Snapshot& snapshot) {
  uint64_t read = 0;
  for (const SinkSnapshot& sink : snapshot.sinks) read += sink.read;
  return read;
}

Slice Halfpage(const Row& row, const char* ops, const std::string& mix_file, int milliseconds) {
  auto topology = Topology::Create(Load(ConfigText(row, ops, mix_file)));
  if (!topology.ok()) Fail(topology.status());
  if (absl::Status started = (*topology)->Start(); !started.ok()) Fail(started);
  Pass(milliseconds / 4);
  const Snapshot before = (*topology)->Read();
  const double seconds = Pass(milliseconds);
  const Snapshot after = (*topology)->Read();
  if (absl::Status stopped = (*topology)->Stop(2); !stopped.ok()) Fail(stopped);
  for (const std::string& fault : CheckLedger((*topology)->Read())) Fail(absl::InternalError(fault));
  const DeviceSnapshot& from = before.devices[0];
  const DeviceSnapshot& to = after.devices[0];
  const auto frames =
      static_cast<double>(row.way == Way::kUser ? ReadByUser(after) - ReadByUser(before) : to.received - from.received);
  const uint64_t bursts = to.polls - from.polls - (to.empty_polls - from.empty_polls);
  return {frames / seconds, bursts == 0 ? 0 : frames / static_cast<double>(bursts)};
}

Slice Bare(const Row& row, const char* ops, int milliseconds) {
  auto loop = BareLoop::Create(row, ops);
  if (!loop.ok()) Fail(loop.status());
  if (absl::Status started = (*loop)->Start(); !started.ok()) Fail(started);
  Pass(milliseconds / 4);
  const uint64_t before = (*loop)->frames();
  const double seconds = Pass(milliseconds);
  const uint64_t after = (*loop)->frames();
  (*loop)->Stop();
  return {static_cast<double>(after - before) / seconds};
}

void RunRow(const Row& row, int round, const std::string& mix_file, const Settings& settings) {
  const int variants = static_cast<int>(std::size(kVariants));
  for (int i = 0; i < variants; ++i) {
    // Neighbours stay neighbours, whoever goes first.
    const Variant& variant = kVariants[round % 2 == 0 ? i : variants - 1 - i];
    const Slice slice = variant.halfpage ? Halfpage(row, variant.ops, mix_file, settings.slice_ms)
                                         : Bare(row, variant.ops, settings.slice_ms);
    std::printf(
        "{\"row\":\"%s\",\"size\":%u,\"lcores\":%u,\"who\":\"%s\",\"ops\":\"%s\",\"round\":%d,\"mpps\":%.4f,"
        "\"cycles\":%.2f,\"burst\":%.1f}\n",
        WayName(row.way), row.size, row.lcores, variant.halfpage ? "halfpage" : "bare", variant.ops, round,
        slice.pps / 1e6, slice.pps == 0 ? 0 : static_cast<double>(rte_get_tsc_hz()) / slice.pps,
        slice.frames_per_burst);
    std::fflush(stdout);
  }
}

// A cache line that two lcores hand to each other: what any figure of two lcores depends on.
struct PingPong {
  alignas(64) std::atomic<uint32_t> turn{0};
  static constexpr uint32_t kHandOvers = 20000;
};

int Pong(void* argument) {
  auto& line = static_cast<PingPong*>(argument)->turn;
  for (uint32_t i = 1; i < PingPong::kHandOvers; i += 2) {
    while (line.load(std::memory_order_acquire) != i) {
    }
    line.store(i + 1, std::memory_order_release);
  }
  return 0;
}

int Ping(void* argument) {
  auto& line = static_cast<PingPong*>(argument)->turn;
  for (uint32_t i = 0; i < PingPong::kHandOvers; i += 2) {
    while (line.load(std::memory_order_acquire) != i) {
    }
    line.store(i + 1, std::memory_order_release);
  }
  return 0;
}

void MeasurePingPong(int round) {
  std::vector<unsigned> lcores;
  unsigned lcore = 0;
  RTE_LCORE_FOREACH_WORKER(lcore) {
    lcores.push_back(lcore);
  }
  if (lcores.size() < 2) return;
  PingPong line;
  const uint64_t begin = rte_rdtsc();
  rte_eal_remote_launch(Ping, &line, lcores[0]);
  rte_eal_remote_launch(Pong, &line, lcores[1]);
  rte_eal_mp_wait_lcore();
  const double cycles = static_cast<double>(rte_rdtsc() - begin);
  std::printf("{\"row\":\"ping_pong\",\"round\":%d,\"ns_one_way\":%.1f}\n", round,
              cycles / static_cast<double>(rte_get_tsc_hz()) * 1e9 / PingPong::kHandOvers);
}

std::string RowName(const Row& row) {
  return absl::StrCat(WayName(row.way), " ", row.size, " B, ", row.lcores, row.lcores == 1 ? " lcore" : " lcores");
}

bool ParseSettings(int argc, char** argv, Settings* settings) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) {
      settings->rounds = std::atoi(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--slice-ms") == 0) {
      settings->slice_ms = std::atoi(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--only") == 0) {
      settings->only = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && settings->rounds > 0 && settings->slice_ms > 0;
}

int Run(int argc, char** argv) {
  Settings settings;
  if (!ParseSettings(argc, argv, &settings)) {
    std::fputs("usage: path_bench [--rounds N] [--slice-ms N] [--only TEXT]\n", stderr);
    return 2;
  }
  const char* extra = std::getenv("HALFPAGE_BENCH_EAL");
  EalConfig config;
  config.preset = EalConfig::Preset::kNone;
  config.args = {"--no-pci", "--no-telemetry"};
  for (absl::string_view part : absl::StrSplit(extra == nullptr ? "--in-memory" : extra, ' ', absl::SkipEmpty())) {
    config.args.emplace_back(part);
  }
  const auto eal = Eal::Start(EalArguments(config, 2, AllowedCpus()));
  if (!eal.ok()) Fail(eal.status());
  const std::string mix = absl::StrCat("/tmp/halfpage_mix_", getpid(), "_");
  for (int round = 0; round < settings.rounds; ++round) {
    MeasurePingPong(round);
    for (const Row& row : AllRows()) {
      if (RowName(row).find(settings.only) == std::string::npos) continue;
      const std::string mix_file = absl::StrCat(mix, row.size, ".pcap");
      if (row.way == Way::kMix && !WriteCapture(mix_file, MakeFrames(row.size, MixFrames(row.size), true))) {
        Fail(absl::InternalError("cannot write a capture to /tmp"));
      }
      RunRow(row, round, mix_file, settings);
      if (row.way == Way::kMix) unlink(mix_file.c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace halfpage::bench

int main(int argc, char** argv) {
  return halfpage::bench::Run(argc, argv);
}
