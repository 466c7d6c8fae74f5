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
  Counter frames;
  Counter bytes;
};

// Consumes a burst that `facts` was taken of; the frames are gone afterwards. Hot; the worker that owns `lane`.
void Consume(SinkLane& lane, rte_mbuf** frames, uint16_t n, const BurstFacts& facts);

}  // namespace halfpage
