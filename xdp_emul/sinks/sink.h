// Hot path: where frames go that pass: counted and freed, written to a capture first, sent on through a device, or kept
// for a reader.
#pragma once

#include <cstdint>

#include "mempool/counter.h"
#include "xdp_emul/burst_facts.h"
#include "xdp_emul/refusal.h"

namespace halfpage {

class PcapSink;
struct Transmit;
struct UdpLane;
struct UserLane;

// One worker's view of a sink. A count sink is nothing but this; a capture is shared behind a lock.
struct SinkLane {
  PcapSink* capture = nullptr;  // null: no capture
  Transmit* onward = nullptr;   // this worker's way into the device that frames leave through; null: they are freed
  UdpLane* socket = nullptr;    // this worker's way into a socket's queue; null: none
  UserLane* user = nullptr;     // this worker's way into a user's rings; null: none
  uint64_t keep_every = 0;      // fault injection: of so many frames one is never freed; 0: none
  uint64_t until_keep = 0;      // frames until the next that is kept
  Counter frames;
  Counter bytes;
  Counter kept;
  Counter sent;  // onward; sent + refused = frames - kept
  Counter refused[kRefusals];
};

// Consumes a burst that `facts` was taken of, received from queue `queue`; the frames are gone afterwards. Hot; the
// worker that owns `lane`.
void Consume(SinkLane& lane, uint16_t queue, rte_mbuf** frames, uint16_t n, const BurstFacts& facts);

}  // namespace halfpage
