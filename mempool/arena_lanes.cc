// What concerns an lcore in all pools of an arena: its lanes, taking them back when it is gone or idle, and holding all
// of them for a moment.
//
// A lane belongs to its lcore, which uses it without a lock or a fence. Who wants it writes that into Lane::special,
// has a fence run on every CPU, and then looks at Lane::busy. Either it finds the lane at rest: then the owner's next
// call sees that it was asked, lets go and waits (LendLane). Or it finds the owner in a call, and leaves the lane
// alone.
#include <rte_cycles.h>
#include <rte_pause.h>

#include "mempool/all_cpu_fence.h"
#include "mempool/page_arena.h"
#include "mempool/page_frag_pool.h"
#include "mempool/spin_locked.h"

namespace halfpage {
namespace {

constexpr uint64_t kLooksPerSecond = 100;
constexpr unsigned kStoresAreSeen = 2000;  // microseconds

// Pages that hold all objects of a pool.
uint64_t PagesOf(const PageFragPool& pool) {
  return (uint64_t{pool.mempool->size} + pool.layout.objects - 1) / pool.layout.objects;
}

// A number that changes with nearly every call on the lane. One that an active lane happens to have twice costs it what
// it has at hand, no more.
uint64_t LookOf(const Lane& lane) {
  uint64_t look = 0;
  const auto add = [&look](uint64_t value) { look = (look ^ value) * 0x9e3779b97f4a7c15; };
  add(reinterpret_cast<uintptr_t>(lane.next));
  add(lane.left);
  add(lane.stash_size);
  if (lane.stash_size != 0) add(reinterpret_cast<uintptr_t>(lane.stash[lane.stash_size - 1]));
  add(static_cast<uint64_t>(lane.credit.load(std::memory_order_relaxed)));
  add(lane.pages_opened.Read());
  add(lane.pages_closed.Read());
  add(lane.partial.size);
  for (const FreedOnPage& slot : lane.table) add(slot.page == nullptr ? 0 : slot.mask);
  add(reinterpret_cast<uintptr_t>(lane.exact.next));
  for (const FreedCount& slot : lane.exact_table) add(slot.page == nullptr ? 0 : slot.count);
  return look;
}

// Whether taking back what a lane at rest holds brought anything.
bool FlushedSomething(PageFragPool& pool, Lane& lane) {
  pool.FlushLane(lane);
  const uint64_t look = LookOf(lane);
  const bool had_something = look != lane.last_look;
  lane.last_look = look;
  if (had_something && !pool.exact) pool.GiveWholePartial(lane);
  return had_something;
}

}  // namespace

void PageArena::AddPool(PageFragPool* pool) {
  {
    Locked locked(&lock_);
    fillable_[pool->page_class] += PagesOf(*pool);
  }
  Locked locked(&pools_lock_);
  pool->next_pool = pools_;
  pools_ = pool;
}

void PageArena::RemovePool(PageFragPool* pool) {
  {
    Locked locked(&lock_);
    fillable_[pool->page_class] -= PagesOf(*pool);
  }
  Locked locked(&pools_lock_);
  PageFragPool** link = &pools_;
  while (*link != nullptr && *link != pool) link = &(*link)->next_pool;
  if (*link != nullptr) *link = pool->next_pool;
}

void PageArena::PublishLane(std::atomic<Lane*>* entry, Lane* lane) {
  Locked locked(&pools_lock_);
  entry->store(lane, std::memory_order_release);
}

void PageArena::RetireLane(uint32_t lane) {
  Locked locked(&pools_lock_);
  for (PageFragPool* pool = pools_; pool != nullptr; pool = pool->next_pool) {
    if (Lane* own = pool->lanes[lane].load(std::memory_order_acquire)) pool->FlushLane(*own);
  }
  FlushCaches(lane);
}

void PageArena::AskLanesLocked(bool ask) {
  for (PageFragPool* pool = pools_; pool != nullptr; pool = pool->next_pool) {
    const uint8_t special = pool->exact || pool->debug ? kSpecialPool : 0;
    for (uint32_t lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
      Lane* lane = pool->lanes[lcore].load(std::memory_order_acquire);
      if (lane != nullptr) lane->special.store(special | (ask ? kAsked : 0), std::memory_order_release);
    }
  }
}

// Lanes that are found at rest once are so until they are no longer asked for.
bool PageArena::LanesAtRestLocked() const {
  for (const PageFragPool* pool = pools_; pool != nullptr; pool = pool->next_pool) {
    for (uint32_t lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) {
      const Lane* lane = pool->lanes[lcore].load(std::memory_order_acquire);
      if (lane != nullptr && lane->busy.load(std::memory_order_acquire) != 0) return false;
    }
  }
  return true;
}

// An exact pool's lane brings pages to the lcore's cache, which its other lanes share: all of them have to be at rest
// for that.
uint32_t PageArena::FlushIdleLcoreLocked(uint32_t lcore) {
  uint32_t flushed = 0;
  bool all_at_rest = true;
  bool all_idle = true;
  for (PageFragPool* pool = pools_; pool != nullptr; pool = pool->next_pool) {
    Lane* lane = pool->lanes[lcore].load(std::memory_order_acquire);
    if (lane == nullptr) continue;
    lane->idle = false;
    const bool at_rest = lane->busy.load(std::memory_order_acquire) == 0;
    all_at_rest = all_at_rest && at_rest;
    if (at_rest) {
      const uint64_t look = LookOf(*lane);
      lane->idle = look == lane->last_look;
      lane->last_look = look;
    }
    all_idle = all_idle && lane->idle;
    if (lane->idle && !pool->exact) flushed += FlushedSomething(*pool, *lane);
  }
  if (!all_at_rest) return flushed;
  for (PageFragPool* pool = pools_; pool != nullptr; pool = pool->next_pool) {
    Lane* lane = pool->lanes[lcore].load(std::memory_order_acquire);
    if (lane != nullptr && lane->idle && pool->exact) flushed += FlushedSomething(*pool, *lane);
  }
  if (all_idle) FlushCaches(lcore);
  return flushed;
}

uint32_t PageArena::FlushIdleLanesLocked() {
  AskLanesLocked(true);
  uint32_t flushed = 0;
  if (FenceOnAllCpus()) {
    for (uint32_t lcore = 0; lcore < RTE_MAX_LCORE; ++lcore) flushed += FlushIdleLcoreLocked(lcore);
    // The lane of threads without an lcore id has a lock instead.
    if (rte_spinlock_trylock(&shared_lane_lock_) != 0) {
      flushed += FlushIdleLcoreLocked(kSharedLane);
      rte_spinlock_unlock(&shared_lane_lock_);
    }
  }
  AskLanesLocked(false);
  return flushed;
}

uint32_t PageArena::FlushIdleLanes() {
  Locked locked(&pools_lock_);
  return FlushIdleLanesLocked();
}

void PageArena::LookForIdleLanes() {
  const uint64_t now = rte_rdtsc();
  uint64_t due = next_look_.load(std::memory_order_relaxed);
  if (now < due) return;
  if (!next_look_.compare_exchange_strong(due, now + rte_get_tsc_hz() / kLooksPerSecond, std::memory_order_relaxed)) {
    return;
  }
  if (rte_spinlock_trylock(&pools_lock_) == 0) return;
  FlushIdleLanesLocked();
  rte_spinlock_unlock(&pools_lock_);
}

bool PageArena::PauseLanes(double seconds) {
  const uint64_t end = rte_rdtsc() + static_cast<uint64_t>(seconds * static_cast<double>(rte_get_tsc_hz()));
  rte_spinlock_lock(&pools_lock_);
  rte_spinlock_lock(&shared_lane_lock_);
  AskLanesLocked(true);
  // Without that call: long enough for what was stored to have left any CPU's store buffer.
  if (!FenceOnAllCpus()) rte_delay_us_sleep(kStoresAreSeen);
  bool paused = true;
  while (paused && !LanesAtRestLocked()) {
    rte_pause();
    paused = rte_rdtsc() < end;
  }
  if (!paused) ResumeLanes();
  return paused;
}

void PageArena::ResumeLanes() {
  AskLanesLocked(false);
  rte_spinlock_unlock(&shared_lane_lock_);
  rte_spinlock_unlock(&pools_lock_);
}

// Busy again before the lock goes: whoever asks next finds it so.
void PageArena::LendLane(Lane& lane) {
  lane.busy.store(0, std::memory_order_release);
  Locked locked(&pools_lock_);
  lane.busy.store(1, std::memory_order_relaxed);
}

}  // namespace halfpage
