// Hot path: where frames go that pass: counted and freed, or written to a capture first.
#pragma once

#include <cstdint>

#include "mempool/counter.h"
#include "xdp_emul/burst_facts.h"

namespace halfpage {

class PcapSink;

// One worker's view of a sink. A count sink is nothing but this; a capture is shared behind a lock.
struct SinkLane {
  PcapSink* capture = nullptr;  // null: count only
  uint64_t keep_every = 0;      // fault injection: of so many frames one is never freed; 0: none
  uint64_t until_keep = 0;      // frames until the next that is kept
  Counter frames;
  Counter bytes;
  Counter kept;
};

// Consumes a burst that `facts` was taken of; the frames are gone afterwards. Hot; the worker that owns `lane`.
void Consume(SinkLane& lane, rte_mbuf** frames, uint16_t n, const BurstFacts& facts);

}  // namespace halfpage
