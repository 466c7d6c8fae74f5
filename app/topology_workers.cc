// What each worker holds: its ways into devices, the queues that it polls, the sources that it drives.
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
    if (status.ok()) status = BuildRemotes(worker, w);
    if (status.ok()) status = BuildGenerators(worker, config_.lcores.workers[w]);
    if (!status.ok()) return status;
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
    transmit.frame_limit = FrameLimitThrough(devices_, device);
    const DeviceIndex peer = devices_[device].peer;
    if (peer != kNoDevice) {
      const Program* program = FindProgram(devices_[peer].program);
      transmit.takes_gso = program == nullptr || program->frags();
      transmit.sends_chains = transmit.takes_gso;
      if (devices_[device].mode == XdpMode::kKernel && !devices_[peer].takes_xdp) {
        transmit.xdp_closed = static_cast<int>(Refusal::kPeerNoXdp);
      }
      if (!devices_[device].up) {
        transmit.closed = transmit.xdp_closed = static_cast<int>(Refusal::kPeerDown);
        transmit.frame_limit = 0;
      }
      transmit.spare = pools_.front().get();
      continue;
    }
    const size_t port = device - 2 * config_.veth.size();
    transmit.real = true;
    transmit.real_limit = transmit.frame_limit;
    transmit.frame_limit = 0;
    transmit.queues = 1;
    transmit.first_queue = static_cast<uint16_t>(SendersThrough(device, number));
    transmit.sends_chains = ports_[port].sends_chains();
    transmit.spare = FindPool(config_.ports[port].pool);
  }
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
      const absl::Status status = BuildQueue(worker, device, FindProgram(devices_[device].program), queue);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// What frames of a device meet on a worker, whoever received them.
absl::Status Topology::BuildQueue(Worker& worker, DeviceIndex device, const Program* program, ReceiveQueue& queue) {
  queue.budget = static_cast<uint16_t>(config_.measure.budget);
  queue.bulk = static_cast<uint16_t>(config_.measure.bulk);
  queue.device = device;
  queue.origin = {device + 1u, queue.queue, static_cast<uint32_t>(workers_.size() - 1)};
  queue.program = program;
  if (program != nullptr && program->hit_counters() != 0) {
    hits_.push_back(std::make_unique<Counter[]>(program->hit_counters()));
    queue.hits = hits_.back().get();
  }
  queue.transmit = worker.transmit.get();
  queue.xmit = worker.xmit.data();
  queue.ways = &worker.ways;
  queue.reshapes = program != nullptr && program->reshapes();
  const size_t sink = FindSink(devices_[device].sink);
  queue.sink = &worker.sinks[sink];
  if (config_.measure.track_owners) {
    worker.owners.push_back({PollStage(device), SinkStage(sink), ring_stages_.data()});
    queue.owners = &worker.owners.back();
  }
  return program == nullptr ? absl::OkStatus() : BuildConverter(queue);
}

absl::Status Topology::BuildConverter(ReceiveQueue& queue) {
  const Device& device = devices_[queue.device];
  ConverterConfig config = ConverterOf(device, queue.program->writes(), queue.program->frags());
  if (!NeedsConverter(config)) return absl::OkStatus();
  for (const std::string& pool : device.copy.pools) config.pools.push_back(FindPool(pool));
  auto converter = Converter::Create(config);
  if (!converter.ok()) return converter.status();
  converters_.push_back(*std::move(converter));
  queue.converter = &converters_.back();
  queue.look_at_simple = queue.converter->looks_at_simple();
  return absl::OkStatus();
}

absl::Status Topology::BuildGenerators(Worker& worker, const WorkerConfig& config) {
  const uint64_t sources = config_.traffic.size();
  for (uint64_t t = 0; t < sources; ++t) {
    const TrafficConfig& traffic = config_.traffic[t];
    if (!absl::c_linear_search(config.generate, traffic.name)) continue;
    auto source = TrafficSource::Create(traffic, config_.measure.seed + t, FindPools(traffic));
    if (!source.ok()) return source.status();
    const DeviceIndex into = FindDevice(devices_, traffic.into);
    const bool looked_at = devices_[into].peer == kNoDevice || !devices_[into].up ||
                           LongestFrame(traffic, *source) > FrameLimitThrough(devices_, into);
    Generator& generator = worker.generators.emplace_back(*std::move(source));
    generator.number = t;
    generator.burst = static_cast<uint16_t>(traffic.burst);
    generator.into = into;
    generator.check_lengths = looked_at;
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
