// The callbacks that the handler "page_frag" enters into DPDK's table, and where their fast halves hand over.
#pragma once

#include <cstdint>

struct rte_mempool;

namespace halfpage {

class PageFragPool;

// rte_mempool_enqueue_t and rte_mempool_dequeue_t: 0 or a negative errno, all or nothing. Any thread.
int PageFragEnqueue(rte_mempool* mempool, void* const* objects, unsigned n) noexcept;
int PageFragDequeue(rte_mempool* mempool, void** objects, unsigned n) noexcept;

// A number that differs between processes; pools carry the one of their maker.
namespace internal {
extern const uint64_t kOwnToken;
}
inline uint64_t OwnToken() {
  return internal::kOwnToken;
}

// For threads without a lane of their own: the shared one, under its lock.
int EnqueueShared(PageFragPool* pool, void* const* objects, unsigned n);
int DequeueShared(PageFragPool* pool, void** objects, unsigned n);

// For pools that are no page_frag pools of this process: plain rings are served, others refused with -EPERM.
int EnqueueOther(rte_mempool* mempool, void* const* objects, unsigned n);
int DequeueOther(rte_mempool* mempool, void** objects, unsigned n);

}  // namespace halfpage
