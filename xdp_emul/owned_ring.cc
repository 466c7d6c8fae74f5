#include "xdp_emul/owned_ring.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace halfpage {

void RingFreer::operator()(rte_ring* ring) const {
  rte_ring_free(ring);
}

absl::StatusOr<OwnedRing> MakeRing(const RingOptions& options) {
  const unsigned flags =
      RING_F_EXACT_SZ | (options.many_producers ? 0u : RING_F_SP_ENQ) | (options.many_consumers ? 0u : RING_F_SC_DEQ);
  OwnedRing ring(
      rte_ring_create_elem(options.name.c_str(), options.element_bytes, options.slots, options.socket, flags));
  if (ring != nullptr) return ring;
  const std::string what = absl::StrFormat("ring %s of %u slots", options.name, options.slots);
  if (rte_errno == ENOMEM || rte_errno == ENOSPC) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: %s; raise eal.memory or ask for fewer slots", what, rte_strerror(rte_errno)));
  }
  return absl::ErrnoToStatus(rte_errno, what);
}

uint64_t FreeFramesIn(rte_ring* ring) {
  uint64_t freed = 0;
  for (void* frame = nullptr; rte_ring_dequeue(ring, &frame) == 0; ++freed) {
    rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  }
  return freed;
}

}  // namespace halfpage
