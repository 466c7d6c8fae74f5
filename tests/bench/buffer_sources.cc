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
    config.rotation = variant.pages_in_rotation;
    entry = OrEnd(ExactFrag::Create(config));
  }
  return entry.get();
}

// What the mbuf library calls when the last mbuf lets go of a room.
void FreeRoom(void* room, void* pool) {
  rte_mempool_ops_enqueue_bulk(static_cast<rte_mempool*>(pool), &room, 1);
}

rte_mempool* HeadersOf(const Variant& variant, uint32_t cache) {
  std::unique_ptr<PktmbufPool>& entry = Pools()[absl::StrCat(variant.name, "_headers_", cache)];
  if (entry == nullptr) {
    PktmbufPoolConfig config;
    config.name = absl::StrCat("h", Pools().size());
    config.size = kBenchPoolSize;
    config.cache = cache;
    config.data_room = 64;  // the least that is carved
    entry = OrEnd(PktmbufPool::Create(config));
  }
  return entry->get();
}

// All buffers of a fresh pool that nobody else uses, in the order of their addresses.
std::vector<rte_mbuf*>& RotationOf(const Variant& variant) {
  static auto* const rotation = new std::vector<rte_mbuf*>();
  if (rotation->empty()) {
    rotation->resize(kBenchPoolSize);
    if (rte_pktmbuf_alloc_bulk(PoolOf(variant, 0), rotation->data(), kBenchPoolSize) != 0) {
      std::fprintf(stderr, "%s: no buffers\n", variant.name);
      std::exit(1);
    }
  }
  return *rotation;
}

}  // namespace

bool Source::TakeExternal(rte_mbuf** burst) {
  auto* rooms = static_cast<PageFragPool*>(exact->get()->pool_data);
  Lane* lane = rooms->OwnLane();
  if (lane == nullptr || rte_pktmbuf_alloc_bulk(headers, burst, kBurst) != 0) return false;
  LaneCall call(*lane);
  rooms->ClaimUpTo(*lane, kBurst);
  for (unsigned i = 0; i < kBurst; ++i) {
    const uint32_t wanted = RTE_PKTMBUF_HEADROOM + lengths[i];
    const auto bytes =
        static_cast<uint32_t>(RTE_ALIGN_CEIL(wanted + sizeof(rte_mbuf_ext_shared_info), size_t{RTE_CACHE_LINE_SIZE}));
    char* room = rooms->Carve(*lane, bytes);
    if (room == nullptr) return false;
    auto* info = reinterpret_cast<rte_mbuf_ext_shared_info*>(room + bytes - sizeof(rte_mbuf_ext_shared_info));
    info->free_cb = FreeRoom;
    info->fcb_opaque = exact->get();
    rte_mbuf_ext_refcnt_set(info, 1);
    rte_pktmbuf_attach_extbuf(burst[i], room, reinterpret_cast<uintptr_t>(room) + lane->exact.iova_offset,
                              static_cast<uint16_t>(bytes - sizeof(rte_mbuf_ext_shared_info)), info);
    burst[i]->data_off = RTE_PKTMBUF_HEADROOM;
    burst[i]->data_len = static_cast<uint16_t>(lengths[i]);
    burst[i]->pkt_len = lengths[i];
  }
  return true;
}

uint32_t Source::page_size() const {
  if (rotation != nullptr) return 0;
  const auto stats = ReadPageFragStats(exact == nullptr ? pool : exact->get());
  return stats.has_value() ? stats->page_size : 0;
}

Source SourceOf(const Variant& variant, uint32_t cache) {
  Source source;
  if (variant.exact) {
    source.exact = ExactOf(variant);
    std::fill_n(source.lengths, kBurst, kExactLength);
    if (variant.external) source.headers = HeadersOf(variant, cache);
  } else if (variant.rotation) {
    source.rotation = &RotationOf(variant);
  } else {
    source.pool = PoolOf(variant, cache);
  }
  return source;
}

void EndSources() {
  const auto rotation = Pools().find("rotation_0");
  if (rotation != Pools().end()) {
    std::vector<rte_mbuf*>& buffers = RotationOf({"rotation", "ring_mp_mc"});
    rte_pktmbuf_free_bulk(buffers.data(), static_cast<unsigned>(buffers.size()));
    buffers.clear();
  }
  Pools().clear();
  ExactPools().clear();
}

}  // namespace halfpage
