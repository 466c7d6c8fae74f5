#include <rte_mempool.h>

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "mempool/pool_classes.h"

namespace halfpage {
namespace {

// 0 for a pool whose buffers cannot hold a byte behind the headroom, or that is no packet pool at all.
uint32_t LongestIn(rte_mempool* pool) {
  if (pool->private_data_size < sizeof(rte_pktmbuf_pool_private)) return 0;
  const uint32_t room = rte_pktmbuf_data_room_size(pool);
  return room > RTE_PKTMBUF_HEADROOM ? room - RTE_PKTMBUF_HEADROOM : 0;
}

}  // namespace

absl::StatusOr<PoolClasses> PoolClasses::Create(absl::Span<rte_mempool* const> pools, bool borrow) {
  if (pools.empty() || pools.size() > kMostClasses) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d pools as classes: give 1 to %d, each with another room", pools.size(), kMostClasses));
  }
  std::vector<rte_mempool*> sorted(pools.begin(), pools.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat("class %d has no pool: create it first", i));
    }
    if (std::count(sorted.begin(), sorted.end(), sorted[i]) > 1) {
      return absl::InvalidArgumentError(
          absl::StrFormat("pool %s is in two classes: name each pool once", sorted[i]->name));
    }
    if (LongestIn(sorted[i]) == 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "pool %s has no room behind the headroom of %d, or is no pool of packet buffers: make its room larger",
          sorted[i]->name, RTE_PKTMBUF_HEADROOM));
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](rte_mempool* a, rte_mempool* b) { return LongestIn(a) < LongestIn(b); });
  PoolClasses classes;
  for (rte_mempool* pool : sorted) {
    classes.classes_[classes.size_].pool = pool;
    classes.classes_[classes.size_].longest = LongestIn(pool);
    ++classes.size_;
  }
  classes.borrow_ = borrow;
  return classes;
}

// Counters begin at 0: a copy is another caller's.
PoolClasses::PoolClasses(const PoolClasses& other) : size_(other.size_), borrow_(other.borrow_) {
  for (size_t c = 0; c < size_; ++c) {
    classes_[c].pool = other.classes_[c].pool;
    classes_[c].longest = other.classes_[c].longest;
  }
}

}  // namespace halfpage
