#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/report.h"
#include "app/text_table.h"

namespace halfpage {
namespace {

std::string Number(uint64_t value) {
  return absl::StrCat(value);
}

std::string ReasonsText(const RefusalCounts& counts) {
  std::vector<std::string> reasons;
  for (size_t r = 0; r < kRefusals; ++r) {
    if (counts[r] != 0) reasons.push_back(absl::StrCat(RefusalName(static_cast<Refusal>(r)), " ", counts[r]));
  }
  return absl::StrJoin(reasons, ", ");
}

std::string NamedCounts(const std::vector<std::pair<std::string, uint64_t>>& counts, bool with_zeros) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    if (count != 0 || with_zeros) parts.push_back(absl::StrCat(name, " ", count));
  }
  return absl::StrJoin(parts, ", ");
}

std::string TrafficTable(const Snapshot& snapshot) {
  std::vector<TableRow> rows = {{"traffic", "into", "generated", "sent", "refused", "no buffer"}};
  std::string notes;
  for (const TrafficSnapshot& source : snapshot.traffic) {
    rows.push_back({source.name, source.into, Number(source.generated), Number(source.sent),
                    Number(Sum(source.refused)), Number(source.nobuf)});
    if (Sum(source.refused) != 0) {
      absl::StrAppend(&notes, "  traffic ", source.name, ": refused by reason: ", ReasonsText(source.refused), "\n");
    }
    for (const ClassSnapshot& each : source.classes) {
      if (each.borrowed + each.nobuf == 0) continue;
      absl::StrAppend(&notes, "  traffic ", source.name, ": frames for pool ", each.pool, ": ", each.borrowed,
                      " borrowed from a larger one, ", each.nobuf, " found none\n");
    }
    if (!source.skipped.empty()) {
      absl::StrAppend(&notes, "  capture of ", source.name, ": ", NamedCounts(source.skipped, false),
                      source.damage.empty() ? "" : absl::StrCat(" (", source.damage, ")"), "\n");
    }
  }
  return TextTable(rows) + notes;
}

// What kept frames from the program, what the program could not do, and what was copied for it.
void AppendOfReceiving(const DeviceSnapshot& device, std::string* notes) {
  if (Sum(device.refused) != 0) {
    absl::StrAppend(notes, "  ", device.name, ": not shown to its program: ", ReasonsText(device.refused), "\n");
  }
  if (Sum(device.faults) != 0) {
    absl::StrAppend(notes, "  ", device.name, ": aborted because of: ", ReasonsText(device.faults),
                    " (first: ", device.fault, ")\n");
  }
  for (const CopyCount& count : device.copies) {
    if (count.buffers == 0) continue;
    absl::StrAppend(notes, "  ", device.name, ": copied, ", count.cause, ": ", count.buffers, " buffers, ", count.bytes,
                    " bytes\n");
  }
}

// What else became of frames sent through a device, and what a port's driver says of itself.
void AppendOfSending(const DeviceSnapshot& device, std::string* notes) {
  if (device.segmented != 0) {
    absl::StrAppend(notes, "  ", device.name, ": segmented ", device.segmented, " frames, sent ", device.segments,
                    " segments, lost ", device.segments_lost, "\n");
  }
  if (device.gathered != 0) {
    absl::StrAppend(notes, "  ", device.name, ": gathered into one buffer: ", device.gathered, "\n");
  }
  if (!device.real) return;
  const DriverCounts& driver = device.driver;
  absl::StrAppend(notes, "  ", device.name, ": sent ", device.sent_through, "; its driver: received ", driver.received,
                  ", sent ", driver.sent, "; ",
                  NamedCounts({{"missed", driver.missed},
                               {"receive errors", driver.receive_errors},
                               {"send errors", driver.send_errors},
                               {"no buffer", driver.no_buffer}},
                              true),
                  "\n");
}

std::string VerdictTable(const Snapshot& snapshot) {
  std::vector<TableRow> rows = {
      {"device", "program", "received", "drop", "aborted", "pass", "tx", "redirect", "errors", "empty polls"}};
  std::string notes;
  for (const DeviceSnapshot& device : snapshot.devices) {
    const auto verdict = [&](XdpAction action) { return Number(device.verdicts[static_cast<size_t>(action)]); };
    const uint64_t errors = Sum(device.tx_errors) + Sum(device.redirect_errors) + Sum(device.refused);
    const double empty =
        device.polls == 0 ? 0 : 100.0 * static_cast<double>(device.empty_polls) / static_cast<double>(device.polls);
    rows.push_back({device.name, device.program.empty() ? "-" : device.program, Number(device.received),
                    verdict(XdpAction::kDrop), verdict(XdpAction::kAborted), verdict(XdpAction::kPass),
                    verdict(XdpAction::kTx), verdict(XdpAction::kRedirect), Number(errors),
                    absl::StrFormat("%.0f %%", empty)});
    if (!device.hits.empty()) {
      absl::StrAppend(&notes, "  rules of ", device.program, " on ", device.name, ": ", NamedCounts(device.hits, true),
                      "\n");
    }
    if (Sum(device.tx_errors) != 0) {
      absl::StrAppend(&notes, "  ", device.name, ": tx errors: ", ReasonsText(device.tx_errors), "\n");
    }
    if (device.redirect_copies != 0) {
      absl::StrAppend(&notes, "  ", device.name, ": copies for broadcasts: ", device.redirect_copies, "\n");
    }
    if (Sum(device.redirect_errors) != 0) {
      absl::StrAppend(&notes, "  ", device.name, ": redirect errors: ", ReasonsText(device.redirect_errors), "\n");
    }
    AppendOfReceiving(device, &notes);
    AppendOfSending(device, &notes);
    if (device.left_in_ring != 0) {
      absl::StrAppend(&notes, "  ", device.name, ": left in its ring at stop: ", device.left_in_ring, "\n");
    }
  }
  return TextTable(rows) + notes;
}

std::string VerdictsText(const std::array<uint64_t, kXdpActions>& verdicts) {
  std::vector<std::pair<std::string, uint64_t>> counts;
  for (int a = 0; a < kXdpActions; ++a) {
    counts.emplace_back(XdpActionName(static_cast<XdpAction>(a)), verdicts[static_cast<size_t>(a)]);
  }
  return NamedCounts(counts, false);
}

// Slots of maps and where they led; what became of frames that came to other workers.
std::string MapTable(const Snapshot& snapshot) {
  std::vector<TableRow> rows = {{"map", "kind", "key", "leads to", "frames"}};
  for (const MapSnapshot& map : snapshot.maps) {
    if (map.everywhere != 0) rows.push_back({map.name, MapKindName(map.kind), "all", "-", Number(map.everywhere)});
    for (const MapSnapshot::Slot& slot : map.slots) {
      rows.push_back({map.name, MapKindName(map.kind), Number(slot.key), slot.leads_to.empty() ? "-" : slot.leads_to,
                      Number(slot.frames)});
    }
  }
  if (rows.size() == 1 && snapshot.egress.empty()) return "";
  std::string notes;
  for (const EgressSnapshot& egress : snapshot.egress) {
    absl::StrAppend(&notes, "  behind devmaps, ", egress.program, ": ", VerdictsText(egress.verdicts));
    if (egress.faults != 0) absl::StrAppend(&notes, "; faults ", egress.faults);
    if (!egress.hits.empty()) absl::StrAppend(&notes, "; rules: ", NamedCounts(egress.hits, true));
    absl::StrAppend(&notes, "\n");
  }
  for (const LaneSnapshot& lane : snapshot.lanes) {
    const uint64_t errors = Sum(lane.judged.tx_errors) + Sum(lane.judged.redirect_errors) + Sum(lane.judged.refused);
    absl::StrAppend(&notes, "  ", lane.judged.name, ": worker ", lane.worker, " received ", lane.judged.received, ": ",
                    VerdictsText(lane.judged.verdicts), "; errors ", errors, ", left at stop ",
                    lane.judged.left_in_ring, "\n");
  }
  return (rows.size() == 1 ? "" : TextTable(rows)) + notes + "\n";
}

// "read 900 (0.45 Mpps), left 3 at stop; dropped: rcvbuf_errors 97; condensed 0, ...".
std::string HeldNote(const SinkSnapshot& sink, const Snapshot& snapshot) {
  const std::string dropped = NamedCounts(sink.dropped, false);
  return absl::StrFormat("  %s: read %u (%.3f Mpps), left %u at stop; dropped: %s; %s\n", sink.name, sink.read,
                         snapshot.per_second(sink.read) / 1e6, sink.left, dropped.empty() ? "none" : dropped,
                         NamedCounts(sink.counters, true));
}

std::string SinkTable(const Snapshot& snapshot) {
  std::vector<TableRow> rows = {{"sink", "frames", "bytes", "written"}};
  std::string notes;
  for (const SinkSnapshot& sink : snapshot.sinks) {
    if (sink.name == "(none)" && sink.frames == 0) continue;
    rows.push_back({sink.name, Number(sink.frames), Number(sink.bytes),
                    sink.file.empty() ? "-" : absl::StrCat(sink.written, " to ", sink.file)});
    if (sink.held) notes += HeldNote(sink, snapshot);
    if (sink.port.empty()) continue;
    absl::StrAppend(&notes, "  ", sink.name, ": sent ", sink.sent, " through ", sink.port, ", refused ",
                    Sum(sink.refused), Sum(sink.refused) == 0 ? "" : absl::StrCat(": ", ReasonsText(sink.refused)),
                    "\n");
  }
  return rows.size() == 1 ? "" : TextTable(rows) + notes + "\n";
}

std::string ObjectLines(const Snapshot& snapshot) {
  std::string text;
  for (const ObjectReading& object : snapshot.objects) {
    absl::StrAppendFormat(&text, "  program %s: %s of %s, %u instructions, run by %s%s, %u runs", object.name,
                          object.program, object.object, object.instructions, object.run_by,
                          object.not_compiled.empty() ? "" : absl::StrCat(" (", object.not_compiled, ")"), object.runs);
    for (int a = 0; a < kXdpActions; ++a) {
      const uint64_t count = object.verdicts[static_cast<size_t>(a)];
      if (count != 0) absl::StrAppend(&text, ", ", XdpActionName(static_cast<XdpAction>(a)), " ", count);
    }
    if (object.unknown != 0) absl::StrAppend(&text, ", no verdict ", object.unknown);
    if (object.ns_per_run > 0) absl::StrAppendFormat(&text, ", %.1f ns per run", object.ns_per_run);
    absl::StrAppend(&text, "\n");
    if (object.faults == 0) continue;
    absl::StrAppend(&text, "    program_fault ", object.faults, ", the first: ", object.fault, "\n");
  }
  return text;
}

std::string PoolLines(const Snapshot& snapshot) {
  std::string text;
  for (const PoolSnapshot& pool : snapshot.pools) {
    absl::StrAppendFormat(&text, "  pool %s: %s, %u buffers of %s", pool.name, pool.ops, pool.size,
                          pool.exact ? "their frames' length" : absl::StrCat(pool.data_room, " bytes"));
    absl::StrAppend(&text, ", at least ", pool.low_water, " of them free");
    if (pool.borrowed != 0) absl::StrAppend(&text, ", borrowed ", pool.borrowed);
    if (pool.page_frag) {
      const std::string packing =
          pool.exact ? "back to back on pages" : absl::StrCat(pool.objects_per_page, " to a page");
      absl::StrAppendFormat(&text, ", %s of %u KiB, %.1f MiB resident\n    pages: ", packing, pool.page_size / 1024,
                            static_cast<double>(pool.bytes_resident) / (1024 * 1024));
      absl::StrAppend(&text, NamedCounts(pool.counters, false));
    }
    absl::StrAppend(&text, "\n");
    if (pool.kept_by_drivers != 0) {
      absl::StrAppend(
          &text, "    kept by net_af_xdp, which never gives back what its rings hold: ", pool.kept_by_drivers, "\n");
    }
  }
  return text;
}

// "page memory: planned 22.0 MiB with all buffers out, peak 22.0 MiB".
std::string MemoryLine(const RunResult& result) {
  if (result.planned_page_bytes == 0) return "";
  std::string text = absl::StrFormat("page memory: planned %.1f MiB with all buffers out, peak %.1f MiB\n",
                                     static_cast<double>(result.planned_page_bytes) / (1 << 20),
                                     static_cast<double>(result.snapshot.arenas.peak_bytes) / (1 << 20));
  if (result.snapshot.arenas.limit_bytes != 0) {
    absl::StrAppendFormat(&text, "page memory: limit %.1f MiB, reached %u times\n",
                          static_cast<double>(result.snapshot.arenas.limit_bytes) / (1 << 20),
                          result.snapshot.arenas.limit_refusals);
  }
  if (result.trimmed_bytes != 0) {
    absl::StrAppendFormat(&text, "page memory: %.1f MiB given back while the run went on\n",
                          static_cast<double>(result.trimmed_bytes) / (1 << 20));
  }
  return text;
}

uint64_t PerSecond(uint64_t now, uint64_t before, double seconds) {
  return seconds > 0 ? static_cast<uint64_t>(std::llround(static_cast<double>(now - before) / seconds)) : 0;
}

}  // namespace

std::string ObjectText(const Snapshot& snapshot) {
  return ObjectLines(snapshot);
}

std::string VerdictText(const Snapshot& snapshot) {
  return VerdictTable(snapshot);
}

std::string PoolText(const Snapshot& snapshot) {
  return PoolLines(snapshot);
}

std::string PortStatistics(const Snapshot& now, const Snapshot& before, size_t d) {
  const DeviceSnapshot nobody;
  const double seconds = now.at - before.at;
  std::string text;
  const DeviceSnapshot& device = now.devices[d];
  const DeviceSnapshot& device_before = before.devices[d];
  // Rings count packets only: what an end sends is measured in bytes where its peer receives it.
  const bool paired = device.peer >= 0;
  const DeviceSnapshot& peer = paired ? now.devices[static_cast<size_t>(device.peer)] : nobody;
  const DeviceSnapshot& peer_before = paired ? before.devices[static_cast<size_t>(device.peer)] : nobody;
  const uint64_t missed = Sum(peer.refused_through) + device.driver.missed;
  const uint64_t sent_bytes = peer.bytes + device.driver.sent_bytes;
  const uint64_t sent_bytes_before = peer_before.bytes + device_before.driver.sent_bytes;
  absl::StrAppendFormat(&text,
                        "\n  ######################## NIC statistics for port %-2u (%s) ########################\n"
                        "  RX-packets: %-10u RX-missed: %-10u RX-bytes:  %u\n"
                        "  RX-errors: %u\n"
                        "  RX-nombuf:  %u\n"
                        "  TX-packets: %-10u TX-errors: %-10u TX-bytes:  %u\n\n"
                        "  Throughput (since last show)\n"
                        "  Rx-pps: %12u          Rx-bps: %12u\n"
                        "  Tx-pps: %12u          Tx-bps: %12u\n"
                        "  ############################################################################\n",
                        device.port, device.name, device.received, missed, device.bytes,
                        Sum(device.refused) + device.driver.receive_errors, device.driver.no_buffer,
                        device.sent_through, Sum(device.refused_through) + device.driver.send_errors, sent_bytes,
                        PerSecond(device.received, device_before.received, seconds),
                        8 * PerSecond(device.bytes, device_before.bytes, seconds),
                        PerSecond(device.sent_through, device_before.sent_through, seconds),
                        8 * PerSecond(sent_bytes, sent_bytes_before, seconds));
  return text;
}

std::string StatisticsBlock(const Snapshot& now, const Snapshot& before) {
  std::string text;
  for (size_t d = 0; d < now.devices.size(); ++d) text += PortStatistics(now, before, d);
  for (const PoolSnapshot& pool : now.pools) {
    absl::StrAppendFormat(&text, "  pool %s: %u of %u buffers in use, borrowed %u\n", pool.name, pool.buffers_in_use,
                          pool.size, pool.borrowed);
  }
  return text;
}

std::string TextReport(const RunResult& result) {
  const Snapshot& snapshot = result.snapshot;
  std::string text = absl::StrFormat("\n%s: %.2f s, %d worker%s\n\n", result.config_file, snapshot.seconds,
                                     snapshot.workers.size(), snapshot.workers.size() == 1 ? "" : "s");
  absl::StrAppend(&text, TrafficTable(snapshot), "\n", VerdictTable(snapshot), "\n", MapTable(snapshot),
                  SinkTable(snapshot), ObjectLines(snapshot), PoolLines(snapshot), MemoryLine(result), "\n");
  absl::StrAppend(&text, "ledger: ", result.imbalances.empty() ? "balanced" : "NOT balanced: ",
                  absl::StrJoin(result.imbalances, "; "), "\n");
  absl::StrAppend(&text, "pages in flight: ", snapshot.pages_in_flight(), "\n");
  absl::StrAppend(&text, "buffers in use: ", snapshot.buffers_in_use(), "\n");
  for (const std::string& leak : result.leaks) absl::StrAppend(&text, "leak: ", leak, "\n");
  absl::StrAppendFormat(&text, "rate: %.2f Mpps\n", snapshot.rate_pps() / 1e6);
  return text;
}

}  // namespace halfpage
