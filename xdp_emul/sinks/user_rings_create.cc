#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "xdp_emul/sinks/user_rings.h"

namespace halfpage {

absl::StatusOr<std::unique_ptr<UserRings>> UserRings::Create(const UserRingsOptions& options) {
  auto rings = std::make_unique<UserRings>();
  rings->options = options;
  struct {
    OwnedRing* ring;
    const char* suffix;
    uint32_t element;
    bool many_producers;
    bool many_consumers;
  } const wanted[] = {
      // Several senders race for slots: who lost puts its chunks back.
      {&rings->fill, "_fill", sizeof(uint32_t), options.many_senders, options.many_senders},
      {&rings->rx, "_rx", sizeof(UserDescriptor), options.many_senders, false},
      {&rings->tx, "_tx", sizeof(UserDescriptor), false, false},
      {&rings->completion, "_comp", sizeof(uint32_t), false, false},
  };
  for (const auto& [ring, suffix, element, many_producers, many_consumers] : wanted) {
    auto made = MakeRing({.name = absl::StrCat(options.name, suffix),
                          .slots = options.ring,
                          .element_bytes = element,
                          .many_producers = many_producers,
                          .many_consumers = many_consumers});
    if (!made.ok()) return made.status();
    *ring = *std::move(made);
  }
  rings->frames = std::make_unique<rte_mbuf*[]>(options.chunks);
  return rings;
}

UserRings::~UserRings() {
  if (rx != nullptr) Flush();
}

uint32_t UserRings::Waiting() const {
  return rte_ring_count(rx.get());
}

// The reader leaves nothing on the tx ring between its rounds.
uint64_t UserRings::Flush() {
  uint64_t freed = 0;
  UserDescriptor at;
  for (; rte_ring_dequeue_elem(rx.get(), &at, sizeof(at)) == 0; ++freed) rte_pktmbuf_free(frames[at.chunk]);
  return freed;
}

void Bind(UserReader& reader, UserRings* rings) {
  reader.rings = rings;
  reader.spare = std::make_unique<uint32_t[]>(rings->options.chunks);
  reader.spare_count = rings->options.chunks;
  for (uint32_t chunk = 0; chunk < reader.spare_count; ++chunk) {
    reader.spare[chunk] = reader.spare_count - 1 - chunk;  // the lowest goes first
  }
  const uint32_t filled = reader.spare_count < rings->options.ring ? reader.spare_count : rings->options.ring;
  for (uint32_t i = 0; i < filled; ++i) {
    rte_ring_enqueue_elem(rings->fill.get(), &reader.spare[--reader.spare_count], sizeof(uint32_t));
  }
}

}  // namespace halfpage
