// Packet buffers of exactly the asked size, for callers that know the length.
//
// A buffer is a mbuf and its room in one piece, cut from a page at the next free byte. There is no object header in
// front: only rte_mempool_from_obj() and debug builds of DPDK read one. Buffers are freed like any other
// (rte_pktmbuf_free and kin) and return to their page by way of the pool's handler.
//
// Pages that hold buffers of different ages stay as long as the oldest: keep such pages small, or such packets short.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "mempool/page_frag_pool.h"
#include "mempool/pktmbuf_pool.h"

namespace halfpage {

struct ExactFragConfig {
  std::string name = "exact";
  uint32_t size = 16384;       // buffers that can be out at once
  uint32_t page_size = 32768;  // bytes, a power of two from 4 KiB to 128 KiB
  int socket = -1;             // NUMA node, -1 for any
  RecycleMode recycle = RecycleMode::kLifo;
  uint32_t rotation = 0;  // as PageFragSettings::rotation
};

// Bytes before and behind the data of each buffer.
struct ExactRoom {
  uint16_t headroom = RTE_PKTMBUF_HEADROOM;
  uint16_t tailroom = 0;
};

// Move-only owner of a pool of exact buffers. All lcores may allocate from it and free to it; a thread without an lcore
// id goes through the pool's shared lane.
class ExactFrag {
 public:
  // Errors: those of PktmbufPool::Create; InvalidArgument for a page size that is none. Control threads only.
  static absl::StatusOr<ExactFrag> Create(const ExactFragConfig& config);

  // The same over a pool that somebody else owns and that outlives it. Errors: InvalidArgument for a pool that was not
  // made with PageFragSettings::exact.
  static absl::StatusOr<ExactFrag> Over(rte_mempool* pool);

  ExactFrag(ExactFrag&&) = default;
  ExactFrag& operator=(ExactFrag&&) = default;

  // Fills `buffers` with buffers of `lengths[i]` bytes each (data_len and pkt_len say so; what the bytes are is not
  // said), and gives how many: fewer than `n` when the pool's size or memory is used up. A length that no single buffer
  // of this pool can have (longest()) ends it as well. Never blocks; takes a lock only to get more pages. Hot.
  uint16_t AllocBulk(rte_mbuf** buffers, const uint32_t* lengths, uint16_t n, ExactRoom room);

  // One buffer, or a chain where `length` is past longest(); null when the pool is used up. Only the first segment has
  // headroom, only the last has tailroom.
  rte_mbuf* Alloc(uint32_t length, ExactRoom room);

  // The longest buffer in one piece.
  uint32_t longest(ExactRoom room) const;

  rte_mempool* get() const { return mempool_; }
  uint32_t in_use() const { return rte_mempool_in_use_count(mempool_); }
  void Flush() { pool_->Flush(); }  // as PktmbufPool::Flush(): there is no mempool cache above

 private:
  explicit ExactFrag(rte_mempool* pool);
  uint16_t Fill(Lane* lane, rte_mbuf** buffers, const uint32_t* lengths, uint16_t n, ExactRoom room);

  absl::optional<PktmbufPool> owner_;  // nothing: the pool is another's
  rte_mempool* mempool_;
  PageFragPool* pool_;  // what the handler keeps behind it
};

}  // namespace halfpage
