#include "app/launch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "app/nearest_name.h"

namespace halfpage {
namespace {

constexpr size_t kMostLaunchPorts = 32;  // RTE_MAX_ETHPORTS
constexpr char kUsualBurst[] = "32";     // testpmd's

struct LaunchMode {
  const char* name;
  bool makes;           // frames are made here and what comes is freed
  bool forwards;        // what comes leaves through the partner
  const char* verdict;  // of a program of kind forward, which most modes are; null: none
  const char* refusal;  // what to do instead, of a mode that testpmd has and we do not
};

constexpr LaunchMode kModes[] = {
    {"io", false, true, nullptr, nullptr},
    {"mac", false, true, "pass", nullptr},
    {"macswap", false, true, "pass", nullptr},
    {"csum", false, true, "pass", nullptr},
    {"5tswap", false, true, "pass", nullptr},
    {"icmpecho", false, false, "tx", nullptr},
    {"rxonly", false, false, nullptr, nullptr},
    {"txonly", true, false, nullptr, nullptr},
    {"flowgen", true, false, nullptr, nullptr},
    {"noisy", false, true, nullptr, "use io, and programs of kind touch with --config for work on each frame"},
    {"ieee1588", false, true, nullptr, "no port here stamps times: use io"},
    {"shared-rxq", false, true, nullptr, "receive queues are not shared: use io"},
};

absl::Status Wrong(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
}

// The values of an EAL option in the order given: "-a X", "-aX", "--vdev X", "--vdev=X".
std::vector<std::string> ValuesOf(const std::vector<std::string>& eal, absl::string_view option) {
  const bool is_short = option.size() == 2;
  std::vector<std::string> values;
  for (size_t i = 0; i < eal.size(); ++i) {
    const absl::string_view argument = eal[i];
    if (argument == option) {
      if (++i < eal.size()) values.push_back(eal[i]);
    } else if (is_short && absl::StartsWith(argument, option) && !absl::StartsWith(argument, "--")) {
      values.emplace_back(argument.substr(2));
    } else if (!is_short && absl::StartsWith(argument, absl::StrCat(option, "="))) {
      values.emplace_back(argument.substr(option.size() + 1));
    }
  }
  return values;
}

absl::StatusOr<const LaunchMode*> FindMode(const LaunchOptions& options) {
  const std::string name = options.forward_mode.empty() ? "io" : options.forward_mode;
  std::vector<std::string> names;
  for (const LaunchMode& mode : kModes) {
    if (name == mode.name) {
      if (mode.refusal == nullptr) return &mode;
      return Wrong(absl::StrCat("--forward-mode ", name, " is testpmd's and not here: ", mode.refusal));
    }
    if (mode.refusal == nullptr) names.push_back(mode.name);
  }
  return Wrong(absl::StrCat("--forward-mode ", name, " is no mode", DidYouMean(name, names), ": give one of ",
                            absl::StrJoin(names, ", ")));
}

absl::StatusOr<uint32_t> SmallNumber(absl::string_view option, const std::string& text, uint32_t otherwise,
                                     uint32_t most) {
  if (text.empty()) return otherwise;
  uint32_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 1 && number <= most) return number;
  return Wrong(absl::StrCat("--", option, " ", text, ": give a number from 1 to ", most));
}

// "0,2-3", in that order.
absl::StatusOr<std::vector<size_t>> ListedPorts(const std::string& list, size_t ports) {
  std::vector<size_t> chosen;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> range = absl::StrSplit(part, absl::MaxSplits('-', 1));
    uint32_t first = 0;
    uint32_t last = 0;
    const bool numbers =
        absl::SimpleAtoi(range.first, &first) &&
        (absl::StrContains(part, '-') ? absl::SimpleAtoi(range.second, &last) : (last = first, true)) && first <= last;
    if (!numbers) return Wrong(absl::StrCat("--portlist ", list, ": give numbers of ports, as in 0,2-3"));
    if (last >= ports) {
      return Wrong(absl::StrCat("--portlist ", list, ": there is no port ", last, "; EAL's arguments make ", ports,
                                ", counted from 0"));
    }
    for (size_t port = first; port <= last; ++port) {
      if (std::find(chosen.begin(), chosen.end(), port) != chosen.end()) {
        return Wrong(absl::StrCat("--portlist ", list, " has port ", port, " twice: name each once"));
      }
      chosen.push_back(port);
    }
  }
  return chosen;
}

absl::StatusOr<std::vector<size_t>> MaskedPorts(const std::string& text, size_t ports) {
  uint64_t mask = 0;
  if (!absl::SimpleHexAtoi(text, &mask) || mask == 0) {
    return Wrong(absl::StrCat("--portmask ", text, ": give a hexadecimal number with a bit for each port, as in 0x3"));
  }
  std::vector<size_t> chosen;
  for (size_t port = 0; port < 64; ++port) {
    if ((mask >> port & 1) == 0) continue;
    if (port >= ports) {
      return Wrong(absl::StrCat("--portmask ", text, ": there is no port ", port, "; EAL's arguments make ", ports,
                                ", counted from 0"));
    }
    chosen.push_back(port);
  }
  return chosen;
}

absl::StatusOr<std::vector<size_t>> ChosenPorts(const LaunchOptions& options, size_t ports) {
  if (!options.portlist.empty() && !options.portmask.empty()) {
    return Wrong("--portlist and --portmask both choose ports: give one of them");
  }
  absl::StatusOr<std::vector<size_t>> chosen = std::vector<size_t>();
  if (!options.portlist.empty()) {
    chosen = ListedPorts(options.portlist, ports);
  } else if (!options.portmask.empty()) {
    chosen = MaskedPorts(options.portmask, ports);
  } else {
    for (size_t port = 0; port < ports; ++port) chosen->push_back(port);
  }
  if (!chosen.ok()) return chosen;
  const auto most = static_cast<uint32_t>(chosen->size());
  const auto number = SmallNumber("nb-ports", options.nb_ports, most, most);
  if (!number.ok()) return number.status();
  chosen->resize(*number);
  return chosen;
}

// Which of the forwarded ports sends what number `port` of them receives. The last of an odd number is its own partner
// where they go in pairs.
absl::StatusOr<size_t> PartnerOf(const std::string& topology, size_t port, size_t ports) {
  if (topology == "loop") return port;
  if (topology == "chained") return (port + 1) % ports;
  if (!topology.empty() && topology != "paired") {
    return Wrong(absl::StrCat("--port-topology ", topology, ": give paired, chained or loop"));
  }
  return std::min(port ^ 1, ports - 1);
}

// --eth-peer by port. "1,02:00:00:00:00:0a"; the configuration says what is wrong with an address.
absl::StatusOr<std::vector<std::string>> PeersOf(const LaunchOptions& options, size_t ports) {
  std::vector<std::string> peers(ports);
  for (const std::string& given : options.eth_peers) {
    const std::pair<std::string, std::string> words = absl::StrSplit(given, absl::MaxSplits(',', 1));
    uint32_t port = 0;
    if (!absl::SimpleAtoi(words.first, &port) || port >= ports || words.second.empty()) {
      return Wrong(absl::StrCat("--eth-peer ", given, ": give the number of a port below ", ports,
                                " and an address, as in 0,02:00:00:00:00:0a"));
    }
    peers[port] = words.second;
  }
  return peers;
}

std::string PoolLine(const LaunchOptions& options, const std::vector<std::string>& devices) {
  const std::vector<std::string> asked = ValuesOf(options.eal, "--mbuf-pool-ops-name");
  std::string ops = asked.empty() ? "page_frag" : asked.back();
  for (const std::string& device : devices) {
    // It counts from the start of one piece of memory, which only stock pools are.
    if (asked.empty() && absl::StartsWith(device, "net_af_xdp")) ops = "ring_mp_mc";
  }
  return absl::StrCat("pools:\n  - {name: mbufs, size: auto, ops: ", Quote(ops), "}\n");
}

// Sources of a mode that makes frames, or the burst that goes ahead of the others.
std::string TrafficLines(const LaunchOptions& options, const LaunchMode& mode, size_t ports) {
  const std::string burst = options.burst.empty() ? kUsualBurst : options.burst;
  std::string text = "traffic:\n";
  for (size_t p = 0; p < ports; ++p) {
    absl::StrAppendFormat(
        &text, "  - {name: from_port%d, source: generator, into: port%d, burst: %s, sizes: 64, flows: %d, count: %s}\n",
        p, p, burst, absl::string_view(mode.name) == "flowgen" ? 1024 : 1, mode.makes ? "0" : burst);
  }
  return text;
}

std::string WorkerLines(uint32_t workers, size_t ports, bool sources) {
  std::string text = "lcores:\n  workers:\n";
  for (size_t w = 0; w < workers; ++w) {
    std::vector<std::string> poll;
    std::vector<std::string> generate;
    for (size_t p = w; p < ports; p += workers) {
      poll.push_back(absl::StrCat("port", p));
      generate.push_back(absl::StrCat("from_port", p));
    }
    absl::StrAppend(&text, "    - {poll: [", absl::StrJoin(poll, ", "), "]",
                    sources ? absl::StrCat(", generate: [", absl::StrJoin(generate, ", "), "]") : "", "}\n");
  }
  return text;
}

}  // namespace

bool LaunchOptions::Take(absl::string_view name, const std::string& value) {
  const std::pair<const char*, std::string*> texts[] = {
      {"forward-mode", &forward_mode}, {"port-topology", &port_topology}, {"portlist", &portlist},
      {"portmask", &portmask},         {"nb-ports", &nb_ports},           {"nb-cores", &nb_cores}};
  bool taken = name == "tx-first" || name == "eth-peer";
  if (name == "tx-first") tx_first = true;
  if (name == "eth-peer") eth_peers.push_back(value);
  for (const auto& [text, to] : texts) {
    if (name != text) continue;
    *to = value;
    taken = true;
  }
  if (taken && first_given.empty()) first_given = absl::StrCat("--", name);
  return taken;
}

std::vector<std::string> PortsOfEal(const std::vector<std::string>& eal) {
  std::vector<std::string> ports = ValuesOf(eal, "-a");
  const std::vector<std::string> allowed = ValuesOf(eal, "--allow");
  ports.insert(ports.end(), allowed.begin(), allowed.end());
  // EAL sees the devices of a bus in the order of their addresses.
  std::sort(ports.begin(), ports.end());
  for (const std::string& device : ValuesOf(eal, "--vdev")) {
    if (absl::StartsWith(device, "net_") || absl::StartsWith(device, "eth_")) ports.push_back(device);
  }
  return ports;
}

std::string FilePrefixOf(const std::vector<std::string>& eal) {
  const std::vector<std::string> asked = ValuesOf(eal, "--file-prefix");
  return asked.empty() ? "" : asked.back();
}

bool MakesFrames(const LaunchOptions& options) {
  const auto mode = FindMode(options);
  return options.tx_first || (mode.ok() && (*mode)->makes);
}

absl::StatusOr<std::string> LaunchConfig(const LaunchOptions& options) {
  const std::vector<std::string> devices = PortsOfEal(options.eal);
  if (devices.empty() || devices.size() > kMostLaunchPorts) {
    return Wrong(devices.empty()
                     ? "no configuration and no port: give --config FILE, for example conf/quickstart.yaml, or ports "
                       "before `--` as EAL makes them: halfpage --no-huge --vdev net_null0 --vdev net_null1 -- "
                       "--forward-mode=io (a NIC: -a ADDRESS)"
                     : absl::StrCat(devices.size(), " ports, and DPDK has ", kMostLaunchPorts, ": name fewer"));
  }
  const auto mode = FindMode(options);
  if (!mode.ok()) return mode.status();
  const auto chosen = ChosenPorts(options, devices.size());
  if (!chosen.ok()) return chosen.status();
  const size_t ports = chosen->size();
  const auto cores = SmallNumber("nb-cores", options.nb_cores, 1, 127);
  if (!cores.ok()) return cores.status();
  const uint32_t workers = std::min<uint32_t>(*cores, static_cast<uint32_t>(ports));
  const auto peers = PeersOf(options, devices.size());
  if (!peers.ok()) return peers.status();
  const bool sources = (*mode)->makes || options.tx_first;
  const std::string name = (*mode)->name;
  std::string text = absl::StrCat("version: 1\n", PoolLine(options, devices), "ports:\n");
  std::string sinks = (*mode)->forwards ? "sinks:\n" : "sinks:\n  - {name: counted, kind: count}\n";
  for (size_t p = 0; p < ports; ++p) {
    const auto partner = PartnerOf(options.port_topology, p, ports);
    if (!partner.ok()) return partner.status();
    const std::string sink = (*mode)->forwards ? absl::StrCat("from", p, "_to", *partner) : "counted";
    const std::string& peer = (*peers)[(*chosen)[p]];
    absl::StrAppend(&text, "  - {name: port", p, ", device: ", Quote(devices[(*chosen)[p]]), ", sink: ", sink,
                    (*mode)->verdict == nullptr ? "" : absl::StrCat(", program: ", name),
                    peer.empty() ? "" : absl::StrCat(", eth_peer: ", Quote(peer)), "}\n");
    if ((*mode)->forwards) {
      absl::StrAppend(&sinks, "  - {name: ", sink, ", kind: port, port: port", *partner, "}\n");
    }
  }
  if ((*mode)->verdict != nullptr) {
    absl::StrAppend(&text, "programs:\n  - {name: ", name, ", kind: forward, mode: ", name,
                    ", verdict: ", (*mode)->verdict, ", frags: true}\n");
  }
  absl::StrAppend(&text, sinks, sources ? TrafficLines(options, **mode, ports) : "",
                  WorkerLines(workers, ports, sources), "measure: {budget: ", kUsualBurst,
                  options.tx_first && !(*mode)->makes ? ", stay: true" : "", "}\n");
  return text;
}

}  // namespace halfpage
