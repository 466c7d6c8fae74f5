#include "app/prompt/commands.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace halfpage {
namespace {

absl::Status Quit(Session& session, const Words&) {
  session.quit = true;
  return absl::OkStatus();
}

absl::Status Help(Session& session, const Words& words) {
  auto text = CommandHelp(words.size() > 1 ? words[1] : "");
  if (!text.ok()) return text.status();
  session.out += *text;
  return absl::OkStatus();
}

// The reader of files does it, for it counts lines.
absl::Status Load(Session& session, const Words& words) {
  session.files.push_back(words[1]);
  return absl::OkStatus();
}

}  // namespace

// testpmd's grammar where the thing exists there.
const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"control", "help", "list all commands", Help},
      {"control", "help <topic>", "list those of a topic: control, display, config, ports, xdp, bpf", Help},
      {"control", "start", "start forwarding", StartForwarding},
      {"control", "stop", "stop forwarding once rings are empty, and show what was forwarded", StopForwarding},
      {"control", "load <file>", "run the commands in a file", Load},
      {"control", "quit", "stop forwarding, report and leave", Quit},
      {"display", "show port info|stats|xstats|summary <port>", "a port by number or name, or all", ShowPort},
      {"display", "clear port info|stats|xstats <port>", "count from zero: of a port, or all", Clear},
      {"display", "show config rxtx|cores|fwd|txpkts|rxoffs", "what is configured", ShowConfig},
      {"display", "show fwd stats all", "forwarding by port", ShowForward},
      {"display", "clear fwd stats all", "count from zero", Clear},
      {"display", "clear all", "count everything from zero; other readers do not notice", Clear},
      {"display", "show pool stats|leaks|plan", "pools: use and pages; who holds buffers for 1 s; memory needed",
       ShowPool},
      {"display", "show veth", "pairs: MTU, state, what waits in rings", ShowVeth},
      {"display", "show xdp stats|balance", "verdicts and errors by device; whether each frame is accounted for",
       ShowXdp},
      {"display", "show workers", "rounds and idle rounds by lcore", ShowWorkers},
      {"display", "show json", "everything counted, as --json writes it at the end; clear does not count", ShowJson},
      {"display", "dump_mempool", "all mempools, as DPDK sees them", Dump},
      {"display", "dump_mempool <name>", "one of them", Dump},
      {"display", "dump_physmem", "EAL's memory segments", Dump},
      {"display", "dump_memzone", "EAL's memory zones", Dump},
      {"display", "dump_socket_mem", "EAL's heap by socket", Dump},
      {"display", "dump_ring", "all rings", Dump},
      {"display", "dump_lcores", "lcores", Dump},
      {"display", "dump_devargs", "devices' arguments", Dump},
      {"display", "dump_log_types", "log types and levels", Dump},
      {"config", "set fwd <mode>",
       "io, mac, csum, 5tswap: frames pass to the sink, changed by then; macswap: the same, or back where that is no "
       "port; icmpecho: answer; rxonly: drop",
       SetForward},
      {"config", "set eth-peer <port> <mac>", "address behind a port, which modes mac and csum send to", SetEthPeer},
      {"config", "set burst <n>", "frames per receive call, 1 to 64", SetNumber},
      {"config", "set bulk <n>", "frames per XDP_TX or redirect flush, 1 to 64", SetNumber},
      {"config", "set rate <source> <n>", "frames a second of a source, or all; 0: no limit", SetNumber},
      {"config", "set nbcore <n>", "workers; as many as the configuration has, so only that number is taken",
       SetNumber},
      {"config", "set nbport <n>", "ports; as many as the configuration has, so only that number is taken", SetNumber},
      {"config", "set promisc <port> on|off", "promiscuous mode of a port, or all", SetSwitch},
      {"config", "set allmulti <port> on|off", "multicast reception of a port, or all", SetSwitch},
      {"config", "set link-up port <port>", "a port's link; of a pair: frames pass again", SetSwitch},
      {"config", "set link-down port <port>", "a port's link; of a pair: frames are refused, peer_down", SetSwitch},
      {"config", "set recycle <pool> lifo|ring|off", "where whole pages of a pool, or all, go", SetRecycle},
      {"config", "set policy <device> stock|classes|whole|half|fixed|exact|kernel",
       "buffers of a device's private copies", SetPolicy},
      {"config", "set log <type> <level>", "log level of a type, 1 to 8", SetLog},
      {"config", "set verbose <n>", "ours: packets are not printed; give a device a sink of kind pcap", nullptr},
      {"config", "set txpkts <lengths>", "ours: lengths are `sizes` of a source, fixed at the start (--txpkts)",
       nullptr},
      {"config", "set txsplit off|on|rand", "ours: a frame is split where its pool's room ends (data_room)", nullptr},
      {"config", "set corelist <cores>", "ours: workers and what each polls are `lcores.workers`, fixed at the start",
       nullptr},
      {"config", "set portlist <ports>", "ours: what each worker polls is `lcores.workers`, fixed at the start",
       nullptr},
      {"config", "set stat_qmap rx|tx <port> <queue> <map>", "ours: every queue has counters: show port xstats",
       nullptr},
      {"config", "set flow_ctrl rx on|off <port>",
       "ours: rings have no flow control; what they refuse is counted ring_full", nullptr},
      {"ports", "port start|stop|close|reset <port>", "a port or all; stopping a pair's end refuses frames, peer_down",
       Port},
      {"ports", "port config mtu <port> <n>", "bytes behind the Ethernet header; programs must admit it", Port},
      {"ports", "port config all rxq|txq|rxd|txd <n>",
       "ours: queues and rings are `queues` and `ring`, fixed at the start", nullptr},
      {"ports", "port config all burst <n>", "as set burst", Port},
      {"ports", "port attach <device>", "ours: devices are `veth` and `ports` of the configuration, fixed at the start",
       nullptr},
      {"ports", "port detach <port>", "ours: devices are fixed at the start; port stop takes one out of use", nullptr},
      {"xdp", "xdp attach|replace <device> <program>", "a configured program, or pass, drop, tx, aborted", Xdp},
      {"xdp", "xdp detach <device>", "no program: everything passes", Xdp},
      {"xdp", "xdp verdict <program> pass|drop|tx|aborted", "what a program says; of a filter: where no rule matches",
       Xdp},
      {"bpf", "show bpf maps|programs", "maps of objects; their programs: runs, verdicts, faults, time, run by whom",
       ShowBpf},
      {"bpf", "bpf map dump <map>", "entries of a map, or of PROGRAM/MAP; of arrays those that are not 0", MapEdit},
      {"bpf", "bpf map get|delete <map> <key>", "one entry; keys are written as in the configuration", MapEdit},
      {"bpf", "bpf map set <map> <key> <value>",
       "an entry, for all workers; frames go on meanwhile; of a devmap also DEVICE or DEVICE,PROGRAM", MapEdit},
  };
  return commands;
}

absl::StatusOr<std::string> CommandHelp(const std::string& topic) {
  std::string text;
  const char* last = "";
  for (const Command& command : Commands()) {
    if (!topic.empty() && topic != "all" && topic != command.topic) continue;
    if (std::strcmp(last, command.topic) != 0) absl::StrAppend(&text, "\n", command.topic, ":\n");
    last = command.topic;
    absl::StrAppendFormat(&text, "  %-50s  %s\n", command.grammar, command.help);
  }
  if (!text.empty()) return text;
  return absl::NotFoundError(
      absl::StrFormat("no topic %s; there are control, display, config, ports, xdp, bpf, all", topic));
}

}  // namespace halfpage
