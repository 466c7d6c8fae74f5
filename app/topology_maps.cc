// Redirect maps: where their slots lead, each worker's ways into them, and the rings between workers.
#include <rte_lcore.h>
#include <rte_ring.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "app/topology.h"

namespace halfpage {

static_assert(RTE_MAX_ETHPORTS <= kMostEgressDevices);

// What a slot of a devmap leads to: a device, or one behind a program.
DeviceIndex Topology::TargetOf(const MapSlotConfig& slot) const {
  const DeviceIndex device = FindDevice(devices_, slot.device);
  if (slot.program.empty()) return device;
  const auto program = std::find(target_names_.egress.begin(), target_names_.egress.end(), slot.program);
  return EgressTarget(static_cast<uint32_t>(program - target_names_.egress.begin()), device);
}

absl::Status Topology::BuildMaps() {
  auto maps = RedirectMaps::Create(config_.maps);
  if (!maps.ok()) return maps.status();
  maps_ = *std::move(maps);
  lanes_ = ListLanes(config_);
  left_in_lane_.assign(lanes_.size(), 0);
  size_t lane = 0;
  for (size_t m = 0; m < config_.maps.size(); ++m) {
    const RedirectMapConfig& map = config_.maps[m];
    for (const MapSlotConfig& slot : map.entries) {
      if (map.kind == MapKind::kDevmap) maps_->at(m).Put(slot.key, TargetOf(slot));
      if (map.kind == MapKind::kXskmap) maps_->at(m).Put(slot.key, SinkTarget(FindSink(slot.sink)));
      if (map.kind != MapKind::kCpumap) continue;
      maps_->at(m).Put(slot.key, LaneTarget(lane));
      auto ring = MakeRing({.name = absl::StrCat("lane", lane++),
                            .slots = slot.ring,
                            .element_bytes = sizeof(RemoteFrame),
                            .many_producers = config_.lcores.workers.size() > 1,
                            .socket = static_cast<int>(rte_socket_id())});
      if (!ring.ok()) return ring.status();
      lane_rings_.push_back(*std::move(ring));
    }
  }
  return absl::OkStatus();
}

void Topology::BuildMapWays(Worker& worker) {
  for (SinkLane& sink : worker.sinks) worker.sink_lanes.push_back(&sink);
  worker.lanes = std::make_unique<CpuLane[]>(lanes_.size());
  for (size_t lane = 0; lane < lanes_.size(); ++lane) worker.lanes[lane].ring = lane_rings_[lane].get();
  worker.routed = std::make_unique<Counter[]>(maps_->targets());
  // An exact pool cuts buffers for sources that say how long; copies want whole rooms.
  const auto whole = std::find_if(pools_.begin(), pools_.end(),
                                  [](const PktmbufPool& pool) { return !pool.config().page_frag.exact; });
  worker.ways.maps = maps_.get();
  worker.ways.sinks = worker.sink_lanes.data();
  worker.ways.lanes = worker.lanes.get();
  worker.ways.first_sink_stage = SinkStage(0);
  worker.ways.first_lane_stage = LaneStage(0);
  worker.ways.copies = (whole == pools_.end() ? pools_.front() : *whole).get();
  worker.ways.routed = worker.routed.get();
  const size_t programs = target_names_.egress.size();
  worker.egress = std::make_unique<EgressProgram[]>(programs);
  worker.leaving.resize(devices_.size());
  worker.ways.egress = worker.egress.get();
  worker.ways.egress_programs = static_cast<uint32_t>(programs);
  worker.ways.leaving = worker.leaving.data();
  worker.ways.devices = static_cast<uint32_t>(devices_.size());
}

std::vector<EgressSettings> Topology::EgressOf(const Worker& worker) {
  std::vector<EgressSettings> all;
  for (size_t e = 0; e < target_names_.egress.size(); ++e) {
    const Program* program = FindProgram(target_names_.egress[e]);
    all.push_back({program, HitsOf(&worker.egress[e], *program)});
  }
  return all;
}

bool Topology::EgressWrites() const {
  return std::any_of(target_names_.egress.begin(), target_names_.egress.end(),
                     [this](const std::string& name) { return FindProgram(name)->writes(); });
}

void Topology::BuildRemotes(Worker& worker, size_t number) {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].slot->worker != number) continue;
    auto queues = std::make_unique<ReceiveQueue[]>(devices_.size());
    for (DeviceIndex device = 0; device < devices_.size(); ++device) {
      queues[device].remote = true;
      BuildQueue(worker, device, queues[device]);
    }
    CpuQueue& remote = worker.remotes.emplace_back();
    remote.ring = lane_rings_[lane].get();
    remote.queues = queues.get();
    worker.remote_queues.push_back(std::move(queues));
    worker.remote_lanes.push_back(lane);
  }
}

// By the second program of a lane, or by the sinks of devices whose frames it lets pass.
bool Topology::SendsFromLanes(size_t worker, DeviceIndex device) const {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].slot->worker != worker) continue;
    const Program* second = FindProgram(lanes_[lane].slot->program);
    if (second != nullptr && second->CanRedirectTo(device)) return true;
    for (const Device& from : devices_) {
      const size_t sink = FindSink(from.sink);
      if (sink == config_.sinks.size() || config_.sinks[sink].held()) continue;
      if (!from.program.empty() && config_.sinks[sink].port == devices_[device].name) return true;
    }
  }
  return false;
}

uint64_t Topology::WaitingInLanes() const {
  uint64_t frames = 0;
  for (const OwnedRing& ring : lane_rings_) frames += rte_ring_count(ring.get());
  return frames;
}

void Topology::FlushLanes() {
  for (size_t lane = 0; lane < lane_rings_.size(); ++lane) left_in_lane_[lane] = FreeRemote(lane_rings_[lane].get());
}

std::string Topology::NameOfTarget(DeviceIndex target) const {
  if (target < devices_.size()) return devices_[target].name;
  if (target < kFirstLaneTarget) return absl::StrCat("sink ", config_.sinks[target - kFirstSinkTarget].name);
  if (IsEgressTarget(target)) {
    return absl::StrCat(devices_[ThroughDevice(target)].name, " behind ",
                        target_names_.egress[EgressProgramOf(target)]);
  }
  return absl::StrCat("worker ", lanes_[target - kFirstLaneTarget].slot->worker);
}

void Topology::ReadMaps(Snapshot* out) const {
  for (size_t m = 0; m < maps_->size(); ++m) {
    const RedirectMap& map = maps_->at(m);
    MapSnapshot& to = out->maps.emplace_back();
    to.name = map.name();
    to.kind = map.config().kind;
    const auto routed = [this](DeviceIndex target) {
      uint64_t frames = 0;
      for (const Worker& worker : workers_) frames += worker.routed[target - kFirstMapTarget].Read();
      return frames;
    };
    to.everywhere = routed(map.Everywhere(false)) + routed(map.Everywhere(true));
    for (uint32_t key = 0; key < map.size(); ++key) {
      const uint64_t frames = routed(map.Slot(key));
      const DeviceIndex leads = map.Read(key);
      if (leads == kNoDevice && frames == 0) continue;
      to.slots.push_back({key, leads == kNoDevice ? "" : NameOfTarget(leads), frames});
    }
  }
}

void Topology::ReadEgress(Snapshot* out) const {
  for (size_t e = 0; e < target_names_.egress.size(); ++e) {
    EgressSnapshot& to = out->egress.emplace_back();
    to.program = target_names_.egress[e];
    const std::vector<std::string> names = FindProgram(to.program)->hit_names();
    for (const std::string& name : names) to.hits.emplace_back(name, 0);
    for (const Worker& worker : workers_) {
      const EgressProgram& from = worker.egress[e];
      for (size_t a = 0; a < kXdpActions; ++a) to.verdicts[a] += from.verdicts[a].Read();
      to.faults += from.faults.Read();
      for (size_t h = 0; h < names.size(); ++h) to.hits[h].second += from.hits[h].Read();
    }
  }
}

}  // namespace halfpage
