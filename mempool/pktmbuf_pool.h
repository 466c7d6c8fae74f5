// Packet-buffer pools as values: a PktmbufPoolConfig says what is wanted, a PktmbufPool owns the rte_mempool.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mempool/page_frag_settings.h"

struct rte_mempool;

namespace halfpage {

// What a packet-buffer pool is made of. Every field has the default that a run without that key gets.
struct PktmbufPoolConfig {
  std::string name = "packets";   // 1 to 25 bytes (RTE_MEMPOOL_NAMESIZE less "MP_"), unique in the process
  std::string ops = "page_frag";  // any registered mempool handler: page_frag, ring_mp_mc, stack, ...
  uint32_t size = 16384;          // buffers that can be out at once (testpmd --total-num-mbufs)
  uint16_t data_room = 2176;      // bytes behind each mbuf, RTE_PKTMBUF_HEADROOM (128) included (--mbuf-size)
  uint32_t cache = 256;           // objects of the per-lcore mempool cache (testpmd --mbcache); 0 to 512
  int socket = -1;                // NUMA node, -1 for any
  PageFragSettings page_frag;     // used only where `ops` is page_frag
};

// Move-only owner of one pool of packet buffers.
//
// Destruction flushes and frees the pool. Whoever holds buffers at that time holds dangling memory, so the owner first
// drains ports and rings (see the teardown order in app/README.md) and looks at `in_use()`.
class PktmbufPool {
 public:
  // Creates the pool. Errors: InvalidArgument for a value DPDK would refuse (with the rule), NotFound for a handler
  // that is not registered and for a socket that is not there, ResourceExhausted when memory does not suffice (with the
  // bytes asked for), AlreadyExists for a name that is taken. Control threads only, EAL must be up.
  static absl::StatusOr<PktmbufPool> Create(const PktmbufPoolConfig& config);

  PktmbufPool(PktmbufPool&& other) noexcept;
  PktmbufPool& operator=(PktmbufPool&& other) noexcept;
  PktmbufPool(const PktmbufPool&) = delete;
  PktmbufPool& operator=(const PktmbufPool&) = delete;
  ~PktmbufPool();

  rte_mempool* get() const { return pool_; }
  const PktmbufPoolConfig& config() const { return config_; }

  // Buffers that neither the pool nor a per-lcore mempool cache holds. Exact while no thread uses the pool.
  uint32_t in_use() const;

  // Waits up to `seconds` for the buffers that are out, then frees the pool; at once where none is. Lcores may go on
  // freeing meanwhile, and must not be in a call on the pool any more when the last buffer is back. Error:
  // DeadlineExceeded with the number of buffers, their pages and the time; the pool then stays as it is, so that a late
  // free finds it and corrupts nothing, its pages go home by such frees, and Destroy() may be called again. Control
  // threads. After success this object is empty: it may only be assigned to or destroyed.
  absl::Status Destroy(double seconds);

  // The same for the end of everything: waits up to `seconds`, and then takes back the pages of what is still out and
  // frees the pool all the same. Only where whoever may hold a buffer is gone (lcores joined, ports closed, sinks
  // emptied): a late free would find no pool. Gives what was lost, all zero for nothing. Control threads. This object
  // is empty afterwards.
  struct Lost {
    uint32_t buffers = 0;
    uint64_t pages = 0;  // of page_frag: taken back into its arena; of others 0, their memory goes as a whole
    double waited = 0;   // seconds
  };
  Lost DestroyAndReclaim(double seconds);

  // Moves everything that lcores hold back for this pool (mempool caches, carved pages, free-side tables) to where it
  // came from, so that what is still out afterwards is really in somebody's hands. No thread may use the pool
  // meanwhile.
  void Flush();

 private:
  PktmbufPool(rte_mempool* pool, PktmbufPoolConfig config) : pool_(pool), config_(std::move(config)) {}
  void Free();
  // Waits until nothing is out, at most so long; gives how long, in seconds.
  double AwaitReturn(double seconds) const;

  rte_mempool* pool_ = nullptr;
  PktmbufPoolConfig config_;
};

}  // namespace halfpage
