#include "mempool/pktmbuf_pool.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

bool OpsRegistered(const std::string& name) {
  for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; ++i) {
    if (name == rte_mempool_ops_table.ops[i].name) return true;
  }
  return false;
}

// EAL says only that there is no memory.
absl::Status CheckSocket(const PktmbufPoolConfig& config) {
  if (config.socket < 0) return absl::OkStatus();
  std::string there;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    const int socket = rte_socket_id_by_idx(i);
    if (socket == config.socket && (socket == 0 || rte_eal_has_hugepages() != 0)) return absl::OkStatus();
    absl::StrAppend(&there, there.empty() ? "" : ", ", socket);
  }
  if (rte_eal_has_hugepages() == 0) {
    return absl::NotFoundError(absl::StrFormat(
        "pool %s: socket %d: without hugepages all of EAL's memory counts as socket 0; take socket 0 or any (auto), or "
        "hugepages",
        config.name, config.socket));
  }
  return absl::NotFoundError(
      absl::StrFormat("pool %s: there is no socket %d on this machine, only %s; take one of "
                      "these, or any (auto)",
                      config.name, config.socket, there));
}

absl::Status PopulateError(const PktmbufPoolConfig& config, int error) {
  const uint64_t object = 64 + sizeof(rte_mbuf) + config.data_room;
  if (error == ENOMEM) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "pool %s: EAL has no memory for %u buffers of %u bytes (%u MiB with headers); give EAL more "
        "(-m), lower the pool's size, or take ops page_frag, which needs memory only for buffers in use",
        config.name, config.size, config.data_room, object * config.size >> 20));
  }
  return absl::ErrnoToStatus(error, absl::StrFormat("pool %s: cannot be populated by %s", config.name, config.ops));
}

}  // namespace

absl::StatusOr<PktmbufPool> PktmbufPool::Create(const PktmbufPoolConfig& config) {
  if (absl::Status status = CheckSocket(config); !status.ok()) return status;
  if (config.ops == "page_frag") {
    const int index = page_frag_register();
    if (index < 0) return absl::ErrnoToStatus(-index, "mempool handler page_frag: no free slot in DPDK's table of 16");
  }
  if (!OpsRegistered(config.ops)) {
    return absl::NotFoundError(absl::StrFormat(
        "pool %s: no mempool handler named %s is loaded; load its library with -d", config.name, config.ops));
  }
  // rte_mempool_create_empty() gives EINVAL for either without a word.
  if (config.cache > RTE_MEMPOOL_CACHE_MAX_SIZE || config.cache * 3 / 2 > config.size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("pool %s: cache %u is past %u or past two thirds of the size %u: a cache holds up to 1.5 times "
                        "its size, and the pool must fill it",
                        config.name, config.cache, RTE_MEMPOOL_CACHE_MAX_SIZE, config.size));
  }
  if (config.page_frag.exact && config.cache != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("pool %s: cache %u with buffers of any size (exact): a cached buffer would come back with "
                        "another size's room; take cache 0",
                        config.name, config.cache));
  }
  rte_mempool* pool =
      rte_mempool_create_empty(config.name.c_str(), config.size, sizeof(rte_mbuf) + config.data_room, config.cache,
                               sizeof(rte_pktmbuf_pool_private), config.socket < 0 ? SOCKET_ID_ANY : config.socket, 0);
  if (pool == nullptr) {
    return absl::ErrnoToStatus(rte_errno, absl::StrFormat("pool %s: rte_mempool_create_empty", config.name));
  }
  PageFragSettings settings = config.page_frag;
  int result = rte_mempool_set_ops_byname(pool, config.ops.c_str(), config.ops == "page_frag" ? &settings : nullptr);
  if (result == 0) {
    rte_pktmbuf_pool_private area;
    std::memset(&area, 0, sizeof(area));
    area.mbuf_data_room_size = config.data_room;
    rte_pktmbuf_pool_init(pool, &area);
    result = rte_mempool_populate_default(pool);
  }
  if (result < 0) {
    rte_mempool_free(pool);
    return PopulateError(config, -result);
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  pool->pool_config = nullptr;  // points to this frame
  return PktmbufPool(pool, config);
}

PktmbufPool::PktmbufPool(PktmbufPool&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), config_(std::move(other.config_)) {}

PktmbufPool& PktmbufPool::operator=(PktmbufPool&& other) noexcept {
  if (this != &other) {
    Free();
    pool_ = std::exchange(other.pool_, nullptr);
    config_ = std::move(other.config_);
  }
  return *this;
}

PktmbufPool::~PktmbufPool() {
  Free();
}

// Flushed first: what a mempool cache holds is no leak.
void PktmbufPool::Free() {
  if (pool_ == nullptr) return;
  Flush();
  rte_mempool_free(pool_);
  pool_ = nullptr;
}

double PktmbufPool::AwaitReturn(double seconds) const {
  constexpr useconds_t kLook = 500;
  const uint64_t start = rte_get_timer_cycles();
  const auto hz = static_cast<double>(rte_get_timer_hz());
  double waited = 0;
  while (in_use() != 0 && waited < seconds) {
    usleep(kLook);
    waited = static_cast<double>(rte_get_timer_cycles() - start) / hz;
  }
  return waited;
}

absl::Status PktmbufPool::Destroy(double seconds) {
  const double waited = AwaitReturn(seconds);
  if (const uint32_t out = in_use(); out != 0) {
    const auto stats = ReadPageFragStats(pool_);
    return absl::DeadlineExceededError(absl::StrFormat(
        "pool %s: %d of %d buffers%s are still out after %.2f s; it stays until they are freed: find who holds them "
        "(owner stamps, measure.track_owners), and destroy it again",
        config_.name, out, config_.size,
        stats.has_value() ? absl::StrFormat(" on up to %d pages", stats->pages_inflight) : "", waited));
  }
  Free();
  return absl::OkStatus();
}

PktmbufPool::Lost PktmbufPool::DestroyAndReclaim(double seconds) {
  Lost lost;
  lost.waited = AwaitReturn(seconds);
  Flush();
  lost.buffers = in_use();
  if (lost.buffers != 0) lost.pages = ReclaimPageFragPool(pool_);
  Free();
  return lost;
}

uint32_t PktmbufPool::in_use() const {
  return rte_mempool_in_use_count(pool_);
}

void PktmbufPool::Flush() {
  for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
    if (rte_mempool_cache* cache = rte_mempool_default_cache(pool_, lcore)) rte_mempool_cache_flush(cache, pool_);
  }
  FlushPageFragPool(pool_);
}

}  // namespace halfpage
