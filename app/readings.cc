#include "app/readings.h"

#include "absl/strings/str_cat.h"

namespace halfpage {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Says the numbers of one thing (a device, a sink), whose labels they share.
class Teller {
 public:
  Teller(std::string prefix, Labels labels, const std::function<void(const Reading&)>& visit)
      : prefix_(std::move(prefix)), labels_(std::move(labels)), visit_(visit) {}

  void Count(const std::string& name, const char* help, uint64_t& value, const Labels& more = {}) const {
    Say(name, Reading::Kind::kCounter, help, &value, 0, more);
  }
  void Gauge(const std::string& name, const char* help, uint64_t& value, const Labels& more = {}) const {
    Say(name, Reading::Kind::kGauge, help, &value, 0, more);
  }
  void Number(const std::string& name, const char* help, double value) const {
    Say(name, Reading::Kind::kGauge, help, nullptr, value, {});
  }
  void Reasons(const std::string& name, const char* help, RefusalCounts& counts) const {
    for (size_t r = 0; r < kRefusals; ++r) {
      Count(name, help, counts[r], {{"reason", std::string(RefusalName(static_cast<Refusal>(r)))}});
    }
  }
  void Verdicts(const std::string& name, const char* help, std::array<uint64_t, kXdpActions>& counts) const {
    for (size_t a = 0; a < kXdpActions; ++a) {
      Count(name, help, counts[a], {{"verdict", std::string(XdpActionName(static_cast<XdpAction>(a)))}});
    }
  }

 private:
  void Say(const std::string& name, Reading::Kind kind, const char* help, uint64_t* count, double number,
           const Labels& more) const {
    Reading reading{absl::StrCat(prefix_, "_", name), kind, help, labels_, count, number};
    reading.labels.insert(reading.labels.end(), more.begin(), more.end());
    visit_(reading);
  }

  std::string prefix_;
  Labels labels_;
  const std::function<void(const Reading&)>& visit_;
};

void TellTraffic(TrafficSnapshot& source, const std::function<void(const Reading&)>& visit) {
  const Teller tell("traffic", {{"source", source.name}}, visit);
  tell.Count("generated_frames", "Frames that a source made", source.generated);
  tell.Count("sent_frames", "Frames of a source that a device took", source.sent);
  tell.Reasons("refused_frames", "Frames of a source that its device refused", source.refused);
  tell.Count("nobuf_frames", "Times that a frame of a source found no buffer", source.nobuf);
  for (ClassSnapshot& each : source.classes) {
    tell.Count("class_borrowed_frames", "Frames that took a buffer of a larger class", each.borrowed,
               {{"pool", each.pool}});
    tell.Count("class_nobuf_frames", "Times that a frame of this class found no buffer", each.nobuf,
               {{"pool", each.pool}});
  }
}

void TellQueue(QueueSnapshot& queue, size_t number, const Teller& tell) {
  const Labels labels = {{"queue", absl::StrCat(number)}};
  const std::pair<const char*, uint64_t*> counters[] = {{"xdp_packets", &queue.xdp_packets},
                                                        {"xdp_bytes", &queue.xdp_bytes},
                                                        {"drops", &queue.drops},
                                                        {"xdp_redirect", &queue.xdp_redirect},
                                                        {"xdp_drops", &queue.xdp_drops},
                                                        {"xdp_tx", &queue.xdp_tx},
                                                        {"xdp_tx_errors", &queue.xdp_tx_errors},
                                                        {"xdp_xmit", &queue.xdp_xmit},
                                                        {"xdp_xmit_errors", &queue.xdp_xmit_errors}};
  for (const auto& [name, count] : counters) {
    tell.Count(absl::StrCat("queue_", name), "By the name of the kernel's veth (ethtool -S)", *count, labels);
  }
  tell.Gauge("queue_high_water_frames", "Most frames that a poll found waiting", queue.high_water, labels);
  tell.Gauge("queue_waiting_frames", "Frames that wait to be received", queue.waiting, labels);
}

// What was received, by a device or from other workers, and what became of it.
void TellJudged(DeviceSnapshot& device, const Teller& tell) {
  tell.Count("received_frames", "Frames received", device.received);
  tell.Count("received_bytes", "Bytes received, without FCS", device.bytes);
  tell.Verdicts("verdict_frames", "Frames by what the program said", device.verdicts);
  tell.Reasons("refused_frames", "Frames received and not shown to the program", device.refused);
  tell.Reasons("fault_frames", "Frames aborted for what the program could not do", device.faults);
  for (CopyCount& count : device.copies) {
    tell.Count("copied_buffers", "Private copies", count.buffers, {{"cause", count.cause}});
    tell.Count("copied_bytes", "Bytes of private copies", count.bytes, {{"cause", count.cause}});
  }
  tell.Count("copied_truesize_bytes", "What the kernel would charge for the copies", device.copied_truesize);
  tell.Count("tx_sent_frames", "Frames of XDP_TX that were sent", device.tx_sent);
  tell.Reasons("tx_error_frames", "Frames of XDP_TX that were refused", device.tx_errors);
  tell.Count("redirect_sent_frames", "Frames redirected from here that were sent", device.redirect_sent);
  tell.Reasons("redirect_error_frames", "Frames redirected from here that were refused", device.redirect_errors);
  tell.Count("redirect_copy_frames", "Copies that broadcasts wanted", device.redirect_copies);
  tell.Count("redirect_sink_frames", "Frames redirected into users' rings", device.redirect_to_sinks);
  tell.Count("redirect_worker_frames", "Frames redirected to other workers", device.redirect_to_lanes);
  tell.Count("left_in_ring_frames", "Frames never received, freed at the end", device.left_in_ring);
  for (auto& [rule, count] : device.hits) {
    tell.Count("rule_frames", "Frames that a rule of the filter decided", count,
               {{"program", device.program}, {"rule", rule}});
  }
}

void TellDevice(DeviceSnapshot& device, const std::function<void(const Reading&)>& visit) {
  const Teller tell("device", {{"device", device.name}}, visit);
  TellJudged(device, tell);
  for (size_t q = 0; q < device.queues.size(); ++q) TellQueue(device.queues[q], q, tell);
  tell.Count("sent_through_frames", "Frames that left through the device", device.sent_through);
  tell.Reasons("refused_through_frames", "Frames that the device refused to send", device.refused_through);
  tell.Count("segmented_frames", "Frames that were segmented", device.segmented);
  tell.Count("segment_frames", "Segments that were sent", device.segments);
  tell.Count("segment_lost_frames", "Segments that were refused", device.segments_lost);
  tell.Count("gathered_frames", "Frames copied into one buffer for the driver", device.gathered);
  tell.Count("polls", "Polls of receive queues", device.polls);
  tell.Count("empty_polls", "Polls that found nothing", device.empty_polls);
  if (!device.real) return;
  DriverCounts& driver = device.driver;
  tell.Count("driver_received_frames", "Frames received, as the driver counts", driver.received);
  tell.Count("driver_sent_frames", "Frames sent, as the driver counts", driver.sent);
  tell.Count("driver_sent_bytes", "Bytes sent, as the driver counts", driver.sent_bytes);
  tell.Count("driver_missed_frames", "Frames that came while the receive ring was full", driver.missed);
  tell.Count("driver_receive_error_frames", "Frames damaged or too long", driver.receive_errors);
  tell.Count("driver_send_error_frames", "Frames taken for sending and not sent", driver.send_errors);
  tell.Count("driver_nobuf_frames", "Frames that found the pool empty", driver.no_buffer);
}

void TellSink(SinkSnapshot& sink, const std::function<void(const Reading&)>& visit) {
  const Teller tell("sink", {{"sink", sink.name}}, visit);
  tell.Count("received_frames", "Frames that passed into the sink", sink.frames);
  tell.Count("received_bytes", "Bytes of these frames", sink.bytes);
  tell.Count("written_frames", "Frames written to the capture", sink.written);
  tell.Gauge("kept_frames", "Frames never freed, as the configuration asks", sink.kept);
  tell.Count("sent_frames", "Frames sent on through a device", sink.sent);
  tell.Reasons("refused_frames", "Frames that the device refused", sink.refused);
  if (!sink.held) return;
  tell.Count("queued_frames", "Frames queued for the reader", sink.queued);
  tell.Count("read_frames", "Frames read", sink.read);
  tell.Count("read_bytes", "Bytes read", sink.read_bytes);
  tell.Count("freed_frames", "Frames that the reader freed", sink.freed);
  tell.Count("left_frames", "Frames never read, freed at the end", sink.left);
  for (auto& [reason, count] : sink.dropped) {
    tell.Count("dropped_frames", "Frames that the sink had no room or use for", count, {{"reason", reason}});
  }
  for (auto& [name, count] : sink.counters) {
    if (name == "most_held") {
      tell.Gauge("most_held_frames", "Most frames that were held at once", count);
    } else {
      tell.Count(name, "What else the sink counts", count);
    }
  }
}

void TellPool(PoolSnapshot& pool, const std::function<void(const Reading&)>& visit) {
  const Teller tell("pool", {{"pool", pool.name}}, visit);
  tell.Number("size_buffers", "Buffers that can be out at once", pool.size);
  tell.Gauge("low_water_buffers", "Fewest buffers that were free at any look", pool.low_water);
  tell.Gauge("in_use_buffers", "Buffers that neither the pool nor a cache of it holds", pool.buffers_in_use);
  tell.Gauge("kept_by_driver_buffers", "Buffers that drivers keep for good", pool.kept_by_drivers);
  tell.Count("borrowed_buffers", "Buffers that frames of this class took from larger ones", pool.borrowed);
  if (!pool.page_frag) return;
  tell.Gauge("in_flight_pages", "Pages that the pool holds", pool.pages_in_flight);
  tell.Gauge("resident_bytes", "Memory of these pages", pool.bytes_resident);
  for (auto& [name, count] : pool.counters) {
    tell.Count(name, "By the name of the kernel's page_pool", count);
  }
}

}  // namespace

void ForEachReading(Snapshot& snapshot, const std::function<void(const Reading&)>& visit) {
  const Teller run("run", {}, visit);
  run.Number("uptime_seconds", "Time since everything was built", snapshot.at);
  run.Number("forwarding_seconds", "Time in which sources were sending", snapshot.seconds);
  run.Number("forwarding", "1 while workers forward, else 0", snapshot.forwarding ? 1 : 0);
  for (TrafficSnapshot& source : snapshot.traffic) TellTraffic(source, visit);
  for (DeviceSnapshot& device : snapshot.devices) TellDevice(device, visit);
  for (LaneSnapshot& lane : snapshot.lanes)
    TellJudged(lane.judged, Teller("lane", {{"lane", lane.judged.name}}, visit));
  for (MapSnapshot& map : snapshot.maps) {
    const Teller tell("map", {{"map", map.name}}, visit);
    tell.Count("broadcast_frames", "Frames redirected to all slots", map.everywhere);
    for (MapSnapshot::Slot& slot : map.slots) {
      tell.Count("slot_frames", "Frames redirected to a slot", slot.frames, {{"key", absl::StrCat(slot.key)}});
    }
  }
  for (EgressSnapshot& egress : snapshot.egress) {
    const Teller tell("egress", {{"program", egress.program}}, visit);
    tell.Verdicts("verdict_frames", "Frames by what the program behind a devmap said", egress.verdicts);
    tell.Count("fault_frames", "Frames aborted for what the program could not do", egress.faults);
    for (auto& [rule, count] : egress.hits) {
      tell.Count("rule_frames", "Frames that a rule of the filter decided", count, {{"rule", rule}});
    }
  }
  for (SinkSnapshot& sink : snapshot.sinks) TellSink(sink, visit);
  for (ObjectReading& object : snapshot.objects) {
    const Teller tell("object", {{"program", object.name}}, visit);
    tell.Count("runs", "Frames that the program of an object was run over", object.runs);
    tell.Verdicts("verdict_frames", "Frames by what the program said", object.verdicts);
    tell.Count("unknown_verdict_frames", "Frames with a number that is no verdict", object.unknown);
    tell.Count("fault_frames", "Frames that the program did what it may not with", object.faults);
    tell.Number("run_seconds", "Mean time of a run, of every 64th burst", object.ns_per_run * 1e-9);
  }
  for (PoolSnapshot& pool : snapshot.pools) TellPool(pool, visit);
  for (WorkerSnapshot& worker : snapshot.workers) {
    const Teller tell("worker", {{"lcore", absl::StrCat(worker.lcore)}}, visit);
    tell.Count("rounds", "Rounds of a worker", worker.rounds);
    tell.Count("idle_rounds", "Rounds in which nothing was sent or received", worker.idle_rounds);
  }
  const Teller arena("arena", {}, visit);
  arena.Gauge("resident_bytes", "What all arenas have of EAL's memory", snapshot.arenas.bytes);
  arena.Gauge("peak_bytes", "The most that they have had", snapshot.arenas.peak_bytes);
  arena.Gauge("limit_bytes", "The most that they may have, 0: no limit", snapshot.arenas.limit_bytes);
  arena.Count("limit_refusals", "Times that the limit kept an arena from growing", snapshot.arenas.limit_refusals);
}

}  // namespace halfpage
