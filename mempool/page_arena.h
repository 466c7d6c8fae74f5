// Where pages come from: per-socket memory in 2 MiB chunks, shared by all pools of all object and page sizes.
//
// A chunk is aligned to its size, so that any object's chunk, page and metadata follow from its address alone. At one
// time a chunk is cut into pages of one size; once all of its pages are home it can be cut anew or given back to EAL.
#pragma once

#include <rte_config.h>
#include <rte_spinlock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mempool/page_layout.h"

struct rte_memzone;

namespace halfpage {

// Bit 63 of PageMeta::free_bits: the page is on some list of partial pages.
inline constexpr uint64_t kListed = uint64_t{1} << 63;

// What is known of one page. Only pages that are with a pool have bits or a link.
struct PageMeta {
  std::atomic<uint64_t> free_bits;  // objects freed and not handed out again, by the freer; taken by exchange
  char* next;                       // link of the one list that the page is on; written by the list's owner
  uint32_t tag;                     // pool whose objects' headers the page holds, 0 for none; written by the carver
  uint16_t owner;                   // lane that carved it last; written by the carver
  uint16_t unused;
  std::atomic<uint64_t> out_bits;  // objects in somebody's hands; kept for pools with the debug setting only
};
static_assert(sizeof(PageMeta) == kPageMetaBytes, "two metadata entries per cache line");

class PageArena;
class PageCache;
class PageFragPool;
struct Lane;

// One lane per lcore id, and one that threads without an id share under a lock.
inline constexpr uint32_t kSharedLane = RTE_MAX_LCORE;
inline constexpr uint32_t kLanes = RTE_MAX_LCORE + 1;

// The first page of every chunk (the first few for small pages).
struct alignas(kCacheLine) Chunk {
  PageArena* arena;
  uintptr_t iova_offset;  // device address less virtual address, constant within a chunk
  uint32_t page_shift;    // 0 while the chunk belongs to no page class
  uint32_t first_page;    // pages below hold this header
  uint32_t pages;         // usable pages
  uint32_t home;          // how many of them are home
  uint32_t extent;        // index of the extent it was carved from
  uint16_t last;          // 1 for its extent's last chunk, which is kExtentShortfall shorter
  int16_t socket;         // NUMA node of its memory
  Chunk* next;            // links of the class's list of chunks with pages at home, or of the list of free chunks
  Chunk* previous;
  uint64_t home_bits[8];  // which pages are home, by page number

  static Chunk* Of(const void* address) {
    return reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(address) & ~(kChunkBytes - 1));
  }
  PageMeta* metas() { return reinterpret_cast<PageMeta*>(this + 1); }
  PageMeta* MetaOf(const void* address) {
    return metas() + ((reinterpret_cast<uintptr_t>(address) & (kChunkBytes - 1)) >> page_shift);
  }
};
static_assert(sizeof(Chunk) == kChunkHeaderBytes, "LayOutChunk() leaves room for it");

// Pages of one class by where they are, and the memory behind all classes.
struct ArenaStats {
  uint64_t chunks = 0;                 // 2 MiB each, taken from EAL
  uint64_t peak_chunks = 0;            // the most there have been at once
  uint64_t free_chunks = 0;            // cut for no class
  uint64_t limit_chunks = 0;           // there may be no more of them, 0: as many as EAL has memory for
  uint64_t limit_refusals = 0;         // times that the limit kept the arena from growing
  uint64_t pages[kPageClasses] = {};   // pages of each class that exist
  uint64_t home[kPageClasses] = {};    // of these, in the arena
  uint64_t ring[kPageClasses] = {};    // in the shared ring
  uint64_t cached[kPageClasses] = {};  // in the lanes' caches

  // Pages that pools hold: being carved, with objects out, or with freed objects waiting for their neighbours.
  uint64_t InUse(uint32_t page_class) const {
    return pages[page_class] - home[page_class] - ring[page_class] - cached[page_class];
  }
};

// Shared FIFO of whole pages of one class, between the lcores' caches and the arena.
class PageRing {
 public:
  static constexpr uint32_t kSlots = 1024;

  // Takes up to `n` pages, oldest first; gives how many. Any thread.
  uint32_t Take(char** pages, uint32_t n);
  // Puts up to `n` pages; gives how many fitted, the first ones. Any thread.
  uint32_t Put(char* const* pages, uint32_t n);
  uint32_t size() const { return count_.load(std::memory_order_relaxed); }
  // Calls `visit(page, argument)` for each page in it, under its lock.
  void ForEach(void (*visit)(char* page, void* argument), void* argument);

 private:
  rte_spinlock_t lock_;
  uint32_t head_ = 0;
  std::atomic<uint32_t> count_;
  char* slots_[kSlots];
};

// The memory of one socket. Lives in a memzone, so that every pool of the process finds the same one.
class PageArena {
 public:
  // The arena of `socket` (SOCKET_ID_ANY has one of its own); made at first use. Null when EAL has no memory for it.
  // Control threads only.
  static PageArena* ForSocket(int socket);
  // The same, or null where no pool has made it yet.
  static PageArena* Find(int socket);

  // Takes up to `n` pages of class `page_class`, growing by new chunks when none are home; gives how many. Fewer than
  // `n` means that EAL has no more memory or the limit is reached. Any thread; takes a lock and may call EAL.
  uint32_t Take(uint32_t page_class, char** pages, uint32_t n);

  // Puts whole pages of one class back home. Any thread.
  void Give(uint32_t page_class, char* const* pages, uint32_t n);

  // Gives extents back to EAL all of whose chunks have all pages home. Gives the number of bytes returned. Any control
  // thread, while lcores go on: an extent leaves the lists under the lock before its memory goes, and whoever computes
  // a chunk from an address (Chunk::Of) holds a page of it that is not home, which keeps the extent.
  uint64_t Trim();

  // No more than `chunks` from now on; 0: no limit. What is above it stays until it is trimmed. Any thread.
  void SetLimit(uint64_t chunks);

  // The cache of one lane and class, made at first use; null when EAL has no memory for it. Only the lane's own thread
  // may use what it gets (of the shared lane: whoever holds shared_lane_lock()).
  PageCache* CacheFor(uint32_t lane, uint32_t page_class);
  rte_spinlock_t* shared_lane_lock() { return &shared_lane_lock_; }

  // The pools that live off this arena, for what concerns an lcore in all of them. This part is in arena_lanes.cc.
  void AddPool(PageFragPool* pool);
  void RemovePool(PageFragPool* pool);
  // Lets a new lane be seen by its lcore and by those below.
  void PublishLane(std::atomic<Lane*>* entry, Lane* lane);
  // Takes back what a departing lcore holds, in its pools' lanes and in its caches. Runs in that lcore's thread.
  void RetireLane(uint32_t lane);
  // Takes back what lanes hold that are as they were when this was called last, and what the page caches of lcores hold
  // all of whose lanes are. Gives how many lanes had something. Any thread; waits for no lcore, and an lcore that comes
  // back meanwhile waits until it is done. Without membarrier(2) it does nothing.
  uint32_t FlushIdleLanes();
  // The same for an lcore that finds no buffer: at most once in 10 ms, and not while another one is at it.
  void LookForIdleLanes();
  // Holds every lcore and thread that is about to call on a pool of this arena, so that nothing moves between lanes,
  // caches and rings. False after `seconds` without the last of them out of its call: then nobody is held. Control
  // threads.
  bool PauseLanes(double seconds);
  void ResumeLanes();
  // For the owner of a lane, in a call on it, who sees that it is asked for: lets go of it and waits for it.
  void LendLane(Lane& lane);
  rte_spinlock_t* lanes_lock() { return &pools_lock_; }

  // Sends the pages in one lane's caches home. No thread may use that lane meanwhile.
  void FlushCaches(uint32_t lane);
  // Calls `visit(page, argument)` for each page of a class that is not home. Only with all caches and rings flushed is
  // that the pages which pools hold. Takes the arena's lock.
  void ForEachPageAway(uint32_t page_class, void (*visit)(char* page, void* argument), void* argument);

  // Calls `visit(page, argument)` for each whole page in a lane's cache or in a ring. Only while lanes are paused.
  void ForEachWholePage(uint32_t page_class, void (*visit)(char* page, void* argument), void* argument);

  // Whether an address lies in the arena's memory. Any thread.
  bool Holds(const void* address);
  // While locked no chunk is cut, taken or given back: for looking at an address that may be in anything. Nothing else
  // of the arena may be called but HoldsLocked(), and nothing that waits.
  void Lock() { rte_spinlock_lock(&lock_); }
  void Unlock() { rte_spinlock_unlock(&lock_); }
  bool HoldsLocked(const void* address) const;

  // Sends the pages in the shared rings home. Any thread.
  void FlushRings();

  PageRing& ring(uint32_t page_class) { return rings_[page_class]; }
  int socket() const { return socket_; }
  // One moment's picture; the caches of running lcores are read as they are.
  ArenaStats Stats();

  // A tag that no other pool of this process has had; never 0.
  uint32_t NewTag() { return next_tag_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kMaxExtents = 1024;

  struct Extent {
    const rte_memzone* zone;
    uint32_t chunks;
  };

  void AskLanesLocked(bool ask);
  bool LanesAtRestLocked() const;
  uint32_t FlushIdleLanesLocked();
  uint32_t FlushIdleLcoreLocked(uint32_t lcore);
  bool GrowLocked();
  const rte_memzone* DetachIdleExtentLocked(uint32_t slot);
  uint64_t MissingChunksLocked() const;
  void GiveLocked(uint32_t page_class, char* const* pages, uint32_t n);
  bool UncutChunkLocked();
  void EmptyRingsLocked(uint32_t but);
  Chunk* ChunkForLocked(uint32_t page_class);
  void CutLocked(Chunk* chunk, uint32_t page_class);
  void Link(Chunk** list, Chunk* chunk);
  void Unlink(Chunk** list, Chunk* chunk);

  rte_spinlock_t lock_;
  int socket_ = -1;
  uint32_t extents_in_use_ = 0;
  uint32_t zone_number_ = 0;
  uint64_t chunks_ = 0;
  uint64_t peak_chunks_ = 0;
  uint64_t limit_chunks_ = 0;
  uint64_t limit_refusals_ = 0;
  std::atomic<uint32_t> next_tag_;
  uint64_t pages_[kPageClasses] = {};
  uint64_t home_[kPageClasses] = {};
  uint64_t fillable_[kPageClasses] = {};  // pages that the pools of a class need once all their objects are out
  Chunk* with_home_[kPageClasses] = {};   // chunks of a class with at least one page at home
  Chunk* free_chunks_ = nullptr;
  rte_spinlock_t shared_lane_lock_;
  rte_spinlock_t pools_lock_;           // before all others; also held by whoever has asked for lanes
  PageFragPool* pools_ = nullptr;       // linked through PageFragPool::next_pool, under pools_lock_
  std::atomic<uint64_t> next_look_{0};  // TSC from which on an lcore may look for idle lanes
  std::atomic<PageCache*> caches_[kLanes][kPageClasses];
  uint64_t free_chunk_count_ = 0;
  PageRing rings_[kPageClasses];
  Extent extents_[kMaxExtents] = {};
};

}  // namespace halfpage
