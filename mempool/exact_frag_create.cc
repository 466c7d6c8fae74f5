#include <utility>

#include "mempool/exact_frag.h"
#include "mempool/page_frag.h"
#include "mempool/pktmbuf_pool.h"

namespace halfpage {

ExactFrag::ExactFrag(PktmbufPool pool)
    : owner_(std::move(pool)), mempool_(owner_.get()), pool_(static_cast<PageFragPool*>(mempool_->pool_data)) {}

absl::StatusOr<ExactFrag> ExactFrag::Create(const ExactFragConfig& config) {
  PktmbufPoolConfig pool;
  pool.name = config.name;
  pool.ops = "page_frag";
  pool.size = config.size;
  pool.cache = 0;  // a cache would hand out a buffer of the wrong size
  pool.socket = config.socket;
  pool.page_frag.page_size = config.page_size;
  pool.page_frag.recycle = config.recycle;
  pool.page_frag.exact = true;
  auto made = PktmbufPool::Create(pool);
  if (!made.ok()) return made.status();
  return ExactFrag(*std::move(made));
}

}  // namespace halfpage
