// What a configuration becomes: pools, programs, device pairs, sinks, sources and workers, wired up and owned.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/config.h"
#include "app/device.h"
#include "app/leaks.h"
#include "app/map_commands.h"
#include "app/object_maps.h"
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
// Read() may be called by any thread at any time; all else is for the control thread. What is changed while workers
// forward is published as a whole (worker_settings.h); what it replaces is freed once every worker has taken it over.
//
// topology_live.cc and topology_live_ports.cc change a running one. topology.cc builds pools and programs and starts;
// topology_devices.cc, topology_maps.cc, topology_sinks.cc, topology_readers.cc and topology_workers.cc build what they
// are called after; topology_stop.cc ends, topology_read.cc reads the counters.
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
  // Ends the sources as Stop() does, runs the rings empty and sends the workers home; Start() goes on from there. No
  // effect while nothing is forwarded.
  void Pause(double drain_timeout);
  bool forwarding() const { return running_; }

  // Changes of what runs, also while it runs. Each is whole or, with an error that says why, not done at all. Where a
  // worker does not come round within 5 s: Unavailable.
  //
  // The program of a device: a configured one, or pass, drop, tx or aborted; empty: none. InvalidArgument for MTUs that
  // the program does not admit, FailedPrecondition for a worker that would send through a port without a queue for it.
  absl::Status Attach(DeviceIndex device, const std::string& program);
  // The programs of all devices, by testpmd's name of a mode: io none, rxonly drop, those of kForwardModeNames one that
  // passes what it changed to the sink; icmpecho, and macswap where no port is behind the sink, send back. Errors as
  // Attach(), and InvalidArgument for another mode.
  absl::Status SetForward(const std::string& mode);
  // Who is behind a device, for programs of kind forward.
  absl::Status SetEthPeer(DeviceIndex device, const MacAddress& address);
  // What a program says of a frame: of a filter, of one that no rule matches. InvalidArgument for objects and chains,
  // for links of a chain, and for redirect.
  absl::Status SetVerdict(const std::string& program, XdpAction verdict);
  absl::Status SetCopyPolicy(DeviceIndex device, CopyConfig::Policy policy);
  absl::Status SetMtu(DeviceIndex device, uint32_t mtu);
  absl::Status SetBurst(uint32_t budget);
  absl::Status SetBulk(uint32_t bulk);
  absl::Status SetRate(const std::string& source, uint64_t rate);
  absl::Status SetRecycle(const std::string& pool, RecycleMode mode);
  // Of a pair: whether frames pass it. Of a port: starts or stops it.
  absl::Status SetUp(DeviceIndex device, bool up);
  absl::Status SetPromiscuous(DeviceIndex device, bool on);
  absl::Status SetLink(DeviceIndex device, bool up);

  // The maps of objects in use, each set once, and what `use` makes of them. Any thread; programs stay meanwhile.
  absl::Status WithObjectMaps(const std::function<absl::Status(const ObjectMaps&)>& use) const;

  // Who holds buffers for `older_than` seconds or longer, in words, pool by pool.
  std::string HeldText(double older_than) const;

  const Config& config() const { return config_; }
  const std::vector<Device>& devices() const { return devices_; }
  // Names that stand for numbers in maps of objects, the same for the whole run.
  const TargetNames& target_names() const { return target_names_; }

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
  void BuildQueue(Worker& worker, DeviceIndex device, ReceiveQueue& queue);
  void BuildMapWays(Worker& worker);
  DeviceIndex TargetOf(const MapSlotConfig& slot) const;
  void BuildRemotes(Worker& worker, size_t number);
  void BuildSinkLanes(Worker& worker);
  absl::Status BuildHeldSink(size_t sink);
  void BuildHeldLane(Worker& worker, size_t sink);
  void BuildReaders(Worker& worker, const WorkerConfig& config);
  void BuildTransmit(Worker& worker, size_t number);

  void Halt(double drain_timeout);
  DeviceIndex LeavesThrough(DeviceIndex device, const Program& program) const;
  // As Origin::leaving: who is behind `device`, and its own address.
  LeavingAddresses AddressesThrough(DeviceIndex device) const;
  // The settings of a worker that follow from `devices_` and `config_`.
  WaySettings WayInto(DeviceIndex device) const;
  SourceSettings SettingsOf(const Generator& generator) const;
  absl::StatusOr<WorkerSettings> SettingsOf(Worker& worker);
  absl::StatusOr<QueueSettings> SettingsOf(const ReceiveQueue& queue, const Program* program);
  std::vector<EgressSettings> EgressOf(const Worker& worker);
  // Whether some program behind an entry of a devmap may write into frames.
  bool EgressWrites() const;
  // Of a queue or of an EgressProgram.
  Counter* HitsOf(const void* place, const Program& program);
  // Gives all workers their settings, waits until they have them, and frees what was replaced.
  absl::Status Publish();
  absl::Status HandOver(std::vector<WorkerSettings> settings);
  void FoldReplaced();
  absl::Status CheckAttached() const;
  absl::Status AllowSenders();
  absl::Status AddVerdictProgram(const std::string& name);
  absl::Status AddProgram(const ProgramConfig& config);
  // The same for all devices, by DeviceIndex.
  absl::Status AttachAll(const std::vector<std::string>& programs);
  absl::StatusOr<std::string> ForwardProgram(DeviceIndex device, const std::string& mode);
  absl::Status AddCopyPool(DeviceIndex device, CopyConfig& copy);

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
  // The queue of a port that a worker sends through, should it.
  uint16_t TransmitQueue(DeviceIndex device, size_t worker) const;
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
  void ReadEgress(Snapshot* out) const;
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
  TargetNames target_names_;
  std::unique_ptr<RedirectMaps> maps_;
  std::vector<LaneOf> lanes_;           // parts of config_
  std::vector<OwnedRing> lane_rings_;   // by lane
  std::vector<uint64_t> left_in_lane_;  // by lane
  std::list<Program> programs_;         // of a name the first is the one in use
  std::vector<VethPair> pairs_;
  std::vector<EthdevPort> ports_;
  std::vector<DriverCounts> driver_counts_;          // by port, read before it was closed
  std::vector<std::unique_ptr<PcapSink>> captures_;  // by sink, null for those that only count
  // By sink, null for those of other kinds; they outlive the workers, whose lanes point to them.
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  std::vector<std::unique_ptr<UserRings>> user_rings_;
  std::vector<uint64_t> left_in_sink_;  // by sink
  std::deque<Worker> workers_;
  // By place and program: one that comes back goes on counting.
  std::map<std::pair<const void*, std::string>, std::unique_ptr<Counter[]>> hits_;
  // Of queues whose frames may have to be copied.
  struct QueueConverter {
    DeviceIndex device;
    Converter converter;
  };
  std::list<QueueConverter> converters_;
  // By DeviceIndex: what replaced converters copied, and the first fault of a replaced program.
  std::vector<DeviceSnapshot> replaced_;
  std::vector<WorkerSettings> published_;  // by worker
  mutable std::mutex changing_;            // held by Read() and by every change
  std::atomic<Phase> phase_{Phase::kStopped};
  std::vector<std::vector<LeakedBuffers>> leaks_;          // by pool, found at Stop()
  std::vector<uint64_t> left_in_ring_;                     // by DeviceIndex
  mutable std::deque<std::atomic<uint64_t>> most_in_use_;  // by pool, seen at any look
  bool running_ = false;
  bool stopped_ = false;
  uint64_t forwarded_tsc_ = 0;  // in earlier turns of Start() and Pause()
  uint64_t built_tsc_ = 0;
  uint64_t start_tsc_ = 0;
  uint64_t end_tsc_ = 0;  // when the sources were ended
};

}  // namespace halfpage
