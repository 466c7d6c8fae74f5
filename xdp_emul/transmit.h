// Hot path: sending into a device end, with every frame accounted for.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "mempool/counter.h"
#include "xdp_emul/burst_facts.h"
#include "xdp_emul/program.h"
#include "xdp_emul/refusal.h"

namespace halfpage {

// One worker's way into one device. What is sent through an end of a pair is received by its peer; what is sent through
// a real port leaves the process.
struct Transmit {
  uint16_t port = 0;
  uint16_t queues = 1;
  // Longest frame that goes as it is: MTU of the pair's peer + 14 + 4. 0 for a real port, whose frames all get a look.
  uint32_t frame_limit = 0;
  bool takes_gso =
      false;  // frames marked for segmentation may be longer: the peer has no program, or one that takes frags
  rte_mempool* spare = nullptr;  // segments, and copies in one buffer, come from here; null: there are none
  bool sends_chains = true;      // frames that are made to fit may have several buffers: segments, and all for a driver
  // Of a real port.
  bool real = false;
  uint16_t first_queue = 0;  // transmit queue of this worker, nobody else's
  uint32_t real_limit = 0;   // longest frame with a VLAN tag, 4 less without
  // Where not kOpen, nothing passes, and this is why (a value of Refusal): of XDP_TX and redirects, of all frames. A
  // device that is closed to all has a frame_limit of 0, too.
  static constexpr int kOpen = -1;
  int xdp_closed = kOpen;
  int closed = kOpen;
  Counter sent;  // by the device
  Counter refused[kRefusals];
  // Frames that were segmented and at least one segment of which was sent, segments sent, and segments of such frames
  // that were refused. Senders count a segmented frame as one: their sum is sent - segments + segmented.
  Counter segmented;
  Counter segments;
  Counter segments_lost;
  Counter gathered;  // copied into one buffer for a driver that sends no chains
};

// What became of the frames of one send: sent + refused of all reasons = frames handed over.
struct SendResult {
  uint16_t sent = 0;
  uint16_t refused[kRefusals] = {};
};

// Sends a burst in which some frames may not go as they are: too long, marked for segmentation, or bound for a real
// port. As Send() otherwise.
SendResult SendFitted(Transmit& to, uint16_t queue, rte_mbuf** frames, uint16_t n, uint16_t bulk);

// Frees frames that may not pass and counts them as refused for `reason`, a value of Refusal.
SendResult RefuseAll(Transmit& to, rte_mbuf** frames, uint16_t n, int reason);

// Sends `n` frames in flushes of at most `bulk`, as a bulk queue on the poll's stack does: none outlives the call, and
// none meets another device's. The frames are gone afterwards: what the ring refuses or the MTU forbids is freed and
// counted. `facts` holds for the frames, or for a burst that they are part of. Hot; the worker that owns `to`.
inline SendResult Send(Transmit& to, uint16_t queue, rte_mbuf** frames, uint16_t n, uint16_t bulk,
                       const BurstFacts& facts) {
  if (__builtin_expect(facts.longest > to.frame_limit, 0)) return SendFitted(to, queue, frames, n, bulk);
  SendResult result;
  for (uint16_t begin = 0; begin < n; begin += bulk) {
    const uint16_t want = n - begin < bulk ? n - begin : bulk;
    const uint16_t taken = rte_eth_tx_burst(to.port, queue, frames + begin, want);
    result.sent += taken;
    if (__builtin_expect(taken != want, 0)) FreeBurst(frames + begin + taken, want - taken, facts);
  }
  to.sent.Add(result.sent);
  if (__builtin_expect(result.sent != n, 0)) {
    result.refused[static_cast<int>(Refusal::kRingFull)] = n - result.sent;
    to.refused[static_cast<int>(Refusal::kRingFull)].Add(n - result.sent);
  }
  return result;
}

}  // namespace halfpage
