// Hot path: cutting buffers of any size from pages, and bringing pages home by counting.
#include "mempool/exact_frag.h"

#include <algorithm>

namespace halfpage {
namespace {

uint32_t BufferBytes(uint32_t length, ExactRoom room) {
  return (static_cast<uint32_t>(sizeof(rte_mbuf)) + room.headroom + length + room.tailroom + kCacheLine - 1) &
         ~(kCacheLine - 1);
}

inline void Store(char* buffer, size_t offset, uint64_t value) {
  __builtin_memcpy(buffer + offset, &value, sizeof(value));
}

// Writes a whole mbuf as rte_pktmbuf_init() and rte_pktmbuf_reset() leave one, in one go: each line is written once, by
// plain 8 and 16 byte stores that nothing reads back in pieces.
inline rte_mbuf* WriteMbuf(char* buffer, uintptr_t iova_offset, rte_mempool* mempool, uint32_t length, uint32_t bytes,
                           uint16_t headroom) {
  const uint64_t room = bytes - sizeof(rte_mbuf);
  const uintptr_t data = reinterpret_cast<uintptr_t>(buffer) + sizeof(rte_mbuf);
  Store(buffer, 0, data);
  Store(buffer, 8, data + iova_offset);
  // rearm_data: data_off, refcnt 1, nb_segs 1, port RTE_MBUF_PORT_INVALID
  Store(buffer, 16, headroom | uint64_t{1} << 16 | uint64_t{1} << 32 | uint64_t{UINT16_MAX} << 48);
  Store(buffer, 24, 0);                                    // ol_flags
  Store(buffer, 32, static_cast<uint64_t>(length) << 32);  // packet_type, pkt_len
  Store(buffer, 40, length & UINT16_MAX);                  // data_len, vlan_tci, first half of hash
  Store(buffer, 48, room << 48);                           // second half of hash, vlan_tci_outer, buf_len
  Store(buffer, 56, reinterpret_cast<uintptr_t>(mempool));
  // next, tx_offload, shinfo, priv_size, timesync, dynamic fields
  __builtin_memset(buffer + kCacheLine, 0, kCacheLine);
  return reinterpret_cast<rte_mbuf*>(buffer);
}

static_assert(offsetof(rte_mbuf, rearm_data) == 16 && offsetof(rte_mbuf, ol_flags) == 24 &&
                  offsetof(rte_mbuf, pkt_len) == 36 && offsetof(rte_mbuf, data_len) == 40 &&
                  offsetof(rte_mbuf, buf_len) == 54 && offsetof(rte_mbuf, pool) == 56 && sizeof(rte_mbuf) == 128,
              "WriteMbuf() knows where the fields are");

}  // namespace

uint16_t ExactFrag::AllocBulk(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n, ExactRoom room) {
  Lane* lane = pool_->OwnLane();
  if (unlikely(lane == nullptr)) {
    const uint16_t given = Fill(pool_->EnterSharedLane(), buffers, lengths, n, room);
    pool_->LeaveSharedLane();
    return given;
  }
  LaneCall call(*lane);
  if (unlikely((lane->special.load(std::memory_order_acquire) & kAsked) != 0)) pool_->arena->LendLane(*lane);
  return Fill(lane, buffers, lengths, n, room);
}

uint16_t ExactFrag::Fill(Lane* lane, rte_mbuf** buffers, const uint32_t* lengths, uint16_t n, ExactRoom room) {
  const auto claimed = static_cast<uint16_t>(pool_->ClaimUpTo(*lane, n));
  // The open page's state stays in registers over the burst: through memory each buffer would wait for the last one's.
  const uint32_t largest = pool_->largest_exact;
  ExactPage open = lane->exact;
  uint16_t given = 0;
  for (; given < claimed; ++given) {
    const uint32_t bytes = BufferBytes(lengths[given], room);
    if (unlikely(bytes > largest)) break;
    if (unlikely(static_cast<size_t>(open.end - open.next) < bytes)) {
      lane->exact = open;
      const bool opened = pool_->OpenExactPage(*lane);
      open = lane->exact;
      if (!opened) break;
    }
    buffers[given] = WriteMbuf(open.next, open.iova_offset, mempool_, lengths[given], bytes, room.headroom);
    open.next += bytes;
    ++open.carved;
  }
  lane->exact = open;
  if (unlikely(lane->prefetch) && given != 0) pool_->PrefetchNextExact(*lane, BufferBytes(lengths[given - 1], room));
  if (unlikely(given != n)) {
    pool_->ReturnClaims(*lane, claimed - given);
    pool_->NoBuffer(*lane);
  }
  return given;
}

uint32_t ExactFrag::longest(ExactRoom room) const {
  return pool_->largest_exact - static_cast<uint32_t>(sizeof(rte_mbuf)) - room.headroom - room.tailroom;
}

rte_mbuf* ExactFrag::Alloc(uint32_t length, ExactRoom room) {
  rte_mbuf* first = nullptr;
  rte_mbuf* last = nullptr;
  do {
    const ExactRoom middle = {first == nullptr ? room.headroom : uint16_t{0}, 0};
    const bool end = length <= longest({middle.headroom, room.tailroom});
    const ExactRoom here = {middle.headroom, end ? room.tailroom : uint16_t{0}};
    const uint32_t piece = std::min(length, longest(here));
    rte_mbuf* segment = nullptr;
    if (AllocBulk(&segment, &piece, 1, here) == 0) {
      rte_pktmbuf_free(first);
      return nullptr;
    }
    if (first == nullptr) {
      first = segment;
    } else {
      last->next = segment;
      ++first->nb_segs;
      first->pkt_len += piece;
    }
    last = segment;
    length -= piece;
  } while (length != 0);
  return first;
}

int PageFragPool::TakeExact(Lane& lane, void** objects, uint32_t n) {
  // A plain allocation from an exact pool gets the pool's room. There is no mempool cache above whose array a failing
  // request could spoil.
  const uint32_t length = mempool->elt_size - static_cast<uint32_t>(sizeof(rte_mbuf));
  const uint32_t bytes = BufferBytes(length, {0, 0});
  if (n > mempool->size) return NoBuffer(lane);
  const uint32_t claimed = ClaimUpTo(lane, n);
  uint32_t given = 0;
  for (; given < claimed && claimed == n; ++given) {
    char* buffer = Carve(lane, bytes);
    if (buffer == nullptr) break;
    rte_mbuf* mbuf = WriteMbuf(buffer, lane.exact.iova_offset, mempool, 0, bytes, RTE_PKTMBUF_HEADROOM);
    mbuf->buf_len = static_cast<uint16_t>(length);
    objects[given] = mbuf;
  }
  if (given == n) return 0;
  ReturnClaims(lane, claimed - given);
  GiveExact(lane, objects, given);
  return NoBuffer(lane);
}

void PageFragPool::GiveExact(Lane& lane, void* const* objects, uint32_t n) {
  const uintptr_t page_mask = ~static_cast<uintptr_t>(layout.page_size() - 1);
  for (uint32_t i = 0; i < n;) {
    const uintptr_t page = reinterpret_cast<uintptr_t>(objects[i]) & page_mask;
    const uint32_t begin = i;
    do {
      ++i;
    } while (i < n && (reinterpret_cast<uintptr_t>(objects[i]) & page_mask) == page);
    CountFreed(lane, reinterpret_cast<char*>(page), i - begin);
  }
  ReturnClaims(lane, n);
}

void PageFragPool::CountFreed(Lane& lane, char* page, uint64_t count) {
  FreedCount& slot = lane.exact_table[NumberOf(page) % Lane::kExactSlots];
  if (slot.page == page) {
    count += slot.count;
  } else if (slot.page != nullptr) {
    SettleFreed(lane, slot.page, slot.count);
  }
  // All that was cut from the open page is back, and by this lcore: cut the same bytes again while they are in its
  // cache.
  if (page == lane.exact.page && count == lane.exact.carved && recycle == RecycleMode::kLifo) {
    lane.exact.next = page;
    lane.exact.carved = 0;
    slot.page = nullptr;
    return;
  }
  PageMeta& meta = Chunk::Of(page)->metas()[NumberOf(page)];
  // All that was out of a closed page, freed here: nobody else can touch its word any more.
  if (meta.free_bits.load(std::memory_order_acquire) == count) {
    meta.free_bits.store(0, std::memory_order_relaxed);
    slot.page = nullptr;
    Recycle(lane, page);
    return;
  }
  slot.page = page;
  slot.count = count;
}

// Takes `count` from the page's word and recycles the page if that was the last.
void PageFragPool::SettleFreed(Lane& lane, char* page, uint64_t count) {
  PageMeta& meta = Chunk::Of(page)->metas()[NumberOf(page)];
  const uint64_t before = meta.free_bits.fetch_sub(count, std::memory_order_acq_rel);
  if (before == count) Recycle(lane, page);
  // This lane's own page, some of whose buffers were freed elsewhere.
  if (count > kOpenBias / 2 && before != kOpenBias) lane.prefetch = true;
}

void PageFragPool::CloseExactPage(Lane& lane) {
  ExactPage& open = lane.exact;
  if (open.page == nullptr) return;
  char* page = open.page;
  open.page = open.next = open.end = nullptr;
  uint64_t settled = kOpenBias - open.carved;
  // Where pages come home on this lcore, the step that closes this one waits in the table for its last buffers, and
  // then none of it needs an atomic exchange. Elsewhere the other lcore waits for it.
  if (likely(!lane.prefetch)) return CountFreed(lane, page, settled);
  // What this lane has freed of it meanwhile is settled in the same step.
  FreedCount& slot = lane.exact_table[NumberOf(page) % Lane::kExactSlots];
  if (slot.page == page) {
    settled += slot.count;
    slot.page = nullptr;
  }
  SettleFreed(lane, page, settled);
}

bool PageFragPool::OpenExactPage(Lane& lane) {
  CloseExactPage(lane);
  if (lane.cache->size() == 0) {
    if (lane.cache->RefillFromRing(1, recycle, rotation, lane.counters)) {
      lane.prefetch = true;
    } else if (!lane.cache->RefillFromArena(1, lane.counters) &&
               (rotation == 0 || !lane.cache->RefillFromRing(1, recycle, 0, lane.counters))) {
      return false;
    }
  }
  ExactPage& open = lane.exact;
  open.page = lane.cache->Pop();
  open.next = open.page;
  open.end = open.page + layout.page_size();
  open.carved = 0;
  open.iova_offset = Chunk::Of(open.page)->iova_offset;
  PageMeta& meta = Chunk::Of(open.page)->metas()[NumberOf(open.page)];
  meta.free_bits.store(kOpenBias, std::memory_order_relaxed);
  meta.owner = static_cast<uint16_t>(lane.index);
  meta.tag = tag;
  lane.pages_opened.Add(1);
  return true;
}

void PageFragPool::FlushExact(Lane& lane) {
  CloseExactPage(lane);
  for (FreedCount& slot : lane.exact_table) {
    if (slot.page == nullptr) continue;
    SettleFreed(lane, slot.page, slot.count);
    slot.page = nullptr;
  }
  budget.fetch_add(lane.credit.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace halfpage
