// Hot path: both sides of a user's rings.
#include "xdp_emul/sinks/user_rings.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "xdp_emul/free_frames.h"
#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"
#include "xdp_emul/transmit.h"

namespace halfpage {
namespace {

constexpr unsigned kChunk = sizeof(uint32_t);
constexpr unsigned kDescriptor = sizeof(UserDescriptor);

uint16_t Take(rte_ring* ring, void* elements, unsigned size, uint16_t most) {
  return static_cast<uint16_t>(rte_ring_dequeue_burst_elem(ring, elements, size, most, nullptr));
}

uint16_t Put(rte_ring* ring, const void* elements, unsigned size, uint16_t n) {
  return static_cast<uint16_t>(rte_ring_enqueue_burst_elem(ring, elements, size, n, nullptr));
}

void KeepChunks(UserReader& reader, const uint32_t* chunks, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) reader.spare[reader.spare_count++] = chunks[i];
}

// What sendto() does in the caller's context: sends what is on the tx ring and completes it, taken or not.
void Kick(UserReader& reader) {
  UserRings& rings = *reader.rings;
  UserDescriptor at[kMaxBurst];
  while (const uint16_t n = Take(rings.tx.get(), at, kDescriptor, kMaxBurst)) {
    rte_mbuf* frames[kMaxBurst];
    uint32_t chunks[kMaxBurst];
    for (uint16_t i = 0; i < n; ++i) {
      chunks[i] = at[i].chunk;
      frames[i] = rings.frames[at[i].chunk];
    }
    const SendResult result = Send(*reader.way, 0, frames, n, reader.bulk, Survey(frames, n));
    reader.sent.Add(result.sent);
    if (__builtin_expect(result.sent != n, 0)) {
      for (int reason = 0; reason < kRefusals; ++reason) reader.send_errors[reason].Add(result.refused[reason]);
    }
    Put(rings.completion.get(), chunks, kChunk, n);
  }
}

void SendBack(UserReader& reader, const UserDescriptor* at, uint16_t n) {
  UserRings& rings = *reader.rings;
  for (uint16_t i = 0; i < n; ++i) SwapAddresses(rings.frames[at[i].chunk]);
  for (uint16_t begin = 0; begin < n;) {  // a tx ring may be shorter than a burst
    begin += Put(rings.tx.get(), at + begin, kDescriptor, n - begin);
    Kick(reader);
    uint32_t chunks[kMaxBurst];
    while (const uint16_t done = Take(rings.completion.get(), chunks, kChunk, kMaxBurst)) {
      KeepChunks(reader, chunks, done);
    }
  }
}

void Drop(UserReader& reader, const UserDescriptor* at, uint16_t n) {
  rte_mbuf* frames[kMaxBurst];
  uint32_t chunks[kMaxBurst];
  for (uint16_t i = 0; i < n; ++i) {
    chunks[i] = at[i].chunk;
    frames[i] = reader.rings->frames[at[i].chunk];
  }
  FreeFrames(frames, n);
  reader.freed.Add(n);
  KeepChunks(reader, chunks, n);
}

void Fill(UserReader& reader) {
  const uint32_t most = reader.spare_count < kMaxBurst ? reader.spare_count : kMaxBurst;
  if (most == 0) return;
  const uint32_t* last = reader.spare.get() + reader.spare_count - most;
  // The last of them that did not fit stay in hand: they are the first ones of the row that was offered.
  uint32_t chunks[kMaxBurst];
  for (uint32_t i = 0; i < most; ++i) chunks[i] = last[most - 1 - i];
  reader.spare_count -= Put(reader.rings->fill.get(), chunks, kChunk, static_cast<uint16_t>(most));
}

}  // namespace

void Receive(UserLane& lane, rte_mbuf** frames, uint16_t n) {
  UserRings& rings = *lane.rings;
  const uint32_t room = rte_ring_free_count(rings.rx.get());
  const uint16_t wanted = room < n ? static_cast<uint16_t>(room) : n;
  uint32_t chunks[kMaxBurst];
  UserDescriptor at[kMaxBurst];
  const uint16_t filled = Take(rings.fill.get(), chunks, kChunk, wanted);
  for (uint16_t i = 0; i < filled; ++i) {
    rings.frames[chunks[i]] = frames[i];
    at[i] = {chunks[i], frames[i]->pkt_len};
  }
  const uint16_t queued = Put(rings.rx.get(), at, kDescriptor, filled);
  lane.queued.Add(queued);
  const uint64_t held = rte_ring_count(rings.rx.get());
  if (held > lane.most_held.Read()) lane.most_held.Add(held - lane.most_held.Read());
  if (__builtin_expect(queued == n, 1)) return;
  // Another sender was faster than the look at the room: the chunks go back.
  if (queued != filled) Put(rings.fill.get(), chunks + queued, kChunk, filled - queued);
  lane.fill_ring_empty.Add(wanted - filled);
  lane.rx_ring_full.Add(n - wanted + filled - queued);
  FreeFrames(frames + queued, n - queued);
}

uint16_t ServeUser(UserReader& reader, uint64_t now) {
  UserDescriptor at[kMaxBurst];
  const uint16_t due = reader.pace.Due(now, reader.budget);
  const uint16_t n = due == 0 ? 0 : Take(reader.rings->rx.get(), at, kDescriptor, due);
  reader.pace.Took(now, n, reader.budget);
  if (n != 0) {
    uint64_t bytes = 0;
    for (uint16_t i = 0; i < n; ++i) bytes += at[i].length;
    reader.frames.Add(n);
    reader.bytes.Add(bytes);
    if (reader.way != nullptr) {
      SendBack(reader, at, n);
    } else {
      Drop(reader, at, n);
    }
  }
  Fill(reader);
  return n;
}

}  // namespace halfpage
