// What a good file becomes.
#include "app/config.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Config, SmallestFileHasTheDefaultsOfTheStructs) {
  const LoadedConfig loaded = LoadText(kSmallest);
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_THAT(Printed(loaded.warnings), IsEmpty());
  const Config& config = loaded.config;
  EXPECT_EQ(config.eal.preset, EalConfig::Preset::kLab);
  EXPECT_EQ(config.eal.memory, 512ull << 20);
  ASSERT_EQ(config.pools.size(), 1u);
  EXPECT_EQ(config.pools[0].size, PktmbufPoolConfig().size);
  EXPECT_EQ(config.pools[0].socket, -1);
  EXPECT_EQ(config.veth[0].ring, 256u);
  EXPECT_EQ(config.veth[0].ends[1].mtu, 1500u);
  EXPECT_EQ(config.traffic[0].source, TrafficConfig::Source::kGenerator);
  EXPECT_THAT(config.traffic[0].sizes, ElementsAre(Pair(64u, 1u)));
  EXPECT_EQ(config.measure.bulk, 16u);
  EXPECT_EQ(config.report.json, "");
}

TEST(Config, OnlyPoolIsTheOneThatASourceLeavesOut) {
  EXPECT_EQ(LoadText(kSmallest).config.traffic[0].pool, "packets");
}

TEST(Config, WorkersAutoBecomesOneWorkerThatPollsAllEndsAndDrivesAllSources) {
  for (const char* lcores : {"", "lcores: {workers: auto}\n"}) {
    const LoadedConfig loaded = LoadText(kSmallest + lcores);
    ASSERT_EQ(loaded.config.lcores.workers.size(), 1u);
    EXPECT_THAT(loaded.config.lcores.workers[0].poll, ElementsAre("veth0", "veth1"));
    EXPECT_THAT(loaded.config.lcores.workers[0].generate, ElementsAre("udp"));
  }
}

TEST(Config, QuickstartLoadsWithoutFaultOrWarning) {
  const LoadedConfig loaded = LoadConfig(SourcePath("conf/quickstart.yaml"), {});
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_THAT(Printed(loaded.warnings), IsEmpty());
  EXPECT_THAT(loaded.config.traffic[1].sizes, ElementsAre(Pair(64u, 28u), Pair(570u, 16u), Pair(1514u, 4u)));
  EXPECT_EQ(loaded.config.measure.duration, 2.0);
}

TEST(Config, EverythingIsReadAsWritten) {
  const LoadedConfig loaded = LoadConfig(SourcePath("tests/config/everything.yaml"), {});
  ASSERT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_THAT(Printed(loaded.warnings), IsEmpty());
  const Config& config = loaded.config;
  EXPECT_EQ(config.file, SourcePath("tests/config/everything.yaml"));

  EXPECT_EQ(config.eal.preset, EalConfig::Preset::kHugepages);
  EXPECT_EQ(config.eal.memory, 1ull << 30);
  EXPECT_EQ(config.eal.cores, "0@0,1@1,2@0");
  EXPECT_EQ(config.eal.file_prefix, "everything");
  EXPECT_THAT(config.eal.args, ElementsAre("--log-level=lib.eal:debug", "-v", "it's \"quoted\" \\ # not a comment"));

  EXPECT_EQ(config.arena.limit, 512u << 20);
  EXPECT_EQ(config.arena.trim, 0.25);
  ASSERT_EQ(config.pools.size(), 6u) << "four, and two for copies";
  EXPECT_EQ(config.pools[5].name, "copy_wan");
  EXPECT_EQ(config.pools[0].name, "small");
  EXPECT_EQ(config.pools[0].size, 8192u);
  EXPECT_EQ(config.pools[0].data_room, 2048u);
  EXPECT_EQ(config.pools[0].cache, 128u);
  EXPECT_EQ(config.pools[0].socket, 0);
  EXPECT_EQ(config.pools[0].page_frag.page_size, 65536u);
  EXPECT_EQ(config.pools[0].page_frag.recycle, RecycleMode::kRing);
  EXPECT_FALSE(config.pools[0].page_frag.colour);
  EXPECT_EQ(config.pools[1].ops, "ring_mp_mc");
  EXPECT_EQ(config.pools[1].cache, 0u);
  EXPECT_EQ(config.pools[2].page_frag.recycle, RecycleMode::kOff);
  EXPECT_TRUE(config.pools[3].page_frag.exact);
  EXPECT_EQ(config.pools[3].cache, 0u) << "an exact pool has none";

  ASSERT_EQ(config.veth.size(), 3u);
  EXPECT_EQ(config.veth[0].queues, 2u);
  EXPECT_EQ(config.veth[0].ring, 512u);
  EXPECT_EQ(config.veth[0].ends[0].program, "firewall");
  EXPECT_EQ(config.veth[0].ends[0].sink, "kept");
  EXPECT_EQ(config.veth[0].ends[0].mtu, 1800u);

  ASSERT_EQ(config.programs.size(), 15u);
  EXPECT_EQ(config.programs[8].kind, ProgramKind::kObject);
  EXPECT_EQ(config.programs[8].object, "/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_dny_udp.o");
  EXPECT_EQ(config.programs[8].program, "xdpfilt_dny_udp");
  EXPECT_EQ(config.programs[8].jit, Jit::kOff);
  EXPECT_EQ(config.programs[14].kind, ProgramKind::kForward);
  EXPECT_EQ(config.programs[14].mode, ForwardMode::kIcmpecho);
  EXPECT_EQ(config.ports[0].eth_peer, (MacAddress{2, 0, 0, 0, 0, 10}));
  ASSERT_EQ(config.programs[8].maps.size(), 2u);
  EXPECT_EQ(config.programs[8].maps[0].key, "hex:00350000");
  EXPECT_EQ(config.programs[8].maps[1].device, "veth3");
  EXPECT_EQ(config.programs[9].maps_of, "object");
  EXPECT_EQ(config.programs[11].map, "cpus");
  EXPECT_EQ(config.programs[11].key, 1u);
  EXPECT_EQ(config.programs[12].key, kKeyOfQueue);
  EXPECT_EQ(config.programs[13].fallback_map, "outs");
  EXPECT_EQ(config.programs[13].fallback_key, 1u);
  ASSERT_EQ(config.maps.size(), 3u);
  EXPECT_TRUE(config.maps[0].broadcast && config.maps[0].exclude_ingress);
  EXPECT_EQ(config.maps[1].kind, MapKind::kXskmap);
  EXPECT_EQ(config.maps[1].entries[0].sink, "rings");
  EXPECT_EQ(config.maps[2].entries[0].worker, 2u);
  EXPECT_EQ(config.maps[2].entries[0].ring, 512u);
  EXPECT_EQ(config.programs[1].kind, ProgramKind::kRedirect);
  EXPECT_EQ(config.programs[1].target, "veth2");
  EXPECT_EQ(config.programs[2].kind, ProgramKind::kTx);
  EXPECT_EQ(config.programs[3].kind, ProgramKind::kAborted);
  EXPECT_EQ(config.programs[4].kind, ProgramKind::kPass);
  EXPECT_EQ(config.programs[5].kind, ProgramKind::kDrop);
  const ProgramConfig& filter = config.programs[0];
  EXPECT_EQ(filter.kind, ProgramKind::kFilter);
  EXPECT_TRUE(filter.frags);
  EXPECT_EQ(filter.fallback, XdpAction::kRedirect);
  EXPECT_EQ(filter.fallback_target, "veth4");
  ASSERT_EQ(filter.rules.size(), 7u);
  EXPECT_EQ(filter.rules[0].name, "web");
  EXPECT_EQ(filter.rules[0].ethertype, 0x0800);
  EXPECT_EQ(filter.rules[0].protocol, 6);
  EXPECT_EQ(filter.rules[0].source_port->first, 1024);
  EXPECT_EQ(filter.rules[0].source_port->last, 65535);
  EXPECT_EQ(filter.rules[0].destination_port->first, 443);
  EXPECT_EQ(filter.rules[0].destination_port->last, 443);
  EXPECT_EQ(filter.rules[0].verdict, XdpAction::kPass);
  EXPECT_EQ(filter.rules[1].name, "rule 1");
  EXPECT_EQ(filter.rules[1].ethertype, 0x88f7);
  EXPECT_FALSE(filter.rules[1].protocol.has_value());
  EXPECT_FALSE(filter.rules[1].source_port.has_value());
  EXPECT_EQ(filter.rules[2].ethertype, 0x86dd);
  EXPECT_EQ(filter.rules[2].protocol, 89);
  EXPECT_EQ(filter.rules[3].protocol, 132);
  EXPECT_EQ(filter.rules[3].destination_port->last, 0);
  EXPECT_EQ(filter.rules[4].ethertype, 0x0806);
  EXPECT_EQ(filter.rules[4].target, "veth2");

  ASSERT_EQ(config.traffic.size(), 8u);
  EXPECT_EQ(config.traffic[5].pool, "");
  EXPECT_THAT(config.traffic[5].classes, ElementsAre("small", "large"));
  EXPECT_FALSE(config.traffic[5].borrow);
  EXPECT_EQ(config.traffic[6].buffers, TrafficConfig::Buffers::kExact);
  EXPECT_EQ(config.traffic[7].gso, 600);
  EXPECT_EQ(config.traffic[0].source, TrafficConfig::Source::kCapture);
  EXPECT_EQ(config.traffic[0].count, UINT64_MAX);
  EXPECT_EQ(config.traffic[0].file, SourcePath("tests/config/frames.pcap"));
  EXPECT_TRUE(config.traffic[0].loop);
  EXPECT_EQ(config.traffic[1].burst, 1u);
  EXPECT_THAT(config.traffic[1].sizes, ElementsAre(Pair(64u, 1u), Pair(570u, 16u), Pair(1514u, 1u)));
  EXPECT_EQ(config.traffic[1].flows, 65536u);
  EXPECT_EQ(config.traffic[1].destination_port, 65000);
  EXPECT_EQ(config.traffic[1].ports, 536);
  EXPECT_THAT(config.traffic[2].sizes, ElementsAre(Pair(60u, 1u), Pair(128u, 1u)));
  EXPECT_THAT(config.traffic[3].sizes, ElementsAre(Pair(1514u, 1u)));

  ASSERT_EQ(config.ports.size(), 2u);
  EXPECT_EQ(config.ports[0].device, "net_af_packet0,iface=eth0,framesz=2048,qpairs=2");
  EXPECT_EQ(config.ports[0].pool, "large");
  EXPECT_EQ(config.ports[0].mtu, 1400u);
  EXPECT_FALSE(config.ports[0].promiscuous);
  EXPECT_EQ(config.ports[0].queues, 2u);
  EXPECT_EQ(config.ports[0].rxd, 512u);
  EXPECT_EQ(config.ports[0].txd, 1024u);
  EXPECT_EQ(config.ports[0].program, "through");
  EXPECT_EQ(config.ports[0].sink, "onward");
  EXPECT_EQ(config.ports[0].copy.policy, CopyConfig::Policy::kHalf);
  EXPECT_EQ(config.ports[0].copy.when, CopyConfig::When::kAlways);

  EXPECT_EQ(config.sinks[2].kind, SinkConfig::Kind::kPort);
  EXPECT_EQ(config.sinks[2].port, "lan");
  EXPECT_EQ(config.sinks[3].kind, SinkConfig::Kind::kUdpSocket);
  EXPECT_EQ(config.sinks[3].rate, 250000u);
  EXPECT_EQ(config.sinks[3].rcvbuf, 131072u);
  EXPECT_FALSE(config.sinks[3].condense);
  EXPECT_EQ(config.sinks[3].accounting, Accounting::kKernel);
  EXPECT_EQ(config.sinks[3].udp_port, 65007);
  EXPECT_EQ(config.sinks[4].kind, SinkConfig::Kind::kUser);
  EXPECT_EQ(config.sinks[4].ring, 1024u);
  EXPECT_EQ(config.sinks[4].chunks, 3000u);
  EXPECT_THAT(config.lcores.workers[2].read, ElementsAre("socket", "rings"));
  EXPECT_EQ(config.sinks[0].kind, SinkConfig::Kind::kPcap);
  EXPECT_EQ(config.sinks[0].file, "kept frames.pcap");
  EXPECT_EQ(config.sinks[0].snaplen, 96u);
  EXPECT_EQ(config.sinks[0].limit, 1000u);

  ASSERT_EQ(config.lcores.workers.size(), 3u);
  EXPECT_THAT(config.lcores.workers[1].poll, ElementsAre("veth2", "veth3", "veth4", "veth5", "wan", "lan"));
  EXPECT_THAT(config.lcores.workers[2].generate,
              ElementsAre("fixed", "single", "internet", "classed", "exactly", "super"));

  EXPECT_EQ(config.measure.duration, 1.5);
  EXPECT_EQ(config.measure.count, 123456789u);
  EXPECT_EQ(config.measure.stats_period, 0.25);
  EXPECT_EQ(config.measure.budget, 32u);
  EXPECT_EQ(config.measure.bulk, 8u);
  EXPECT_EQ(config.measure.drain_timeout, 3.5);
  EXPECT_EQ(config.measure.seed, UINT64_MAX);
  EXPECT_EQ(config.report.json, "-");
}

TEST(Config, KernelsSpellingOfAVerdictIsAccepted) {
  const LoadedConfig loaded = LoadText("version: 1\n" + kPools + kTraffic +
                                       "veth: [{name: front, ends: [{name: veth0, program: p}, {name: veth1}]}]\n"
                                       "programs: [{name: p, kind: filter, default: XDP_DROP}]\n");
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(loaded.config.programs[0].fallback, XdpAction::kDrop);
}

TEST(Config, RelativeCaptureIsLookedForBesideTheFileAndSinkIsNot) {
  const ScratchFolder folder;
  folder.Write("frames.pcap", FileText(SourcePath("tests/config/frames.pcap")));
  const std::string path =
      folder.Write("test.yaml", "version: 1\n" + kPools +
                                    "veth: [{name: front, ends: [{name: veth0, sink: s}, {name: veth1, mtu: 1586}]}]\n"
                                    "traffic: [{name: t, source: capture, into: veth1, file: ./frames.pcap}]\n"
                                    "sinks: [{name: s, kind: pcap, file: out.pcap}]\n");
  const LoadedConfig loaded = LoadConfig(path, {});
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(loaded.config.traffic[0].file, folder.File("frames.pcap"));
  EXPECT_EQ(loaded.config.sinks[0].file, "out.pcap");
}

TEST(Config, AnchorsAndAliasesGiveTheSameValueTwice) {
  const LoadedConfig loaded = LoadText("version: 1\n" + kPools + kTraffic +
                                       "veth:\n"
                                       "  - {name: front, ring: &slots 512, ends: [{name: veth0}, {name: veth1}]}\n"
                                       "  - {name: back, ring: *slots, ends: [{name: veth2}, {name: veth3}]}\n");
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(loaded.config.veth[1].ring, 512u);
}

TEST(Config, FaultsComeInOrderOfLineAndAllAtOnce) {
  const LoadedConfig loaded = LoadText("version: 1\nmeasure:\n  bulk: 0\n" + kPools + kVeth + kTraffic +
                                       "report: {jsn: \"-\"}\neal: {memory: 1}\n");
  EXPECT_THAT(Printed(loaded.faults),
              ElementsAre(HasSubstr("test.yaml:3: measure.bulk: "), HasSubstr("test.yaml:7: report.jsn: "),
                          HasSubstr("test.yaml:8: eal.memory: ")));
}

TEST(Config, FaultWithoutLineOrPathPrintsWithoutThem) {
  EXPECT_EQ((ConfigFault{"a.yaml", 3, "x.y", "wrong"}).ToString(), "a.yaml:3: x.y: wrong");
  EXPECT_EQ((ConfigFault{"--set", 0, "x.y", "wrong"}).ToString(), "--set: x.y: wrong");
  EXPECT_EQ((ConfigFault{"a.yaml", 0, "", "wrong"}).ToString(), "a.yaml: wrong");
}

TEST(Config, DashReadsStandardInput) {
  const ScratchFolder folder;
  const std::string path = folder.Write("test.yaml", kSmallest + "measure: {bulk: 0}\n");
  const int before = dup(STDIN_FILENO);
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_GE(dup2(file, STDIN_FILENO), 0);
  const LoadedConfig loaded = LoadConfig("-", {});
  dup2(before, STDIN_FILENO);
  close(file);
  close(before);
  EXPECT_THAT(Printed(loaded.faults), ElementsAre("<stdin>:5: measure.bulk: `0` is below 1: give 1 to 64"));
  EXPECT_EQ(loaded.config.file, "-");
}

TEST(Config, MissingFileAndFolderAreOneFaultEach) {
  const ScratchFolder folder;
  const LoadedConfig missing = LoadConfig(folder.File("nowhere.yaml"), {});
  EXPECT_THAT(Printed(missing.faults), ElementsAre(HasSubstr("nowhere.yaml: cannot be opened: No such file")));
  const LoadedConfig directory = LoadConfig(folder.File(""), {});
  EXPECT_THAT(Printed(directory.faults), ElementsAre(HasSubstr("is a folder: give the path of a YAML file")));
}

}  // namespace
}  // namespace halfpage
