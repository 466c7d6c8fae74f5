// Hot path: counting what passes.
#include "xdp_emul/sinks/sink.h"

#include "xdp_emul/sinks/pcap_sink.h"

namespace halfpage {

void Consume(SinkLane& lane, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  lane.frames.Add(n);
  lane.bytes.Add(facts.bytes);
  if (__builtin_expect(lane.capture != nullptr, 0)) lane.capture->Record(frames, n);
  FreeBurst(frames, n, facts);
}

}  // namespace halfpage
