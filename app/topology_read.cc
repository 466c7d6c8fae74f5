// Reading what was counted, while workers run or after.
#include <rte_cycles.h>
#include <rte_ring.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "app/plan.h"
#include "app/topology.h"
#include "mempool/page_frag.h"
#include "xdp_emul/object_program.h"

namespace halfpage {
namespace {

void AddTo(RefusalCounts& sums, const Counter (&counters)[kRefusals]) {
  for (int r = 0; r < kRefusals; ++r) sums[static_cast<size_t>(r)] += counters[r].Read();
}

PoolSnapshot ReadPool(const PktmbufPool& pool) {
  PoolSnapshot out;
  out.name = pool.config().name;
  out.ops = pool.config().ops;
  out.size = pool.config().size;
  out.data_room = pool.config().data_room;
  out.buffers_in_use = pool.in_use();
  out.exact = pool.config().page_frag.exact;
  const auto stats = ReadPageFragStats(pool.get());
  if (!stats.has_value()) return out;
  out.page_frag = true;
  out.pages_in_flight = stats->pages_inflight;
  out.page_size = stats->page_size;
  out.objects_per_page = stats->objects_per_page;
  out.bytes_resident = stats->bytes_resident;
  out.counters = {{"alloc_fast", stats->alloc_fast},
                  {"alloc_slow", stats->alloc_slow},
                  {"alloc_slow_ho", stats->alloc_slow_ho},
                  {"alloc_empty", stats->alloc_empty},
                  {"alloc_refill", stats->alloc_refill},
                  {"alloc_waive", stats->alloc_waive},
                  {"recycle_cached", stats->recycle_cached},
                  {"recycle_cache_full", stats->recycle_cache_full},
                  {"recycle_ring", stats->recycle_ring},
                  {"recycle_ring_full", stats->recycle_ring_full},
                  {"recycle_released_ref", stats->recycle_released_ref},
                  {"nobuf", stats->nobuf}};
  return out;
}

constexpr size_t kMostQueues = 16;  // of a device

uint64_t Sum(const Counter (&counters)[kRefusals]) {
  uint64_t sum = 0;
  for (const Counter& counter : counters) sum += counter.Read();
  return sum;
}

// Of all reasons but one.
uint64_t Sum(const Counter (&counters)[kRefusals], Refusal but) {
  uint64_t sum = 0;
  for (int r = 0; r < kRefusals; ++r) sum += r == static_cast<int>(but) ? 0 : counters[r].Read();
  return sum;
}

void AddKernelCounters(const ReceiveCounters& counters, QueueSnapshot* queue) {
  const auto verdict = [&](XdpAction action) { return counters.verdicts[static_cast<int>(action)].Read(); };
  const uint64_t bad_targets = counters.redirect_errors[static_cast<int>(Refusal::kBadTarget)].Read();
  // A sum and no difference: of two counters that are read one after the other it could go backwards.
  const uint64_t redirected = counters.redirect_sent.Read() + Sum(counters.redirect_errors, Refusal::kBadTarget);
  queue->xdp_packets += counters.packets.Read();
  queue->xdp_bytes += counters.bytes.Read();
  queue->drops += Sum(counters.refused) + bad_targets;
  queue->xdp_redirect += redirected;
  queue->xdp_drops += verdict(XdpAction::kDrop) + verdict(XdpAction::kAborted);
  queue->xdp_tx += counters.tx_sent.Read();
  queue->xdp_tx_errors += Sum(counters.tx_errors);
  queue->high_water = std::max(queue->high_water, counters.high_water.Read());
}

void AddFault(const ReceiveCounters& counters, DeviceSnapshot* device) {
  const Program* program = counters.fault_program.load(std::memory_order_acquire);
  if (program == nullptr || !device->fault.empty()) return;
  const auto cause = static_cast<Refusal>(counters.fault_cause.load(std::memory_order_relaxed));
  device->fault = absl::StrCat("program ", program->name(), ": ", RefusalName(cause));
  const uint32_t asked = counters.fault_asked.load(std::memory_order_relaxed);
  if (asked != 0) {
    absl::StrAppend(&device->fault, ", asked ", asked, ", available ",
                    counters.fault_available.load(std::memory_order_relaxed));
  }
  if (program->object() != nullptr) absl::StrAppend(&device->fault, ", ", program->object()->Read().fault);
}

void AddCopies(const Converter& converter, DeviceSnapshot* device) {
  device->copies.resize(kCopyCauses);
  for (size_t c = 0; c < kCopyCauses; ++c) {
    device->copies[c].cause = std::string(CopyCauseName(static_cast<CopyCause>(c)));
    device->copies[c].buffers += converter.buffers[c].Read();
    device->copies[c].bytes += converter.bytes[c].Read();
  }
  device->copied_truesize += converter.truesize.Read();
}

void AddQueue(const ReceiveQueue& queue, DeviceSnapshot* device) {
  const ReceiveCounters& counters = queue.counters;
  device->received += counters.packets.Read();
  device->bytes += counters.bytes.Read();
  for (size_t a = 0; a < kXdpActions; ++a) device->verdicts[a] += counters.verdicts[a].Read();
  AddTo(device->refused, counters.refused);
  AddTo(device->faults, counters.faults);
  AddKernelCounters(counters, &device->queues[queue.queue]);
  AddFault(counters, device);
  if (queue.converter != nullptr) AddCopies(*queue.converter, device);
  device->tx_sent += counters.tx_sent.Read();
  AddTo(device->tx_errors, counters.tx_errors);
  device->redirect_sent += counters.redirect_sent.Read();
  AddTo(device->redirect_errors, counters.redirect_errors);
  device->redirect_copies += counters.redirect_copies.Read();
  device->redirect_to_sinks += counters.redirect_to_sinks.Read();
  device->redirect_to_lanes += counters.redirect_to_lanes.Read();
  device->polls += counters.polls.Read();
  device->empty_polls += counters.empty_polls.Read();
  if (queue.hits == nullptr) return;
  const std::vector<std::string> names = queue.program->hit_names();
  device->hits.resize(names.size());
  for (size_t h = 0; h < names.size(); ++h) {
    device->hits[h].first = names[h];
    device->hits[h].second += queue.hits[h].Read();
  }
}

TrafficSnapshot ReadGenerator(const Generator& generator, const TrafficConfig& config) {
  TrafficSnapshot out;
  out.name = config.name;
  out.into = config.into;
  out.generated = generator.generated.Read();
  out.sent = generator.sent.Read();
  AddTo(out.refused, generator.refused);
  out.nobuf = generator.nobuf.Read();
  if (const PoolClasses* classes = generator.source.classes()) {
    for (size_t c = 0; c < classes->size(); ++c) {
      out.classes.push_back({classes->pool(c)->name, classes->borrowed(c).Read(), classes->nobuf(c).Read()});
    }
  }
  if (const Capture* capture = generator.source.capture()) {
    out.capture_frames = capture->size();
    out.skipped.assign(capture->skipped().begin(), capture->skipped().end());
    out.damage = capture->damage();
  }
  return out;
}

}  // namespace

// Nobody uses any more what no queue names: its counts are kept, it goes. Programs that devices may be given again
// stay.
void Topology::FoldReplaced() {
  std::set<const Converter*> used;
  for (const WorkerSettings& worker : published_) {
    for (const QueueSettings& queue : worker.queues) used.insert(queue.converter);
    for (const std::vector<QueueSettings>& remote : worker.remotes) {
      for (const QueueSettings& queue : remote) used.insert(queue.converter);
    }
  }
  for (auto each = converters_.begin(); each != converters_.end();) {
    if (used.count(&each->converter) != 0) {
      ++each;
      continue;
    }
    AddCopies(each->converter, &replaced_[each->device]);
    each = converters_.erase(each);
  }
  std::set<std::string> names;
  for (auto program = programs_.begin(); program != programs_.end();) {
    if (names.insert(program->name()).second) {
      ++program;
      continue;
    }
    const auto keep_fault = [&](ReceiveQueue& queue) {
      if (queue.counters.fault_program.load(std::memory_order_acquire) != &*program) return;
      AddFault(queue.counters, &replaced_[queue.device]);
      queue.counters.fault_program.store(nullptr, std::memory_order_release);
    };
    for (Worker& worker : workers_) {
      for (ReceiveQueue& queue : worker.queues) keep_fault(queue);
      for (const auto& remote : worker.remote_queues) {
        for (size_t device = 0; device < devices_.size(); ++device) keep_fault(remote[device]);
      }
    }
    program = programs_.erase(program);
  }
}

std::vector<uint64_t> Topology::BuffersInUse() const {
  std::vector<uint64_t> in_use;
  for (size_t p = 0; p < pools_.size(); ++p) {
    in_use.push_back(pools_[p].in_use());
    uint64_t most = most_in_use_[p].load(std::memory_order_relaxed);
    while (most < in_use[p] && !most_in_use_[p].compare_exchange_weak(most, in_use[p], std::memory_order_relaxed)) {
    }
  }
  return in_use;
}

// Buffers that were free at the worst look. That a source found none is seen between looks as well.
uint64_t Topology::LowWater(size_t pool, const Snapshot& snapshot) const {
  const std::string& name = pools_[pool].config().name;
  for (size_t t = 0; t < snapshot.traffic.size(); ++t) {
    const TrafficSnapshot& source = snapshot.traffic[t];
    if (source.classes.empty() && source.nobuf != 0 && FindPool(config_.traffic[t].pool) == pools_[pool].get()) {
      return 0;
    }
    for (const ClassSnapshot& each : source.classes) {
      if (each.pool == name && each.borrowed + each.nobuf != 0) return 0;
    }
  }
  const uint64_t size = pools_[pool].config().size;
  return size - std::min(size, most_in_use_[pool].load(std::memory_order_relaxed));
}

Snapshot Topology::Read() const {
  const std::lock_guard<std::mutex> lock(changing_);
  Snapshot out;
  const uint64_t now = rte_get_timer_cycles();
  const auto hz = static_cast<double>(rte_get_timer_hz());
  out.at = static_cast<double>(now - built_tsc_) / hz;
  out.forwarding = phase_.load(std::memory_order_relaxed) == Phase::kRunning;
  out.seconds = static_cast<double>(forwarded_tsc_ + (out.forwarding && now > start_tsc_ ? now - start_tsc_ : 0)) / hz;
  for (const int socket : ArenaSockets(config_)) {
    const PageFragArenaUse use = ReadPageFragArena(socket);
    out.arenas.bytes += use.bytes;
    out.arenas.peak_bytes += use.peak_bytes;
    out.arenas.limit_bytes += use.limit_bytes;
    out.arenas.limit_refusals += use.limit_refusals;
  }
  for (const TrafficConfig& config : config_.traffic) {
    out.traffic.emplace_back().name = config.name;
  }
  for (DeviceIndex d = 0; d < devices_.size(); ++d) {
    DeviceSnapshot& device = out.devices.emplace_back();
    device.name = devices_[d].name;
    device.port = devices_[d].port;
    device.peer = devices_[d].peer == kNoDevice ? -1 : devices_[d].peer;
    device.program = devices_[d].program;
    device.sink = devices_[d].sink;
    device.mtu = devices_[d].mtu;
    device.up = devices_[d].up;
    device.left_in_ring = left_in_ring_[d];
    device.copies = replaced_[d].copies;
    device.copied_truesize = replaced_[d].copied_truesize;
    device.fault = replaced_[d].fault;
    device.queues.resize(devices_[d].queues);
    for (uint16_t q = 0; q < devices_[d].queues && d / 2u < pairs_.size() && !stopped_; ++q) {
      device.queues[q].waiting = rte_ring_count(pairs_[d / 2].ring(d % 2, q));
    }
    device.real = devices_[d].peer == kNoDevice;
    const size_t port = d - 2 * config_.veth.size();
    if (device.real) device.driver = port < driver_counts_.size() ? driver_counts_[port] : ports_[port].Read();
  }
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    LaneSnapshot& to = out.lanes.emplace_back();
    to.worker = lanes_[lane].slot->worker;
    to.judged.name = lanes_[lane].Name();
    to.judged.program = lanes_[lane].slot->program;
    to.judged.left_in_ring = left_in_lane_[lane];
    to.judged.queues.resize(kMostQueues);
  }
  for (size_t s = 0; s <= config_.sinks.size(); ++s) {
    SinkSnapshot& sink = out.sinks.emplace_back();
    const bool named = s < config_.sinks.size();
    sink.name = named ? config_.sinks[s].name : "(none)";
    sink.file = named ? config_.sinks[s].file : "";
    sink.port = named ? config_.sinks[s].port : "";
    if (named && config_.sinks[s].held()) ReadHeldSink(s, &sink);
    sink.written = named && captures_[s] != nullptr ? captures_[s]->written() : 0;
  }
  for (const Worker& worker : workers_) {
    for (const ReceiveQueue& queue : worker.queues) AddQueue(queue, &out.devices[queue.device]);
    for (size_t r = 0; r < worker.remotes.size(); ++r) {
      for (DeviceIndex d = 0; d < devices_.size(); ++d) {
        AddQueue(worker.remote_queues[r][d], &out.lanes[worker.remote_lanes[r]].judged);
      }
    }
    for (DeviceIndex d = 0; d < devices_.size(); ++d) {
      for (uint16_t q = 0; q < worker.transmit[d].queues; ++q) {
        out.devices[d].queues[q].xdp_xmit += worker.xmit[d][q].sent.Read();
        out.devices[d].queues[q].xdp_xmit_errors += worker.xmit[d][q].errors.Read();
      }
      out.devices[d].sent_through += worker.transmit[d].sent.Read();
      AddTo(out.devices[d].refused_through, worker.transmit[d].refused);
      out.devices[d].segmented += worker.transmit[d].segmented.Read();
      out.devices[d].segments += worker.transmit[d].segments.Read();
      out.devices[d].segments_lost += worker.transmit[d].segments_lost.Read();
      out.devices[d].gathered += worker.transmit[d].gathered.Read();
    }
    for (size_t s = 0; s < worker.sinks.size(); ++s) {
      out.sinks[s].frames += worker.sinks[s].frames.Read();
      out.sinks[s].bytes += worker.sinks[s].bytes.Read();
      out.sinks[s].kept += worker.sinks[s].kept.Read();
      out.sinks[s].sent += worker.sinks[s].sent.Read();
      AddTo(out.sinks[s].refused, worker.sinks[s].refused);
    }
    for (const Generator& generator : worker.generators) {
      out.traffic[generator.number] = ReadGenerator(generator, config_.traffic[generator.number]);
    }
    out.workers.push_back({worker.lcore, worker.rounds.load(std::memory_order_relaxed), worker.idle_rounds.Read()});
  }
  ReadMaps(&out);
  ReadEgress(&out);
  for (const Program& program : programs_) {
    if (program.object() != nullptr) out.objects.push_back(program.object()->Read());
  }
  for (size_t p = 0; p < pools_.size(); ++p) {
    out.pools.push_back(ReadPool(pools_[p]));
    out.pools.back().low_water = LowWater(p, out);
    for (const TrafficSnapshot& source : out.traffic) {
      for (const ClassSnapshot& each : source.classes) {
        if (each.pool == out.pools.back().name) out.pools.back().borrowed += each.borrowed;
      }
    }
    if (p >= leaks_.size()) continue;
    out.pools.back().leaks = leaks_[p];
    out.pools.back().kept_by_drivers = std::min<uint64_t>(pools_[p].in_use(), KeptByDrivers(pools_[p].config().name));
  }
  return out;
}

absl::Status Topology::WithObjectMaps(const std::function<absl::Status(const ObjectMaps&)>& use) const {
  const std::lock_guard<std::mutex> lock(changing_);
  ObjectMaps maps;
  for (const Program& program : programs_) {
    if (program.object() == nullptr) continue;
    const bpf::MapSet* set = &program.object()->maps();
    const auto same = [&](const auto& each) { return each.second == set; };
    if (std::none_of(maps.begin(), maps.end(), same)) maps.emplace_back(program.name(), set);
  }
  return use(maps);
}

absl::StatusOr<HeldBuffers> Topology::FindHeldBuffers(size_t pool, double older_than, size_t most) const {
  return FindHeld(pools_[pool], stages_, older_than, most);
}

}  // namespace halfpage
