// Everything that a run has counted, as plain numbers: the one source of the text report, the statistics blocks, the
// prompt, JSON, telemetry, metrics and the ledger.
//
// Taken by Topology::Read() without stopping workers: each number is that of some recent moment, and no counter is ever
// lower than in an earlier snapshot. Nothing is set back by "clear": see baseline.h. Names and kinds for other programs
// are in readings.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/config.h"
#include "app/leaks.h"
#include "mempool/page_frag.h"
#include "xdp_emul/ethdev_port.h"
#include "xdp_emul/object_reading.h"
#include "xdp_emul/refusal.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage {

using RefusalCounts = std::array<uint64_t, kRefusals>;

// Frames refused for any reason.
uint64_t Sum(const RefusalCounts& counts);

// One of the pools that a source takes its buffers from, by the frame's length.
struct ClassSnapshot {
  std::string pool;
  uint64_t borrowed = 0;  // frames of this class that took a buffer of a larger one
  uint64_t nobuf = 0;     // frames of this class that found none at all, counted each time
};

struct TrafficSnapshot {
  std::string name;
  std::string into;
  uint64_t generated = 0;
  uint64_t sent = 0;
  RefusalCounts refused = {};
  uint64_t nobuf = 0;                  // frames that waited for a buffer, counted each time
  std::vector<ClassSnapshot> classes;  // empty where the source has one pool
  // Of a capture: frames in the file, and records that did not become frames, by reason.
  uint64_t capture_frames = 0;
  std::vector<std::pair<std::string, uint64_t>> skipped;
  std::string damage;
};

// Private copies for one reason.
struct CopyCount {
  std::string cause;
  uint64_t buffers = 0;
  uint64_t bytes = 0;
};

// One queue by the names of the kernel's veth (ethtool -S).
struct QueueSnapshot {
  uint64_t xdp_packets = 0;
  uint64_t xdp_bytes = 0;
  uint64_t drops = 0;  // for want of a buffer, or for what no program takes or no target is there for
  uint64_t xdp_redirect = 0;
  uint64_t xdp_drops = 0;  // drop and aborted
  uint64_t xdp_tx = 0;
  uint64_t xdp_tx_errors = 0;
  uint64_t xdp_xmit = 0;  // of the transmit queue: sent by redirects
  uint64_t xdp_xmit_errors = 0;
  uint64_t high_water = 0;  // most frames that a poll found waiting
  uint64_t waiting = 0;     // frames that wait to be received now; of pairs

  // {"rx_queue_N_xdp_packets", ...}, in the kernel's order.
  static void Names(const std::vector<QueueSnapshot>& queues, std::vector<std::pair<std::string, uint64_t>>* out);
};

struct DeviceSnapshot {
  std::string name;
  uint16_t port = 0;
  int peer = -1;  // index of the pair's other end; -1: what it sends leaves the process
  std::string program;
  std::string sink;
  uint32_t mtu = 0;
  bool up = true;
  uint64_t received = 0;
  uint64_t bytes = 0;
  std::array<uint64_t, kXdpActions> verdicts = {};
  RefusalCounts refused = {};  // received, and not shown to the program
  RefusalCounts faults = {};   // among the aborted: what the program could not do
  std::string fault;           // the first of these: the program and what it could not do
  std::vector<CopyCount> copies;
  uint64_t copied_truesize = 0;  // what the kernel would charge for the copies; policy kernel only
  std::vector<QueueSnapshot> queues;
  uint64_t tx_sent = 0;
  RefusalCounts tx_errors = {};
  uint64_t redirect_sent = 0;
  RefusalCounts redirect_errors = {};
  uint64_t redirect_copies = 0;    // what broadcasts wanted beside the frames themselves
  uint64_t redirect_to_sinks = 0;  // of those sent: through no device, into users' rings
  uint64_t redirect_to_lanes = 0;  // and to other workers
  uint64_t sent_through = 0;       // by sources, XDP_TX and redirects together
  RefusalCounts refused_through = {};
  // Of those sent: frames that were segmented, and the segments that were sent; those that were lost count nowhere
  // else.
  uint64_t segmented = 0;
  uint64_t segments = 0;
  uint64_t segments_lost = 0;
  uint64_t gathered = 0;  // copied into one buffer for a driver that sends no chains
  bool real = false;      // a port: what its driver counted
  DriverCounts driver;
  uint64_t left_in_ring = 0;  // never received: freed when the ports were closed
  uint64_t polls = 0;
  uint64_t empty_polls = 0;
  std::vector<std::pair<std::string, uint64_t>> hits;  // the filter's rules
};

// A ring by which frames come to a worker from others, and what became of them there. Of DeviceSnapshot, what is said
// of receiving, of tx and of redirects.
struct LaneSnapshot {
  size_t worker = 0;
  DeviceSnapshot judged;  // `name` is the slot's, "cpus[0]"; left_in_ring is of the lane's ring
};

struct MapSnapshot {
  struct Slot {
    uint32_t key = 0;
    std::string leads_to;  // "veth2", "sink ring0", "worker 1"; empty: nowhere
    uint64_t frames = 0;   // redirected there
  };
  std::string name;
  MapKind kind = MapKind::kDevmap;
  std::vector<Slot> slots;  // those that lead somewhere, or that frames went to
  uint64_t everywhere = 0;  // frames for all slots
};

// A program behind entries of devmaps: what it said of frames before they left. All but pass are errors of redirects.
struct EgressSnapshot {
  std::string program;
  std::array<uint64_t, kXdpActions> verdicts = {};
  uint64_t faults = 0;  // among the aborted: what it could not do
  std::vector<std::pair<std::string, uint64_t>> hits;
};

struct SinkSnapshot {
  std::string name;
  uint64_t frames = 0;
  uint64_t bytes = 0;
  uint64_t written = 0;  // to its capture
  uint64_t kept = 0;     // never freed, as the configuration asked
  std::string port;      // device that frames left through; empty: they were freed
  uint64_t sent = 0;     // through it
  RefusalCounts refused = {};
  std::string file;
  // Of one that keeps frames for a reader: frames = kept + dropped + queued, queued = read + left, read = freed + sent
  // + refused.
  bool held = false;
  uint64_t queued = 0;
  uint64_t read = 0;
  uint64_t read_bytes = 0;
  uint64_t freed = 0;
  uint64_t left = 0;                                       // never read: flushed at the end
  std::vector<std::pair<std::string, uint64_t>> dropped;   // by reason
  std::vector<std::pair<std::string, uint64_t>> counters;  // what else it counts
};

struct PoolSnapshot {
  std::string name;
  std::string ops;
  uint32_t size = 0;
  uint16_t data_room = 0;
  uint64_t buffers_in_use = 0;
  uint64_t low_water = 0;            // fewest buffers that were free at any look, 0 where a source found none
  uint64_t kept_by_drivers = 0;      // of those in use after Stop(), as many as drivers may keep for good
  uint64_t borrowed = 0;             // buffers that frames of this class took from larger ones, over all sources
  bool exact = false;                // buffers are as long as their frames
  std::vector<LeakedBuffers> leaks;  // who holds them, after Stop()
  bool page_frag = false;            // the fields below have a meaning
  uint64_t pages_in_flight = 0;
  uint32_t page_size = 0;
  uint32_t objects_per_page = 0;
  uint64_t bytes_resident = 0;
  std::vector<std::pair<std::string, uint64_t>> counters;  // the kernel's page_pool names
};

struct WorkerSnapshot {
  unsigned lcore = 0;
  uint64_t rounds = 0;
  uint64_t idle_rounds = 0;  // in which nothing was sent or received
};

struct Snapshot {
  double at = 0;       // seconds since everything was built: what rates between two snapshots are made with
  double seconds = 0;  // in which sources were sending
  bool forwarding = false;
  std::vector<TrafficSnapshot> traffic;
  std::vector<DeviceSnapshot> devices;
  std::vector<LaneSnapshot> lanes;
  std::vector<MapSnapshot> maps;
  std::vector<EgressSnapshot> egress;
  std::vector<SinkSnapshot> sinks;
  std::vector<ObjectReading> objects;  // programs of objects
  std::vector<PoolSnapshot> pools;
  std::vector<WorkerSnapshot> workers;
  PageFragArenaUse arenas;  // of all sockets together

  uint64_t frames_sent() const;
  uint64_t frames_come() const;
  double per_second(uint64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
  uint64_t pages_in_flight() const;
  uint64_t buffers_in_use() const;
  // Frames that sources got into a device, and that came in through real ports, per second.
  double rate_pps() const { return per_second(frames_sent() + frames_come()); }
};

}  // namespace halfpage
