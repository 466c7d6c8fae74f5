// Every key of the file: one function per section, one line per key. See app/config_fields.h.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "app/config_fields.h"
#include "app/config_sections.h"
#include "app/config_units.h"
#include "app/config_values.h"
#include "xdp_emul/converter_config.h"
#include "xdp_emul/gso_limits.h"

namespace halfpage {
namespace {

constexpr size_t kMostPools = 64;
constexpr size_t kMostClasses = 8;  // PoolClasses::kMostClasses
constexpr size_t kMostPairs = 16;   // two ports each, DPDK's RTE_MAX_ETHPORTS is 32
constexpr size_t kMostPorts = 32;
constexpr size_t kMostWorkers = 127;  // RTE_MAX_LCORE less the main lcore
constexpr size_t kMostMaps = 64;
constexpr double kLongestDrain = 4;  // seconds: a run ends within 5 of being told to
constexpr double kYear = 365 * 86400.0;
constexpr std::pair<uint32_t, uint32_t> kImix[] = {{64, 28}, {570, 16}, {1514, 4}};
constexpr NumberRule kFrameBytes = {.min = 60, .max = 65535};

// Exactly the two ends of a pair.
FieldList Ends(VethEndConfig (&ends)[2]) {
  FieldList list;
  list.min_items = list.max_items = 2;
  list.size = [] { return size_t{2}; };
  list.resize = [](size_t) {};
  list.fields = [&ends](size_t i, FieldVisitor& v) { Describe(ends[i], v); };
  list.default_fields = [](FieldVisitor& v) {
    VethEndConfig end;
    Describe(end, v);
  };
  return list;
}

using FrameSizes = std::vector<std::pair<uint32_t, uint32_t>>;

void DescribeSize(std::pair<uint32_t, uint32_t>& size, FieldVisitor& v) {
  v.Value({"size", "bytes of the frame without FCS", kRequired}, Number(size.first, kFrameBytes));
  v.Value({"weight", "how often against the other sizes"}, Number(size.second, {.min = 1, .max = 1'000'000}));
}

// `imix`, a size, or a list whose items are sizes or {size, weight}.
FieldList Sizes(FrameSizes& sizes) {
  FieldList list;
  list.min_items = 1;
  list.max_items = 256;
  list.size = [&sizes] { return sizes.size(); };
  list.resize = [&sizes](size_t n) { sizes.assign(n, {64, 1}); };
  list.fields = [&sizes](size_t i, FieldVisitor& v) { DescribeSize(sizes[i], v); };
  list.default_fields = [](FieldVisitor& v) {
    std::pair<uint32_t, uint32_t> size = {64, 1};
    DescribeSize(size, v);
  };
  list.value = [&sizes](size_t i) {
    FieldValue item = Number(sizes[i].first, kFrameBytes);
    item.format = [&sizes, i] { return sizes[i].second == 1 ? absl::StrCat(sizes[i].first) : ""; };
    return item;
  };
  const FieldValue number = NumberValue(
      kFrameBytes, [] { return uint64_t{0}; },
      [&sizes](uint64_t n) {
        sizes = {{static_cast<uint32_t>(n), 1}};
      });
  FieldValue word;
  word.parse = [&sizes, number](absl::string_view text, bool quoted) -> absl::Status {
    if (text == "imix") {
      sizes.assign(std::begin(kImix), std::end(kImix));
      return absl::OkStatus();
    }
    absl::Status status = number.parse(text, quoted);
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat(status.message(), ", `imix`, or a list of numbers or {size: N, weight: W}"));
  };
  word.format = [&sizes]() -> std::string {
    if (std::equal(sizes.begin(), sizes.end(), std::begin(kImix), std::end(kImix))) return "imix";
    return sizes.size() == 1 && sizes[0].second == 1 ? absl::StrCat(sizes[0].first) : "";
  };
  word.rule = "imix (28 x 64, 16 x 570, 4 x 1514), one size from 60 to 65535, or a list of sizes or {size, weight}";
  list.word = word;
  return list;
}

// `auto` (left empty, filled in once all ends and sources are known) or a list.
FieldList Workers(std::vector<WorkerConfig>& workers) {
  FieldList list = Maps(workers, 1, kMostWorkers);
  FieldValue word;
  word.parse = [&workers](absl::string_view text, bool) -> absl::Status {
    if (text != "auto") {
      return absl::InvalidArgumentError(absl::StrCat(
          Shown(text),
          " is not a list of workers: give auto, or a list of {poll: [ENDS], generate: [SOURCES], read: [SINKS]}"));
    }
    workers.clear();
    return absl::OkStatus();
  };
  word.format = [&workers] { return workers.empty() ? "auto" : ""; };
  word.rule = "auto (one worker does everything), or a list";
  list.word = word;
  return list;
}

}  // namespace

void Describe(EalConfig& eal, FieldVisitor& v) {
  v.Value({"preset", "lab: no hugepages, NIC or root; hugepages: the kernel's pool, no mount; none: only `args`"},
          Choice(eal.preset, {"lab", "hugepages", "none"}));
  v.Value({"memory", "what EAL may take; 32MiB of it are its own"},
          Number(eal.memory, {.min = 64ull << 20, .max = 16ull << 40, .bytes = true}));
  v.Value({"lcores", "auto: one per worker, or EAL's --lcores, as in 0@0,1@1"},
          Text(eal.cores, {.letters = TextRule::Letters::kLcores, .max = 1024, .word = "auto"}));
  v.Value({"file_prefix", "auto: unique per process, so that two runs never meet"}, Name(eal.file_prefix, 64));
  v.List({"args", "further EAL arguments, as they are"}, Texts(eal.args, {}, kMostNamed));
}

void Describe(ArenaConfig& arena, FieldVisitor& v) {
  v.Value({"limit", "of each socket's arena, in whole chunks of 2MiB; past it sources find no buffer"},
          Number(arena.limit, {.min = 2ull << 20, .max = 16ull << 40, .bytes = true, .word = "none", .word_value = 0}));
  v.Value({"trim", "between givings back to EAL of what nobody uses, while the run goes on; 0: at its end"},
          Duration(arena.trim, kYear));
}

void Describe(PktmbufPoolConfig& pool, FieldVisitor& v) {
  v.Value({"name", "unique among pools, at most 25 letters"}, Name(pool.name, 25));
  v.Value({"ops", "mempool handler: page_frag, ring_mp_mc, stack or any registered one"}, Name(pool.ops));
  v.Value({"size", "buffers that can be out at once (testpmd --total-num-mbufs), auto: rings + caches + bursts"},
          Number(pool.size, {.min = 1, .max = 1u << 27, .word = "auto", .word_value = 0}));
  v.Value({"data_room", "bytes behind each mbuf, 128 of headroom included (testpmd --mbuf-size)"},
          Number(pool.data_room, {.min = 128 + 60, .max = 65535, .bytes = true}));
  v.Value({"cache", "buffers of the per-lcore cache (testpmd --mbcache); 1.5 times it may not pass `size`"},
          Number(pool.cache, {.max = 512}));
  v.Value({"socket", "NUMA node, auto for any"},
          Number(pool.socket, {.max = 31, .word = "auto", .word_value = static_cast<uint64_t>(-1)}));
  v.Value({"page_size", "page_frag: page that buffers share, auto: by the buffer's size"},
          Number(pool.page_frag.page_size,
                 {.min = 4096, .max = 131072, .bytes = true, .power_of_two = true, .word = "auto", .word_value = 0}));
  v.Value({"recycle", "page_frag: free pages go to the lcore's cache, all to one ring, or back to the arena"},
          Choice(pool.page_frag.recycle, {"lifo", "ring", "off"}));
  v.Value({"rotation", "page_frag: pages that wait in the ring before one is used again (two lcores sharing no cache)"},
          Number(pool.page_frag.rotation, {.max = 512}));
  v.Value({"exact", "page_frag: cuts buffers of any size for sources with `buffers: exact`; has no cache"},
          Flag(pool.page_frag.exact));
  v.Value({"debug", "page_frag: refuse and report double and foreign frees"}, Flag(pool.page_frag.debug));
  v.Value({"colour", "page_frag: shift buffers page by page, against cache-set collisions"},
          Flag(pool.page_frag.colour));
}

void Describe(PortConfig& port, FieldVisitor& v) {
  v.Value({"name", "unique among ports and ends of pairs, at most 15 letters", kRequired},
          Name(port.name, kDeviceName));
  v.Value({"device", "EAL's: net_af_packet0,iface=eth0, a PCI address, or a port that EAL's arguments make", kRequired},
          Text(port.device, {.max = 255}));
  v.Value({"pool", "received into, and for segments of what is sent; left out: the only pool"},
          OptionalName(port.pool, 25));
  v.Value({"mtu", "bytes behind the Ethernet header, sent and received"}, Number(port.mtu, {.min = 68, .max = 65535}));
  v.Value({"promiscuous", "take frames for other addresses, too"}, Flag(port.promiscuous));
  v.Value({"queues", "receive queues"}, Number(port.queues, {.min = 1, .max = 16}));
  v.Value({"tx_queues",
           "transmit queues, one for each worker that sends through it; more are for workers that begin to "
           "while it runs. auto: as many as send at the start (testpmd --txq)"},
          Number(port.tx_queues, {.min = 1, .max = 1024, .word = "auto", .word_value = 0}));
  v.Value({"rxd", "slots of a receive queue (testpmd --rxd)"}, Number(port.rxd, {.min = 1, .max = 32768}));
  v.Value({"txd", "slots of a transmit queue (testpmd --txd)"}, Number(port.txd, {.min = 1, .max = 32768}));
  v.Value({"program", "judges what this port receives; \"\": none, everything passes"}, OptionalName(port.program));
  v.Value({"sink", "takes what passes; \"\": counted and freed"}, OptionalName(port.sink));
  v.Section({"copy", "private copies of frames before the program sees them"},
            [&port](FieldVisitor& inner) { Describe(port.copy, inner); });
  v.Value({"socket", "NUMA node that the device is at, auto: as EAL finds it; its pool should be there"},
          Number(port.socket, {.max = 31, .word = "auto", .word_value = static_cast<uint64_t>(-1)}));
  v.Value({"eth_peer", "MAC address behind this port, for programs of kind forward; auto: 02:00:00:00:00:N (testpmd)"},
          Mac(port.eth_peer));
}

void Describe(CopyConfig& copy, FieldVisitor& v) {
  v.Value({"when", "needed: shared frames that may be written, chains, too little headroom; always: every frame"},
          Choice(copy.when, {"needed", "always", "never"}));
  v.Value({"policy", "buffers of copies; auto: stock, in mode kernel: kernel"},
          Choice(copy.policy, {"auto", "stock", "classes", "whole", "half", "fixed", "exact", "kernel"}));
  v.List({"pools", "buffers come from these; left out: the first pool, or one of the device's own"},
         Texts(copy.pools, {.letters = TextRule::Letters::kName, .max = 25}, kMostCopyPools));
  v.Value({"size", "policy fixed: bytes behind each mbuf"},
          Number(copy.size, {.min = 256, .max = 65535, .bytes = true}));
  v.Value({"page_size", "of the device's own pool; exact and kernel take at least 32KiB"},
          Number(copy.page_size, {.min = 4096, .max = 65536, .bytes = true, .power_of_two = true}));
  v.Value({"buffers", "of the device's own pool"}, Number(copy.buffers, {.min = 64, .max = 1u << 20}));
  v.Value({"recycle", "pages of the device's own pool"}, Choice(copy.recycle, {"lifo", "ring", "off"}));
  v.Value({"headroom", "bytes in front; fewer are a reason to copy. auto: kernel 256, halfpage any"},
          Number(copy.headroom, {.max = 4096, .word = "auto", .word_value = CopyConfig::kAutoHeadroom}));
  v.Value({"tailroom", "bytes kept free behind copies (kernel: 320)"}, Number(copy.tailroom, {.max = 4096}));
}

void Describe(VethEndConfig& end, FieldVisitor& v) {
  v.Value({"name", "unique among the ends of all pairs, at most 15 letters as for any interface", kRequired},
          Name(end.name, kDeviceName));
  v.Value({"program", "judges what this end receives; \"\": none, everything passes"}, OptionalName(end.program));
  v.Value({"sink", "takes what passes; \"\": counted and freed"}, OptionalName(end.sink));
  v.Value({"mtu", "bytes behind the Ethernet header, sent and received"}, Number(end.mtu, {.min = 68, .max = 65535}));
  v.Value({"gro", "takes frames of XDP_TX and redirects without a program, too"}, Flag(end.gro));
  v.Value({"up", "false: whatever is sent through either end is refused"}, Flag(end.up));
  v.Section({"copy", "private copies of frames before the program sees them"},
            [&end](FieldVisitor& inner) { Describe(end.copy, inner); });
}

void Describe(VethConfig& veth, FieldVisitor& v) {
  v.Value({"name", "of the pair", kRequired}, Name(veth.name));
  v.Value({"mode", "whose rule holds where the two differ"}, Choice(veth.mode, {"halfpage", "kernel"}));
  v.Value({"queues", "per end"}, Number(veth.queues, {.min = 1, .max = 16}));
  v.Value({"ring", "usable slots per queue"}, Number(veth.ring, {.min = 2, .max = 32768, .power_of_two = true}));
  v.List({"ends", "the two devices", kRequired, "ends: [{name: veth0}, {name: veth1}]"}, Ends(veth.ends));
}

void Describe(TrafficConfig& traffic, FieldVisitor& v) {
  v.Value({"name", "unique among sources", kRequired}, Name(traffic.name));
  v.Value({"source", "a capture file's frames, or made-up UDP over IPv4"},
          Choice(traffic.source, {"capture", "generator"}));
  v.Value({"into", "end that sends the frames, for its peer to receive, or port", kRequired},
          Name(traffic.into, kDeviceName));
  v.Value({"pool", "buffers come from here; left out: the only pool"}, OptionalName(traffic.pool, 25));
  v.List({"classes", "pools in place of `pool`, short to jumbo: each frame takes the smallest of these that it fits"},
         Texts(traffic.classes, {.letters = TextRule::Letters::kName, .max = 25}, kMostClasses));
  v.Value({"borrow", "with `classes`: from the next larger pool where a frame's own is empty"}, Flag(traffic.borrow));
  v.Value({"buffers", "pool: with the pool's room; exact: as long as the frame, from a pool with `exact: true`"},
          Choice(traffic.buffers, {"pool", "exact"}));
  v.Value({"count", "frames to send, 0: no limit"}, Number(traffic.count, {}));
  v.Value({"burst", "frames per transmit call"}, Number(traffic.burst, {.min = 1, .max = 64}));
  v.Value({"rate", "frames a second at most, 0: no limit"}, Number(traffic.rate, {.max = 1000000000}));
  v.When(traffic.source == TrafficConfig::Source::kCapture, "source", "capture");
  v.Value({"file", "pcap or pcapng; relative to this file's folder", kRequired}, Text(traffic.file, {}));
  v.Value({"loop", "begin again at the capture's end"}, Flag(traffic.loop));
  v.Value({"timing", "rate: no faster than `rate`; capture: each frame as long after the first as in the file"},
          Choice(traffic.timing, {"rate", "capture"}));
  v.When(traffic.source == TrafficConfig::Source::kGenerator, "source", "generator");
  v.List({"sizes", "frame bytes without FCS"}, Sizes(traffic.sizes));
  v.Value({"flows", "distinct UDP flows"}, Number(traffic.flows, {.min = 1, .max = 65536}));
  v.Value({"destination_port", "UDP port of the first flow"},
          Number(traffic.destination_port, {.min = 1, .max = 65535}));
  v.Value({"ports", "flow F goes to destination_port + F modulo this"},
          Number(traffic.ports, {.min = 1, .max = 65535}));
  v.Value({"gso", "TCP frames, those with more payload marked for segments of so much, as a host's stack does; 0: UDP"},
          Number(traffic.gso, {.min = kLeastGsoSegment, .max = 65481, .word = "0", .word_value = 0}));
}

void Describe(SinkConfig& sink, FieldVisitor& v) {
  v.Value({"name", "unique among sinks", kRequired}, Name(sink.name));
  v.Value({"kind", "count and free, write to a capture, send through a device, or keep for a worker that reads"},
          Choice(sink.kind, {"count", "pcap", "port", "udp_socket", "user"}));
  v.Value({"keep_every", "fault injection: of so many frames one is never freed, 0: none"},
          Number(sink.keep_every, {.max = 1000000000}));
  v.When(sink.kind == SinkConfig::Kind::kPcap, "kind", "pcap");
  v.Value({"file", "pcap to write; relative to the working folder", kRequired}, Text(sink.file, {}));
  v.Value({"snaplen", "bytes kept of each frame"}, Number(sink.snaplen, {.min = 1, .max = 65535}));
  v.Value({"limit", "frames to write, later ones are only counted; 0: no limit"}, Number(sink.limit, {}));
  const bool port = sink.kind == SinkConfig::Kind::kPort;
  v.When(port || sink.kind == SinkConfig::Kind::kUser, "kind", "port or user");
  v.Value({"port", "port or end that sends the frames; of a user, back what was read, \"\": dropped", port},
          port ? Name(sink.port, kDeviceName) : OptionalName(sink.port, kDeviceName));
  v.When(sink.held(), "kind", "udp_socket or user");
  v.Value({"rate", "frames a second that are read, 0: no limit"}, Number(sink.rate, {.max = 1000000000}));
  v.When(sink.kind == SinkConfig::Kind::kUdpSocket, "kind", "udp_socket");
  v.Value({"rcvbuf", "what its queue may be charged (kernel: net.core.rmem_default)"},
          Number(sink.rcvbuf, {.min = 4096, .max = 1u << 30, .bytes = true}));
  v.Value({"condense", "move frames into smaller room while more than half is charged"}, Flag(sink.condense));
  v.Value({"accounting", "charge our buffers' bytes, or what the kernel would: fragment + 256"},
          Choice(sink.accounting, {"buffers", "kernel"}));
  v.Value({"udp_port", "that it is bound to, 0: every port"}, Number(sink.udp_port, {.max = 65535}));
  v.When(sink.kind == SinkConfig::Kind::kUser, "kind", "user");
  v.Value({"ring", "slots of each of its four rings"}, Number(sink.ring, {.min = 1, .max = 65536}));
  v.Value({"chunks", "frames that it can hold at once"}, Number(sink.chunks, {.min = 1, .max = 1u << 20}));
}

void Describe(WorkerConfig& worker, FieldVisitor& v) {
  v.List({"poll", "ends whose queues it polls"}, NameList(worker.poll));
  v.List({"generate", "sources it drives"}, NameList(worker.generate));
  v.List({"read", "sinks of kind udp_socket or user that it empties"}, NameList(worker.read));
}

void Describe(LcoreConfig& lcores, FieldVisitor& v) {
  v.List({"workers", "one lcore each; every end and every source belongs to exactly one"}, Workers(lcores.workers));
}

void Describe(MeasureConfig& measure, FieldVisitor& v) {
  v.Value({"duration", "0: until the sources end or a signal comes"}, Duration(measure.duration, kYear));
  v.Value({"count", "frames over all sources, 0: no limit"}, Number(measure.count, {}));
  v.Value({"stats_period", "between statistics blocks, 0: none"}, Duration(measure.stats_period, kYear));
  v.Value({"budget", "frames per poll of a queue (NAPI's weight)"}, Number(measure.budget, {.min = 1, .max = 64}));
  v.Value({"bulk", "frames per XDP_TX or redirect flush (kernel: 16)"}, Number(measure.bulk, {.min = 1, .max = 64}));
  v.Value({"drain_timeout", "how long stopping may wait for rings to run empty"},
          Duration(measure.drain_timeout, kLongestDrain));
  v.Value({"seed", "of everything random"}, Number(measure.seed, {}));
  v.Value({"stay", "go on after the sources have ended, until a signal or `duration`"}, Flag(measure.stay));
  v.Value({"track_owners", "stamp buffers at each hand-over, so that a leak names its stage and age"},
          Flag(measure.track_owners));
}

void Describe(ReportConfig& report, FieldVisitor& v) {
  v.Value({"json", "file for the final report, \"-\": standard output in place of the text, \"\": none"},
          Text(report.json, {.may_be_empty = true}));
  v.Value({"top", "a live screen on the terminal, each `stats_period` or second"}, Flag(report.top));
}

namespace {

// A section whose keys are those of `section`.
template <typename T>
void Keys(FieldVisitor& v, const FieldInfo& info, T& section) {
  v.Section(info, [&section](FieldVisitor& inner) { Describe(section, inner); });
}

}  // namespace

void VisitConfig(Config& config, FieldVisitor& v) {
  v.Value({"version", "of this format", kRequired, "version: 1"}, Version());
  Keys(v, {"eal", "what EAL is started with, where the command line has no arguments for it"}, config.eal);
  Keys(v, {"arena", "memory that page_frag pools share, one arena for each socket that they name"}, config.arena);
  v.List({"pools", "packet buffers", kRequired, "pools: [{name: packets}]"}, Maps(config.pools, 1, kMostPools));
  v.List({"ports", "real ports: any device that DPDK drives"}, Maps(config.ports, 0, kMostPorts));
  // A port is traffic and a way out by itself.
  const bool alone = config.ports.empty();
  v.List({"veth", "pairs of devices, joined back to back", alone,
          "veth: [{name: front, ends: [{name: veth0}, {name: veth1}]}]"},
         Maps(config.veth, alone ? 1 : 0, kMostPairs));
  v.List({"programs", "XDP programs"}, Maps(config.programs, 0, kMostNamed));
  v.List({"maps", "what redirects lead into besides single devices"}, Maps(config.maps, 0, kMostMaps));
  v.List({"traffic", "sources of frames", alone, "traffic: [{name: udp, source: generator, into: veth1}]"},
         Maps(config.traffic, alone ? 1 : 0, kMostNamed));
  v.List({"sinks", "what becomes of frames that pass"}, Maps(config.sinks, 0, kMostNamed));
  Keys(v, {"lcores", "which worker does what"}, config.lcores);
  Keys(v, {"measure", "how long, and how much at a time"}, config.measure);
  Keys(v, {"report", "what is left behind"}, config.report);
}

}  // namespace halfpage
