// A user's set of rings, as an AF_XDP socket has it: fill, rx, tx and completion around a number of chunks.
//
// A received frame takes a chunk off the fill ring and is described on the rx ring; the reader describes it on the tx
// ring to have it sent and gets the chunk back by the completion ring, or just puts the chunk back on the fill ring. A
// chunk names the frame's own buffer: nothing is copied, as with zero-copy drivers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mempool/counter.h"
#include "xdp_emul/owned_ring.h"
#include "xdp_emul/refusal.h"
#include "xdp_emul/sinks/pace.h"

struct rte_mbuf;

namespace halfpage {

struct Transmit;

struct UserRingsOptions {
  std::string name;           // of its rings, at most 20 bytes, unique in the process
  uint32_t ring = 2048;       // slots of each ring (libxdp: XSK_RING_PROD__DEFAULT_NUM_DESCS)
  uint32_t chunks = 4096;     // frames that it can hold at once, in rings or in the reader's hands
  bool many_senders = false;  // several workers pass frames to it
};

// What rx and tx rings hold (kernel: struct xdp_desc).
struct UserDescriptor {
  uint32_t chunk;
  uint32_t length;
};

struct UserRings {
  // Makes the rings, all chunks in the reader's hands. Errors: what MakeRing() says. Control threads only.
  static absl::StatusOr<std::unique_ptr<UserRings>> Create(const UserRingsOptions& options);
  ~UserRings();

  uint32_t Waiting() const;  // frames that the reader has not seen; any thread
  uint64_t Flush();          // frees those and gives how many; senders and reader have stopped

  UserRingsOptions options;
  OwnedRing fill;                       // uint32_t: chunks that frames may take
  OwnedRing rx;                         // UserDescriptor: frames that were received
  OwnedRing tx;                         // UserDescriptor: frames to send
  OwnedRing completion;                 // uint32_t: chunks of frames that were sent or refused
  std::unique_ptr<rte_mbuf*[]> frames;  // by chunk; whoever holds the chunk holds the frame
};

// One sending worker's way into the rings: frames passed = fill_ring_empty + rx_ring_full + queued. The counters are
// named as the kernel's xdp_statistics.
struct alignas(64) UserLane {
  UserRings* rings = nullptr;
  Counter queued;
  Counter fill_ring_empty;  // the reader has put back too few chunks
  Counter rx_ring_full;
  Counter most_held;  // the most frames that were on the rx ring just after one of this worker's bursts
};

// Describes as many of `n` (at most 64) frames as there are chunks and slots for, and frees the others: the frames are
// gone afterwards. Hot; the worker that owns `lane`.
void Receive(UserLane& lane, rte_mbuf** frames, uint16_t n);

// The reading worker's end. frames = freed + sent + send_errors.
struct alignas(64) UserReader {
  UserRings* rings = nullptr;
  uint16_t budget = 64;  // frames per call, at most 64
  Pace pace;
  Transmit* way = nullptr;            // into the device that it is bound to; null: it drops what it reads
  uint16_t bulk = 16;                 // frames per flush there
  std::unique_ptr<uint32_t[]> spare;  // chunks in the reader's hands, `chunks` places
  uint32_t spare_count = 0;
  Counter frames;
  Counter bytes;
  Counter freed;
  Counter sent;
  Counter send_errors[kRefusals];
};

// Binds a reader to `rings`, whose chunks it takes: one reader, once.
void Bind(UserReader& reader, UserRings* rings);

// One round of a user program: takes what is due at `now` (TSC) off the rx ring, drops it or sends it back with swapped
// addresses, reaps completions, fills. Gives how many frames it took. Hot; the worker that owns `reader`.
uint16_t ServeUser(UserReader& reader, uint64_t now);

}  // namespace halfpage
