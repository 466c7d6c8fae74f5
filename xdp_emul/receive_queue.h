// Hot path: one poll of one receive queue of a device end: receive, judge, act.
#pragma once

#include <atomic>
#include <cstdint>

#include "mempool/counter.h"
#include "xdp_emul/convert.h"
#include "xdp_emul/program.h"
#include "xdp_emul/refusal.h"
#include "xdp_emul/sinks/sink.h"
#include "xdp_emul/transmit.h"

struct rte_ring;

namespace halfpage {

struct MapWays;

// What the polls of one queue have seen. The worker that polls it writes. At rest
//   packets = verdicts[all] + refused[all]         (each frame received has one verdict or none was asked)
//   verdicts[kTx] = tx_sent + errors of tx
//   verdicts[kRedirect] + redirect_copies = redirect_sent + errors of redirect
//   verdicts[kAborted] >= faults[all]              (the rest is what programs said themselves)
// A queue without a program passes everything: verdicts[kPass] = packets.
struct alignas(64) ReceiveCounters {
  Counter polls;
  Counter empty_polls;
  Counter packets;
  Counter bytes;
  Counter verdicts[kXdpActions];
  Counter tx_sent;
  Counter tx_errors[kRefusals];
  Counter redirect_sent;
  Counter redirect_errors[kRefusals];
  Counter redirect_copies;     // frames that a broadcast wanted beside those that came
  Counter redirect_to_sinks;   // of those sent: through no device, into a user's rings
  Counter redirect_to_lanes;   // and to other workers
  Counter refused[kRefusals];  // before any program
  Counter faults[kRefusals];   // what programs could not do
  Counter high_water;          // most frames that waited, as polls found them
  // The first program that could not do something, and what: written while it is null, the program last.
  std::atomic<int> fault_cause{0};
  std::atomic<uint32_t> fault_asked{0};
  std::atomic<uint32_t> fault_available{0};
  std::atomic<const Program*> fault_program{nullptr};
};

// What redirects sent through one transmit queue of a device (kernel: tx_queue_N_xdp_xmit).
struct XmitCounters {
  Counter sent;
  Counter errors;
};

// Numbers to stamp on frames when they change hands, while owners are tracked (mempool/buffer_stamp.h).
struct OwnerStages {
  uint32_t poll = 0;               // the worker that received the frame
  uint32_t sink = 0;               // the queue's sink
  const uint32_t* ring = nullptr;  // the ring behind each device, by DeviceIndex
};

// A queue as its worker sees it. Nobody else writes it while the worker runs; the worker itself may between two polls.
struct ReceiveQueue {
  uint16_t port = 0;
  uint16_t queue = 0;
  uint16_t budget = kMaxBurst;  // frames per poll
  uint16_t bulk = 16;           // frames per transmit flush
  DeviceIndex device = kNoDevice;
  bool from_outside = false;            // of a real port
  bool stopped = false;                 // not to be polled: its port is stopped
  const Program* program = nullptr;     // null: everything passes
  Counter* hits = nullptr;              // the program's counters for this queue
  Converter* converter = nullptr;       // private copies; null: none
  bool look_at_simple = false;          // as the converter says
  bool reshapes = false;                // as the program says
  const rte_ring* ring = nullptr;       // frames wait here; null: not known
  Transmit* transmit = nullptr;         // the worker's ways into all devices, by DeviceIndex
  XmitCounters* const* xmit = nullptr;  // the worker's, by DeviceIndex and transmit queue
  const MapWays* ways = nullptr;        // the worker's, beyond devices; null: there are no maps
  bool remote = false;                  // judges what another worker received (cpu_ring.h)
  SinkLane* sink = nullptr;
  const OwnerStages* owners = nullptr;  // null: not tracked
  Origin origin;                        // for programs
  ReceiveCounters counters;
};

// Polls the queue once, for at most `budget` frames, and gives how many came. All of them have left the worker's hands
// afterwards. Hot; the queue's own worker.
uint16_t Poll(ReceiveQueue& queue);

// What Poll() does with what it received: judges `n` (1 to kMaxBurst) frames that `facts` was taken of, and acts. The
// frames are gone afterwards. Hot; the queue's own worker.
void Judge(ReceiveQueue& queue, rte_mbuf** frames, uint16_t n, BurstFacts facts);

}  // namespace halfpage
