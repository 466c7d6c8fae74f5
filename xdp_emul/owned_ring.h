// Rings of our own, beside those of the devices: freed with whoever owns them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

struct rte_ring;

namespace halfpage {

struct RingFreer {
  void operator()(rte_ring* ring) const;
};
using OwnedRing = std::unique_ptr<rte_ring, RingFreer>;

struct RingOptions {
  std::string name;             // unique in the process, at most 28 bytes
  uint32_t slots = 0;           // usable, any number
  uint32_t element_bytes = 8;   // a multiple of 4; 8 for pointers to frames
  bool many_producers = false;  // several lcores put, else one
  bool many_consumers = false;  // several lcores take, else one
  int socket = -1;              // NUMA node, -1 for any
};

// Errors: ResourceExhausted without memory, else DPDK's, with the ring's name. Control threads only.
absl::StatusOr<OwnedRing> MakeRing(const RingOptions& options);

// Frees the frames that a ring of pointers still holds and gives how many. Nobody else may use the ring meanwhile.
uint64_t FreeFramesIn(rte_ring* ring);

}  // namespace halfpage
