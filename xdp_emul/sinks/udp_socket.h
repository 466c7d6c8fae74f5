// A UDP socket's receive queue: what it holds is charged against rcvbuf, and condensed once half of that is used.
//
// Workers that pass frames to the socket have a UdpLane each, the one that reads from it a UdpReader. The rule is the
// kernel's (__udp_enqueue_schedule_skb, skb_condense); where a frame goes to be small is ours, see README.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "mempool/counter.h"
#include "mempool/exact_frag.h"
#include "xdp_emul/owned_ring.h"
#include "xdp_emul/sinks/pace.h"
#include "xdp_emul/sinks/truesize.h"

namespace halfpage {

struct UdpSocketOptions {
  std::string name;          // of its ring and pool, at most 20 bytes, unique in the process
  uint32_t rcvbuf = 212992;  // bytes that may be charged, the kernel's net.core.rmem_default
  bool condense = true;      // move frames into smaller room while more than half is charged
  Accounting accounting = Accounting::kBuffers;
  uint16_t port = 0;          // UDP port that it is bound to, 0: takes them all
  bool many_senders = false;  // several workers pass frames to it
};

struct UdpSocket {
  // Makes queue and pool. Errors: what they say. Control threads only.
  static absl::StatusOr<std::unique_ptr<UdpSocket>> Create(const UdpSocketOptions& options);
  ~UdpSocket();

  uint32_t Waiting() const;  // frames in the queue; any thread
  uint64_t Flush();          // frees what was never read and gives how many frames; senders and reader have stopped

  UdpSocketOptions options;
  OwnedRing queue;
  std::optional<ExactFrag> small;                // what condensed frames are copied into; none with kernel accounting
  uint32_t longest_small = 0;                    // bytes of the longest frame that is copied there
  alignas(64) std::atomic<uint64_t> charged{0};  // never more than rcvbuf at rest
};

// One sending worker's way into the socket, and what it counted:
//   frames passed = not_udp + no_port + rcvbuf_errors + queued
struct alignas(64) UdpLane {
  UdpSocket* socket = nullptr;
  uint16_t worker = 0;  // its number, for the reader to know where a buffer comes from
  Counter queued;
  Counter not_udp;          // another protocol, a later fragment, or cut short
  Counter no_port;          // another port (kernel: NoPorts)
  Counter rcvbuf_errors;    // no room for the charge (kernel: RcvbufErrors)
  Counter condensed;        // frames that gave up their buffers
  Counter condense_failed;  // frames above half that stayed as they were: nothing to gain, or no room to go to
  Counter bytes_saved;      // of charge, by condensing
  Counter most_held;        // the most frames that were in the queue just after one of this worker's bursts
};

// Queues those of `n` (at most 64) frames that are for the socket and frees the others: the frames are gone afterwards.
// Hot; the worker that owns `lane`.
void Enqueue(UdpLane& lane, rte_mbuf** frames, uint16_t n);

// The reading worker's end. At rest queued of all lanes = frames + those that Flush() gave.
struct alignas(64) UdpReader {
  UdpSocket* socket = nullptr;
  uint16_t worker = 0;
  uint16_t budget = 64;  // frames per call, at most 64
  Pace pace;
  std::unique_ptr<uint8_t[]> datagram;  // what a program's recvmsg() would fill, kLongestDatagram bytes
  Counter frames;
  Counter bytes;   // frame bytes without FCS
  Counter local;   // buffers released on the worker that received them
  Counter remote;  // buffers released on another
};
inline constexpr uint32_t kLongestDatagram = 65536;

// Takes what is due at `now` (TSC), copies it out, releases charge and buffers. Gives how many frames. Hot; the worker
// that owns `reader`.
uint16_t ReadSocket(UdpReader& reader, uint64_t now);

}  // namespace halfpage
