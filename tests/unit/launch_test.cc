#include "app/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "app/config.h"
#include "app/option_table.h"
#include "app/options.h"

namespace halfpage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::StatusOr<Options> ParseLine(const std::string& eal, const std::string& ours) {
  std::vector<std::string> words = {"halfpage"};
  for (const std::string& half : {eal, std::string("--"), ours}) {
    size_t at = 0;
    while (at < half.size()) {
      const size_t end = std::min(half.find(' ', at), half.size());
      if (end > at) words.push_back(half.substr(at, end - at));
      at = end + 1;
    }
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return ParseOptions(static_cast<int>(argv.size()), argv.data());
}

constexpr char kTwoPorts[] = "--no-huge --vdev net_null0 --vdev=net_null1,size=128";
constexpr char kThreePorts[] = "--no-huge --vdev net_null0 --vdev net_null1 --vdev net_null2";

Config LoadLaunch(const std::string& eal, const std::string& ours) {
  const auto options = ParseLine(eal, ours);
  EXPECT_TRUE(options.ok()) << options.status();
  if (!options.ok()) return {};
  const LoadedConfig loaded = LoadConfigText(options->launch_text, "command line", options->overrides);
  for (const ConfigFault& fault : loaded.faults) ADD_FAILURE() << fault.ToString() << "\n" << options->launch_text;
  EXPECT_THAT(loaded.warnings, IsEmpty());
  return loaded.config;
}

std::string LaunchRefusal(const std::string& eal, const std::string& ours) {
  const auto options = ParseLine(eal, ours);
  if (!options.ok()) return std::string(options.status().message());
  const LoadedConfig loaded = LoadConfigText(options->launch_text, "command line", options->overrides);
  return loaded.faults.empty() ? "no error" : loaded.faults.front().ToString();
}

// By port, the number of the port that what it receives leaves through.
std::vector<std::string> Partners(const Config& config) {
  std::vector<std::string> partners;
  for (const PortConfig& port : config.ports) {
    for (const SinkConfig& sink : config.sinks) {
      if (sink.name == port.sink) partners.push_back(sink.port);
    }
  }
  return partners;
}

TEST(Launch, PortsOfEalAreForwardedInPairsAsTestpmdDoes) {
  const Config config = LoadLaunch(kTwoPorts, "");
  ASSERT_EQ(config.ports.size(), 2u);
  EXPECT_EQ(config.ports[1].device, "net_null1,size=128");
  EXPECT_THAT(Partners(config), ElementsAre("port1", "port0"));
  EXPECT_EQ(config.measure.budget, 32u);
  EXPECT_EQ(config.eal.preset, EalConfig::Preset::kNone);
}

TEST(Launch, TheLastOfAnOddNumberOfPortsIsItsOwnPartner) {
  EXPECT_THAT(Partners(LoadLaunch(kThreePorts, "")), ElementsAre("port1", "port0", "port2"));
  EXPECT_THAT(Partners(LoadLaunch(kThreePorts, "--port-topology=chained")), ElementsAre("port1", "port2", "port0"));
  EXPECT_THAT(Partners(LoadLaunch(kThreePorts, "--port-topology loop")), ElementsAre("port0", "port1", "port2"));
}

TEST(Launch, PortlistAndPortmaskChooseThePortsAndTheirOrder) {
  const Config listed = LoadLaunch(kThreePorts, "--portlist=2,0");
  ASSERT_EQ(listed.ports.size(), 2u);
  EXPECT_EQ(listed.ports[0].device, "net_null2");
  EXPECT_EQ(LoadLaunch(kThreePorts, "--portmask 0x6").ports[0].device, "net_null1");
  EXPECT_EQ(LoadLaunch(kThreePorts, "--portlist 0-2 --nb-ports=1").ports.size(), 1u);
}

TEST(Launch, OptionsMeanWhatTheyMeanInTestpmd) {
  const Config config =
      LoadLaunch(absl::StrCat(kTwoPorts, " -m 256"),
                 "--rxq=2 --txq=2 --rxd=512 --txd=1024 --burst=16 --nb-cores=2 --total-num-mbufs=8192 "
                 "--mbcache=128 --mbuf-size=4096 --max-pkt-len=1018 --stats-period 2 --auto-start "
                 "--no-flush-rx");
  for (const PortConfig& port : config.ports) {
    EXPECT_EQ(port.queues, 2u);
    EXPECT_EQ(port.tx_queues, 2u);
    EXPECT_EQ(port.rxd, 512u);
    EXPECT_EQ(port.txd, 1024u);
    EXPECT_EQ(port.mtu, 1000u);
  }
  EXPECT_EQ(config.pools[0].size, 8192u);
  EXPECT_EQ(config.pools[0].cache, 128u);
  EXPECT_EQ(config.pools[0].data_room, 4096u);
  EXPECT_EQ(config.measure.budget, 16u);
  EXPECT_EQ(config.measure.stats_period, 2);
  ASSERT_EQ(config.lcores.workers.size(), 2u);
  EXPECT_THAT(config.lcores.workers[1].poll, ElementsAre("port1"));
}

TEST(Launch, NoMoreWorkersThanPorts) {
  EXPECT_EQ(LoadLaunch(kTwoPorts, "--nb-cores=5").lcores.workers.size(), 2u);
  EXPECT_EQ(LoadLaunch(kTwoPorts, "").lcores.workers.size(), 1u);
}

TEST(Launch, MacswapSwapsAddressesAndRxonlyCounts) {
  const Config swapped = LoadLaunch(kTwoPorts, "--forward-mode=macswap");
  ASSERT_EQ(swapped.programs.size(), 1u);
  EXPECT_EQ(swapped.programs[0].kind, ProgramKind::kForward);
  EXPECT_EQ(swapped.programs[0].mode, ForwardMode::kMacswap);
  EXPECT_EQ(swapped.ports[1].program, "macswap");
  EXPECT_THAT(Partners(LoadLaunch(kTwoPorts, "--forward-mode rxonly")), ElementsAre("", ""));
}

TEST(Launch, ModesThatChangeFramesAreProgramsOfKindForward) {
  const std::pair<const char*, ForwardMode> modes[] = {
      {"mac", ForwardMode::kMac}, {"csum", ForwardMode::kCsum}, {"5tswap", ForwardMode::kFiveTupleSwap}};
  for (const auto& [name, mode] : modes) {
    const Config config = LoadLaunch(kTwoPorts, absl::StrCat("--forward-mode=", name));
    EXPECT_EQ(config.programs[0].mode, mode);
    EXPECT_EQ(config.programs[0].verdict, XdpAction::kPass);
    EXPECT_TRUE(config.programs[0].frags);
    EXPECT_THAT(Partners(config), ElementsAre("port1", "port0"));
  }
  const Config echo = LoadLaunch(kTwoPorts, "--forward-mode=icmpecho");
  EXPECT_EQ(echo.programs[0].verdict, XdpAction::kTx);
  EXPECT_THAT(Partners(echo), ElementsAre("", "")) << "answers leave where the request came in";
}

TEST(Launch, EthPeerIsOfThePortThatEalCountsSo) {
  const Config config = LoadLaunch(kThreePorts, "--portlist=2,0 --eth-peer=2,02:00:00:00:00:0a --forward-mode=mac");
  EXPECT_EQ(config.ports[0].eth_peer, (MacAddress{2, 0, 0, 0, 0, 10}));
  EXPECT_FALSE(config.ports[1].eth_peer.has_value());
}

TEST(Launch, TxonlyAndFlowgenMakeFramesOfTheLengthAskedFor) {
  const Config txonly = LoadLaunch(kTwoPorts, "--forward-mode=txonly --txpkts=64,1000");
  ASSERT_EQ(txonly.traffic.size(), 2u);
  EXPECT_EQ(txonly.traffic[0].sizes, (std::vector<std::pair<uint32_t, uint32_t>>{{1064, 1}}));
  EXPECT_EQ(txonly.traffic[0].count, 0u);
  EXPECT_EQ(LoadLaunch(kTwoPorts, "--forward-mode=flowgen").traffic[1].flows, 1024u);
}

TEST(Launch, TxFirstSendsOneBurstThroughEachPortAndGoesOn) {
  const Config config = LoadLaunch(kTwoPorts, "--tx-first --burst 8");
  ASSERT_EQ(config.traffic.size(), 2u);
  EXPECT_EQ(config.traffic[1].count, 8u);
  EXPECT_TRUE(config.measure.stay);
}

TEST(Launch, PciPortsComeBeforeVirtualOnesAndOtherDevicesAreNoPorts) {
  EXPECT_THAT(PortsOfEal({"--vdev", "net_ring0", "-a", "0000:03:00.0", "--vdev=crypto_null0", "-a0000:02:00.0",
                          "--allow=0000:04:00.0,key=1"}),
              ElementsAre("0000:02:00.0", "0000:03:00.0", "0000:04:00.0,key=1", "net_ring0"));
}

TEST(Launch, TheHandlerThatEalIsToldOfMakesThePool) {
  EXPECT_EQ(LoadLaunch(kTwoPorts, "").pools[0].ops, "page_frag");
  EXPECT_EQ(LoadLaunch(absl::StrCat(kTwoPorts, " --mbuf-pool-ops-name=stack"), "").pools[0].ops, "stack");
}

TEST(Launch, WhatIsWrongIsNamedWithTheWayOut) {
  const std::pair<const char*, const char*> refusals[] = {
      {"--forward-mode=macswp", "did you mean `macswap`?"},
      {"--forward-mode=noisy", "use io, and programs of kind touch"},
      {"--forward-mode=ieee1588", "no port here stamps times"},
      {"--forward-mode=shared-rxq", "receive queues are not shared"},
      {"--portlist=2", "there is no port 2; EAL's arguments make 2"},
      {"--portlist=0,0", "port 0 twice"},
      {"--portlist=x", "as in 0,2-3"},
      {"--portmask=0", "hexadecimal"},
      {"--portmask=4", "there is no port 2"},
      {"--portmask=1 --portlist=0", "give one of them"},
      {"--nb-ports=3", "from 1 to 2"},
      {"--nb-cores=0", "from 1 to 127"},
      {"--port-topology=ring", "paired, chained or loop"},
      {"--txpkts=64", "--forward-mode=txonly"},
      {"--forward-mode=txonly --txpkts=64,x", "as in 64 or 64,1450"},
      {"--max-pkt-len=9", "as in 1518"},
      {"--rxq=17", "--rxq: ports[0].queues: `17` is above 16"},
      {"--txq=1025", "--txq: ports[0].tx_queues: `1025` is above 1024"},
      {"--burst=512", "above 64"},
      {"--rss-ip", "an option of dpdk-testpmd that is not here: several queues"},
      {"--eth-peer=2,02:00:00:00:00:01", "a port below 2 and an address, as in 0,02:00:00:00:00:0a"},
      {"--eth-peer=0", "a port below 2 and an address"},
      {"--eth-peer=0,02:00", "ports[0].eth_peer: `02:00` is no MAC address: give six bytes"},
      {"--config a.yaml --portlist=0", "--portlist says what to forward, and so does --config a.yaml"},
  };
  for (const auto& [ours, words] : refusals) EXPECT_THAT(LaunchRefusal(kTwoPorts, ours), HasSubstr(words)) << ours;
  EXPECT_THAT(LaunchRefusal("--no-huge", ""), HasSubstr("no configuration and no port"));
}

TEST(Launch, ItIsPrintedAsAFileThatMeansTheSame) {
  const std::string printed = PrintConfig(LoadLaunch(kTwoPorts, "--forward-mode=macswap --tx-first --nb-cores=2"));
  const LoadedConfig again = LoadConfigText(printed, "command line", {});
  EXPECT_THAT(again.faults, IsEmpty());
  EXPECT_EQ(PrintConfig(again.config), printed);
}

TEST(OptionTable, EveryOptionStandsInTheHelpAndInTheManualPageAndIsNoForeignOne) {
  const std::string help = HelpText();
  const std::string page = ManualPage();
  for (const Option& option : AllOptions()) {
    EXPECT_EQ(FindOption(option.name), &option) << "twice: " << option.name;
    EXPECT_EQ(FindForeignOption(option.name), nullptr) << option.name;
    EXPECT_THAT(help, HasSubstr(absl::StrCat("--", option.name, " ")));
    const std::string roff = absl::StrReplaceAll(option.name, {{"-", "\\-"}});
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\\-\\-", roff))) << option.name;
  }
}

}  // namespace
}  // namespace halfpage
