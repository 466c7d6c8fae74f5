// Costs of packet buffers by mempool handler, all handlers in one process. By itself it is an ordinary Google Benchmark
// program with EAL's options in HALFPAGE_BENCH_EAL; tools/bench mempool compares, with --rounds=N NAME... (rounds.h).
//
// Times are per buffer (items_per_second's inverse); a "touch" of B bytes reads and writes the first B bytes of the
// room.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "app/eal.h"
#include "tests/bench/buffer_sources.h"
#include "tests/bench/ping_pong.h"
#include "tests/bench/rounds.h"

namespace halfpage {
namespace {

constexpr Variant kVariants[] = {
    {"page_frag", "page_frag"},
    {"page_frag_64k", "page_frag", 65536},
    {"page_frag_128k", "page_frag", 131072},
    {"ring_mp_mc", "ring_mp_mc"},
    {.name = "ring_mp_mc_shuffled", .ops = "ring_mp_mc", .shuffled = true},
    {.name = "rotation", .ops = "ring_mp_mc", .rotation = true},
    {"stack", "stack"},
    {.name = "exact", .ops = "page_frag", .page_size = 32768, .exact = true},
    {.name = "exact_64k", .ops = "page_frag", .page_size = 65536, .exact = true},
    {.name = "exact_64k_rotation", .ops = "page_frag", .page_size = 65536, .pages_in_rotation = 256, .exact = true},
    {.name = "external", .ops = "page_frag", .page_size = 32768, .exact = true, .external = true},
    {.name = "external_64k", .ops = "page_frag", .page_size = 65536, .exact = true, .external = true},
};

void Touch(rte_mbuf* mbuf, unsigned bytes) {
  auto* words = rte_pktmbuf_mtod(mbuf, uint64_t*);
  for (unsigned w = 0; w < bytes / 8; ++w) words[w] += w;
}

// Allocates and frees bursts; `window` bursts are out at a time, freed in the order in which they were taken.
void SameLcore(benchmark::State& state, const Variant& variant, uint32_t cache, unsigned touch, unsigned window) {
  Source source = SourceOf(variant, cache);
  std::vector<rte_mbuf*> out(static_cast<size_t>(window) * kBurst);
  for (unsigned w = 0; w < window; ++w) {
    if (!source.Take(&out[w * kBurst])) state.SkipWithError("pool is empty");
  }
  unsigned at = 0;
  for (auto _ : state) {
    rte_mbuf** burst = &out[at * kBurst];
    rte_pktmbuf_free_bulk(burst, kBurst);
    if (!source.Take(burst)) {
      state.SkipWithError("pool is empty");
      break;
    }
    for (unsigned i = 0; touch != 0 && i < kBurst; ++i) Touch(burst[i], touch);
    at = at + 1 == window ? 0 : at + 1;
  }
  rte_pktmbuf_free_bulk(out.data(), static_cast<unsigned>(out.size()));
  state.counters["page_size"] = source.page_size();
  state.counters["tsc_hz"] = static_cast<double>(rte_get_tsc_hz());
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kBurst);
}

struct Consumer {
  const Source* source;
  rte_ring* ring;
  unsigned touch;
  std::atomic<bool> stop{false};
};

int Consume(void* argument) {
  auto* consumer = static_cast<Consumer*>(argument);
  rte_mbuf* burst[kBurst];
  for (;;) {
    const unsigned n = rte_ring_sc_dequeue_burst(consumer->ring, reinterpret_cast<void**>(burst), kBurst, nullptr);
    for (unsigned i = 0; consumer->touch != 0 && i < n; ++i) Touch(burst[i], consumer->touch);
    if (n != 0) consumer->source->GiveBack(burst, n);
    if (n == 0 && consumer->stop.load(std::memory_order_acquire)) return 0;
  }
}

// Allocates here, hands over by a ring, frees on the other lcore.
void OtherLcore(benchmark::State& state, const Variant& variant, uint32_t cache, unsigned touch) {
  Source source = SourceOf(variant, cache);
  Consumer consumer;
  consumer.source = &source;
  consumer.ring = rte_ring_create("hand_over", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  consumer.touch = touch;
  const unsigned worker = rte_get_next_lcore(-1, 1, 0);
  state.counters["trip_before"] = MeasureRoundTrip(worker);
  if (consumer.ring == nullptr || rte_eal_remote_launch(Consume, &consumer, worker) != 0) {
    state.SkipWithError("no second lcore");
    return;
  }
  for (auto _ : state) {
    rte_mbuf* burst[kBurst];
    while (!source.Take(burst)) rte_pause();
    for (unsigned i = 0; touch != 0 && i < kBurst; ++i) Touch(burst[i], touch);
    unsigned sent = 0;
    while (sent < kBurst) {
      sent += rte_ring_sp_enqueue_burst(consumer.ring, reinterpret_cast<void**>(burst + sent), kBurst - sent, nullptr);
    }
  }
  consumer.stop.store(true, std::memory_order_release);
  rte_eal_wait_lcore(worker);
  rte_ring_free(consumer.ring);
  state.counters["trip_after"] = MeasureRoundTrip(worker);
  state.counters["rotation"] = variant.pages_in_rotation;
  state.counters["page_size"] = source.page_size();
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kBurst);
}

void Register() {
  for (const Variant& variant : kVariants) {
    for (unsigned touch : {0u, 64u, 1500u}) {
      for (uint32_t cache : {0u, 256u}) {
        for (unsigned window : {1u, 64u}) {
          if (variant.shuffled || variant.rotation || (variant.exact && !variant.external && cache != 0)) continue;
          benchmark::RegisterBenchmark(
              absl::StrCat("same_lcore/", variant.name, "/cache:", cache, "/touch:", touch, "/window:", window).c_str(),
              [=, &variant](benchmark::State& state) { SameLcore(state, variant, cache, touch, window); });
        }
      }
      if (rte_lcore_count() < 2) continue;
      benchmark::RegisterBenchmark(absl::StrCat("other_lcore/", variant.name, "/cache:0/touch:", touch).c_str(),
                                   [=, &variant](benchmark::State& state) { OtherLcore(state, variant, 0, touch); })
          ->UseRealTime();
    }
  }
}

int Run(int argc, char** argv) {
  const char* extra = std::getenv("HALFPAGE_BENCH_EAL");
  EalConfig config;
  config.preset = EalConfig::Preset::kNone;
  config.args = {"--no-pci", "--no-telemetry"};
  for (absl::string_view part : absl::StrSplit(extra == nullptr ? "--in-memory" : extra, ' ', absl::SkipEmpty())) {
    config.args.emplace_back(part);
  }
  const auto eal = Eal::Start(EalArguments(config, 1, AllowedCpus()));
  if (!eal.ok()) {
    std::fprintf(stderr, "%s\n", eal.status().ToString().c_str());
    return 1;
  }
  Register();
  // Rounds are asked for by "--rounds=N NAME..." behind Google Benchmark's own options.
  benchmark::Initialize(&argc, argv);
  int code = 0;
  int rounds = 0;
  absl::string_view first = argc > 1 ? argv[1] : "";
  if (absl::ConsumePrefix(&first, "--rounds=")) {
    code = absl::SimpleAtoi(first, &rounds) && rounds > 0 ? RunRounds({argv + 2, argv + argc}, rounds) : 2;
  } else if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    code = 2;
  } else {
    benchmark::RunSpecifiedBenchmarks();
  }
  EndSources();
  return code;
}

}  // namespace
}  // namespace halfpage

int main(int argc, char** argv) {
  return halfpage::Run(argc, argv);
}
