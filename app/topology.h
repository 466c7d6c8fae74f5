// What a configuration becomes: pools, programs, device pairs, sinks, sources and workers, wired up and owned.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/config.h"
#include "app/device.h"
#include "app/leaks.h"
#include "app/redirects.h"
#include "app/snapshot.h"
#include "app/worker.h"
#include "mempool/pktmbuf_pool.h"
#include "xdp_emul/ethdev_port.h"
#include "xdp_emul/maps.h"
#include "xdp_emul/owned_ring.h"
#include "xdp_emul/program.h"
#include "xdp_emul/sinks/pcap_sink.h"
#include "xdp_emul/veth_pair.h"

namespace halfpage {

// Owns everything of a run. The control thread calls it; only Start() to Stop() have workers running.
//
// topology.cc builds pools and programs and starts; topology_devices.cc, topology_maps.cc, topology_sinks.cc,
// topology_readers.cc and topology_workers.cc build what they are called after; topology_stop.cc ends, topology_read.cc
// reads the counters.
//
// Teardown follows the order in which buffers can be held: workers, ports, rings, caches, pools. Destruction does what
// has not been done yet.
class Topology {
 public:
  // Builds all of it. EAL is up with one lcore per configured worker besides the main one. Errors: what the parts say,
  // and FailedPrecondition for too few lcores. Nothing is left behind on failure.
  static absl::StatusOr<std::unique_ptr<Topology>> Create(const Config& config);

  ~Topology();

  // Sets the workers going.
  absl::Status Start();
  // True when every source has sent all it had to; without sources, never.
  bool SourcesDone() const;
  // Ends the sources, lets the workers run the rings empty for at most `drain_timeout` seconds, stops them, closes the
  // ports and takes back what caches hold. Gives errors of capture files. Idempotent.
  absl::Status Stop(double drain_timeout);

  // Ends all of it, after Stop() and the last Read(): destroys what could hold a buffer, then the pools, whose lost
  // buffers are waited for a tenth of a second together and whose pages are then taken back, and gives the arenas'
  // memory back to EAL. Gives a sentence for each pool that lost buffers. Mere destruction leaves the pages of lost
  // buffers alone.
  static std::vector<std::string> End(std::unique_ptr<Topology> topology);

  // Buffers in use by pool, in the configuration's order, and nothing else: cheap enough to look often. The most that
  // was ever seen so is what a pool's low water is told by.
  std::vector<uint64_t> BuffersInUse() const;
  // Frames in all rings of all pairs, on their way to somebody.
  uint64_t FramesWaiting() const;

  // Who holds buffers of pool number `pool` for `older_than` seconds or longer, while workers run: FindHeld() with the
  // stages of this run. Workers stand still for about a millisecond per 10 000 buffers of the pool.
  absl::StatusOr<HeldBuffers> FindHeldBuffers(size_t pool, double older_than, size_t most) const;

  // Reads every counter. After Stop() the numbers are final; before, they are some recent moment's.
  Snapshot Read() const;

 private:
  explicit Topology(const Config& config) : config_(config) {}

  absl::Status Build();
  absl::Status BuildPools();
  absl::Status BuildMaps();
  absl::Status BuildPrograms();
  absl::Status BuildDevices();
  absl::Status BuildPairs();
  absl::Status BuildPorts();
  absl::Status BuildSinks();
  absl::Status BuildWorkers();
  absl::Status BuildGenerators(Worker& worker, const WorkerConfig& config);
  absl::Status BuildQueues(Worker& worker, const WorkerConfig& config);
  absl::Status BuildQueue(Worker& worker, DeviceIndex device, const Program* program, ReceiveQueue& queue);
  absl::Status BuildConverter(ReceiveQueue& queue);
  void BuildMapWays(Worker& worker);
  absl::Status BuildRemotes(Worker& worker, size_t number);
  void BuildSinkLanes(Worker& worker);
  absl::Status BuildHeldSink(size_t sink);
  void BuildHeldLane(Worker& worker, size_t sink);
  void BuildReaders(Worker& worker, const WorkerConfig& config);
  void BuildTransmit(Worker& worker, size_t number);

  const Program* FindProgram(const std::string& name) const;
  size_t FindSink(const std::string& name) const;
  rte_mempool* FindPool(const std::string& name) const;
  std::vector<rte_mempool*> FindPools(const TrafficConfig& traffic) const;
  // Whether a configured worker sends through a device: by a source, XDP_TX, a redirect or a sink.
  bool SendsThrough(const WorkerConfig& worker, DeviceIndex device) const;
  // The same for frames that other workers hand to it.
  bool SendsFromLanes(size_t worker, DeviceIndex device) const;
  // How many of the first `workers` do.
  size_t SendersThrough(DeviceIndex device, size_t workers) const;
  // Buffers that a port's driver may keep past its closing, by pool: net_af_xdp never empties its rings.
  uint64_t KeptByDrivers(const std::string& pool) const;

  uint64_t LowWater(size_t pool, const Snapshot& snapshot) const;
  bool RingsEmpty() const;
  bool HeldSinksEmpty() const;
  uint64_t ReadByWorkers() const;
  void FlushHeldSinks();
  void ReadHeldSink(size_t sink, SinkSnapshot* out) const;
  uint64_t WaitingInLanes() const;
  void FlushLanes();
  std::string NameOfTarget(DeviceIndex target) const;
  void ReadMaps(Snapshot* out) const;
  uint64_t Received() const;
  bool WaitRounds(uint64_t rounds, uint64_t deadline_tsc) const;
  void Drain(double timeout);

  // Stage numbers of owner stamps: the worker polling each device, the ring in front of each, each sink.
  void NameStages();
  uint32_t PollStage(DeviceIndex device) const { return device; }
  uint32_t RingStage(DeviceIndex receiver) const { return static_cast<uint32_t>(devices_.size()) + receiver; }
  uint32_t SinkStage(size_t sink) const { return static_cast<uint32_t>(2 * devices_.size() + sink); }
  uint32_t LaneStage(size_t lane) const { return SinkStage(config_.sinks.size() + 1 + lane); }

  Config config_;
  std::vector<std::string> stages_;    // names of stage numbers
  std::vector<uint32_t> ring_stages_;  // by the device that sends
  std::vector<Device> devices_;        // by DeviceIndex
  std::vector<PktmbufPool> pools_;
  std::unique_ptr<RedirectMaps> maps_;
  std::vector<LaneOf> lanes_;           // parts of config_
  std::vector<OwnedRing> lane_rings_;   // by lane
  std::vector<uint64_t> left_in_lane_;  // by lane
  std::deque<Program> programs_;
  std::vector<VethPair> pairs_;
  std::vector<EthdevPort> ports_;
  std::vector<DriverCounts> driver_counts_;          // by port, read before it was closed
  std::vector<std::unique_ptr<PcapSink>> captures_;  // by sink, null for those that only count
  // By sink, null for those of other kinds; they outlive the workers, whose lanes point to them.
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  std::vector<std::unique_ptr<UserRings>> user_rings_;
  std::vector<uint64_t> left_in_sink_;  // by sink
  std::deque<Worker> workers_;
  std::deque<std::unique_ptr<Counter[]>> hits_;
  std::deque<Converter> converters_;  // of queues whose frames may have to be copied
  std::atomic<Phase> phase_{Phase::kStopped};
  std::vector<std::vector<LeakedBuffers>> leaks_;          // by pool, found at Stop()
  std::vector<uint64_t> left_in_ring_;                     // by DeviceIndex
  mutable std::deque<std::atomic<uint64_t>> most_in_use_;  // by pool, seen at any look
  bool running_ = false;
  bool stopped_ = false;
  uint64_t built_tsc_ = 0;
  uint64_t start_tsc_ = 0;
  uint64_t end_tsc_ = 0;  // when the sources were ended
};

}  // namespace halfpage
