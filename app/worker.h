// Workers: what each lcore does in a round, and how all of them are told to go on, to run dry and to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "app/traffic_source.h"
#include "app/worker_settings.h"
#include "mempool/counter.h"
#include "xdp_emul/map_redirect.h"
#include "xdp_emul/receive_queue.h"
#include "xdp_emul/sinks/udp_socket.h"
#include "xdp_emul/sinks/user_rings.h"
#include "xdp_emul/transmit.h"

namespace halfpage {

enum class Phase : int {
  kRunning,   // sources send, queues are polled
  kDraining,  // queues are polled until nothing moves any more
  kStopped,   // workers return
};

// One traffic source on its worker.
struct Generator {
  explicit Generator(TrafficSource traffic) : source(std::move(traffic)) {}

  TrafficSource source;
  size_t number = 0;  // in the configuration's list of sources
  uint16_t burst = 32;
  DeviceIndex into = kNoDevice;
  bool track_owners = false;  // stamp frames with `ring_stage` before they are sent
  uint32_t ring_stage = 0;
  uint16_t next_queue = 0;     // bursts go round the device's queues
  bool check_lengths = false;  // some frame may not go as it is: too long, or the device is a real port
  Pace pace;                   // frames are made no faster than this
  bool timed = false;          // they are made when the source says that they are due
  // Written by the worker, read by anyone: generated = sent + refused.
  Counter generated;
  Counter sent;
  Counter refused[kRefusals];
  Counter nobuf;  // bursts that the pool could not fill
  std::atomic<bool> done{false};
};

struct Worker {
  unsigned lcore = 0;
  const std::atomic<Phase>* phase = nullptr;
  // Deques: their elements hold counters and never move.
  std::deque<Generator> generators;
  std::deque<ReceiveQueue> queues;
  std::unique_ptr<Transmit[]> transmit;                        // into every device, by DeviceIndex
  std::vector<std::unique_ptr<XmitCounters[]>> xmit_counters;  // by DeviceIndex, one for each queue
  std::vector<XmitCounters*> xmit;                             // the same, as queues want them
  std::deque<OwnerStages> owners;                              // one for each queue, where owners are tracked
  std::deque<SinkLane> sinks;  // every sink, in the configuration's order, then the one that only counts
  // Its ways into sinks that keep frames, and those of them that it empties.
  std::deque<UdpLane> udp_lanes;
  std::deque<UserLane> user_lanes;
  std::deque<UdpReader> udp_readers;
  std::deque<UserReader> user_readers;
  bool reads = false;  // there are readers
  // Redirect maps: its ways into them, and the rings in which other workers' frames come.
  MapWays ways;
  std::vector<SinkLane*> sink_lanes;                           // by sink
  std::unique_ptr<CpuLane[]> lanes;                            // by lane
  std::unique_ptr<Counter[]> routed;                           // by map target
  std::unique_ptr<EgressProgram[]> egress;                     // as TargetNames::egress
  std::vector<LeavingAddresses> leaving;                       // by DeviceIndex
  std::deque<CpuQueue> remotes;                                // lanes that lead to this worker
  std::vector<size_t> remote_lanes;                            // their numbers
  std::vector<std::unique_ptr<ReceiveQueue[]>> remote_queues;  // of each of them, by DeviceIndex
  // What to take over before the next round; null again once that is done.
  std::atomic<const WorkerSettings*> settings{nullptr};
  // Rounds completed. What a worker had in hand when a reader saw round r is in a ring, a sink or freed by round r + 2.
  alignas(64) std::atomic<uint64_t> rounds{0};
  Counter idle_rounds;  // rounds in which nothing was sent or received
};

// Runs a worker until its phase is kStopped. Launched on the worker's lcore by rte_eal_remote_launch(); `worker` points
// to a Worker. Gives 0.
int RunWorker(void* worker);

}  // namespace halfpage
