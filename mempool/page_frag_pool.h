// Hot path: one page_frag pool. Objects (mempool header, mbuf, private area, room) are carved out of whole pages when
// they are dequeued; a page goes back as soon as its last object is freed.
//
// Every lcore has a lane of its own: the page it carves, a table of what it freed, objects it took back. Lanes meet
// only in pages whose objects they free between them (one atomic word per page) and in the shared rings of whole pages.
#pragma once

#include <rte_branch_prediction.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <atomic>
#include <cstdint>

#include "mempool/page_arena.h"
#include "mempool/page_cache.h"
#include "mempool/page_frag_settings.h"
#include "mempool/page_layout.h"

namespace halfpage {

// Objects of one page that a lane has freed and told nobody of yet.
struct FreedOnPage {
  char* page;
  uint64_t mask;
};

// Pages on a list through PageMeta::next. One thread at a time.
struct PageList {
  char* head = nullptr;
  uint32_t size = 0;

  void Push(char* page) {
    Chunk::Of(page)->MetaOf(page)->next = head;
    head = page;
    ++size;
  }
  char* Pop() {
    char* page = head;
    head = Chunk::Of(page)->MetaOf(page)->next;
    --size;
    return page;
  }
};

// Buffers of one page of an exact pool that a lane has freed and told nobody of yet.
struct FreedCount {
  char* page;
  uint64_t count;
};

// The page that a lane of an exact pool cuts buffers from. While it is open its word holds kOpenBias; closing it leaves
// the number of buffers that are out.
struct ExactPage {
  char* next = nullptr;
  char* end = nullptr;
  char* page = nullptr;
  uint64_t carved = 0;
  uintptr_t iova_offset = 0;
};
inline constexpr uint64_t kOpenBias = uint64_t{1} << 32;

// A lane's owner says by Lane::busy that it is at work on it, and looks at Lane::special meanwhile (arena_lanes.cc).
inline constexpr uint8_t kSpecialPool = 1;  // the pool is exact or has the debug setting
inline constexpr uint8_t kAsked = 2;        // somebody else wants the lane: let go of it and wait

struct alignas(kCacheLine) Lane {
  static constexpr uint32_t kTableSlots = 32;
  static constexpr uint32_t kStashSlots = 256;
  static constexpr uint32_t kMagazine = 64;
  static constexpr uint32_t kPartialPages = 64;
  static constexpr uint32_t kExactSlots = 4;

  char* next = nullptr;  // object to hand out next
  uint32_t left = 0;     // objects not handed out yet on its page
  uint32_t index = 0;    // lcore id, or kSharedLane
  PageCache* cache = nullptr;
  uint32_t stash_size = 0;
  bool prefetch = false;         // its pages come back from other lcores, so what is handed out next is in their caches
  std::atomic<uint8_t> busy{0};  // written by the owner only
  std::atomic<uint8_t> special{0};  // other than 0: Take() and Give() go the long way
  PageList reserved;                // whole pages set aside for a request larger than the cache
  PageList partial;                 // pages with some free objects, for Reserve()
  // Objects this lane may hand out before it has to ask the pool; written by the lane, read by statistics.
  std::atomic<int64_t> credit{0};
  // Every page opened came from the cache, every page closed went to the cache, the shared ring or the arena: what the
  // kernel calls alloc_fast and recycle_cached follows from these, so that the hot path counts each page once a side.
  Counter pages_opened;
  Counter pages_closed;
  Counter pages_shared;
  Counter pages_given;
  Counter nobuf;  // requests that could not be met
  FreedOnPage table[kTableSlots] = {};
  PageCounters counters;
  ExactPage exact;
  FreedCount exact_table[kExactSlots] = {};
  uint64_t last_look = 0;  // what the lane was like when somebody looked whether it is idle; under lanes_lock()
  bool idle = false;       // what came out; under the same
  // Free objects to hand out before the page's next: freed here a moment ago, or taken from partial pages.
  void* stash[kStashSlots];
};

// One call of a lane's owner on it. Two plain stores: the fence between the first and what follows is run by whoever
// wants the lane, on all CPUs (membarrier(2)), and here keeps only the compiler from turning them round.
class LaneCall {
 public:
  explicit LaneCall(Lane& lane) : lane_(lane) {
    lane.busy.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~LaneCall() { lane_.busy.store(0, std::memory_order_release); }
  LaneCall(const LaneCall&) = delete;
  LaneCall& operator=(const LaneCall&) = delete;

 private:
  Lane& lane_;
};

// A setting that may change while lanes are at work. In a build without the knob it is a constant: tools/bench compares
// the two, to tell what it costs to have one (tests/bench/without_knob).
#ifdef HALFPAGE_WITHOUT_RECYCLE_KNOB
template <typename T, T kConstant>
class Knob {
 public:
  constexpr operator T() const { return kConstant; }
  constexpr T load(std::memory_order) const { return kConstant; }
  void store(T, std::memory_order) {}
  Knob& operator=(T) { return *this; }
};
#else
template <typename T, T>
using Knob = std::atomic<T>;
#endif

class PageFragPool {
 public:
  // Identifies the process that made the pool; first, so that a foreign pool is told by one load.
  uint64_t token;
  PageLayout layout;
  uint32_t header_size;  // of the mempool's object header
  uint32_t page_class;
  uint32_t tag;
  Knob<RecycleMode, RecycleMode::kLifo> recycle;
  uint32_t rotation;  // pages that the shared ring keeps while the arena has others
  bool debug;
  bool exact;
  std::atomic<uint64_t> misuses;             // frees refused by the debug setting
  Knob<uint32_t, Lane::kMagazine> magazine;  // objects that a lane keeps as they come, for its own next request
  uint32_t first_data;                       // from an object's start to the first byte of its data as it is allocated
  uint32_t largest_exact;                    // bytes of the largest buffer of an exact pool, mbuf included
  int64_t credit_batch;
  PageArena* arena;
  rte_mempool* mempool;
  PageFragPool* next_pool;  // list of the arena's pools, under its lock
  std::atomic<Lane*> lanes[kLanes];
  alignas(kCacheLine) std::atomic<int64_t> budget;  // objects that no lane has a claim to
  alignas(kCacheLine) rte_spinlock_t partial_lock;
  PageList partial;  // under partial_lock

  // Hands out `n` objects or none at all. Gives 0 or -ENOBUFS; `objects` is not written in the latter case (the mempool
  // cache above passes its own array and goes on using it).
  int Take(Lane& lane, void** objects, uint32_t n) {
    if (unlikely(lane.special.load(std::memory_order_acquire) != 0)) return TakeSpecial(lane, objects, n);
    return TakeObjects(lane, objects, n);
  }
  int TakeObjects(Lane& lane, void** objects, uint32_t n) {
    if (unlikely(lane.credit.load(std::memory_order_relaxed) < static_cast<int64_t>(n)) && !Borrow(lane, n)) {
      return NoBuffer(lane);
    }
    if (unlikely(WithinReach(lane) < n) && !Reserve(lane, n)) return NoBuffer(lane);
    lane.credit.store(lane.credit.load(std::memory_order_relaxed) - n, std::memory_order_relaxed);
    if (lane.stash_size != 0) {
      const uint32_t taken = n < lane.stash_size ? n : lane.stash_size;
      lane.stash_size -= taken;
      __builtin_memcpy(objects, lane.stash + lane.stash_size, taken * sizeof(objects[0]));
      objects += taken;
      n -= taken;
    }
    while (n != 0) {
      if (lane.left == 0) OpenPage(lane);
      const uint32_t taken = n < lane.left ? n : lane.left;
      lane.next = WriteRun(lane.next, objects, taken);
      lane.left -= taken;
      objects += taken;
      n -= taken;
    }
    if (unlikely(lane.prefetch)) PrefetchNext(lane);
    return 0;
  }

  // Takes back `n` objects of this pool, in any order and from any page.
  void Give(Lane& lane, void* const* objects, uint32_t n) {
    if (unlikely(lane.special.load(std::memory_order_acquire) != 0)) return GiveSpecial(lane, objects, n);
    GiveObjects(lane, objects, n);
  }
  void GiveObjects(Lane& lane, void* const* objects, uint32_t n) {
    ReturnClaims(lane, n);
    const uint32_t most = magazine.load(std::memory_order_relaxed);
    if (unlikely(n > most)) return MarkRuns(lane, objects, n);
    // The latest stay: they are in this lcore's caches, and their pages are those that its page cache holds next to.
    if (unlikely(lane.stash_size + n > most)) {
      MarkRuns(lane, lane.stash, lane.stash_size);
      lane.stash_size = 0;
    }
    __builtin_memcpy(lane.stash + lane.stash_size, objects, n * sizeof(objects[0]));
    lane.stash_size += n;
  }

  // Notes `n` objects as free on their pages.
  void MarkRuns(Lane& lane, void* const* objects, uint32_t n) {
    const uintptr_t offset_mask = layout.page_size() - 1;
    for (uint32_t i = 0; i < n;) {
      char* const object = static_cast<char*>(objects[i]);
      const auto address = reinterpret_cast<uintptr_t>(object);
      char* const page = reinterpret_cast<char*>(address & ~offset_mask);
      const uint32_t index = layout.IndexOf(static_cast<uint32_t>(address & offset_mask) - header_size);
      const uint32_t longest = n - i < layout.objects - index ? n - i : layout.objects - index;
      const uint32_t run = RunLength(objects + i, object, longest);
      MarkFreed(lane, page, ((uint64_t{1} << run) - 1) << index);
      i += run;
    }
  }

  // Cuts a buffer of `bytes` (a multiple of a cache line, at most a page) from the lane's exact page, without a header
  // and without a claim; null when there is no page to be had.
  char* Carve(Lane& lane, uint32_t bytes) {
    ExactPage& open = lane.exact;
    if (unlikely(static_cast<size_t>(open.end - open.next) < bytes) && !OpenExactPage(lane)) return nullptr;
    char* buffer = open.next;
    open.next += bytes;
    ++open.carved;
    return buffer;
  }

  // Closes the lane's exact page and opens another; false when there is none to be had.
  bool OpenExactPage(Lane& lane);

  // Asks for the headers of the lane's next buffers, if they are as long as the last one.
  void PrefetchNextExact(const Lane& lane, uint32_t bytes) const;

  // Claims `n` buffers of an exact pool, or as many as there are.
  uint32_t ClaimUpTo(Lane& lane, uint32_t n) {
    if (unlikely(lane.credit.load(std::memory_order_relaxed) < static_cast<int64_t>(n))) n = BorrowUpTo(lane, n);
    lane.credit.store(lane.credit.load(std::memory_order_relaxed) - n, std::memory_order_relaxed);
    return n;
  }
  void ReturnClaims(Lane& lane, uint32_t n) {
    const int64_t credit = lane.credit.load(std::memory_order_relaxed) + n;
    lane.credit.store(credit, std::memory_order_relaxed);
    if (unlikely(credit > 2 * credit_batch)) Repay(lane);
  }
  int NoBuffer(Lane& lane);

  // Objects neither handed out nor hidden by a claim; exact while no lane is at work.
  uint32_t Available() const;

  // The lane of the calling thread, made at first use; null without memory for it or for a thread without an lcore id:
  // such use the shared lane under shared_lane_lock().
  Lane* OwnLane() {
    const uint32_t lcore = rte_lcore_id();
    if (unlikely(lcore >= RTE_MAX_LCORE)) return nullptr;
    Lane* lane = lanes[lcore].load(std::memory_order_acquire);
    return likely(lane != nullptr) ? lane : MakeLane(lcore);
  }
  Lane* MakeLane(uint32_t index);
  // The lane of threads without one, and its lock.
  Lane* EnterSharedLane();
  void LeaveSharedLane();

  // The bit of an object in its page's masks.
  uint64_t BitOf(const char* object) const;

  // Takes back what the lane holds besides objects in the application's hands. The lane must be at rest.
  void FlushLane(Lane& lane);
  // FlushLane() for all lanes; whole pages go home. The pool must be at rest.
  void Flush();
  // Sends pages without an object out home that are on the pool's list of partial pages; counted as `lane`'s doing.
  void GiveWholePartial(Lane& lane);

 private:
  uint64_t WithinReach(const Lane& lane) const {
    return lane.stash_size + lane.left +
           static_cast<uint64_t>(lane.reserved.size + lane.cache->size()) * layout.objects;
  }

  // Objects mostly lie on a page in the order in which they are handed out and come back, so both ways go by runs. The
  // loops are unrolled because what is left of a burst's cost is the number of instructions.

  // Writes `n` objects from `object` on; gives the one behind them.
  char* WriteRun(char* object, void** objects, uint32_t n) const {
    const size_t stride = layout.stride;
    for (; n >= 4; n -= 4, objects += 4, object += 4 * stride) {
      objects[0] = object;
      objects[1] = object + stride;
      objects[2] = object + 2 * stride;
      objects[3] = object + 3 * stride;
    }
    switch (n) {
      case 3:
        objects[2] = object + 2 * stride;
        [[fallthrough]];
      case 2:
        objects[1] = object + stride;
        [[fallthrough]];
      case 1:
        objects[0] = object;
        break;
      default:
        break;
    }
    return object + n * stride;
  }

  // How many of the first `longest` (at least one) objects follow `first`, itself the first of them, at the stride.
  uint32_t RunLength(void* const* objects, const char* first, uint32_t longest) const {
    const size_t stride = layout.stride;
    const char* expected = first + stride;
    uint32_t run = 1;
    for (; run + 4 <= longest; run += 4, expected += 4 * stride) {
      if (objects[run] != expected) return run;
      if (objects[run + 1] != expected + stride) return run + 1;
      if (objects[run + 2] != expected + 2 * stride) return run + 2;
      if (objects[run + 3] != expected + 3 * stride) return run + 3;
    }
    for (; run < longest && objects[run] == expected; ++run) expected += stride;
    return run;
  }

  // A page's number in its chunk. By the pool's own shift: no look at the chunk.
  uint32_t NumberOf(const void* page) const {
    return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(page) & (kChunkBytes - 1)) >> layout.page_shift);
  }

  void OpenPage(Lane& lane) {
    char* page = likely(lane.reserved.head == nullptr) ? lane.cache->Pop() : lane.reserved.Pop();
    const uint32_t number = NumberOf(page);
    PageMeta* meta = Chunk::Of(page)->metas() + number;
    lane.next = page + layout.FirstOffset(number) + header_size;
    lane.left = layout.objects;
    lane.pages_opened.Add(1);
    if (meta->owner != lane.index) meta->owner = static_cast<uint16_t>(lane.index);
    if (unlikely(meta->tag != tag)) WriteHeaders(lane.next, meta);
  }

  void MarkFreed(Lane& lane, char* page, uint64_t mask) {
    FreedOnPage& slot = lane.table[(reinterpret_cast<uintptr_t>(page) >> layout.page_shift) % Lane::kTableSlots];
    if (slot.page == page) {
      mask |= slot.mask;
      if (mask != layout.full_mask) {
        slot.mask = mask;
        return;
      }
      slot.page = nullptr;
      Recycle(lane, page);
    } else if (mask == layout.full_mask) {
      Recycle(lane, page);
    } else {
      if (slot.page != nullptr) Publish(lane, slot.page, slot.mask);
      slot.page = page;
      slot.mask = mask;
    }
  }

  void Recycle(Lane& lane, char* page) {
    lane.pages_closed.Add(1);
    const RecycleMode mode = recycle.load(std::memory_order_relaxed);
    if (likely(mode == RecycleMode::kLifo && Chunk::Of(page)->metas()[NumberOf(page)].owner == lane.index)) {
      lane.prefetch = false;
      lane.cache->PutOwn(page, lane.counters);
    } else if (mode != RecycleMode::kOff) {
      lane.pages_shared.Add(1);
      lane.cache->PutShared(page, lane.counters);
    } else {
      lane.pages_given.Add(1);
      arena->Give(page_class, &page, 1);
    }
  }

  // The slow paths, all in page_frag_pool.cc.
  void PrefetchNext(const Lane& lane) const;
  bool Borrow(Lane& lane, uint32_t n);
  void Repay(Lane& lane);
  bool Reserve(Lane& lane, uint32_t n);
  bool TakeBackPartial(Lane& lane);
  void FlushTable(Lane& lane);
  void Publish(Lane& lane, char* page, uint64_t mask);
  void WriteHeaders(char* first_object, PageMeta* meta);

  // Pools with the debug setting, in page_frag_debug.cc; they hand on to the others.
  int TakeSpecial(Lane& lane, void** objects, uint32_t n);
  void GiveSpecial(Lane& lane, void* const* objects, uint32_t n);
  bool IsMisuse(void* object);
  const char* FindMisuse(void* object);

  // Exact pools, in exact_frag.cc.
  int TakeExact(Lane& lane, void** objects, uint32_t n);
  void GiveExact(Lane& lane, void* const* objects, uint32_t n);
  void CloseExactPage(Lane& lane);
  void CountFreed(Lane& lane, char* page, uint64_t count);
  void SettleFreed(Lane& lane, char* page, uint64_t count);
  void FlushExact(Lane& lane);
  uint32_t BorrowUpTo(Lane& lane, uint32_t n);
};

}  // namespace halfpage
