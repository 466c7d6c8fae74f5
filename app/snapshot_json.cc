#include "app/snapshot_json.h"

namespace halfpage {
namespace {

using Json = nlohmann::ordered_json;

Json Reasons(const RefusalCounts& counts) {
  Json json = Json::object();
  for (size_t r = 0; r < kRefusals; ++r) json[std::string(RefusalName(static_cast<Refusal>(r)))] = counts[r];
  return json;
}

Json Named(const std::vector<std::pair<std::string, uint64_t>>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json TrafficJson(const TrafficSnapshot& source) {
  Json json = {{"name", source.name},
               {"into", source.into},
               {"generated", source.generated},
               {"sent", source.sent},
               {"refused", Reasons(source.refused)},
               {"nobuf", source.nobuf}};
  if (!source.classes.empty()) {
    json["classes"] = Json::array();
    for (const ClassSnapshot& each : source.classes) {
      json["classes"].push_back({{"pool", each.pool}, {"borrowed", each.borrowed}, {"nobuf", each.nobuf}});
    }
  }
  if (source.capture_frames != 0) {
    json["capture"] = {
        {"frames", source.capture_frames}, {"skipped", Named(source.skipped)}, {"damage", source.damage}};
  }
  return json;
}

Json Copies(const DeviceSnapshot& device) {
  Json buffers = Json::object();
  Json bytes = Json::object();
  for (const CopyCount& count : device.copies) {
    buffers[count.cause] = count.buffers;
    bytes[count.cause] = count.bytes;
  }
  return {{"buffers_copied", buffers}, {"bytes_copied", bytes}, {"truesize", device.copied_truesize}};
}

Json RedirectJson(const DeviceSnapshot& device) {
  return {{"sent", device.redirect_sent},
          {"to_sinks", device.redirect_to_sinks},
          {"to_workers", device.redirect_to_lanes},
          {"copies", device.redirect_copies},
          {"errors", Reasons(device.redirect_errors)}};
}

Json VerdictsJson(const std::array<uint64_t, kXdpActions>& counts) {
  Json verdicts = Json::object();
  for (int a = 0; a < kXdpActions; ++a) {
    verdicts[std::string(XdpActionName(static_cast<XdpAction>(a)))] = counts[static_cast<size_t>(a)];
  }
  return verdicts;
}

Json LaneJson(const LaneSnapshot& lane) {
  return {{"name", lane.judged.name},
          {"worker", lane.worker},
          {"program", lane.judged.program},
          {"received", lane.judged.received},
          {"bytes", lane.judged.bytes},
          {"verdicts", VerdictsJson(lane.judged.verdicts)},
          {"tx", {{"sent", lane.judged.tx_sent}, {"errors", Reasons(lane.judged.tx_errors)}}},
          {"redirect", RedirectJson(lane.judged)},
          {"refused", Reasons(lane.judged.refused)},
          {"faults", Reasons(lane.judged.faults)},
          {"copies", Copies(lane.judged)},
          {"rules", Named(lane.judged.hits)},
          {"left_in_ring", lane.judged.left_in_ring}};
}

Json MapJson(const MapSnapshot& map) {
  Json json = {{"name", map.name}, {"kind", MapKindName(map.kind)}, {"everywhere", map.everywhere}};
  json["slots"] = Json::array();
  for (const MapSnapshot::Slot& slot : map.slots) {
    json["slots"].push_back({{"key", slot.key}, {"leads_to", slot.leads_to}, {"frames", slot.frames}});
  }
  return json;
}

Json EgressJson(const EgressSnapshot& egress) {
  return {{"name", egress.program},
          {"verdicts", VerdictsJson(egress.verdicts)},
          {"faults", egress.faults},
          {"rules", Named(egress.hits)}};
}

Json DeviceJson(const DeviceSnapshot& device, const Snapshot& snapshot) {
  RefusalCounts errors = device.tx_errors;
  for (size_t r = 0; r < kRefusals; ++r) errors[r] += device.redirect_errors[r] + device.refused[r] + device.faults[r];
  std::vector<std::pair<std::string, uint64_t>> xstats;
  QueueSnapshot::Names(device.queues, &xstats);
  Json high_water = Json::array();
  Json waiting = Json::array();
  for (const QueueSnapshot& queue : device.queues) {
    high_water.push_back(queue.high_water);
    waiting.push_back(queue.waiting);
  }
  Json json = {
      {"name", device.name},
      {"port", device.port},
      {"peer", device.peer < 0 ? "" : snapshot.devices[static_cast<size_t>(device.peer)].name},
      {"program", device.program},
      {"sink", device.sink},
      {"mtu", device.mtu},
      {"up", device.up},
      {"received", device.received},
      {"bytes", device.bytes},
      {"verdicts", VerdictsJson(device.verdicts)},
      {"errors", Reasons(errors)},
      {"tx", {{"sent", device.tx_sent}, {"errors", Reasons(device.tx_errors)}}},
      {"redirect", RedirectJson(device)},
      {"sent_through", device.sent_through},
      {"refused_through", Reasons(device.refused_through)},
      {"gso",
       {{"segmented", device.segmented}, {"segments", device.segments}, {"segments_lost", device.segments_lost}}},
      {"gathered", device.gathered},
      {"refused", Reasons(device.refused)},
      {"faults", Reasons(device.faults)},
      {"first_fault", device.fault},
      {"copies", Copies(device)},
      {"xstats", Named(xstats)},
      {"ring_high_water", high_water},
      {"ring_waiting", waiting},
      {"left_in_ring", device.left_in_ring},
      {"polls", device.polls},
      {"empty_polls", device.empty_polls},
      {"rules", Named(device.hits)}};
  if (device.real) {
    const DriverCounts& driver = device.driver;
    json["driver"] = {{"received", driver.received},
                      {"sent", driver.sent},
                      {"sent_bytes", driver.sent_bytes},
                      {"missed", driver.missed},
                      {"receive_errors", driver.receive_errors},
                      {"send_errors", driver.send_errors},
                      {"no_buffer", driver.no_buffer}};
  }
  return json;
}

Json ObjectJson(const ObjectReading& object) {
  return {{"name", object.name},
          {"object", object.object},
          {"program", object.program},
          {"run_by", object.run_by},
          {"not_compiled", object.not_compiled},
          {"instructions", object.instructions},
          {"frags", object.frags},
          {"runs", object.runs},
          {"verdicts", VerdictsJson(object.verdicts)},
          {"unknown", object.unknown},
          {"faults", object.faults},
          {"first_fault", object.fault},
          {"ns_per_run", object.ns_per_run},
          {"maps", object.maps}};
}

Json PoolJson(const PoolSnapshot& pool) {
  Json json = {{"name", pool.name},
               {"ops", pool.ops},
               {"size", pool.size},
               {"data_room", pool.data_room},
               {"exact", pool.exact},
               {"borrowed", pool.borrowed},
               {"buffers_in_use", pool.buffers_in_use},
               {"low_water", pool.low_water},
               {"kept_by_drivers", pool.kept_by_drivers},
               {"pages_in_flight", pool.pages_in_flight}};
  json["leaks"] = Json::array();
  for (const LeakedBuffers& leak : pool.leaks) {
    json["leaks"].push_back({{"stage", leak.stage},
                             {"count", leak.count},
                             {"oldest_seconds", leak.oldest},
                             {"youngest_seconds", leak.youngest}});
  }
  if (pool.page_frag) {
    json["page_size"] = pool.page_size;
    json["objects_per_page"] = pool.objects_per_page;
    json["bytes_resident"] = pool.bytes_resident;
    json["counters"] = Named(pool.counters);
  }
  return json;
}

}  // namespace

nlohmann::ordered_json SnapshotJson(const Snapshot& snapshot) {
  Json json = {{"at", snapshot.at},
               {"seconds", snapshot.seconds},
               {"forwarding", snapshot.forwarding},
               {"rate_pps", snapshot.rate_pps()},
               {"page_memory",
                {{"resident_bytes", snapshot.arenas.bytes},
                 {"peak_bytes", snapshot.arenas.peak_bytes},
                 {"limit_bytes", snapshot.arenas.limit_bytes},
                 {"limit_refusals", snapshot.arenas.limit_refusals}}},
               {"pages_in_flight", snapshot.pages_in_flight()},
               {"buffers_in_use", snapshot.buffers_in_use()}};
  json["traffic"] = Json::array();
  for (const TrafficSnapshot& source : snapshot.traffic) json["traffic"].push_back(TrafficJson(source));
  json["devices"] = Json::array();
  for (const DeviceSnapshot& device : snapshot.devices) json["devices"].push_back(DeviceJson(device, snapshot));
  json["maps"] = Json::array();
  for (const MapSnapshot& map : snapshot.maps) json["maps"].push_back(MapJson(map));
  json["lanes"] = Json::array();
  for (const LaneSnapshot& lane : snapshot.lanes) json["lanes"].push_back(LaneJson(lane));
  json["egress"] = Json::array();
  for (const EgressSnapshot& egress : snapshot.egress) json["egress"].push_back(EgressJson(egress));
  json["sinks"] = Json::array();
  for (const SinkSnapshot& sink : snapshot.sinks) {
    json["sinks"].push_back({{"name", sink.name},
                             {"frames", sink.frames},
                             {"bytes", sink.bytes},
                             {"written", sink.written},
                             {"kept", sink.kept},
                             {"port", sink.port},
                             {"sent", sink.sent},
                             {"refused", Reasons(sink.refused)},
                             {"file", sink.file}});
    if (!sink.held) continue;
    json["sinks"].back()["reader"] = {{"queued", sink.queued},
                                      {"read", sink.read},
                                      {"read_bytes", sink.read_bytes},
                                      {"read_pps", snapshot.per_second(sink.read)},
                                      {"freed", sink.freed},
                                      {"left", sink.left},
                                      {"dropped", Named(sink.dropped)},
                                      {"counters", Named(sink.counters)}};
  }
  json["objects"] = Json::array();
  for (const ObjectReading& object : snapshot.objects) json["objects"].push_back(ObjectJson(object));
  json["pools"] = Json::array();
  for (const PoolSnapshot& pool : snapshot.pools) json["pools"].push_back(PoolJson(pool));
  json["workers"] = Json::array();
  for (const WorkerSnapshot& worker : snapshot.workers) {
    json["workers"].push_back(
        {{"lcore", worker.lcore}, {"rounds", worker.rounds}, {"idle_rounds", worker.idle_rounds}});
  }
  return json;
}

}  // namespace halfpage
