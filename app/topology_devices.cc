// The devices of a run: pairs made from rings, and who sends through which.
#include <rte_lcore.h>

#include <algorithm>
#include <utility>

#include "app/topology.h"

namespace halfpage {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::Status Topology::BuildDevices() {
  return BuildPairs();
}

absl::Status Topology::BuildPairs() {
  for (size_t p = 0; p < config_.veth.size(); ++p) {
    const VethConfig& config = config_.veth[p];
    VethPairOptions options;
    options.queues = static_cast<uint16_t>(config.queues);
    options.ring = config.ring;
    options.pool = pools_.front().get();
    options.socket = static_cast<int>(rte_socket_id());
    for (size_t end = 0; end < 2; ++end) {
      options.names[end] = config.ends[end].name;
      options.many_senders[end] = SendersThrough(static_cast<DeviceIndex>(2 * p + end)) > 1;
    }
    auto pair = VethPair::Create(options);
    if (!pair.ok()) return pair.status();
    pairs_.push_back(*std::move(pair));
    for (size_t end = 0; end < 2; ++end) devices_[2 * p + end].port = pairs_.back().port(static_cast<int>(end));
  }
  return absl::OkStatus();
}

size_t Topology::SendersThrough(DeviceIndex device) const {
  size_t senders = 0;
  for (const WorkerConfig& worker : config_.lcores.workers) {
    bool sends = false;
    for (const TrafficConfig& traffic : config_.traffic) {
      sends |= traffic.into == devices_[device].name && Contains(worker.generate, traffic.name);
    }
    for (const std::string& polled : worker.poll) {
      const DeviceIndex from = FindDevice(devices_, polled);
      const Program* program = FindProgram(devices_[from].program);
      if (program == nullptr) continue;
      sends |= (from == device && program->CanTransmit()) || program->CanRedirectTo(device);
    }
    senders += sends;
  }
  return senders;
}

}  // namespace halfpage
