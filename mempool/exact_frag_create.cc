#include <utility>

#include "absl/strings/str_format.h"
#include "mempool/exact_frag.h"
#include "mempool/page_frag.h"
#include "mempool/pktmbuf_pool.h"

namespace halfpage {

ExactFrag::ExactFrag(rte_mempool* pool) : mempool_(pool), pool_(static_cast<PageFragPool*>(pool->pool_data)) {}

absl::StatusOr<ExactFrag> ExactFrag::Over(rte_mempool* pool) {
  if (!ReadPageFragStats(pool).has_value() || !static_cast<PageFragPool*>(pool->pool_data)->exact) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "pool %s does not cut buffers of any size: make it with ops page_frag and `exact`", pool->name));
  }
  return ExactFrag(pool);
}

absl::StatusOr<ExactFrag> ExactFrag::Create(const ExactFragConfig& config) {
  PktmbufPoolConfig pool;
  pool.name = config.name;
  pool.ops = "page_frag";
  pool.size = config.size;
  pool.cache = 0;  // a cache would hand out a buffer of the wrong size
  pool.socket = config.socket;
  pool.page_frag.page_size = config.page_size;
  pool.page_frag.recycle = config.recycle;
  pool.page_frag.rotation = config.rotation;
  pool.page_frag.exact = true;
  auto made = PktmbufPool::Create(pool);
  if (!made.ok()) return made.status();
  ExactFrag exact(made->get());
  exact.owner_ = *std::move(made);
  return exact;
}

}  // namespace halfpage
