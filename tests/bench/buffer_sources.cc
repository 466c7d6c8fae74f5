#include "tests/bench/buffer_sources.h"

#include <rte_mempool.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "mempool/page_frag.h"
#include "mempool/pktmbuf_pool.h"

namespace halfpage {
namespace {

std::map<std::string, std::unique_ptr<PktmbufPool>>& Pools() {
  static auto* const pools = new std::map<std::string, std::unique_ptr<PktmbufPool>>();
  return *pools;
}

std::map<std::string, std::unique_ptr<ExactFrag>>& ExactPools() {
  static auto* const pools = new std::map<std::string, std::unique_ptr<ExactFrag>>();
  return *pools;
}

template <typename Pool>
std::unique_ptr<Pool> OrEnd(absl::StatusOr<Pool> pool) {
  if (!pool.ok()) {
    std::fprintf(stderr, "%s\n", pool.status().ToString().c_str());
    std::exit(1);
  }
  return std::make_unique<Pool>(*std::move(pool));
}

void Shuffle(rte_mempool* pool) {
  std::vector<void*> objects;
  void* object = nullptr;
  while (rte_mempool_ops_dequeue_bulk(pool, &object, 1) == 0) objects.push_back(object);
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  for (void*& each : objects) rte_mempool_ops_enqueue_bulk(pool, &each, 1);
}

rte_mempool* PoolOf(const Variant& variant, uint32_t cache) {
  std::unique_ptr<PktmbufPool>& entry = Pools()[absl::StrCat(variant.name, "_", cache)];
  if (entry == nullptr) {
    PktmbufPoolConfig config;
    config.name = absl::StrCat("b", Pools().size());
    config.ops = variant.ops;
    config.size = kBenchPoolSize;
    config.cache = cache;
    config.page_frag.page_size = variant.page_size;
    entry = OrEnd(PktmbufPool::Create(config));
    if (variant.shuffled) Shuffle(entry->get());
  }
  return entry->get();
}

ExactFrag* ExactOf(const Variant& variant) {
  std::unique_ptr<ExactFrag>& entry = ExactPools()[variant.name];
  if (entry == nullptr) {
    ExactFragConfig config;
    config.name = variant.name;
    config.size = kBenchPoolSize;
    config.page_size = variant.page_size;
    entry = OrEnd(ExactFrag::Create(config));
  }
  return entry.get();
}

}  // namespace

uint32_t Source::page_size() const {
  const auto stats = ReadPageFragStats(exact == nullptr ? pool : exact->get());
  return stats.has_value() ? stats->page_size : 0;
}

Source SourceOf(const Variant& variant, uint32_t cache) {
  Source source;
  if (variant.exact) {
    source.exact = ExactOf(variant);
    std::fill_n(source.lengths, kBurst, kExactLength);
  } else {
    source.pool = PoolOf(variant, cache);
  }
  return source;
}

void EndSources() {
  Pools().clear();
  ExactPools().clear();
}

}  // namespace halfpage
