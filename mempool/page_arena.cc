#include "mempool/page_arena.h"

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "mempool/all_cpu_fence.h"
#include "mempool/page_cache.h"
#include "mempool/page_frag.h"
#include "mempool/page_frag_pool.h"
#include "mempool/spin_locked.h"

namespace halfpage {
namespace {

constexpr char kArenaName[] = "PAGE_FRAG_ARENA_%d";

}  // namespace

uint32_t PageRing::Take(char** pages, uint32_t n) {
  if (size() == 0) return 0;
  Locked locked(&lock_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  const uint32_t taken = std::min(n, count);
  for (uint32_t i = 0; i < taken; ++i) pages[i] = slots_[(head_ + i) % kSlots];
  head_ = (head_ + taken) % kSlots;
  count_.store(count - taken, std::memory_order_relaxed);
  return taken;
}

uint32_t PageRing::Put(char* const* pages, uint32_t n) {
  Locked locked(&lock_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  const uint32_t put = std::min(n, kSlots - count);
  for (uint32_t i = 0; i < put; ++i) slots_[(head_ + count + i) % kSlots] = pages[i];
  count_.store(count + put, std::memory_order_relaxed);
  return put;
}

void PageRing::ForEach(void (*visit)(char* page, void* argument), void* argument) {
  Locked locked(&lock_);
  for (uint32_t i = 0; i < size(); ++i) visit(slots_[(head_ + i) % kSlots], argument);
}

PageArena* PageArena::Find(int socket) {
  char name[RTE_MEMZONE_NAMESIZE];
  std::snprintf(name, sizeof(name), kArenaName, socket);
  const rte_memzone* zone = rte_memzone_lookup(name);
  return zone == nullptr ? nullptr : static_cast<PageArena*>(zone->addr);
}

PageArena* PageArena::ForSocket(int socket) {
  if (PageArena* found = Find(socket)) return found;
  char name[RTE_MEMZONE_NAMESIZE];
  std::snprintf(name, sizeof(name), kArenaName, socket);
  const rte_memzone* zone = rte_memzone_reserve_aligned(name, sizeof(PageArena), socket, 0, kCacheLine);
  if (zone == nullptr) {
    // Two control threads that create their first pools at once: the loser finds the winner's.
    zone = rte_errno == EEXIST ? rte_memzone_lookup(name) : nullptr;
    return zone == nullptr ? nullptr : static_cast<PageArena*>(zone->addr);
  }
  std::memset(zone->addr, 0, sizeof(PageArena));
  auto* arena = new (zone->addr) PageArena();
  arena->socket_ = socket;
  arena->next_tag_.store(1, std::memory_order_relaxed);
  RegisterForFences();
  // Lcore ids are given up and taken again by other threads; what an id holds back must not wait for its next owner.
  // EAL itself undoes the registration at its end.
  rte_lcore_callback_register(
      name, nullptr, [](unsigned lcore, void* self) { static_cast<PageArena*>(self)->RetireLane(lcore); }, arena);
  return arena;
}

void PageArena::Link(Chunk** list, Chunk* chunk) {
  chunk->previous = nullptr;
  chunk->next = *list;
  if (*list != nullptr) (*list)->previous = chunk;
  *list = chunk;
}

void PageArena::Unlink(Chunk** list, Chunk* chunk) {
  if (chunk->previous != nullptr) chunk->previous->next = chunk->next;
  if (chunk->next != nullptr) chunk->next->previous = chunk->previous;
  if (*list == chunk) *list = chunk->next;
}

// Chunks that the pools could fill besides those there are, once all their objects are out.
uint64_t PageArena::MissingChunksLocked() const {
  uint64_t missing = 0;
  for (uint32_t c = 0; c < kPageClasses; ++c) {
    if (fillable_[c] <= pages_[c]) continue;
    const uint64_t pages = LayOutChunk(kMinPageShift + c, false).pages;
    missing += (fillable_[c] - pages_[c] + pages - 1) / pages;
  }
  return missing;
}

bool PageArena::GrowLocked() {
  uint32_t slot = 0;
  while (slot < extents_in_use_ && extents_[slot].zone != nullptr) ++slot;
  if (slot == kMaxExtents) return false;
  uint64_t chunks = NextExtentChunks(chunks_, MissingChunksLocked());
  if (limit_chunks_ != 0) {
    chunks = std::min(chunks, limit_chunks_ - std::min(limit_chunks_, chunks_));
    if (chunks == 0) {
      ++limit_refusals_;
      return false;
    }
  }
  const rte_memzone* zone = nullptr;
  for (; chunks >= 1; chunks /= 2) {
    char name[RTE_MEMZONE_NAMESIZE];
    std::snprintf(name, sizeof(name), "PAGE_FRAG_%d_%u", socket_, zone_number_);
    zone = rte_memzone_reserve_aligned(name, chunks * kChunkBytes - kExtentShortfall, socket_, 0, kChunkBytes);
    if (zone != nullptr) break;
  }
  if (zone == nullptr) return false;
  ++zone_number_;
  extents_in_use_ = std::max(extents_in_use_, slot + 1);
  extents_[slot] = {zone, static_cast<uint32_t>(chunks)};
  for (uint32_t i = 0; i < chunks; ++i) {
    auto* chunk = reinterpret_cast<Chunk*>(static_cast<char*>(zone->addr) + i * kChunkBytes);
    std::memset(static_cast<void*>(chunk), 0, sizeof(Chunk));
    chunk->arena = this;
    chunk->iova_offset = rte_mem_virt2iova(chunk) - reinterpret_cast<uintptr_t>(chunk);
    chunk->extent = slot;
    chunk->last = i + 1 == chunks ? 1 : 0;
    chunk->socket = static_cast<int16_t>(zone->socket_id);
    Link(&free_chunks_, chunk);
  }
  chunks_ += chunks;
  peak_chunks_ = std::max(peak_chunks_, chunks_);
  free_chunk_count_ += chunks;
  return true;
}

void PageArena::CutLocked(Chunk* chunk, uint32_t page_class) {
  const uint32_t shift = kMinPageShift + page_class;
  chunk->page_shift = shift;
  const ChunkLayout layout = LayOutChunk(shift, chunk->last != 0);
  chunk->first_page = layout.first_page;
  chunk->pages = layout.pages;
  chunk->home = chunk->pages;
  std::memset(static_cast<void*>(chunk->metas()), 0, (kChunkBytes >> shift) * sizeof(PageMeta));
  std::memset(chunk->home_bits, 0, sizeof(chunk->home_bits));
  for (uint32_t i = 0; i < chunk->pages; ++i) {
    const uint32_t p = chunk->first_page + i;
    chunk->home_bits[p / 64] |= uint64_t{1} << (p % 64);
  }
  pages_[page_class] += chunk->pages;
  home_[page_class] += chunk->pages;
  Link(&with_home_[page_class], chunk);
}

// A chunk of any class all of whose pages are home, uncut.
bool PageArena::UncutChunkLocked() {
  for (uint32_t c = 0; c < kPageClasses; ++c) {
    for (Chunk* chunk = with_home_[c]; chunk != nullptr; chunk = chunk->next) {
      if (chunk->home != chunk->pages) continue;
      Unlink(&with_home_[c], chunk);
      pages_[c] -= chunk->pages;
      home_[c] -= chunk->pages;
      chunk->page_shift = 0;
      Link(&free_chunks_, chunk);
      ++free_chunk_count_;
      return true;
    }
  }
  return false;
}

// Pages that wait in the rings of other classes, whose pools are idle or have too many of them, come home: all pages of
// a chunk may be among them. Their rings' locks are taken while the arena's is held, never the other way round.
void PageArena::EmptyRingsLocked(uint32_t but) {
  for (uint32_t c = 0; c < kPageClasses; ++c) {
    if (c == but) continue;
    char* pages[64];
    while (const uint32_t n = rings_[c].Take(pages, 64)) GiveLocked(c, pages, n);
  }
}

Chunk* PageArena::ChunkForLocked(uint32_t page_class) {
  if (with_home_[page_class] != nullptr) return with_home_[page_class];
  if (free_chunks_ == nullptr && !UncutChunkLocked()) {
    EmptyRingsLocked(page_class);
    if (!UncutChunkLocked() && !GrowLocked()) return nullptr;
  }
  Chunk* chunk = free_chunks_;
  Unlink(&free_chunks_, chunk);
  --free_chunk_count_;
  CutLocked(chunk, page_class);
  return chunk;
}

uint32_t PageArena::Take(uint32_t page_class, char** pages, uint32_t n) {
  Locked locked(&lock_);
  uint32_t taken = 0;
  while (taken < n) {
    Chunk* chunk = ChunkForLocked(page_class);
    if (chunk == nullptr) break;
    for (uint32_t word = 0; word < 8 && taken < n; ++word) {
      while (chunk->home_bits[word] != 0 && taken < n) {
        const uint32_t page = word * 64 + static_cast<uint32_t>(__builtin_ctzll(chunk->home_bits[word]));
        chunk->home_bits[word] &= chunk->home_bits[word] - 1;
        pages[taken++] = reinterpret_cast<char*>(chunk) + (size_t{page} << chunk->page_shift);
        --chunk->home;
        --home_[page_class];
      }
    }
    if (chunk->home == 0) Unlink(&with_home_[page_class], chunk);
  }
  return taken;
}

void PageArena::Give(uint32_t page_class, char* const* pages, uint32_t n) {
  Locked locked(&lock_);
  GiveLocked(page_class, pages, n);
}

void PageArena::GiveLocked(uint32_t page_class, char* const* pages, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    Chunk* chunk = Chunk::Of(pages[i]);
    const auto page =
        static_cast<uint32_t>((reinterpret_cast<uintptr_t>(pages[i]) & (kChunkBytes - 1)) >> chunk->page_shift);
    chunk->home_bits[page / 64] |= uint64_t{1} << (page % 64);
    if (chunk->home++ == 0) Link(&with_home_[page_class], chunk);
    ++home_[page_class];
  }
}

void PageArena::SetLimit(uint64_t chunks) {
  Locked locked(&lock_);
  limit_chunks_ = chunks;
}

// Takes an extent all of whose pages are home out of everything that leads to it, and gives its memory's zone; null for
// one that is in use, or is none. From here on no lcore can come by an address in it.
const rte_memzone* PageArena::DetachIdleExtentLocked(uint32_t slot) {
  const rte_memzone* zone = extents_[slot].zone;
  if (zone == nullptr) return nullptr;
  char* base = static_cast<char*>(zone->addr);
  for (uint32_t i = 0; i < extents_[slot].chunks; ++i) {
    const auto* chunk = reinterpret_cast<Chunk*>(base + i * kChunkBytes);
    if (chunk->page_shift != 0 && chunk->home != chunk->pages) return nullptr;
  }
  for (uint32_t i = 0; i < extents_[slot].chunks; ++i) {
    auto* chunk = reinterpret_cast<Chunk*>(base + i * kChunkBytes);
    if (chunk->page_shift == 0) {
      Unlink(&free_chunks_, chunk);
      --free_chunk_count_;
    } else {
      const uint32_t page_class = chunk->page_shift - kMinPageShift;
      Unlink(&with_home_[page_class], chunk);
      pages_[page_class] -= chunk->pages;
      home_[page_class] -= chunk->pages;
    }
  }
  chunks_ -= extents_[slot].chunks;
  extents_[slot] = {nullptr, 0};
  return zone;
}

uint64_t PageArena::Trim() {
  uint64_t bytes = 0;
  for (uint32_t slot = 0; slot < kMaxExtents; ++slot) {
    const rte_memzone* zone = nullptr;
    uint64_t extent = 0;
    {
      Locked locked(&lock_);
      if (slot >= extents_in_use_) break;
      extent = extents_[slot].chunks * kChunkBytes;
      zone = DetachIdleExtentLocked(slot);
    }
    if (zone == nullptr) continue;
    bytes += extent;
    // EAL's own lock is taken here: outside of ours, since Take() holds ours while it asks EAL for memory.
    rte_memzone_free(zone);
  }
  return bytes;
}

PageCache* PageArena::CacheFor(uint32_t lane, uint32_t page_class) {
  std::atomic<PageCache*>& entry = caches_[lane][page_class];
  PageCache* cache = entry.load(std::memory_order_acquire);
  if (cache != nullptr) return cache;
  void* memory = rte_zmalloc_socket("page_frag_cache", sizeof(PageCache), kCacheLine, socket_);
  if (memory == nullptr) return nullptr;
  cache = new (memory) PageCache();
  cache->Init(this, page_class);
  entry.store(cache, std::memory_order_release);
  return cache;
}

void PageArena::FlushCaches(uint32_t lane) {
  for (auto& entry : caches_[lane]) {
    if (PageCache* cache = entry.load(std::memory_order_acquire)) cache->Flush();
  }
}

void PageArena::ForEachWholePage(uint32_t page_class, void (*visit)(char* page, void* argument), void* argument) {
  for (auto& lane : caches_) {
    if (PageCache* cache = lane[page_class].load(std::memory_order_acquire)) cache->ForEach(visit, argument);
  }
  rings_[page_class].ForEach(visit, argument);
}

void PageArena::ForEachPageAway(uint32_t page_class, void (*visit)(char* page, void* argument), void* argument) {
  Locked locked(&lock_);
  for (uint32_t slot = 0; slot < extents_in_use_; ++slot) {
    if (extents_[slot].zone == nullptr) continue;
    for (uint32_t i = 0; i < extents_[slot].chunks; ++i) {
      auto* chunk = reinterpret_cast<Chunk*>(static_cast<char*>(extents_[slot].zone->addr) + i * kChunkBytes);
      if (chunk->page_shift != kMinPageShift + page_class) continue;
      for (uint32_t p = chunk->first_page; p < chunk->first_page + chunk->pages; ++p) {
        if ((chunk->home_bits[p / 64] >> (p % 64) & 1) != 0) continue;
        visit(reinterpret_cast<char*>(chunk) + (size_t{p} << chunk->page_shift), argument);
      }
    }
  }
}

bool PageArena::Holds(const void* address) {
  Locked locked(&lock_);
  return HoldsLocked(address);
}

bool PageArena::HoldsLocked(const void* address) const {
  for (uint32_t slot = 0; slot < extents_in_use_; ++slot) {
    if (extents_[slot].zone == nullptr) continue;
    const auto* begin = static_cast<const char*>(extents_[slot].zone->addr);
    if (address >= begin && address < begin + extents_[slot].zone->len) return true;
  }
  return false;
}

void PageArena::FlushRings() {
  for (uint32_t c = 0; c < kPageClasses; ++c) {
    char* pages[64];
    while (const uint32_t n = rings_[c].Take(pages, 64)) Give(c, pages, n);
  }
}

ArenaStats PageArena::Stats() {
  Locked locked(&lock_);
  ArenaStats stats;
  for (auto& lane : caches_) {
    for (uint32_t c = 0; c < kPageClasses; ++c) {
      if (PageCache* cache = lane[c].load(std::memory_order_acquire)) stats.cached[c] += cache->pages();
    }
  }
  stats.chunks = chunks_;
  stats.peak_chunks = peak_chunks_;
  stats.free_chunks = free_chunk_count_;
  stats.limit_chunks = limit_chunks_;
  stats.limit_refusals = limit_refusals_;
  for (uint32_t c = 0; c < kPageClasses; ++c) {
    stats.pages[c] = pages_[c];
    stats.home[c] = home_[c];
    stats.ring[c] = rings_[c].size();
  }
  return stats;
}

PageFragArenaUse ReadPageFragArena(int socket) {
  PageArena* arena = PageArena::Find(socket);
  if (arena == nullptr) return {};
  const ArenaStats stats = arena->Stats();
  return {stats.chunks * kChunkBytes, stats.peak_chunks * kChunkBytes, stats.limit_chunks * kChunkBytes,
          stats.limit_refusals};
}

uint64_t PageFragPeakBytes(int socket) {
  return ReadPageFragArena(socket).peak_bytes;
}

int LimitPageFragArena(int socket, uint64_t bytes) {
  if (bytes != 0 && bytes < kChunkBytes) return -EINVAL;
  PageArena* arena = PageArena::ForSocket(socket);
  if (arena == nullptr) return -ENOMEM;
  arena->SetLimit(bytes / kChunkBytes);
  return 0;
}

uint64_t ShrinkPageFragArena(int socket) {
  PageArena* arena = PageArena::Find(socket);
  if (arena == nullptr) return 0;
  arena->FlushIdleLanes();
  arena->FlushRings();
  return arena->Trim();
}

}  // namespace halfpage
