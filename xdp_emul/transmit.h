// Hot path: sending into a device end, with every frame accounted for.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "mempool/counter.h"
#include "xdp_emul/burst_facts.h"
#include "xdp_emul/program.h"
#include "xdp_emul/refusal.h"

namespace halfpage {

// One worker's way into one device end. Frames sent through an end are received by its peer.
struct Transmit {
  uint16_t port = 0;
  uint16_t queues = 1;
  uint32_t frame_limit = 0;  // longest frame the peer takes: its MTU + 14 + 4
  Counter sent;
  Counter refused[kRefusals];
};

// What became of the frames of one send.
struct SendResult {
  uint16_t sent = 0;
  uint16_t ring_full = 0;
  uint16_t mtu = 0;
};

// Drops the frames of a burst that are longer than `limit`, keeping order. Gives how many stay.
uint16_t DropLongerThan(rte_mbuf** frames, uint16_t n, uint32_t limit);

// Sends `n` frames in flushes of at most `bulk`, as a bulk queue on the poll's stack does: none outlives the call, and
// none meets another device's. The frames are gone afterwards: what the ring refuses or the MTU forbids is freed and
// counted. `facts` holds for the frames, or for a burst that they are part of. Hot; the worker that owns `to`.
inline SendResult Send(Transmit& to, uint16_t queue, rte_mbuf** frames, uint16_t n, uint16_t bulk,
                       const BurstFacts& facts) {
  SendResult result;
  if (__builtin_expect(facts.longest > to.frame_limit, 0)) {
    const uint16_t kept = DropLongerThan(frames, n, to.frame_limit);
    result.mtu = n - kept;
    to.refused[static_cast<int>(Refusal::kMtu)].Add(result.mtu);
    n = kept;
  }
  for (uint16_t begin = 0; begin < n; begin += bulk) {
    const uint16_t want = n - begin < bulk ? n - begin : bulk;
    const uint16_t taken = rte_eth_tx_burst(to.port, queue, frames + begin, want);
    result.sent += taken;
    if (__builtin_expect(taken != want, 0)) {
      result.ring_full += want - taken;
      FreeBurst(frames + begin + taken, want - taken, facts);
    }
  }
  to.sent.Add(result.sent);
  if (__builtin_expect(result.ring_full != 0, 0)) {
    to.refused[static_cast<int>(Refusal::kRingFull)].Add(result.ring_full);
  }
  return result;
}

}  // namespace halfpage
