// What each worker holds: its ways into devices, the queues that it polls, the sources that it drives.
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "app/copies.h"
#include "app/topology.h"

namespace halfpage {
namespace {

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
    BuildTransmit(worker, w);
    BuildSinkLanes(worker);
    BuildReaders(worker, config_.lcores.workers[w]);
    BuildMapWays(worker);
    absl::Status status = BuildQueues(worker, config_.lcores.workers[w]);
    BuildRemotes(worker, w);
    if (status.ok()) status = BuildGenerators(worker, config_.lcores.workers[w]);
    if (!status.ok()) return status;
    auto settings = SettingsOf(worker);
    if (!settings.ok()) return settings.status();
    Adopt(worker, *settings);
    published_.push_back(*std::move(settings));
  }
  return absl::OkStatus();
}

void Topology::BuildTransmit(Worker& worker, size_t number) {
  worker.transmit = std::make_unique<Transmit[]>(devices_.size());
  for (const Device& device : devices_) {
    worker.xmit_counters.push_back(std::make_unique<XmitCounters[]>(device.queues));
    worker.xmit.push_back(worker.xmit_counters.back().get());
  }
  for (DeviceIndex device = 0; device < devices_.size(); ++device) {
    Transmit& transmit = worker.transmit[device];
    transmit.port = devices_[device].port;
    transmit.queues = devices_[device].queues;
    if (devices_[device].peer != kNoDevice) {
      transmit.spare = pools_.front().get();
      continue;
    }
    const size_t port = device - 2 * config_.veth.size();
    transmit.real = true;
    transmit.queues = 1;
    transmit.first_queue = TransmitQueue(device, number);
    transmit.spare = FindPool(config_.ports[port].pool);
  }
}

// Those that send at the start come first; others have what is left, or a number that no queue has.
uint16_t Topology::TransmitQueue(DeviceIndex device, size_t worker) const {
  const size_t before = SendersThrough(device, worker);
  if (SendersThrough(device, worker + 1) > before) return static_cast<uint16_t>(before);
  return static_cast<uint16_t>(SendersThrough(device, config_.lcores.workers.size()) + worker - before);
}

WaySettings Topology::WayInto(DeviceIndex device) const {
  WaySettings way;
  way.frame_limit = FrameLimitThrough(devices_, device);
  const DeviceIndex peer = devices_[device].peer;
  if (peer == kNoDevice) {
    way.real_limit = way.frame_limit;
    way.sends_chains = ports_[device - 2 * config_.veth.size()].sends_chains();
  } else {
    const Program* program = FindProgram(devices_[peer].program);
    way.takes_gso = way.sends_chains = program == nullptr || program->frags();
    if (devices_[device].mode == XdpMode::kKernel && !devices_[peer].takes_xdp) {
      way.xdp_closed = static_cast<int>(Refusal::kPeerNoXdp);
    }
  }
  if (!devices_[device].up) way.closed = way.xdp_closed = static_cast<int>(Refusal::kPeerDown);
  if (peer == kNoDevice || !devices_[device].up) way.frame_limit = 0;
  return way;
}

absl::Status Topology::BuildQueues(Worker& worker, const WorkerConfig& config) {
  for (const std::string& name : config.poll) {
    const DeviceIndex device = FindDevice(devices_, name);
    for (uint16_t q = 0; q < devices_[device].queues; ++q) {
      ReceiveQueue& queue = worker.queues.emplace_back();
      queue.port = devices_[device].port;
      queue.queue = q;
      queue.from_outside = devices_[device].peer == kNoDevice;
      if (!queue.from_outside) queue.ring = pairs_[device / 2].ring(device % 2, q);
      BuildQueue(worker, device, queue);
    }
  }
  return absl::OkStatus();
}

// What frames of a device meet on a worker, whoever received them.
void Topology::BuildQueue(Worker& worker, DeviceIndex device, ReceiveQueue& queue) {
  queue.device = device;
  queue.origin.interface = device + 1u;
  queue.origin.queue = queue.queue;
  queue.origin.worker = static_cast<uint32_t>(workers_.size() - 1);
  queue.transmit = worker.transmit.get();
  queue.xmit = worker.xmit.data();
  queue.ways = &worker.ways;
  const size_t sink = FindSink(devices_[device].sink);
  queue.sink = &worker.sinks[sink];
  if (!config_.measure.track_owners) return;
  worker.owners.push_back({PollStage(device), SinkStage(sink), ring_stages_.data()});
  queue.owners = &worker.owners.back();
}

Counter* Topology::HitsOf(const void* place, const Program& program) {
  if (program.hit_counters() == 0) return nullptr;
  std::unique_ptr<Counter[]>& hits = hits_[{place, program.name()}];
  if (hits == nullptr) hits = std::make_unique<Counter[]>(program.hit_counters());
  return hits.get();
}

// The device that frames leave through which `device` received and `program` judged; where nothing says, the same one.
DeviceIndex Topology::LeavesThrough(DeviceIndex device, const Program& program) const {
  std::vector<std::string> links = program.config().programs;
  if (links.empty()) links = {program.name()};
  for (const std::string& name : links) {
    const ProgramConfig& link = FindProgram(name)->config();
    if (link.kind == ProgramKind::kTx || link.verdict == XdpAction::kTx) return device;
    const DeviceIndex target = FindDevice(devices_, link.target);
    if (target != kNoDevice) return target;
  }
  const size_t sink = FindSink(devices_[device].sink);
  const bool onward = sink < config_.sinks.size() && !config_.sinks[sink].port.empty();
  return onward ? FindDevice(devices_, config_.sinks[sink].port) : device;
}

LeavingAddresses Topology::AddressesThrough(DeviceIndex device) const {
  LeavingAddresses addresses = {};
  const uint16_t port = devices_[device].port;
  const MacAddress peer = devices_[device].eth_peer.value_or(MacAddress{2, 0, 0, 0, 0, static_cast<uint8_t>(port)});
  std::copy(peer.begin(), peer.end(), addresses.begin());
  rte_ether_addr own = {};
  rte_eth_macaddr_get(port, &own);
  std::copy_n(own.addr_bytes, RTE_ETHER_ADDR_LEN, addresses.begin() + peer.size());
  return addresses;
}

absl::StatusOr<QueueSettings> Topology::SettingsOf(const ReceiveQueue& queue, const Program* program) {
  const Device& device = devices_[queue.device];
  QueueSettings settings;
  settings.stopped = queue.from_outside && !device.up;
  settings.program = program;
  if (settings.program == nullptr) return settings;
  settings.hits = HitsOf(&queue, *settings.program);
  settings.reshapes = settings.program->reshapes();
  settings.leaving = AddressesThrough(LeavesThrough(queue.device, *program));
  ConverterConfig config = ConverterOf(device, settings.program->writes() || EgressWrites(), settings.program->frags());
  if (!NeedsConverter(config)) return settings;
  for (const std::string& pool : device.copy.pools) config.pools.push_back(FindPool(pool));
  auto converter = Converter::Create(config);
  if (!converter.ok()) return converter.status();
  converters_.push_back({queue.device, *std::move(converter)});
  settings.converter = &converters_.back().converter;
  settings.look_at_simple = settings.converter->looks_at_simple();
  return settings;
}

SourceSettings Topology::SettingsOf(const Generator& generator) const {
  const TrafficConfig& traffic = config_.traffic[generator.number];
  SourceSettings settings;
  settings.burst = static_cast<uint16_t>(traffic.burst);
  settings.ticks = traffic.rate == 0 ? 0 : std::max<uint64_t>(rte_get_tsc_hz() / traffic.rate, 1);
  settings.timed =
      traffic.source == TrafficConfig::Source::kCapture && traffic.timing == TrafficConfig::Timing::kCapture;
  settings.check_lengths = devices_[generator.into].peer == kNoDevice || !devices_[generator.into].up ||
                           LongestFrame(traffic, generator.source) > FrameLimitThrough(devices_, generator.into);
  return settings;
}

absl::StatusOr<WorkerSettings> Topology::SettingsOf(Worker& worker) {
  WorkerSettings settings;
  settings.budget = static_cast<uint16_t>(config_.measure.budget);
  settings.bulk = static_cast<uint16_t>(config_.measure.bulk);
  for (DeviceIndex device = 0; device < devices_.size(); ++device) settings.ways.push_back(WayInto(device));
  settings.egress = EgressOf(worker);
  for (DeviceIndex device = 0; device < devices_.size(); ++device) settings.leaving.push_back(AddressesThrough(device));
  for (const Generator& generator : worker.generators) settings.sources.push_back(SettingsOf(generator));
  for (size_t q = 0; q < worker.queues.size(); ++q) {
    auto queue = SettingsOf(worker.queues[q], FindProgram(devices_[worker.queues[q].device].program));
    if (!queue.ok()) return queue.status();
    settings.queues.push_back(*queue);
  }
  for (size_t r = 0; r < worker.remotes.size(); ++r) {
    const Program* program = FindProgram(lanes_[worker.remote_lanes[r]].slot->program);
    std::vector<QueueSettings>& queues = settings.remotes.emplace_back();
    for (DeviceIndex device = 0; device < devices_.size(); ++device) {
      auto queue = SettingsOf(worker.remote_queues[r][device], program);
      if (!queue.ok()) return queue.status();
      queues.push_back(*queue);
    }
  }
  return settings;
}

absl::Status Topology::BuildGenerators(Worker& worker, const WorkerConfig& config) {
  const uint64_t sources = config_.traffic.size();
  for (uint64_t t = 0; t < sources; ++t) {
    const TrafficConfig& traffic = config_.traffic[t];
    if (!absl::c_linear_search(config.generate, traffic.name)) continue;
    auto source = TrafficSource::Create(traffic, config_.measure.seed + t, FindPools(traffic));
    if (!source.ok()) return source.status();
    const DeviceIndex into = FindDevice(devices_, traffic.into);
    Generator& generator = worker.generators.emplace_back(*std::move(source));
    generator.number = t;
    generator.into = into;
    // Sources of one device start at different queues: they would all send into the same one otherwise, round by round.
    const auto before = std::count_if(config_.traffic.begin(), config_.traffic.begin() + static_cast<std::ptrdiff_t>(t),
                                      [&](const TrafficConfig& other) { return other.into == traffic.into; });
    generator.next_queue = static_cast<uint16_t>(before % devices_[into].queues);
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

}  // namespace halfpage
