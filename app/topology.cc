#include "app/topology.h"

#include <rte_cycles.h>
#include <rte_launch.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "app/behind_maps.h"
#include "app/copies.h"
#include "app/object_maps.h"
#include "app/plan.h"
#include "mempool/page_frag.h"
#include "xdp_emul/object_program.h"

namespace halfpage {

absl::StatusOr<std::unique_ptr<Topology>> Topology::Create(const Config& config) {
  std::unique_ptr<Topology> topology(new Topology(config));
  absl::Status status = topology->Build();
  if (!status.ok()) return status;
  return topology;
}

absl::Status Topology::Build() {
  devices_ = ListDevices(config_);
  for (const Device& device : devices_) target_names_.devices.push_back(device.name);
  target_names_.egress = EgressPrograms(config_);
  left_in_ring_.assign(devices_.size(), 0);
  replaced_.resize(devices_.size());
  NameStages();
  absl::Status status = BuildPools();
  if (status.ok()) status = BuildMaps();
  if (status.ok()) status = BuildPrograms();
  if (status.ok()) status = BuildDevices();
  if (status.ok()) status = BuildSinks();
  if (status.ok()) status = BuildWorkers();
  built_tsc_ = start_tsc_ = rte_get_timer_cycles();
  return status;
}

void Topology::NameStages() {
  for (const Device& device : devices_) stages_.push_back("worker at " + device.name);
  for (const Device& device : devices_) stages_.push_back("ring of " + device.name);
  for (const SinkConfig& sink : config_.sinks) stages_.push_back("sink " + sink.name);
  stages_.push_back("no sink");
  for (const LaneOf& lane : ListLanes(config_)) stages_.push_back("ring of map " + lane.Name());
  for (DeviceIndex device = 0; device < devices_.size(); ++device) {
    const DeviceIndex peer = devices_[device].peer;
    ring_stages_.push_back(RingStage(peer == kNoDevice ? device : peer));
  }
}

absl::Status Topology::BuildPools() {
  for (const int socket : ArenaSockets(config_)) {
    const int result = LimitPageFragArena(socket, config_.arena.limit);
    if (result != 0) return absl::ErrnoToStatus(-result, absl::StrFormat("arena of socket %d", socket));
  }
  for (const PktmbufPoolConfig& config : config_.pools) {
    auto pool = PktmbufPool::Create(config);
    if (!pool.ok()) return pool.status();
    pools_.push_back(*std::move(pool));
    most_in_use_.emplace_back(0);
  }
  return absl::OkStatus();
}

absl::Status Topology::BuildPrograms() {
  const std::vector<std::string>& names = target_names_.devices;
  std::vector<const Program*> links;
  for (const bool chains : {false, true}) {  // chains last: they refer to the others
    for (const ProgramConfig& config : config_.programs) {
      if ((config.kind == ProgramKind::kChain) != chains) continue;
      auto program =
          Program::Create(config, names, links, static_cast<uint32_t>(config_.lcores.workers.size()), maps_.get());
      if (!program.ok()) return program.status();
      if (program->object() != nullptr) {
        const absl::Status status = FillMaps(config, target_names_, program->object()->maps());
        if (!status.ok()) return status;
      }
      programs_.push_back(*std::move(program));
      links.push_back(&programs_.back());
    }
  }
  for (const Attachment& attachment : AttachmentsOf(config_, devices_)) {
    if (attachment.mtu_device == kNoDevice) continue;
    const absl::Status status = CheckAttach(attachment.request);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

const Program* Topology::FindProgram(const std::string& name) const {
  for (const Program& program : programs_) {
    if (program.name() == name) return &program;
  }
  return nullptr;
}

rte_mempool* Topology::FindPool(const std::string& name) const {
  for (const PktmbufPool& pool : pools_) {
    if (pool.config().name == name) return pool.get();
  }
  return pools_.front().get();
}

std::vector<rte_mempool*> Topology::FindPools(const TrafficConfig& traffic) const {
  std::vector<rte_mempool*> found;
  for (const std::string& name : traffic.PoolNames()) found.push_back(FindPool(name));
  return found;
}

absl::Status Topology::Start() {
  const std::lock_guard<std::mutex> lock(changing_);
  phase_.store(Phase::kRunning, std::memory_order_relaxed);
  running_ = true;
  start_tsc_ = rte_get_timer_cycles();
  end_tsc_ = 0;
  for (Worker& worker : workers_) {
    const int result = rte_eal_remote_launch(RunWorker, &worker, worker.lcore);
    if (result != 0) return absl::ErrnoToStatus(-result, absl::StrFormat("lcore %u does not start", worker.lcore));
  }
  return absl::OkStatus();
}

bool Topology::SourcesDone() const {
  if (config_.traffic.empty() || config_.measure.stay) return false;  // ports have no end
  for (const Worker& worker : workers_) {
    for (const Generator& generator : worker.generators) {
      if (!generator.done.load(std::memory_order_relaxed)) return false;
    }
  }
  return true;
}

}  // namespace halfpage
