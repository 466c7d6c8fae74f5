#include "app/option_table.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "app/version.h"

namespace halfpage {
namespace {

using Topic = Option::Topic;

// testpmd's names where the thing exists there.
constexpr Option kOptions[] = {
    {Topic::kRun, "config", 0, "FILE", nullptr, "YAML configuration to run; - reads standard input"},
    {Topic::kRun, "set", 0, "PATH=VALUE", nullptr, "override one value, e.g. veth[0].ring=512 (repeatable)"},
    {Topic::kRun, "check", 0, nullptr, nullptr, "check the configuration as a run would, then stop: 0 good, 2 not"},
    {Topic::kRun, "plan", 0, nullptr, nullptr,
     "print what memory the pools will take, without taking any: 0 it fits, 2 it does not"},
    {Topic::kRun, "print-config", 0, nullptr, nullptr,
     "print the effective configuration with every default, as a valid file"},
    {Topic::kRun, "interactive", 'i', nullptr, nullptr, "read commands from standard input; `help` there lists them"},
    {Topic::kRun, "auto-start", 0, nullptr, nullptr, "with -i or --cmdline-file: forward from the beginning"},
    {Topic::kRun, "cmdline-file", 0, "FILE", nullptr,
     "run the commands in FILE first; the first that fails ends the run"},
    {Topic::kRun, "keep-going", 0, nullptr, nullptr, "go on after a command of a file or a pipe that failed"},
    {Topic::kRun, "metrics", 0, "[ADDRESS:]PORT", nullptr,
     "serve Prometheus at http://ADDRESS:PORT/metrics; loopback unless told"},
    {Topic::kRun, "duration", 0, "TIME", "measure.duration",
     "stop after this long: 10s, 500ms; 0: until the sources end"},
    {Topic::kRun, "count", 0, "N", "measure.count", "stop after N frames over all sources; 0: no limit"},
    {Topic::kRun, "stats-period", 0, "TIME", "measure.stats_period",
     "print statistics this often, a plain number in seconds; 0: never"},
    {Topic::kRun, "top", 0, nullptr, "report.top",
     "a live screen of rates, losses by reason, pages and busy lcores, each second or --stats-period"},
    {Topic::kRun, "burst", 0, "N", "measure.budget", "frames per receive call, 1 to 64"},
    {Topic::kRun, "bulk", 0, "N", "measure.bulk", "frames per XDP_TX or redirect flush, 1 to 64"},
    {Topic::kRun, "seed", 0, "N", "measure.seed", "of everything random in the traffic"},
    {Topic::kRun, "total-num-mbufs", 0, "N", "pools[*].size", "buffers of each pool; auto: what can be held at once"},
    {Topic::kRun, "mbuf-size", 0, "BYTES", "pools[*].data_room", "room of each buffer, headroom of 128 included"},
    {Topic::kRun, "mbcache", 0, "N", "pools[*].cache", "per-lcore mempool cache of each pool, 0 to 512"},
    {Topic::kRun, "json", 0, "FILE", "report.json",
     "write the final report (with --plan, the plan) as JSON; - puts it on standard output in place of the text"},
    {Topic::kLaunch, "forward-mode", 0, "MODE", nullptr,
     "io: frames leave through the partner as they are (usual); mac: to its peer from its address; macswap: with MAC "
     "addresses swapped; 5tswap: with MAC and IP addresses and ports swapped; csum: as mac, with checksums computed "
     "anew; icmpecho: ARP and echo requests are answered; rxonly: what comes is counted; txonly, flowgen: frames are "
     "made, of one flow or of 1024, and what comes is counted"},
    {Topic::kLaunch, "eth-peer", 0, "PORT,MAC", nullptr,
     "address behind a port, for modes mac and csum; 02:00:00:00:00:N behind port N (repeatable)"},
    {Topic::kLaunch, "port-topology", 0, "HOW", nullptr,
     "a port's partner; paired: 0 and 1, 2 and 3, an odd last one itself (usual); chained: the next; loop: itself"},
    {Topic::kLaunch, "portlist", 0, "P,P-P", nullptr, "forward these ports only, in this order, counted from 0"},
    {Topic::kLaunch, "portmask", 0, "MASK", nullptr, "the same as a hexadecimal mask"},
    {Topic::kLaunch, "nb-ports", 0, "N", nullptr, "forward the first N of them"},
    {Topic::kLaunch, "nb-cores", 0, "N", nullptr,
     "workers, at most one for each port; 1. The main lcore never forwards"},
    {Topic::kLaunch, "rxq", 0, "N", "ports[*].queues", "receive queues of each port; one worker polls all of a port"},
    {Topic::kLaunch, "txq", 0, "N", "ports[*].tx_queues",
     "transmit queues of each port, at least one for each worker that sends through it; auto: so many"},
    {Topic::kLaunch, "rxd", 0, "N", "ports[*].rxd", "slots of each receive queue, within what the driver can"},
    {Topic::kLaunch, "txd", 0, "N", "ports[*].txd", "slots of each transmit queue"},
    {Topic::kLaunch, "max-pkt-len", 0, "BYTES", "ports[*].mtu", "longest frame with its FCS: sets the MTU to 18 less"},
    {Topic::kLaunch, "txpkts", 0, "N[,N...]", "traffic[*].sizes",
     "bytes of the frames of txonly and flowgen: one frame as long as all numbers together"},
    {Topic::kLaunch, "tx-first", 0, nullptr, nullptr, "send a burst through each port first"},
    {Topic::kLaunch, "no-flush-rx", 0, nullptr, nullptr,
     "leave what stands in receive queues at the start: never is it thrown away here"},
    {Topic::kXdpTest, "xdp-test", 0, "FILE", nullptr,
     "run an XDP object over packets, without EAL or privileges: 0 good, 4 a verdict is not the expected one"},
    {Topic::kXdpTest, "program", 0, "NAME", nullptr,
     "of the object's programs the one to run; may be left out where there is one"},
    {Topic::kXdpTest, "pcap-in", 0, "FILE", nullptr, "capture to test with; - reads standard input"},
    {Topic::kXdpTest, "packet", 0, "HEX", nullptr, "one packet to test with, as hexadecimal digits (repeatable)"},
    {Topic::kXdpTest, "out", 0, "FOLDER", nullptr, "write pass.pcap, tx.pcap and redirect.pcap there"},
    {Topic::kXdpTest, "expect", 0, "FILE", nullptr,
     "lines of WHICH: VERDICT, WHICH a number, 4-9, any, or a filter such as udp port 9"},
    {Topic::kXdpTest, "map", 0, "NAME:KEY=VALUE", nullptr,
     "put a value into a map of the object, e.g. filter_ports:9=1 (repeatable)"},
    {Topic::kXdpTest, "maps", 0, "FILE", nullptr, "a file of such lines"},
    {Topic::kXdpTest, "route", 0, "ROUTE", nullptr,
     "for bpf_fib_lookup(), e.g. '10.0.0.0/8 dev 3 dst 02:00:00:00:00:02' (repeatable)"},
    {Topic::kXdpTest, "ingress-ifindex", 0, "N", nullptr, "interface that the test's packets came in by; 1"},
    {Topic::kXdpTest, "rx-queue", 0, "N", nullptr, "receive queue that they came in by; 0"},
    {Topic::kXdpTest, "repeat", 0, "N", nullptr, "run each packet so often, for its time; 1"},
    {Topic::kXdpTest, "dump-maps", 0, nullptr, nullptr, "print the maps after the test"},
    {Topic::kXdpTest, "trace", 0, nullptr, nullptr,
     "print each instruction and the registers before it, on standard error"},
    {Topic::kXdpTest, "interpret", 0, nullptr, nullptr, "do not compile the program"},
    {Topic::kXdpTest, "junit", 0, "FILE", nullptr, "write a JUnit report of the test; - is standard output"},
    {Topic::kAbout, "doctor", 0, nullptr, nullptr,
     "tell what this machine has of what runs need, and the command that mends the rest: 0 runs can start with and "
     "without hugepages, 4 only without, 1 not at all; --config or EAL's --file-prefix name a prefix to look for"},
    {Topic::kAbout, "remove-stale", 0, nullptr, nullptr,
     "with --doctor: remove files of runs of ours that are no more"},
    {Topic::kAbout, "man", 0, nullptr, nullptr, "print the manual page: halfpage --man | man -l -"},
    {Topic::kAbout, "help", 'h', nullptr, nullptr, "print this and stop"},
    {Topic::kAbout, "version", 'v', nullptr, nullptr, "print the version and stop"},
};

constexpr ForeignOption kForeign[] = {
    {"coremask", "choose CPUs by EAL's --lcores before `--`, and their number by --nb-cores"},
    {"numa", "pools name their node: --set pools[0].socket=N"},
    {"no-numa", "that is so: pools take memory of any node unless --set pools[0].socket=N"},
    {"socket-num", "write --set pools[0].socket=N"},
    {"port-numa-config", "write --set pools[0].socket=N"},
    {"ring-numa-config", "write --set pools[0].socket=N"},
    {"mp-alloc", "memory is EAL's: --no-huge, --in-memory or hugepages, before `--`"},
    {"mp-anon", "memory is EAL's: --no-huge, --in-memory or hugepages, before `--`"},
    {"mlockall", "hugepages are never swapped out; there is nothing else to lock"},
    {"no-mlockall", "nothing is locked: leave it out"},
    {"rss-ip", "several queues are fed by RSS over IP, UDP and TCP where the driver can: --rxq N"},
    {"rss-udp", "several queues are fed by RSS over IP, UDP and TCP where the driver can: --rxq N"},
    {"disable-rss", "write --rxq 1"},
    {"eth-peers-configfile", "write --eth-peer PORT,MAC for each of its lines"},
    {"tx-ip", "made frames go from 10.0.X.Y to 10.128.0.1; play a capture for others (--config, source: capture)"},
    {"tx-udp", "write --set traffic[*].destination_port=N"},
    {"txonly-multi-flow", "write --set traffic[*].flows=N"},
    {"flowgen-flows", "write --set traffic[*].flows=N"},
    {"flowgen-clones", "each frame has a buffer of its own: leave it out"},
    {"rxpkts", "rooms are the pool's: --mbuf-size N"},
    {"rxoffs", "rooms are the pool's: --mbuf-size N"},
    {"multi-rx-mempool", "classes of buffers are those of sources: `classes` in a configuration"},
    {"enable-scatter", "frames that need it are scattered by themselves: --max-pkt-len N"},
    {"enable-lro", "frames stay as they come: leave it out"},
    {"enable-rx-cksum", "checksums are not looked at: leave it out"},
    {"enable-hw-vlan", "tags stay in the frame: leave it out"},
    {"disable-crc-strip", "frames are without FCS: leave it out"},
    {"rx-offloads", "a port gets what its configuration needs: leave it out"},
    {"tx-offloads", "a port gets what its configuration needs: leave it out"},
    {"hairpinq", "no queue bypasses the worker here: leave it out"},
    {"bitrate-stats", "rates are in each statistics block: --stats-period 1s"},
    {"latencystats", "leave it out: frames carry no time here"},
    {"disable-link-check", "a port whose link is down starts with a warning: leave it out"},
    {"no-lsc-interrupt", "ports are polled: leave it out"},
    {"no-rmv-interrupt", "ports are polled: leave it out"},
    {"hot-plug", "ports are those that are there at the start: name them to EAL"},
    {"record-core-cycles", "the report has each worker's idle rounds already: leave it out"},
    {"record-burst-stats", "the report has polls and empty polls already: leave it out"},
    {"display-xstats", "the report and --json have every counter: leave it out"},
    {"num-procs", "one process owns its ports: start one for each set of them"},
    {"proc-id", "one process owns its ports: start one for each set of them"},
    {"noisy-forward-mode", "use programs of kind touch with --config for work on each frame"},
    {"rxpt", "thresholds are the driver's usual ones: leave it out"},
    {"txpt", "thresholds are the driver's usual ones: leave it out"},
    {"rxfreet", "thresholds are the driver's usual ones: leave it out"},
    {"txfreet", "thresholds are the driver's usual ones: leave it out"},
    {"txrst", "thresholds are the driver's usual ones: leave it out"},
};

constexpr std::pair<Topic, const char*> kTopics[] = {
    {Topic::kRun, "options"},
    {Topic::kLaunch, "launch without --config (testpmd's way; ports are those of EAL's --vdev and -a)"},
    {Topic::kXdpTest, "test of an XDP object"},
    {Topic::kAbout, "about"},
};

constexpr char kUsage[] =
    "usage: halfpage --config FILE [options]\n"
    "       halfpage [EAL options] -- --config FILE [options]\n"
    "       halfpage [EAL options] --vdev NAME -- [--forward-mode MODE] [options]\n"
    "       halfpage --xdp-test OBJECT.o --pcap-in FILE [options]\n";

constexpr std::pair<int, const char*> kExitCodes[] = {
    {0, "good"},
    {1, "start-up or run failed"},
    {2, "bad usage or configuration"},
    {3, "ledger not balanced or buffers leaked"},
    {4, "an expectation was missed"},
};

// A text for man(1): no request at a line's beginning, hyphens that can be copied.
std::string Roff(absl::string_view text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}});
  if (!out.empty() && out[0] == '.') out.insert(0, "\\&");
  return out;
}

void AppendManualOption(const Option& option, std::string* page) {
  absl::StrAppend(page, ".TP\n.B ");
  if (option.letter != 0) absl::StrAppend(page, "\\-", std::string(1, option.letter), ", ");
  absl::StrAppend(page, "\\-\\-", Roff(option.name));
  if (option.value != nullptr) absl::StrAppend(page, " \\fI", Roff(option.value), "\\fR");
  absl::StrAppend(page, "\n", Roff(option.help), ".\n");
  if (option.path != nullptr) absl::StrAppend(page, "Sets ", Roff(option.path), " of the configuration.\n");
}

}  // namespace

absl::Span<const Option> AllOptions() {
  return kOptions;
}

const Option* FindOption(absl::string_view name) {
  for (const Option& option : kOptions) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

const Option* FindOptionByLetter(char letter) {
  for (const Option& option : kOptions) {
    if (option.letter != 0 && option.letter == letter) return &option;
  }
  return nullptr;
}

const ForeignOption* FindForeignOption(absl::string_view name) {
  for (const ForeignOption& option : kForeign) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

std::string HelpText() {
  std::string text = absl::StrCat(kUsage,
                                  "\n"
                                  "Forwards packets through real ports, emulated veth pairs and XDP programs, out of "
                                  "buffers carved from shared pages.\n"
                                  "Without `--`, EAL is started with what the file's `eal:` section says.\n");
  for (const auto& [topic, title] : kTopics) {
    absl::StrAppend(&text, "\n", title, ":\n");
    for (const Option& option : kOptions) {
      if (option.topic != topic) continue;
      std::string left = option.letter != 0 ? absl::StrFormat("  -%c, --%s", option.letter, option.name)
                                            : absl::StrFormat("  --%s", option.name);
      if (option.value != nullptr) absl::StrAppend(&left, " ", option.value);
      absl::StrAppendFormat(&text, "%-28s %s\n", left, option.help);
    }
  }
  absl::StrAppend(&text, "\nexit codes:\n");
  for (const auto& [code, meaning] : kExitCodes) absl::StrAppend(&text, "  ", code, " ", meaning, "\n");
  return text;
}

std::string ManualPage() {
  std::string page = absl::StrCat(".TH HALFPAGE 1 \"\" \"halfpage ", HALFPAGE_VERSION,
                                  "\" \"User Commands\"\n"
                                  ".SH NAME\nhalfpage \\- forward packets out of buffers carved from shared pages\n"
                                  ".SH SYNOPSIS\n.nf\n");
  for (absl::string_view line : absl::StrSplit(kUsage, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&page, Roff(line.substr(7)), "\n");
  }
  absl::StrAppend(
      &page,
      ".fi\n.SH DESCRIPTION\n"
      "Moves frames between real ports, emulated veth pairs and sinks, judged by XDP programs. Which there "
      "are is told by a YAML file, or, without one, by the ports that EAL\\(aqs options make and options "
      "named as those of dpdk\\-testpmd.\n.PP\n"
      "Without \\-\\- all arguments are halfpage\\(aqs, and EAL is started with what the file says. "
      "Data goes to standard output, logs to standard error. SIGINT and SIGTERM end a run in good order.\n");
  for (const auto& [topic, title] : kTopics) {
    const absl::string_view heading = absl::string_view(title).substr(0, absl::string_view(title).find(" ("));
    absl::StrAppend(&page, ".SH ", absl::AsciiStrToUpper(Roff(heading)), "\n");
    for (const Option& option : kOptions) {
      if (option.topic == topic) AppendManualOption(option, &page);
    }
  }
  absl::StrAppend(&page, ".SH EXIT STATUS\n");
  for (const auto& [code, meaning] : kExitCodes) absl::StrAppend(&page, ".TP\n.B ", code, "\n", Roff(meaning), "\n");
  absl::StrAppend(&page,
                  ".SH EXAMPLES\n.nf\n"
                  "halfpage \\-\\-config conf/quickstart.yaml \\-\\-set measure.bulk=8\n"
                  "halfpage \\-\\-no\\-huge \\-\\-vdev net_null0 \\-\\-vdev net_null1 \\-\\- "
                  "\\-\\-forward\\-mode=macswap \\-\\-stats\\-period 1s\n"
                  "halfpage \\-\\-config conf/quickstart.yaml \\-\\-print\\-config   # every key and its meaning\n"
                  ".fi\n.SH SEE ALSO\n.BR dpdk\\-testpmd (1)\n");
  return page;
}

}  // namespace halfpage
