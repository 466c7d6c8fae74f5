// Sinks that keep frames until a worker reads them: made, wired to who passes and who reads, emptied at the end.
#include <rte_cycles.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "app/topology.h"

namespace halfpage {
namespace {

Pace PaceOf(const SinkConfig& sink) {
  Pace pace;
  if (sink.rate == 0) return pace;
  pace.ticks = std::max<uint64_t>(rte_get_tsc_hz() / sink.rate, 1);
  pace.next = rte_rdtsc() + pace.ticks;
  return pace;
}

}  // namespace

absl::Status Topology::BuildHeldSink(size_t sink) {
  const SinkConfig& config = config_.sinks[sink];
  const bool many_senders = config_.lcores.workers.size() > 1;
  const std::string name = absl::StrCat("sink", sink);
  if (config.kind == SinkConfig::Kind::kUser) {
    auto made =
        UserRings::Create({.name = name, .ring = config.ring, .chunks = config.chunks, .many_senders = many_senders});
    if (!made.ok()) return made.status();
    user_rings_[sink] = *std::move(made);
    return absl::OkStatus();
  }
  auto made = UdpSocket::Create({.name = name,
                                 .rcvbuf = config.rcvbuf,
                                 .condense = config.condense,
                                 .accounting = config.accounting,
                                 .port = config.udp_port,
                                 .many_senders = many_senders});
  if (!made.ok()) return made.status();
  sockets_[sink] = *std::move(made);
  return absl::OkStatus();
}

void Topology::BuildHeldLane(Worker& worker, size_t sink) {
  if (sockets_[sink] != nullptr) {
    UdpLane& lane = worker.udp_lanes.emplace_back();
    lane.socket = sockets_[sink].get();
    lane.worker = static_cast<uint16_t>(worker.lcore);
    worker.sinks[sink].socket = &lane;
  } else {
    UserLane& lane = worker.user_lanes.emplace_back();
    lane.rings = user_rings_[sink].get();
    worker.sinks[sink].user = &lane;
  }
}

void Topology::BuildReaders(Worker& worker, const WorkerConfig& config) {
  worker.reads = !config.read.empty();
  for (const std::string& name : config.read) {
    const size_t sink = FindSink(name);
    const SinkConfig& from = config_.sinks[sink];
    if (sockets_[sink] != nullptr) {
      UdpReader& reader = worker.udp_readers.emplace_back();
      reader.socket = sockets_[sink].get();
      reader.worker = static_cast<uint16_t>(worker.lcore);
      reader.budget = static_cast<uint16_t>(config_.measure.budget);
      reader.pace = PaceOf(from);
      reader.datagram = std::make_unique<uint8_t[]>(kLongestDatagram);
      continue;
    }
    UserReader& reader = worker.user_readers.emplace_back();
    Bind(reader, user_rings_[sink].get());
    reader.budget = static_cast<uint16_t>(config_.measure.budget);
    reader.bulk = static_cast<uint16_t>(config_.measure.bulk);
    reader.pace = PaceOf(from);
    if (!from.port.empty()) reader.way = &worker.transmit[FindDevice(devices_, from.port)];
  }
}

// A reader that keeps to a rate is not waited for: what it has not read by then is left.
bool Topology::HeldSinksEmpty() const {
  for (size_t s = 0; s < config_.sinks.size(); ++s) {
    if (config_.sinks[s].rate != 0) continue;
    if (sockets_[s] != nullptr && sockets_[s]->Waiting() != 0) return false;
    if (user_rings_[s] != nullptr && user_rings_[s]->Waiting() != 0) return false;
  }
  return true;
}

uint64_t Topology::ReadByWorkers() const {
  uint64_t read = 0;
  for (const Worker& worker : workers_) {
    for (const UserReader& reader : worker.user_readers) read += reader.frames.Read();
  }
  return read;
}

void Topology::FlushHeldSinks() {
  for (size_t s = 0; s < config_.sinks.size() && s < left_in_sink_.size(); ++s) {
    if (sockets_[s] != nullptr) left_in_sink_[s] = sockets_[s]->Flush();
    if (user_rings_[s] != nullptr) left_in_sink_[s] = user_rings_[s]->Flush();
  }
}

void Topology::ReadHeldSink(size_t sink, SinkSnapshot* out) const {
  out->held = true;
  out->left = left_in_sink_[sink];
  uint64_t first = 0, second = 0, third = 0;  // reasons of drops, as they are named below
  uint64_t condensed = 0, failed = 0, saved = 0, most_held = 0, local = 0, remote = 0;
  for (const Worker& worker : workers_) {
    if (const UdpLane* lane = worker.sinks[sink].socket) {
      out->queued += lane->queued.Read();
      first += lane->rcvbuf_errors.Read();
      second += lane->not_udp.Read();
      third += lane->no_port.Read();
      condensed += lane->condensed.Read();
      failed += lane->condense_failed.Read();
      saved += lane->bytes_saved.Read();
      most_held = std::max(most_held, lane->most_held.Read());
    }
    if (const UserLane* lane = worker.sinks[sink].user) {
      out->queued += lane->queued.Read();
      first += lane->rx_ring_full.Read();
      second += lane->fill_ring_empty.Read();
      most_held = std::max(most_held, lane->most_held.Read());
    }
    for (const UdpReader& reader : worker.udp_readers) {
      if (reader.socket != sockets_[sink].get()) continue;
      out->read += reader.frames.Read();
      out->freed += reader.frames.Read();
      out->read_bytes += reader.bytes.Read();
      local += reader.local.Read();
      remote += reader.remote.Read();
    }
    for (const UserReader& reader : worker.user_readers) {
      if (reader.rings != user_rings_[sink].get()) continue;
      out->read += reader.frames.Read();
      out->freed += reader.freed.Read();
      out->read_bytes += reader.bytes.Read();
      out->sent += reader.sent.Read();
      for (size_t r = 0; r < kRefusals; ++r) out->refused[r] += reader.send_errors[r].Read();
    }
  }
  if (user_rings_[sink] != nullptr) {
    out->dropped = {{"rx_ring_full", first}, {"fill_ring_empty", second}};
    out->counters = {{"most_held", most_held}};
    return;
  }
  // Condensed frames gave their buffers back where they were received.
  out->dropped = {{"rcvbuf_errors", first}, {"not_udp", second}, {"no_port", third}};
  out->counters = {{"most_held", most_held}, {"condensed", condensed},  {"condense_failed", failed},
                   {"bytes_saved", saved},   {"released_local", local}, {"released_remote", remote}};
}

}  // namespace halfpage
