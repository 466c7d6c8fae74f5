// The sinks of a run, and each worker's lane into them.
#include <utility>

#include "app/topology.h"

namespace halfpage {

absl::Status Topology::BuildSinks() {
  for (const SinkConfig& config : config_.sinks) {
    captures_.emplace_back();
    sockets_.emplace_back();
    user_rings_.emplace_back();
    left_in_sink_.push_back(0);
    if (config.held()) {
      absl::Status status = BuildHeldSink(captures_.size() - 1);
      if (!status.ok()) return status;
    }
    if (config.kind != SinkConfig::Kind::kPcap) continue;
    auto capture = PcapSink::Create(config.file, config.snaplen, config.limit);
    if (!capture.ok()) return capture.status();
    captures_.back() = *std::move(capture);
  }
  return absl::OkStatus();
}

void Topology::BuildSinkLanes(Worker& worker) {
  for (size_t s = 0; s < captures_.size(); ++s) {
    SinkLane& sink = worker.sinks.emplace_back();
    sink.capture = captures_[s].get();
    if (config_.sinks[s].kind == SinkConfig::Kind::kPort) {
      sink.onward = &worker.transmit[FindDevice(devices_, config_.sinks[s].port)];
    }
    if (config_.sinks[s].held()) BuildHeldLane(worker, s);
    sink.keep_every = sink.until_keep = config_.sinks[s].keep_every;
  }
  worker.sinks.emplace_back();
}

// Where no sink is named: the last lane, which only counts.
size_t Topology::FindSink(const std::string& name) const {
  size_t sink = 0;
  while (sink < config_.sinks.size() && config_.sinks[sink].name != name) ++sink;
  return sink;
}

}  // namespace halfpage
