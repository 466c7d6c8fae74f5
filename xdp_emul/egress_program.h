// Hot path: the second program that a frame meets behind a devmap's entry, before it leaves (kernel: BPF_XDP_DEVMAP).
#pragma once

#include <array>

#include "mempool/counter.h"
#include "xdp_emul/burst_facts.h"
#include "xdp_emul/program.h"

namespace halfpage {

struct ReceiveQueue;

// One such program on one worker, which writes it. At rest runs = verdicts[all]; of these all but pass, and the frames
// in several buffers that it does not take, are errors of the redirect that led here.
struct EgressProgram {
  const Program* program = nullptr;  // null: there is none of this number
  Counter* hits = nullptr;           // as ReceiveQueue::hits
  Counter verdicts[kXdpActions];
  Counter faults;  // of the aborted: what it could not do
};

// The addresses that programs of kind forward write to what leaves through a device (Origin::leaving).
using LeavingAddresses = std::array<uint8_t, 12>;

// Judges `n` frames that are about to leave through `device`, by program number `program` of the queue's worker, and
// sends those that pass. All others are freed and counted as errors of the redirect: devmap_drop, devmap_aborted (the
// program said so, or tx, redirect, or no verdict, of which the kernel makes the same), what it could not do, or
// frags_unsupported. bad_target where there is no such program or device. Frames and facts as in Send(). Hot; the
// queue's worker.
void RedirectThrough(ReceiveQueue& queue, uint32_t program, DeviceIndex device, rte_mbuf** frames, uint16_t n,
                     const BurstFacts& facts);

}  // namespace halfpage
