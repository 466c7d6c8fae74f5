#include "app/topology.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

constexpr uint32_t kEthernetHeader = 14;
constexpr uint32_t kVlanTag = 4;

// The longest frame that a device of this MTU lets in (kernel: is_skb_forwardable, veth_xdp_xmit).
uint32_t FrameLimit(uint32_t mtu) {
  return mtu + kEthernetHeader + kVlanTag;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

uint32_t LongestFrame(const TrafficConfig& config, const TrafficSource& source) {
  if (source.capture() != nullptr) return source.capture()->longest();
  uint32_t longest = 0;
  for (const auto& [size, weight] : config.sizes) longest = std::max(longest, size);
  return longest;
}

// Workers take the lcores besides the main one, in ascending order.
std::vector<unsigned> WorkerLcores() {
  std::vector<unsigned> lcores;
  unsigned lcore = 0;
  RTE_LCORE_FOREACH_WORKER(lcore) {
    lcores.push_back(lcore);
  }
  return lcores;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Topology>> Topology::Create(const Config& config) {
  std::unique_ptr<Topology> topology(new Topology(config));
  absl::Status status = topology->Build();
  if (!status.ok()) return status;
  return topology;
}

absl::Status Topology::Build() {
  for (const VethConfig& pair : config_.veth) {
    for (const VethEndConfig& end : pair.ends) device_names_.push_back(end.name);
  }
  left_in_ring_.assign(device_names_.size(), 0);
  NameStages();
  absl::Status status = BuildPools();
  if (status.ok()) status = BuildPrograms();
  if (status.ok()) status = BuildPairs();
  if (status.ok()) status = BuildSinks();
  if (status.ok()) status = BuildWorkers();
  return status;
}

void Topology::NameStages() {
  for (const std::string& name : device_names_) stages_.push_back("worker at " + name);
  for (const std::string& name : device_names_) stages_.push_back("ring of " + name);
  for (const SinkConfig& sink : config_.sinks) stages_.push_back("sink " + sink.name);
  stages_.push_back("no sink");
  for (DeviceIndex device = 0; device < device_names_.size(); ++device) {
    ring_stages_.push_back(RingStage(PeerOf(device)));
  }
}

absl::Status Topology::BuildPools() {
  for (const PktmbufPoolConfig& config : config_.pools) {
    auto pool = PktmbufPool::Create(config);
    if (!pool.ok()) return pool.status();
    pools_.push_back(*std::move(pool));
  }
  return absl::OkStatus();
}

absl::Status Topology::BuildPrograms() {
  for (const ProgramConfig& config : config_.programs) {
    auto program = Program::Create(config, device_names_);
    if (!program.ok()) return program.status();
    programs_.push_back(*std::move(program));
  }
  return absl::OkStatus();
}

size_t Topology::SendersThrough(DeviceIndex device) const {
  size_t senders = 0;
  for (const WorkerConfig& worker : config_.lcores.workers) {
    bool sends = false;
    for (const TrafficConfig& traffic : config_.traffic) {
      sends |= traffic.into == device_names_[device] && Contains(worker.generate, traffic.name);
    }
    for (const std::string& polled : worker.poll) {
      const DeviceIndex from = FindDevice(polled);
      const Program* program = FindProgram(EndOf(from).program);
      if (program == nullptr) continue;
      sends |= (from == device && program->CanTransmit()) || program->CanRedirectTo(device);
    }
    senders += sends;
  }
  return senders;
}

absl::Status Topology::BuildPairs() {
  for (size_t p = 0; p < config_.veth.size(); ++p) {
    const VethConfig& config = config_.veth[p];
    VethPairOptions options;
    options.queues = static_cast<uint16_t>(config.queues);
    options.ring = config.ring;
    options.pool = pools_.front().get();
    options.socket = static_cast<int>(rte_socket_id());
    for (int end = 0; end < 2; ++end) {
      options.names[end] = config.ends[end].name;
      options.many_senders[end] = SendersThrough(static_cast<DeviceIndex>(2 * p + end)) > 1;
    }
    auto pair = VethPair::Create(options);
    if (!pair.ok()) return pair.status();
    pairs_.push_back(*std::move(pair));
    for (int end = 0; end < 2; ++end) ports_.push_back(pairs_.back().port(end));
  }
  return absl::OkStatus();
}

absl::Status Topology::BuildSinks() {
  for (const SinkConfig& config : config_.sinks) {
    captures_.emplace_back();
    if (config.kind != SinkConfig::Kind::kPcap) continue;
    auto capture = PcapSink::Create(config.file, config.snaplen, config.limit);
    if (!capture.ok()) return capture.status();
    captures_.back() = *std::move(capture);
  }
  return absl::OkStatus();
}

absl::Status Topology::BuildWorkers() {
  const std::vector<unsigned> lcores = WorkerLcores();
  if (lcores.size() < config_.lcores.workers.size()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%d workers need as many lcores besides the main one, EAL has %d; give more with -l, or put "
                        "several on one CPU with --lcores '0@0,1@0,...'",
                        config_.lcores.workers.size(), lcores.size()));
  }
  for (size_t w = 0; w < config_.lcores.workers.size(); ++w) {
    Worker& worker = workers_.emplace_back();
    worker.lcore = lcores[w];
    worker.phase = &phase_;
    for (size_t s = 0; s < captures_.size(); ++s) {
      SinkLane& sink = worker.sinks.emplace_back();
      sink.capture = captures_[s].get();
      sink.keep_every = sink.until_keep = config_.sinks[s].keep_every;
    }
    worker.sinks.emplace_back();
    BuildTransmit(worker);
    BuildQueues(worker, config_.lcores.workers[w]);
    absl::Status status = BuildGenerators(worker, config_.lcores.workers[w]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Topology::BuildTransmit(Worker& worker) {
  worker.transmit = std::make_unique<Transmit[]>(device_names_.size());
  for (DeviceIndex device = 0; device < device_names_.size(); ++device) {
    Transmit& transmit = worker.transmit[device];
    transmit.port = PortOf(device);
    transmit.queues = static_cast<uint16_t>(PairOf(device).queues);
    transmit.frame_limit = FrameLimit(EndOf(PeerOf(device)).mtu);
  }
}

void Topology::BuildQueues(Worker& worker, const WorkerConfig& config) {
  for (const std::string& name : config.poll) {
    const DeviceIndex device = FindDevice(name);
    const Program* program = FindProgram(EndOf(device).program);
    for (uint16_t q = 0; q < PairOf(device).queues; ++q) {
      ReceiveQueue& queue = worker.queues.emplace_back();
      queue.port = PortOf(device);
      queue.queue = q;
      queue.budget = static_cast<uint16_t>(config_.measure.budget);
      queue.bulk = static_cast<uint16_t>(config_.measure.bulk);
      queue.device = device;
      queue.program = program;
      if (program != nullptr && program->hit_counters() != 0) {
        hits_.push_back(std::make_unique<Counter[]>(program->hit_counters()));
        queue.hits = hits_.back().get();
      }
      queue.transmit = worker.transmit.get();
      const size_t sink = FindSink(EndOf(device).sink);
      queue.sink = &worker.sinks[sink];
      if (!config_.measure.track_owners) continue;
      worker.owners.push_back({PollStage(device), SinkStage(sink), ring_stages_.data()});
      queue.owners = &worker.owners.back();
    }
  }
}

absl::Status Topology::BuildGenerators(Worker& worker, const WorkerConfig& config) {
  const uint64_t sources = config_.traffic.size();
  for (uint64_t t = 0; t < sources; ++t) {
    const TrafficConfig& traffic = config_.traffic[t];
    if (!Contains(config.generate, traffic.name)) continue;
    auto source = TrafficSource::Create(traffic, config_.measure.seed + t, FindPool(traffic.pool));
    if (!source.ok()) return source.status();
    const bool longer = LongestFrame(traffic, *source) > FrameLimit(EndOf(PeerOf(FindDevice(traffic.into))).mtu);
    Generator& generator = worker.generators.emplace_back(*std::move(source));
    generator.number = t;
    generator.burst = static_cast<uint16_t>(traffic.burst);
    generator.into = FindDevice(traffic.into);
    generator.check_lengths = longer;
    generator.track_owners = config_.measure.track_owners;
    generator.ring_stage = ring_stages_[generator.into];
    if (config_.measure.count != 0) {
      // A total over all sources: equal shares, the first ones take what is left over.
      const uint64_t share = config_.measure.count / sources + (t < config_.measure.count % sources ? 1 : 0);
      generator.source.LimitTo(share);
      if (share == 0) generator.done.store(true, std::memory_order_relaxed);
    }
  }
  return absl::OkStatus();
}

DeviceIndex Topology::FindDevice(const std::string& name) const {
  return static_cast<DeviceIndex>(std::find(device_names_.begin(), device_names_.end(), name) - device_names_.begin());
}

const Program* Topology::FindProgram(const std::string& name) const {
  for (const Program& program : programs_) {
    if (program.name() == name) return &program;
  }
  return nullptr;
}

// Where no sink is named: the last lane, which only counts.
size_t Topology::FindSink(const std::string& name) const {
  size_t sink = 0;
  while (sink < config_.sinks.size() && config_.sinks[sink].name != name) ++sink;
  return sink;
}

rte_mempool* Topology::FindPool(const std::string& name) const {
  for (const PktmbufPool& pool : pools_) {
    if (pool.config().name == name) return pool.get();
  }
  return pools_.front().get();
}

absl::Status Topology::Start() {
  phase_.store(Phase::kRunning, std::memory_order_relaxed);
  running_ = true;
  start_tsc_ = rte_get_timer_cycles();
  for (Worker& worker : workers_) {
    const int result = rte_eal_remote_launch(RunWorker, &worker, worker.lcore);
    if (result != 0) return absl::ErrnoToStatus(-result, absl::StrFormat("lcore %u does not start", worker.lcore));
  }
  return absl::OkStatus();
}

bool Topology::SourcesDone() const {
  for (const Worker& worker : workers_) {
    for (const Generator& generator : worker.generators) {
      if (!generator.done.load(std::memory_order_relaxed)) return false;
    }
  }
  return true;
}

}  // namespace halfpage
