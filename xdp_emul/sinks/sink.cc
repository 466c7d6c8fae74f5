// Hot path: counting what passes.
#include "xdp_emul/sinks/sink.h"

#include "xdp_emul/sinks/pcap_sink.h"

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

}  // namespace

void Consume(SinkLane& lane, rte_mbuf** frames, uint16_t n, const BurstFacts& facts) {
  lane.frames.Add(n);
  lane.bytes.Add(facts.bytes);
  if (__builtin_expect(lane.capture != nullptr, 0)) lane.capture->Record(frames, n);
  if (__builtin_expect(lane.keep_every != 0, 0)) n = Keep(lane, frames, n);
  FreeBurst(frames, n, facts);
}

}  // namespace halfpage
