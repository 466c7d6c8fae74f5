// Hot path: into a socket's queue and out of it.
#include "xdp_emul/sinks/udp_socket.h"

#include <rte_prefetch.h>
#include <rte_ring.h>

#include <cstring>

#include "xdp_emul/free_frames.h"
#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

constexpr uint8_t kUdp = 17;

// A burst on its way in, with what each frame is charged.
struct Arrivals {
  rte_mbuf* frames[kMaxBurst];
  uint32_t charges[kMaxBurst];
  uint16_t n = 0;
};

const rte_mempool* ExactPool(const UdpSocket& socket) {
  return socket.small.has_value() ? socket.small->get() : nullptr;
}

bool ForSocket(UdpLane& lane, const rte_mbuf* frame) {
  PacketHeaders headers;
  if (!ParseHeaders(frame, &headers) || !headers.has_ports || headers.protocol != kUdp) {
    lane.not_udp.Add(1);
    return false;
  }
  const uint16_t port = lane.socket->options.port;
  if (port == 0 || headers.destination_port == port) return true;
  lane.no_port.Add(1);
  return false;
}

// Whether what is behind the first buffer fits behind what is in it (kernel: skb_condense).
bool FitsHead(const rte_mbuf* frame) {
  return frame->nb_segs > 1 && frame->pkt_len - frame->data_len <= rte_pktmbuf_tailroom(frame) &&
         RTE_MBUF_DIRECT(frame) && rte_mbuf_refcnt_read(frame) == 1;
}

// What the frame would be charged once condensed; as it is where that gains nothing. A copy of a single buffer has to
// halve the charge: else it is dear for what it gives.
uint32_t CondensedCharge(const UdpSocket& socket, const rte_mbuf* frame, uint32_t charge) {
  const rte_mempool* exact = ExactPool(socket);
  if (FitsHead(frame)) {
    return socket.options.accounting == Accounting::kKernel ? charge - (frame->pkt_len - frame->data_len)
                                                            : SegmentTruesize(frame, exact);
  }
  if (frame->pkt_len > socket.longest_small) return charge;
  const uint32_t small = ExactTruesize(frame->pkt_len);
  return 2 * small <= charge ? small : charge;
}

// Moves all bytes into the first buffer and frees the others.
void PullIntoHead(rte_mbuf* frame) {
  rte_mbuf* rest = frame->next;
  for (const rte_mbuf* segment = rest; segment != nullptr; segment = segment->next) {
    std::memcpy(rte_pktmbuf_mtod_offset(frame, char*, frame->data_len), rte_pktmbuf_mtod(segment, const char*),
                segment->data_len);
    frame->data_len = static_cast<uint16_t>(frame->data_len + segment->data_len);
  }
  frame->next = nullptr;
  frame->nb_segs = 1;
  rte_pktmbuf_free(rest);
}

// Copies those of the frames at `places` into buffers of their size and frees them here, where they were received.
// Gives how many: the others found no buffer.
uint16_t CopyToSmall(UdpSocket& socket, Arrivals& in, const uint16_t* places, uint16_t n) {
  rte_mbuf* copies[kMaxBurst];
  rte_mbuf* originals[kMaxBurst];
  uint32_t lengths[kMaxBurst];
  for (uint16_t i = 0; i < n; ++i) lengths[i] = in.frames[places[i]]->pkt_len;
  const uint16_t given = socket.small->AllocBulk(copies, lengths, n, {0, 0});
  for (uint16_t i = 0; i < given; ++i) {
    rte_mbuf*& frame = in.frames[places[i]];
    void* to = rte_pktmbuf_mtod(copies[i], void*);
    const void* from = rte_pktmbuf_read(frame, 0, lengths[i], to);
    if (from != to) std::memcpy(to, from, lengths[i]);
    originals[i] = frame;
    frame = copies[i];
    in.charges[places[i]] = ExactTruesize(lengths[i]);
  }
  FreeFrames(originals, given);
  return given;
}

// Picks the frames that the socket has room for, counting on `condensed[i]` for each; frees the others.
void Admit(UdpLane& lane, rte_mbuf** frames, uint16_t n, Arrivals& in, uint32_t* condensed) {
  const UdpSocket& socket = *lane.socket;
  const uint64_t rcvbuf = socket.options.rcvbuf;
  uint64_t held = socket.charged.load(std::memory_order_relaxed);
  rte_mbuf* refused[kMaxBurst];
  uint16_t refusals = 0;
  uint16_t overfull = 0;
  for (uint16_t i = 0; i < n; ++i) {
    rte_mbuf* frame = frames[i];
    if (!ForSocket(lane, frame)) {
      refused[refusals++] = frame;
      continue;
    }
    const uint32_t charge = Truesize(frame, socket.options.accounting, ExactPool(socket));
    const bool pressed = socket.options.condense && held > rcvbuf / 2;
    const uint32_t less = pressed ? CondensedCharge(socket, frame, charge) : charge;
    if (held + less > rcvbuf) {
      ++overfull;
      refused[refusals++] = frame;
      continue;
    }
    if (pressed && less == charge) lane.condense_failed.Add(1);
    held += less;
    in.frames[in.n] = frame;
    in.charges[in.n] = charge;
    condensed[in.n++] = less;
  }
  lane.rcvbuf_errors.Add(overfull);
  FreeFrames(refused, refusals);
}

void Condense(UdpLane& lane, Arrivals& in, const uint32_t* condensed) {
  uint16_t places[kMaxBurst];
  uint16_t copies = 0;
  uint16_t done = 0;
  uint64_t saved = 0;
  for (uint16_t i = 0; i < in.n; ++i) {
    if (condensed[i] == in.charges[i]) continue;
    saved += in.charges[i] - condensed[i];
    if (!FitsHead(in.frames[i])) {
      places[copies++] = i;
      continue;
    }
    PullIntoHead(in.frames[i]);
    in.charges[i] = condensed[i];
    ++done;
  }
  if (copies != 0) {
    const uint16_t copied = CopyToSmall(*lane.socket, in, places, copies);
    for (uint16_t i = copied; i < copies; ++i) saved -= in.charges[places[i]] - condensed[places[i]];
    done += copied;
    lane.condense_failed.Add(copies - copied);
  }
  lane.condensed.Add(done);
  lane.bytes_saved.Add(saved);
}

// Charges the socket. What others charged meanwhile, or frames that stayed larger than planned, cost the burst's last
// frames.
void Charge(UdpLane& lane, Arrivals& in) {
  UdpSocket& socket = *lane.socket;
  uint64_t total = 0;
  for (uint16_t i = 0; i < in.n; ++i) total += in.charges[i];
  const uint64_t before = socket.charged.fetch_add(total, std::memory_order_relaxed);
  uint64_t given_back = 0;
  while (in.n != 0 && before + total - given_back > socket.options.rcvbuf) {
    --in.n;
    given_back += in.charges[in.n];
    rte_pktmbuf_free(in.frames[in.n]);
    lane.rcvbuf_errors.Add(1);
  }
  if (given_back != 0) socket.charged.fetch_sub(given_back, std::memory_order_relaxed);
}

}  // namespace

void Enqueue(UdpLane& lane, rte_mbuf** frames, uint16_t n) {
  UdpSocket& socket = *lane.socket;
  Arrivals in;
  uint32_t condensed[kMaxBurst];
  Admit(lane, frames, n, in, condensed);
  if (in.n == 0) return;
  Condense(lane, in, condensed);
  Charge(lane, in);
  // Two fields that say nothing on ring ports. From here on they tell who received the frame, and its charge: what a
  // pulled frame is charged cannot be told from looking at it.
  for (uint16_t i = 0; i < in.n; ++i) {
    in.frames[i]->port = lane.worker;
    in.frames[i]->hash.usr = in.charges[i];
  }
  const unsigned queued =
      rte_ring_enqueue_burst(socket.queue.get(), reinterpret_cast<void* const*>(in.frames), in.n, nullptr);
  lane.queued.Add(queued);
  const uint64_t held = rte_ring_count(socket.queue.get());
  if (held > lane.most_held.Read()) lane.most_held.Add(held - lane.most_held.Read());
  if (__builtin_expect(queued == in.n, 1)) return;
  for (uint16_t i = static_cast<uint16_t>(queued); i < in.n; ++i) {
    socket.charged.fetch_sub(in.charges[i], std::memory_order_relaxed);
    rte_pktmbuf_free(in.frames[i]);
    lane.rcvbuf_errors.Add(1);
  }
}

// The frames were written on another core, and a deep queue has driven them out of its first caches.
inline void Prefetch(rte_mbuf* const* frames, uint16_t n) {
  for (uint16_t i = 0; i < n; ++i) {
    rte_prefetch0(frames[i]);
    rte_prefetch0(&frames[i]->next);
  }
  for (uint16_t i = 0; i < n; ++i) rte_prefetch0(rte_pktmbuf_mtod(frames[i], const void*));
}

uint16_t ReadSocket(UdpReader& reader, uint64_t now) {
  UdpSocket& socket = *reader.socket;
  const uint16_t due = reader.pace.Due(now, reader.budget);
  rte_mbuf* frames[kMaxBurst];
  const auto n = static_cast<uint16_t>(
      due == 0 ? 0 : rte_ring_dequeue_burst(socket.queue.get(), reinterpret_cast<void**>(frames), due, nullptr));
  reader.pace.Took(now, n, reader.budget);
  if (n == 0) return 0;
  Prefetch(frames, n);
  uint64_t bytes = 0;
  uint64_t charge = 0;
  uint16_t local = 0;
  for (uint16_t i = 0; i < n; ++i) {
    rte_mbuf* frame = frames[i];
    const uint32_t length = frame->pkt_len < kLongestDatagram ? frame->pkt_len : kLongestDatagram;
    const void* data = rte_pktmbuf_read(frame, 0, length, reader.datagram.get());
    if (data != reader.datagram.get()) std::memcpy(reader.datagram.get(), data, length);
    bytes += frame->pkt_len;
    charge += frame->hash.usr;
    local += frame->port == reader.worker;
  }
  FreeFrames(frames, n);
  socket.charged.fetch_sub(charge, std::memory_order_relaxed);
  reader.frames.Add(n);
  reader.bytes.Add(bytes);
  reader.local.Add(local);
  reader.remote.Add(n - local);
  return n;
}

}  // namespace halfpage
