// Checks of values against each other. What tests/config/bad pins by example is here a property or an edge.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Faults(const std::string& text) {
  return Printed(LoadText(text).faults);
}
std::vector<std::string> Warnings(const std::string& text) {
  const LoadedConfig loaded = LoadText(text);
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  return Printed(loaded.warnings);
}

// The first number behind `words` in `text`: what a message says to write.
std::string NumberBehind(const std::string& words, const std::string& text) {
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << words << " is not in: " << text;
  if (at == std::string::npos) return "";
  const size_t begin = at + words.size();
  const size_t digits = text.find_first_not_of("0123456789", begin);
  const std::string unit = text.substr(digits, 3);
  return text.substr(begin, digits - begin) + (unit == "KiB" || unit == "MiB" ? unit : "");
}

// Rings.

std::string RingOf(uint32_t slots) {
  return absl::StrCat("version: 1\n", kPools, kTraffic, "veth: [{name: front, ring: ", slots,
                      ", ends: [{name: veth0}, {name: veth1}]}]\n");
}

TEST(ConfigCheck, RingNotPowerOfTwoNamesANearestThatIsAccepted) {
  for (const uint32_t slots : {3u, 5u, 7u, 100u, 1000u, 1500u, 1537u, 24576u, 32767u}) {
    const std::vector<std::string> faults = Faults(RingOf(slots));
    ASSERT_EQ(faults.size(), 1u) << slots;
    const std::string nearest = NumberBehind("(nearest ", faults[0]);
    EXPECT_THAT(Faults(RingOf(std::stoul(nearest))), IsEmpty()) << slots;
    EXPECT_LE(std::max<double>(std::stoul(nearest), slots) - std::min<double>(std::stoul(nearest), slots), slots / 3.0);
  }
}

TEST(ConfigCheck, RingLimitsAreAcceptedAndWhatIsBeyondIsNot) {
  for (const uint32_t slots : {2u, 32768u}) EXPECT_THAT(Faults(RingOf(slots)), IsEmpty()) << slots;
  for (const uint32_t slots : {0u, 1u, 65536u}) EXPECT_EQ(Faults(RingOf(slots)).size(), 1u) << slots;
}

// Pools.

std::string PoolWith(const std::string& keys) {
  return "version: 1\n" + kVeth + kTraffic + "eal: {memory: 64GiB}\npools:\n  - {name: packets, " + keys + "}\n";
}

TEST(ConfigCheck, CacheRuleNamesACacheAndASizeThatAreAccepted) {
  for (const uint32_t size : {1u, 2u, 3u, 7u, 100u, 767u}) {
    const std::vector<std::string> faults = Faults(PoolWith(absl::StrCat("size: ", size, ", cache: 512")));
    ASSERT_EQ(faults.size(), 1u);
    const std::string cache = NumberBehind("write cache: ", faults[0]);
    EXPECT_THAT(Faults(PoolWith(absl::StrCat("size: ", size, ", cache: ", cache))), IsEmpty()) << faults[0];
    EXPECT_EQ(Faults(PoolWith(absl::StrCat("size: ", size, ", cache: ", std::stoul(cache) + 1))).size(), 1u) << size;
    const std::string enough = NumberBehind("or size: ", faults[0]);
    EXPECT_THAT(Faults(PoolWith(absl::StrCat("size: ", enough, ", cache: 512"))), IsEmpty());
  }
}

TEST(ConfigCheck, CacheThatDoesNotDivideWarnsOnlyWhereTheCacheWasChosen) {
  EXPECT_THAT(Warnings(PoolWith("size: 10000, cache: 256")),
              ElementsAre(HasSubstr("test.yaml:6: pools[0].cache: 256 does not divide `size` 10000")));
  EXPECT_THAT(Warnings(PoolWith("size: 10000")), IsEmpty());
  EXPECT_THAT(Warnings(PoolWith("size: 10000, cache: 0")), IsEmpty());
  EXPECT_THAT(Warnings(PoolWith("size: 10000, cache: 250")), IsEmpty());
}

TEST(ConfigCheck, PageTooSmallNamesAPageAndARoomThatAreAccepted) {
  for (const uint32_t room : {4000u, 9216u, 40000u, 65535u}) {
    const std::vector<std::string> faults = Faults(PoolWith(absl::StrCat("page_size: 4KiB, data_room: ", room)));
    ASSERT_EQ(faults.size(), 1u) << room;
    const std::string page = NumberBehind("write page_size: ", faults[0]);
    EXPECT_THAT(Faults(PoolWith(absl::StrCat("page_size: ", page, ", data_room: ", room))), IsEmpty());
    EXPECT_THAT(Faults(PoolWith("page_size: 4KiB, data_room: " + NumberBehind("or data_room: ", faults[0]))),
                IsEmpty());
    EXPECT_EQ(Faults(PoolWith(absl::StrCat("page_size: 4KiB, data_room: ",
                                           std::stoul(NumberBehind("or data_room: ", faults[0])) + 1)))
                  .size(),
              1u);
  }
}

TEST(ConfigCheck, PageKeysOfAnotherHandlerAreWarnedAbout) {
  EXPECT_THAT(Warnings(PoolWith("ops: stack, page_size: 4KiB, recycle: off")),
              ElementsAre(HasSubstr("pools[0].page_size: means nothing to `ops: stack`"),
                          HasSubstr("pools[0].recycle: means nothing")));
}

TEST(ConfigCheck, SmallPoolWarnsWithTheSumThatIsNeeded) {
  // 2 rings of 256, cache 32 x 1.5, burst 32, budget 64, bulk 16.
  EXPECT_THAT(Warnings(PoolWith("size: 640, cache: 32")),
              ElementsAre(HasSubstr("test.yaml:6: pools[0].size: 640 buffers are fewer than can be held at once: rings "
                                    "512 + caches 48 + bursts 112 = 672")));
  EXPECT_THAT(Warnings(PoolWith("size: 672, cache: 32")), IsEmpty());
}

TEST(ConfigCheck, DefaultPoolHoldsWhatDefaultsCanHoldAtOnce) {
  // R05: never fewer than rings, caches and bursts together, or somebody is told.
  for (const uint32_t ring : {64u, 1024u, 32768u}) {
    for (const uint32_t queues : {1u, 4u, 16u}) {
      for (const uint32_t cache : {0u, 1u, 256u, 512u}) {
        const LoadedConfig loaded = LoadText(absl::StrCat(
            "version: 1\n", kTraffic, "veth: [{name: front, queues: ", queues, ", ring: ", ring,
            ", ends: [{name: veth0}, {name: veth1}]}]\n", "pools: [{name: packets, cache: ", cache, "}]\n"));
        const uint64_t needed = 2ull * ring * queues + cache * 3 / 2 + 32 + 64 + 16;
        const bool warned = std::any_of(loaded.warnings.begin(), loaded.warnings.end(),
                                        [](const ConfigFault& warning) { return warning.path == "pools[0].size"; });
        EXPECT_EQ(warned, needed > 16384) << ring << " " << queues << " " << cache;
      }
    }
  }
}

TEST(ConfigCheck, RingsBehindARedirectCountForThePool) {
  const std::string text =
      "version: 1\npools: [{name: packets, size: 1024, cache: 0}]\n" + kTraffic +
      "veth:\n"
      "  - {name: front, ends: [{name: veth0, program: away}, {name: veth1}]}\n"
      "  - {name: back, ring: 512, ends: [{name: veth2}, {name: veth3, program: further}]}\n"
      "  - {name: side, ring: 8, ends: [{name: veth4}, {name: veth5, gro: true}]}\n"
      "programs:\n"
      "  - {name: away, kind: redirect, target: veth2}\n"
      "  - {name: further, kind: filter, rules: [{protocol: udp, verdict: redirect, target: veth4}]}\n";
  EXPECT_THAT(Warnings(text), ElementsAre(HasSubstr("rings 1552 + caches 0 + bursts 112 = 1664")));
}

// Memory.

std::string MemoryOf(const std::string& eal, const std::string& pools) {
  return "version: 1\n" + kVeth + kTraffic + "eal: {" + eal + "}\npools:\n" + pools;
}

TEST(ConfigCheck, LargestSizeThatAMemoryFaultNamesFitsAndOneMoreDoesNot) {
  for (const char* kind : {"ops: page_frag", "ops: ring_mp_mc", "ops: page_frag, page_size: 4KiB", "data_room: 9216",
                           "ops: stack, data_room: 9216", "ops: stack, data_room: 1664"}) {
    for (const char* preset : {"lab", "hugepages"}) {
      const std::string eal = absl::StrCat("preset: ", preset, ", memory: 256MiB");
      const auto pools = [&](const std::string& size) {
        return MemoryOf(eal, absl::StrCat("  - {name: packets, cache: 8, size: ", size, ", ", kind, "}\n"));
      };
      const std::vector<std::string> faults = Faults(pools("10000000"));
      ASSERT_EQ(faults.size(), 1u) << kind;
      const std::string largest = NumberBehind("write size: ", faults[0]);
      EXPECT_THAT(Faults(pools(largest)), IsEmpty()) << kind;
      EXPECT_EQ(Faults(pools(absl::StrCat(std::stoul(largest) + 1))).size(), 1u) << kind;
    }
  }
}

TEST(ConfigCheck, MemoryThatAFaultNamesIsEnough) {
  const auto text = [](const std::string& memory) {
    return MemoryOf("memory: " + memory, "  - {name: packets, size: 200000}\n");
  };
  const std::vector<std::string> faults = Faults(text("64MiB"));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(Faults(text(NumberBehind("memory: ", faults[0]))), IsEmpty()) << faults[0];
}

TEST(ConfigCheck, FiveLargePoolsNameTheFirstThatCrossesTheLine) {
  std::string pools, traffic = "traffic:\n";
  for (int i = 0; i < 5; ++i) {
    absl::StrAppend(&pools, "  - {name: pool", i, ", size: 65536}\n");
    absl::StrAppend(&traffic, "  - {name: t", i, ", into: veth1, pool: pool", i, "}\n");
  }
  const std::string text = "version: 1\n" + kVeth + traffic + "eal: {memory: 512MiB}\npools:\n" + pools;
  const std::vector<std::string> faults = Faults(text);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0], HasSubstr("pools[2].size: the pools need "));
  EXPECT_THAT(faults[0], HasSubstr("pool `pool2` crosses the line: no size of this pool alone is small enough"));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(faults[0], HasSubstr(absl::StrCat("pool", i, " ")));
}

TEST(ConfigCheck, StockHandlerNeedsMoreMemoryWithoutHugepages) {
  const std::string pools = "  - {name: packets, ops: ring_mp_mc, size: 155456}\n";
  EXPECT_THAT(Faults(MemoryOf("preset: hugepages", pools)), IsEmpty());
  EXPECT_EQ(Faults(MemoryOf("preset: lab", pools)).size(), 1u);
}

TEST(ConfigCheck, MemoryIsNotJudgedWherePresetNoneLeavesItToArguments) {
  EXPECT_THAT(Faults(MemoryOf("preset: none", "  - {name: packets, size: 10000000}\n")), IsEmpty());
}

// MTUs.

std::string MtuOf(uint32_t mtu0, uint32_t mtu1, uint32_t room, const std::string& program) {
  return absl::StrCat("version: 1\n", kTraffic, "pools: [{name: packets, size: 1024, cache: 0, data_room: ", room,
                      "}]\nprograms: [{name: p, ", program, "}]\nveth:\n", "  - name: front\n    ends:\n",
                      "      - {name: veth0, program: p, mtu: ", mtu0, "}\n      - {name: veth1, mtu: ", mtu1, "}\n");
}

TEST(ConfigCheck, MtuFaultNamesARoomAndAnMtuThatAreAccepted) {
  for (const auto& [mtu, room] : {std::pair{1500u, 1641u}, {2035u, 2176u}, {9000u, 2176u}, {65393u, 65534u}}) {
    const std::vector<std::string> faults = Faults(MtuOf(mtu, mtu, room, "kind: tx"));
    ASSERT_EQ(faults.size(), 1u) << mtu;
    EXPECT_THAT(faults[0], HasSubstr("test.yaml:8: veth[0].ends[0].mtu: "));
    const uint32_t enough = std::stoul(NumberBehind("data_room: ", faults[0]));
    EXPECT_THAT(Faults(MtuOf(mtu, mtu, enough, "kind: tx")), IsEmpty());
    EXPECT_EQ(Faults(MtuOf(mtu, mtu, enough - 1, "kind: tx")).size(), 1u);
    const uint32_t small = std::stoul(NumberBehind("or mtu: ", faults[0]));
    EXPECT_THAT(Faults(MtuOf(small, small, room, "kind: tx")), IsEmpty());
    EXPECT_THAT(Faults(MtuOf(mtu, mtu, room, "kind: tx, frags: true")), IsEmpty());
  }
}

TEST(ConfigCheck, MtuThatNoRoomHoldsDoesNotAdviseARoom) {
  const std::vector<std::string> faults = Faults(MtuOf(65535, 65535, 2176, "kind: pass"));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0], Not(HasSubstr("or more on the pool")));
  EXPECT_THAT(faults[0], HasSubstr("write frags: true on the program, or mtu: 2034 or less"));
}

TEST(ConfigCheck, MtuOfThePeerCountsAsInTheKernel) {
  EXPECT_THAT(Faults(MtuOf(1500, 9000, 2176, "kind: pass")), ElementsAre(HasSubstr("veth[0].ends[1].mtu: mtu 9000")));
}

TEST(ConfigCheck, MtuWithoutAProgramIsFree) {
  EXPECT_THAT(Faults("version: 1\n" + kPools + kTraffic +
                     "veth: [{name: f, ends: [{name: veth0, mtu: 65535}, {name: veth1, mtu: 65535}]}]\n"),
              IsEmpty());
}

TEST(ConfigCheck, SmallestRoomOfTheUsedPoolsLimitsTheMtu) {
  const std::string text =
      "version: 1\n"
      "pools: [{name: a, data_room: 9216, size: 1024}, {name: b, data_room: 1024, size: 1024}]\n"
      "programs: [{name: p, kind: pass}]\n"
      "veth: [{name: f, ends: [{name: veth0, program: p, copy: {when: never}}, {name: veth1}]}]\n";
  EXPECT_THAT(Faults(text + "traffic: [{name: t, into: veth1, pool: a}]\n"), IsEmpty());
  EXPECT_THAT(Faults(text + "traffic: [{name: t, into: veth1, pool: a}, {name: u, into: veth1, pool: b}]\n"),
              ElementsAre(HasSubstr("1024 buffer - 128 headroom - 14 Ethernet = 882 of pool `b`")));
}

// Frames.

TEST(ConfigCheck, GeneratorFrameMayHaveMtuEthernetHeaderAndOneVlanTag) {
  const auto text = [](uint32_t size) {
    return absl::StrCat("version: 1\n", kPools, "veth: [{name: f, ends: [{name: veth0, mtu: 1400}, {name: veth1}]}]\n",
                        "traffic: [{name: t, into: veth1, sizes: [64, ", size, "]}]\n");
  };
  EXPECT_THAT(Faults(text(1418)), IsEmpty());
  EXPECT_THAT(Faults(text(1419)),
              ElementsAre(HasSubstr("test.yaml:4: traffic[0].sizes: every frame of 1419 bytes would be refused: the "
                                    "longest that crosses this pair has 1418 (mtu 1400 of `veth0` + 14 Ethernet + 4 "
                                    "VLAN); use shorter frames, or mtu: 1401 on both ends")));
}

TEST(ConfigCheck, LongFramesOfACaptureAreCountedInAWarning) {
  const std::string text =
      "version: 1\n" + kPools + kVeth +
      "traffic: [{name: t, source: capture, into: veth1, file: " + SourcePath("tests/config/frames.pcap") + "}]\n";
  EXPECT_THAT(Warnings(text), ElementsAre(HasSubstr("traffic[0].file: 1 of 4 frames are longer than 1518 (mtu 1500 of "
                                                    "`veth0` + 14 Ethernet + 4 VLAN) and will be refused")));
}

TEST(ConfigCheck, TimesOfACaptureThatCannotPaceItAreRefused) {
  const ScratchFolder folder;
  const std::string frames = FileText(SourcePath("tests/config/frames.pcap"));
  const auto faults = [&](size_t bytes, const std::string& more) {
    return Faults("version: 1\n" + kPools + kVeth +
                  "traffic: [{name: t, source: capture, into: veth1, timing: capture" + more +
                  ", file: " + folder.Write("in.pcap", frames.substr(0, bytes)) + "}]\n");
  };
  EXPECT_THAT(faults(frames.size(), ""), IsEmpty());
  EXPECT_THAT(faults(frames.size(), ", rate: 7"), ElementsAre(HasSubstr("rate: 7 and timing: capture both pace")));
  EXPECT_THAT(faults(24 + 16 + 60, ""), ElementsAre(HasSubstr("traffic[0].timing: all 1 frames of ")));
}

TEST(ConfigCheck, DamagedCaptureIsUsedWithAWarning) {
  const ScratchFolder folder;
  const std::string whole = FileText(SourcePath("tests/config/frames.pcap"));
  const std::string cut = folder.Write("cut.pcap", whole.substr(0, whole.size() - 100));
  EXPECT_THAT(Warnings("version: 1\n" + kPools + kVeth +
                       "traffic: [{name: t, source: capture, into: veth1, file: " + cut + "}]\n"),
              ElementsAre(HasSubstr("not every record is used as it was on the wire: damaged 1")));
}

TEST(ConfigCheck, PortsMayNotEndPastTheLast) {
  const auto text = [](uint32_t ports) {
    return absl::StrCat("version: 1\n", kPools, kVeth,
                        "traffic: [{name: t, into: veth1, destination_port: 65000, ports: ", ports, "}]\n");
  };
  EXPECT_THAT(Faults(text(536)), IsEmpty());
  EXPECT_THAT(Faults(text(537)),
              ElementsAre(HasSubstr("ports 65000 to 65536 end past 65535: write ports: 536 or less")));
}

// Names.

TEST(ConfigCheck, ThingsThatNobodyUsesAreWarnedAbout) {
  EXPECT_THAT(Warnings("version: 1\n" + kVeth + "traffic: [{name: udp, into: veth1, pool: packets}]\n" +
                       "pools:\n  - {name: packets}\n  - {name: spare, size: 1024}\n"
                       "programs:\n  - {name: idle, kind: pass}\n"
                       "sinks:\n  - {name: dry, kind: count}\n"),
              ElementsAre(HasSubstr("test.yaml:6: pools[1]: nothing uses the pool `spare`"),
                          HasSubstr("test.yaml:8: programs[0]: nothing uses the program `idle`"),
                          HasSubstr("test.yaml:10: sinks[0]: nothing uses the sink `dry`")));
}

TEST(ConfigCheck, SourceMustNameItsPoolWhereThereAreSeveral) {
  EXPECT_THAT(Faults("version: 1\n" + kVeth + kTraffic + "pools: [{name: a, size: 1024}, {name: b, size: 1024}]\n"),
              ElementsAre(HasSubstr("traffic[0].pool: missing, and there are several pools: name one of a, b")));
}

TEST(ConfigCheck, OneMistakeInANameIsNotASecondFaultWhereItIsUsed) {
  EXPECT_THAT(Faults("version: 1\n" + kPools + kTraffic +
                     "veth: [{name: f, ends: [{name: veth0, program: p}, {nmae: veth1}]}]\n"
                     "programs: [{nmae: p, kind: pass}]\n"),
              ElementsAre(HasSubstr("veth[0].ends[1].name: missing"), HasSubstr("unknown key `nmae`"),
                          HasSubstr("programs[0].name: missing"), HasSubstr("unknown key `nmae`")));
  EXPECT_THAT(Faults("version: 1\n" + kPools + kTraffic + "programs: 5\n" +
                     "veth: [{name: f, ends: [{name: veth0, program: p}, {name: veth1}]}]\n"),
              ElementsAre(HasSubstr("programs: must be a list")));
}

TEST(ConfigCheck, UnconditionalRuleBeforeOthersIsWarnedAbout) {
  EXPECT_THAT(
      Warnings("version: 1\n" + kPools + kTraffic +
               "veth: [{name: f, ends: [{name: veth0, program: p}, {name: veth1}]}]\n"
               "programs: [{name: p, kind: filter, rules: [{verdict: drop}, {protocol: udp, verdict: pass}]}]\n"),
      ElementsAre(HasSubstr("programs[0].rules[0]: matches every frame, so the 1 rules behind it")));
}

TEST(ConfigCheck, SixteenPairsAreAcceptedAndSeventeenAreNot) {
  const auto text = [](int pairs) {
    std::string veth = "veth:\n";
    for (int i = 0; i < pairs; ++i) {
      absl::StrAppend(&veth, "  - {name: p", i, ", ends: [{name: a", i, "}, {name: b", i, "}]}\n");
    }
    return "version: 1\n" + kPools + veth + "traffic: [{name: t, into: a0}]\n";
  };
  EXPECT_THAT(Faults(text(16)), IsEmpty());
  EXPECT_THAT(Faults(text(17)), ElementsAre(HasSubstr("veth: has 17 items, and it may have at most 16")));
}

// Workers.

std::string Workers(const std::string& workers) {
  return kSmallest + "lcores: {workers: [" + workers + "]}\n";
}

TEST(ConfigCheck, WorkersThatShareTheWorkAreAccepted) {
  EXPECT_THAT(Warnings(Workers("{poll: [veth0]}, {poll: [veth1], generate: [udp]}")), IsEmpty());
}

TEST(ConfigCheck, WorkerThatNamesNothingThereGetsTheNearestName) {
  EXPECT_THAT(Faults(Workers("{poll: [veth0, vet1], generate: [upd]}")),
              ElementsAre(HasSubstr("lcores.workers[0].poll[1]: no end named `vet1`, did you mean `veth1`?"),
                          HasSubstr("lcores.workers[0].generate[0]: no source named `upd`, did you mean `udp`?")));
}

TEST(ConfigCheck, EndTwiceInOneListIsPolledTwice) {
  EXPECT_THAT(Faults(Workers("{poll: [veth0, veth1, veth0], generate: [udp]}")),
              ElementsAre(HasSubstr("lcores.workers[0].poll[2]: `veth0` is polled by worker 0 already")));
}

TEST(ConfigCheck, WorkerWithNothingToDoIsWarnedAbout) {
  EXPECT_THAT(Warnings(Workers("{poll: [veth0, veth1], generate: [udp]}, {}")),
              ElementsAre(HasSubstr("lcores.workers[1]: this worker has nothing to do")));
}

TEST(ConfigCheck, EmptyListOfWorkersAndAnotherWordAreFaults) {
  EXPECT_THAT(Faults(Workers("")), ElementsAre(HasSubstr("lcores.workers: empty, and it must have at least 1")));
  EXPECT_THAT(Faults(kSmallest + "lcores: {workers: many}\n"),
              ElementsAre(HasSubstr("lcores.workers: `many` is not a list of workers: give auto, or a list")));
}

// EAL.

TEST(ConfigCheck, LcoresHaveEalsLettersOrAreAuto) {
  for (const char* cores : {"auto", "0", "0-3", "\"0@0,1@1\"", "\"(0-3)@0\"", "\"0@(0,2-3)\""}) {
    EXPECT_THAT(Faults(kSmallest + "eal: {lcores: " + cores + "}\n"), IsEmpty()) << cores;
  }
  EXPECT_THAT(Faults(kSmallest + "eal: {lcores: all}\n"),
              ElementsAre(HasSubstr("eal.lcores: `all` has a letter `a`: give auto or digits and `@`")));
}

TEST(ConfigCheck, ArgumentsAgainstThePresetAreFoundInAnySpelling) {
  for (const char* arg : {"--in-memory", "\"--in-memory=1\""}) {
    EXPECT_THAT(Faults(kSmallest + "eal: {args: [-v, " + arg + "]}\n"),
                ElementsAre(HasSubstr("eal.args[1]: --in-memory")));
  }
  EXPECT_THAT(Faults(kSmallest + "eal: {preset: none, args: [--in-memory]}\n"), IsEmpty());
  EXPECT_THAT(Faults(kSmallest + "eal: {preset: hugepages, args: [--in-memory]}\n"), IsEmpty());
  EXPECT_THAT(Faults(kSmallest + "eal: {preset: lab, args: [--no-huge]}\n"), IsEmpty());
}

TEST(ConfigCheck, OptionAndValueInOneArgumentAreAFault) {
  EXPECT_THAT(Faults(kSmallest + "eal: {args: [\"--vdev net_null0\"]}\n"),
              ElementsAre(HasSubstr("`--vdev net_null0` is an option and its value in one item")));
  EXPECT_THAT(Faults(kSmallest + "eal: {args: [\"--vdev=net_tap0,iface=a b\"]}\n"), IsEmpty());
}

// Files.

std::string SinkInto(const std::string& sink, const std::string& more = "") {
  return "version: 1\n" + kPools + "veth: [{name: f, ends: [{name: veth0, sink: s}, {name: veth1, mtu: 1586}]}]\n" +
         "sinks: [{name: s, kind: pcap, file: \"" + sink + "\"}]\n" +
         "traffic: [{name: t, source: capture, into: veth1, file: \"" + SourcePath("tests/config/frames.pcap") +
         "\"}]\n" + more;
}

TEST(ConfigCheck, SinkMayNotWriteOverTheCaptureThatIsReadByWhateverName) {
  const ScratchFolder folder;
  std::filesystem::create_symlink(SourcePath("tests/config/frames.pcap"), folder.File("link.pcap"));
  for (const std::string& file : {SourcePath("tests/config/frames.pcap"),
                                  SourcePath("tests/unit/../config/frames.pcap"), folder.File("link.pcap")}) {
    EXPECT_THAT(Faults(SinkInto(file)),
                ElementsAre(HasSubstr("would be written over while it is read as traffic[0].file: name another file")))
        << file;
  }
}

TEST(ConfigCheck, ReportMayNotWriteOverASinksFile) {
  const ScratchFolder folder;
  EXPECT_THAT(Faults(SinkInto(folder.File("out"), "report: {json: " + folder.File("x/../out") + "}\n")),
              ElementsAre(AllOf(HasSubstr(": report.json: "), HasSubstr("is written by sinks[0].file too"))));
}

TEST(ConfigCheck, DevicesMayBeWrittenByMany) {
  EXPECT_THAT(Faults(SinkInto("/dev/null", "report: {json: /dev/null}\n")), IsEmpty());
}

TEST(ConfigCheck, FolderAsAFileIsAFault) {
  EXPECT_THAT(Faults(SinkInto("/tmp")), ElementsAre(HasSubstr("sinks[0].file: `/tmp` is a folder: name a file in it")));
}

}  // namespace
}  // namespace halfpage
