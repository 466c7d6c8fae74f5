// Hot path: gives frames back to their pools, chains of buffers of several pools among them.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

namespace halfpage {

// Frees `n` frames, as rte_pktmbuf_free_bulk does: of each segment one reference, the buffer once nobody else holds it.
// It keeps what goes back apart by pool, so that a chain of buffers of two pools costs no more puts than one of one
// pool; DPDK's puts back at each change of the pool. Null entries are allowed. Any thread.
void FreeFrames(rte_mbuf** frames, uint32_t n);

}  // namespace halfpage
