// Hot path: the rare part of sending.
#include "xdp_emul/transmit.h"

namespace halfpage {

uint16_t DropLongerThan(rte_mbuf** frames, uint16_t n, uint32_t limit) {
  uint16_t kept = 0;
  for (uint16_t i = 0; i < n; ++i) {
    if (frames[i]->pkt_len <= limit) {
      frames[kept++] = frames[i];
    } else {
      rte_pktmbuf_free(frames[i]);
    }
  }
  return kept;
}

}  // namespace halfpage
