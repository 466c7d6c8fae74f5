// The devices of a run: pairs made from rings, real ports, and who sends through which.
#include <rte_lcore.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "app/topology.h"
#include "xdp_emul/device_string.h"

namespace halfpage {

absl::Status Topology::BuildDevices() {
  absl::Status status = BuildPairs();
  if (status.ok()) status = BuildPorts();
  return status;
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
      options.many_senders[end] =
          SendersThrough(static_cast<DeviceIndex>(2 * p + end), config_.lcores.workers.size()) > 1;
    }
    auto pair = VethPair::Create(options);
    if (!pair.ok()) return pair.status();
    pairs_.push_back(*std::move(pair));
    for (size_t end = 0; end < 2; ++end) devices_[2 * p + end].port = pairs_.back().port(static_cast<int>(end));
  }
  return absl::OkStatus();
}

absl::Status Topology::BuildPorts() {
  for (size_t p = 0; p < config_.ports.size(); ++p) {
    const PortConfig& config = config_.ports[p];
    const auto device = static_cast<DeviceIndex>(2 * config_.veth.size() + p);
    EthdevPortOptions options;
    options.name = config.name;
    options.device = config.device;
    options.pool = FindPool(config.pool);
    options.mtu = config.mtu;
    options.promiscuous = config.promiscuous;
    options.rx_queues = static_cast<uint16_t>(config.queues);
    // One for each worker that sends: drivers' queues are for one thread.
    const size_t senders = std::max<size_t>(SendersThrough(device, config_.lcores.workers.size()), 1);
    if (config.tx_queues != 0 && config.tx_queues < senders) {
      return absl::InvalidArgumentError(
          absl::StrFormat("port %s: tx_queues: %u, and %d workers send through it, each of which needs a queue of its "
                          "own; write tx_queues: %d or auto (--txq), or let fewer workers send there",
                          config.name, config.tx_queues, senders, senders));
    }
    options.tx_queues = static_cast<uint16_t>(std::max<size_t>(config.tx_queues, senders));
    options.rx_slots = static_cast<uint16_t>(config.rxd);
    options.tx_slots = static_cast<uint16_t>(config.txd);
    options.socket = config.socket >= 0 ? config.socket : static_cast<int>(rte_socket_id());
    auto port = EthdevPort::Create(options);
    if (!port.ok()) return port.status();
    ports_.push_back(*std::move(port));
    devices_[device].port = ports_.back().port();
    const int socket = rte_eth_dev_socket_id(ports_.back().port());
    if (socket >= 0 && options.pool->socket_id >= 0 && socket != options.pool->socket_id) {
      std::fprintf(stderr,
                   "halfpage: warning: port %s is at socket %d and its pool %s at socket %d, so every frame crosses "
                   "between them: give it a pool with socket: %d\n",
                   config.name.c_str(), socket, options.pool->name, options.pool->socket_id, socket);
    }
    if (!ports_.back().link_up()) {
      std::fprintf(stderr, "halfpage: warning: port %s: its link is down; what it sends now may be lost\n",
                   config.name.c_str());
    }
  }
  return absl::OkStatus();
}

bool Topology::SendsThrough(const WorkerConfig& worker, DeviceIndex device) const {
  for (const TrafficConfig& traffic : config_.traffic) {
    if (traffic.into == devices_[device].name && absl::c_linear_search(worker.generate, traffic.name)) return true;
  }
  for (const SinkConfig& sink : config_.sinks) {
    if (sink.held() && sink.port == devices_[device].name && absl::c_linear_search(worker.read, sink.name)) return true;
  }
  for (const std::string& polled : worker.poll) {
    const DeviceIndex from = FindDevice(devices_, polled);
    const size_t sink = FindSink(devices_[from].sink);
    if (sink < config_.sinks.size() && !config_.sinks[sink].held() && config_.sinks[sink].port == devices_[device].name)
      return true;
    const Program* program = FindProgram(devices_[from].program);
    if (program == nullptr) continue;
    if ((from == device && program->CanTransmit()) || program->CanRedirectTo(device)) return true;
  }
  return false;
}

size_t Topology::SendersThrough(DeviceIndex device, size_t workers) const {
  size_t senders = 0;
  for (size_t w = 0; w < workers; ++w) {
    senders += SendsThrough(config_.lcores.workers[w], device) || SendsFromLanes(w, device);
  }
  return senders;
}

uint64_t Topology::KeptByDrivers(const std::string& pool) const {
  uint64_t kept = 0;
  for (const PortConfig& port : config_.ports) {
    if (port.pool == pool && ParseDeviceString(port.device).driver == "net_af_xdp") kept += port.queues * kAfXdpKept;
  }
  return kept;
}

}  // namespace halfpage
