// What `show` and `clear` say. Every number is the snapshot's.
#include <rte_ethdev.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/ledger.h"
#include "app/plan.h"
#include "app/plan_machine.h"
#include "app/plan_report.h"
#include "app/prompt/commands.h"
#include "app/report.h"
#include "app/snapshot_json.h"

namespace halfpage {
namespace {

constexpr double kHeldFor = 1;  // seconds after which a buffer is asked about

std::string InfoText(const Device& device) {
  rte_eth_dev_info info = {};
  rte_eth_link link = {};
  rte_ether_addr address = {};
  if (rte_eth_dev_info_get(device.port, &info) != 0)
    return absl::StrCat("port ", device.port, ": its driver tells nothing\n");
  rte_eth_link_get_nowait(device.port, &link);
  rte_eth_macaddr_get(device.port, &address);
  const uint8_t* mac = address.addr_bytes;
  return absl::StrFormat(
      "\n********************* Infos for port %-2d *********************\n"
      "MAC address: %02X:%02X:%02X:%02X:%02X:%02X\n"
      "Device name: %s\n"
      "Driver name: %s\n"
      "Link status: %s\n"
      "MTU: %u\n"
      "Promiscuous mode: %s\n"
      "RX queues: %d\n"
      "Max possible RX queues: %d\n"
      "TX queues: %d\n"
      "Max possible TX queues: %d\n"
      "XDP program: %s\n"
      "Sink: %s\n",
      device.port, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], device.name, info.driver_name,
      device.up && link.link_status != 0 ? "up" : "down", device.mtu,
      rte_eth_promiscuous_get(device.port) == 1 ? "enabled" : "disabled", info.nb_rx_queues, info.max_rx_queues,
      info.nb_tx_queues, info.max_tx_queues, device.program.empty() ? "none" : device.program,
      device.sink.empty() ? "none" : device.sink);
}

std::string QueuesText(const Device& device) {
  rte_eth_dev_info info = {};
  rte_eth_dev_info_get(device.port, &info);
  return absl::StrFormat("  port %d (%s): RX queue number: %d Tx queue number: %d\n", device.port, device.name,
                         info.nb_rx_queues, info.nb_tx_queues);
}

std::string XstatsText(const DeviceSnapshot& device) {
  std::string text = absl::StrFormat("###### NIC extended statistics for port %-2u (%s)\n", device.port, device.name);
  std::vector<std::pair<std::string, uint64_t>> counts;
  QueueSnapshot::Names(device.queues, &counts);
  for (const auto& [name, count] : counts) absl::StrAppend(&text, name, ": ", count, "\n");
  return text;
}

std::string SummaryText(const Topology& topology, const std::vector<DeviceIndex>& devices) {
  std::string text = "Port Name             Program          MTU    Status\n";
  for (const DeviceIndex d : devices) {
    const Device& device = topology.devices()[d];
    absl::StrAppendFormat(&text, "%-4d %-16s %-16s %-6u %s\n", device.port, device.name,
                          device.program.empty() ? "-" : device.program, device.mtu, device.up ? "up" : "down");
  }
  return text;
}

std::string ForwardText(const Snapshot& snapshot) {
  std::string text;
  uint64_t received = 0, dropped = 0, sent = 0, refused = 0;
  for (const DeviceSnapshot& device : snapshot.devices) {
    const uint64_t lost = device.verdicts[static_cast<size_t>(XdpAction::kDrop)] +
                          device.verdicts[static_cast<size_t>(XdpAction::kAborted)] + Sum(device.refused);
    const uint64_t errors = Sum(device.refused_through);
    absl::StrAppendFormat(&text,
                          "\n  ---------------------- Forward statistics for port %-2u (%s) ----------------------\n"
                          "  RX-packets: %-14u RX-dropped: %-14u RX-total: %u\n"
                          "  TX-packets: %-14u TX-dropped: %-14u TX-total: %u\n",
                          device.port, device.name, device.received, lost, device.received, device.sent_through, errors,
                          device.sent_through + errors);
    received += device.received;
    dropped += lost;
    sent += device.sent_through;
    refused += errors;
  }
  absl::StrAppendFormat(&text,
                        "\n  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++\n"
                        "  RX-packets: %-14u RX-dropped: %-14u RX-total: %u\n"
                        "  TX-packets: %-14u TX-dropped: %-14u TX-total: %u\n",
                        received, dropped, received, sent, refused, sent + refused);
  return text;
}

}  // namespace

absl::Status ShowPort(Session& session, const Words& words) {
  const auto devices = session.Devices(words[3]);
  if (!devices.ok()) return devices.status();
  const std::string& what = words[2];
  const Snapshot now = session.Read();
  if (what == "summary") session.out += SummaryText(session.topology, *devices);
  for (const DeviceIndex d : *devices) {
    if (what == "info") session.out += InfoText(session.topology.devices()[d]);
    if (what == "xstats") session.out += XstatsText(now.devices[d]);
    if (what == "stats") session.out += PortStatistics(now, session.shown, d);
  }
  if (what == "stats") session.shown = now;
  return absl::OkStatus();
}

absl::Status Clear(Session& session, const Words& words) {
  const Snapshot now = session.topology.Read();
  if (words[1] != "port") {
    session.cleared = now;
  } else {
    const auto devices = session.Devices(words[3]);
    if (!devices.ok()) return devices.status();
    for (const DeviceIndex d : *devices) session.cleared.devices[d] = now.devices[d];
  }
  session.shown = session.Read();
  return absl::OkStatus();
}

absl::Status ShowConfig(Session& session, const Words& words) {
  const Config& config = session.topology.config();
  const std::string& what = words[2];
  if (what == "cores" || what == "fwd") {
    for (size_t w = 0; w < config.lcores.workers.size(); ++w) {
      const WorkerConfig& worker = config.lcores.workers[w];
      absl::StrAppendFormat(&session.out, "worker %d: polls %s; drives %s; reads %s\n", w,
                            worker.poll.empty() ? "nothing" : absl::StrJoin(worker.poll, ", "),
                            worker.generate.empty() ? "nothing" : absl::StrJoin(worker.generate, ", "),
                            worker.read.empty() ? "nothing" : absl::StrJoin(worker.read, ", "));
    }
  }
  if (what == "rxtx") {
    absl::StrAppendFormat(
        &session.out, "packets/burst=%u - bulk=%u - nb forwarding cores=%d - nb forwarding ports=%d\n",
        config.measure.budget, config.measure.bulk, config.lcores.workers.size(), session.topology.devices().size());
  }
  for (const Device& device : session.topology.devices()) {
    if (what == "rxtx") session.out += QueuesText(device);
    if (what == "fwd") {
      absl::StrAppendFormat(&session.out, "  port %d (%s): program %s, sink %s\n", device.port, device.name,
                            device.program.empty() ? "none" : device.program,
                            device.sink.empty() ? "none" : device.sink);
    }
    if (what == "rxoffs")
      absl::StrAppendFormat(&session.out, "  port %d (%s): no receive offloads are used\n", device.port, device.name);
  }
  if (what == "txpkts") {
    for (const TrafficConfig& traffic : config.traffic) {
      std::vector<std::string> sizes;
      for (const auto& [size, weight] : traffic.sizes) sizes.push_back(absl::StrCat(size, "x", weight));
      const bool capture = traffic.source == TrafficConfig::Source::kCapture;
      absl::StrAppendFormat(&session.out, "  source %s: %s, rate %s\n", traffic.name,
                            capture ? traffic.file : absl::StrJoin(sizes, ","),
                            traffic.timing == TrafficConfig::Timing::kCapture ? "as captured"
                            : traffic.rate == 0                               ? "unlimited"
                                                                              : absl::StrCat(traffic.rate));
    }
  }
  return absl::OkStatus();
}

absl::Status ShowForward(Session& session, const Words&) {
  session.out += ForwardText(session.Read());
  return absl::OkStatus();
}

absl::Status ShowPool(Session& session, const Words& words) {
  if (words[2] == "stats") {
    const Snapshot now = session.Read();
    session.out += PoolText(now);
    for (const PoolSnapshot& pool : now.pools) {
      absl::StrAppendFormat(&session.out, "  pool %s: %u of %u buffers in use, %u pages in flight\n", pool.name,
                            pool.buffers_in_use, pool.size, pool.pages_in_flight);
    }
    return absl::OkStatus();
  }
  if (words[2] == "leaks") {
    session.out += session.topology.HeldText(kHeldFor);
    return absl::OkStatus();
  }
  const MemoryPlan plan = PlanMemory(session.topology.config());
  session.out += PlanText(plan, ReadMemoryLimits(plan.terms.hugepages));
  return absl::OkStatus();
}

absl::Status ShowVeth(Session& session, const Words&) {
  const Snapshot now = session.Read();
  for (size_t d = 0; d < now.devices.size(); ++d) {
    const DeviceSnapshot& device = now.devices[d];
    if (device.real) continue;
    uint64_t waiting = 0, most = 0;
    for (const QueueSnapshot& queue : device.queues) {
      waiting += queue.waiting;
      most = std::max(most, queue.high_water);
    }
    absl::StrAppendFormat(
        &session.out, "  %s: port %u, peer %s, %s, MTU %u, %d queue%s, program %s, sink %s, waiting %u, most %u\n",
        device.name, device.port, now.devices[static_cast<size_t>(device.peer)].name, device.up ? "up" : "down",
        device.mtu, device.queues.size(), device.queues.size() == 1 ? "" : "s",
        device.program.empty() ? "none" : device.program, device.sink.empty() ? "none" : device.sink, waiting, most);
  }
  return absl::OkStatus();
}

absl::Status ShowXdp(Session& session, const Words& words) {
  if (words[2] == "stats") {
    session.out += VerdictText(session.Read());
    return absl::OkStatus();
  }
  const Snapshot now = session.topology.Read();
  const std::vector<std::string> imbalances = CheckLedger(now);
  absl::StrAppend(&session.out,
                  "ledger: ", imbalances.empty() ? "balanced" : "NOT balanced: ", absl::StrJoin(imbalances, "; "),
                  "\n");
  if (now.forwarding && !imbalances.empty())
    session.out += "  frames that are under way while it is read differ; stop first\n";
  absl::StrAppend(&session.out, "  pages held: ", now.pages_in_flight(), "\n  buffers held: ", now.buffers_in_use(),
                  "\n");
  return absl::OkStatus();
}

absl::Status ShowWorkers(Session& session, const Words&) {
  for (const WorkerSnapshot& worker : session.Read().workers) {
    const double busy =
        worker.rounds == 0 ? 0
                           : 100 - 100.0 * static_cast<double>(worker.idle_rounds) / static_cast<double>(worker.rounds);
    absl::StrAppendFormat(&session.out, "  lcore %u: %u rounds, %u idle, busy %.1f %%\n", worker.lcore, worker.rounds,
                          worker.idle_rounds, busy);
  }
  return absl::OkStatus();
}

absl::Status ShowJson(Session& session, const Words&) {
  absl::StrAppend(&session.out, SnapshotJson(session.topology.Read()).dump(2), "\n");
  return absl::OkStatus();
}

}  // namespace halfpage
