// Hot path: counting what passes.
#include "xdp_emul/sinks/sink.h"

#include "xdp_emul/sinks/pcap_sink.h"
#include "xdp_emul/sinks/udp_socket.h"
#include "xdp_emul/sinks/user_rings.h"
#include "xdp_emul/transmit.h"

namespace halfpage {

namespace {

// Loses every so many-th frame for good, as a stage that forgets to free does.
uint16_t Keep(SinkLane& lane, rte_mbuf** frames, uint16_t n) {
  uint16_t left = 0;
  for (uint16_t i = 0; i < n; ++i) {
    if (--lane.until_keep != 0) {
      frames[left++] = frames[i];
      continue;
    }
    lane.until_keep = lane.keep_every;
    lane.kept.Add(1);
  }
  return left;
}

// A burst is one flush: a real port may make a system call of each (net_af_packet does).
void SendOn(SinkLane& lane, uint16_t queue, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  const SendResult result = Send(*lane.onward, queue % lane.onward->queues, frames, n, kMaxBurst, facts);
  lane.sent.Add(result.sent);
  if (__builtin_expect(result.sent == n, 1)) return;
  for (int reason = 0; reason < kRefusals; ++reason) lane.refused[reason].Add(result.refused[reason]);
}

}  // namespace

void Consume(SinkLane& lane, uint16_t queue, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  lane.frames.Add(n);
  lane.bytes.Add(facts.bytes);
  if (__builtin_expect(lane.capture != nullptr, 0)) lane.capture->Record(frames, n);
  if (__builtin_expect(lane.keep_every != 0, 0)) n = Keep(lane, frames, n);
  if (lane.onward != nullptr) {
    SendOn(lane, queue, frames, n, facts);
  } else if (lane.socket != nullptr) {
    Enqueue(*lane.socket, frames, n);
  } else if (lane.user != nullptr) {
    Receive(*lane.user, frames, n);
  } else {
    FreeBurst(frames, n, facts);
  }
}

}  // namespace halfpage
