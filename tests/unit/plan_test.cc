// The memory plan of a configuration, and the sizes that `auto` stands for.
#include "app/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/config_sizes.h"
#include "app/plan_report.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kChunk = 2ull << 20;
constexpr uint64_t kPage = 4096;

std::string TextOf(const std::string& pools, const std::string& eal = "memory: 64GiB") {
  return absl::StrCat("version: 1\n", kVeth, "traffic: [{name: udp, into: veth1, pool: a}]\neal: {", eal, "}\npools:\n",
                      pools);
}

MemoryPlan PlanOf(const std::string& text) {
  const LoadedConfig loaded = LoadText(text);
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  return PlanMemory(loaded.config);
}

// R10: 900 000 packets. By hand: a chunk has 63 pages of 32 KiB, the last of an extent 62; extents are 1 1 1 1 2 3 4 6
// 9 14 21 31 (94 chunks, 5910 pages), then 32 at a time (2015 pages), then what is left.
TEST(Plan, NineHundredThousandPacketsTakeTheBytesComputedByHand) {
  const auto plan = [](const std::string& room) {
    return PlanOf(TextOf(absl::StrCat("  - {name: a, size: 900000, cache: 0, data_room: ", room, "}\n")));
  };
  // 1518 + 192 are 27 lines, 18 to a page: 50000 pages; 21 extents of 32 and one of 29.
  const MemoryPlan exact = plan("1518");
  EXPECT_EQ(exact.pools[0].own.pages, 50'000u);
  EXPECT_EQ(exact.memory.arenas[0].chunks, 795u);
  EXPECT_EQ(exact.memory.arenas[0].chunk_bytes, 795 * kChunk - 34 * kPage);
  EXPECT_EQ(exact.pools[0].stock_small.buffer_bytes, 450'000 * kPage - (kPage - 2 * 1728));  // two to 4 KiB
  // 2048 + 192 are 35 lines, 14 to a page: 64286 pages; 29 extents of 32.
  const MemoryPlan usual = plan("2048");
  EXPECT_EQ(usual.pools[0].own.pages, 64'286u);
  EXPECT_EQ(usual.memory.arenas[0].chunks, 1022u);
  EXPECT_EQ(usual.memory.arenas[0].chunk_bytes, 1022 * kChunk - 41 * kPage);
  // 9100 + 192 are 146 lines, 3 to a page: 300000 pages; 145 extents of 32 and one of 31.
  const MemoryPlan jumbo = plan("9100");
  EXPECT_EQ(jumbo.pools[0].own.pages, 300'000u);
  EXPECT_EQ(jumbo.memory.arenas[0].chunks, 4765u);
  EXPECT_EQ(jumbo.memory.arenas[0].chunk_bytes, 4765 * kChunk - 158 * kPage);
  EXPECT_LT(exact.needed, usual.needed);
  EXPECT_LT(usual.needed, jumbo.needed);
}

// R01: a pool of ten times the memory.
TEST(Plan, PoolPastTheMemoryNamesNeededAvailableAndTheLargestSizeThatFits) {
  for (const char* ops : {"page_frag", "ring_mp_mc"}) {
    const auto pool = [ops](uint64_t size) {
      return TextOf(absl::StrCat("  - {name: a, cache: 256, ops: ", ops, ", size: ", size, "}\n"), "memory: 256MiB");
    };
    const LoadedConfig loaded = LoadText(pool(10 * (256ull << 20) / 2176));
    EXPECT_TRUE(loaded.only_too_large);
    const MemoryPlan plan = PlanMemory(loaded.config);
    ASSERT_TRUE(plan.overrun.has_value());
    ASSERT_EQ(loaded.faults.size(), 1u);
    EXPECT_THAT(loaded.faults[0].message, HasSubstr(absl::StrCat("the pools need ", plan.needed, " bytes")));
    EXPECT_THAT(loaded.faults[0].message, HasSubstr(absl::StrCat("leaves ", plan.available, " bytes")));
    EXPECT_THAT(loaded.faults[0].message, HasSubstr(absl::StrCat("write size: ", plan.overrun->largest, " or less")));
    EXPECT_THAT(Printed(LoadText(pool(plan.overrun->largest)).faults), IsEmpty());
    EXPECT_TRUE(LoadText(pool(plan.overrun->largest + 1)).only_too_large);
  }
}

// R02: five pools, each of which would fit alone.
TEST(Plan, FirstPoolOverTheLineIsNamedInTheFaultAndUnderTheTable) {
  std::string pools;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    absl::StrAppend(&pools, "  - {name: ", name, ", size: 65536}\n");
  }
  const LoadedConfig loaded = LoadText(TextOf(pools, "memory: 512MiB"));
  ASSERT_EQ(loaded.faults.size(), 1u);
  EXPECT_EQ(loaded.faults[0].path, "pools[2].size");
  const std::string text = PlanText(PlanMemory(loaded.config), {});
  for (const char* name : {"  a ", "  b ", "  c ", "  d ", "  e "}) EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, HasSubstr("pool c is the first over the line"));
  EXPECT_THAT(text, HasSubstr("DOES NOT FIT"));
}

TEST(Plan, OtherFaultsAreNotMistakenForTooLargePools) {
  EXPECT_FALSE(LoadText(TextOf("  - {name: a, sise: 5}\n")).only_too_large);
  EXPECT_FALSE(LoadText(kSmallest).only_too_large);
}

// With EAL's own arguments, -m is what there is.
TEST(Plan, MemoryOfEalArgumentsCounts) {
  const std::string pool = "  - {name: a, size: 1000000}\n";
  EXPECT_TRUE(LoadText(TextOf(pool, "preset: none, args: [--no-huge, -m, '256']")).only_too_large);
  EXPECT_TRUE(LoadText(TextOf(pool, "preset: none, args: [--no-huge, -m256]")).only_too_large);
  EXPECT_TRUE(LoadText(TextOf(pool, "preset: none, args: [--no-huge]")).only_too_large) << "64 MiB without -m";
  EXPECT_THAT(Printed(LoadText(TextOf(pool, "preset: none, args: [--no-huge, -m, '4096']")).faults), IsEmpty());
  EXPECT_THAT(Printed(LoadText(TextOf(pool, "preset: none, args: [-m, '256']")).faults), IsEmpty())
      << "hugepages are taken on demand, past -m too";
}

std::string AutoText(uint32_t ring, uint32_t queues, uint32_t cache, const std::string& more = "") {
  return absl::StrCat("version: 1\neal: {memory: 64GiB}\n", kTraffic, "veth: [{name: front, queues: ", queues,
                      ", ring: ", ring, ", ends: [{name: veth0}, {name: veth1}]}]\n",
                      "pools: [{name: packets, size: auto, cache: ", cache, "}]\n", more);
}

// R05 and R06: whatever rings, queues and caches are, `auto` holds them all and breaks no rule.
TEST(AutoSize, HoldsRingsCachesAndBurstsOfEveryShape) {
  for (uint32_t ring = 64; ring <= 32768; ring *= 2) {
    for (uint32_t queues = 1; queues <= 16; ++queues) {
      for (const uint32_t cache : {0u, 1u, 32u, 100u, 250u, 256u, 511u, 512u}) {
        const LoadedConfig loaded = LoadText(AutoText(ring, queues, cache));
        ASSERT_THAT(Printed(loaded.faults), IsEmpty()) << ring << " " << queues << " " << cache;
        ASSERT_THAT(Printed(loaded.warnings), IsEmpty()) << ring << " " << queues << " " << cache;
        const uint64_t sum = 2ull * ring * queues + cache * 3 / 2 + 32 + 64 + 16;
        const uint32_t size = loaded.config.pools[0].size;
        const uint32_t step = cache > 0 ? cache : 32;
        ASSERT_GE(size, sum);
        ASSERT_LT(size, sum + step);
        ASSERT_EQ(size % step, 0u);
      }
    }
  }
}

TEST(AutoSize, CountsEveryWorkersCacheAndHands) {
  const LoadedConfig loaded =
      LoadText(AutoText(256, 1, 128, "lcores: {workers: [{poll: [veth0]}, {poll: [veth1]}, {generate: [udp]}]}\n"));
  ASSERT_THAT(Printed(loaded.faults), IsEmpty());
  const BufferNeeds needs = NeedsOf(loaded.config, 0);
  EXPECT_EQ(needs.rings, 512u);
  EXPECT_EQ(needs.caches, 3u * 192);
  EXPECT_EQ(needs.bursts, 3u * (64 + 16) + 32);
  EXPECT_EQ(loaded.config.pools[0].size, 1408u);  // 1360, rounded up to 11 caches of 128
}

// R09: five buffers of 2048 for a frame of 9014 bytes: 1920 behind the headroom, then 2048 each.
TEST(AutoSize, FramesOfSeveralBuffersTakeSeveralOfThePool) {
  const LoadedConfig loaded = LoadText(
      "version: 1\npools: [{name: packets, size: auto, cache: 0, data_room: 2048}]\n"
      "traffic: [{name: udp, into: veth1, sizes: 9014}]\n"
      "veth: [{name: front, ring: 64, ends: [{name: veth0, mtu: 9000}, {name: veth1, mtu: 9000}]}]\n");
  ASSERT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(NeedsOf(loaded.config, 0).segments, 5u);
  EXPECT_GE(loaded.config.pools[0].size, 5u * (128 + 32 + 64 + 16));
}

// Of what leaves `front`, whose ring holds 64: copies, broadcasts, rings to other workers and users' rings.
TEST(AutoSize, CopiesBroadcastsRingsBetweenWorkersAndUsersRingsCount) {
  const auto needs = [](const std::string& program, const std::string& ends, const std::string& rest = "") {
    const LoadedConfig loaded = LoadText(
        "version: 1\npools: [{name: own, size: auto, cache: 0}, {name: second, size: auto, cache: 0}]\n"
        "programs: [{name: gate, " +
        program + "}]\nveth:\n  - {name: front, ring: 64, ends: [{name: veth0, " + ends +
        "}, {name: veth1}]}\n  - {name: back, ring: 256, ends: [{name: veth2}, {name: veth3, gro: true}]}\n"
        "traffic: [{name: udp, into: veth1, pool: own}]\n" +
        rest);
    EXPECT_THAT(Printed(loaded.faults), IsEmpty());
    return std::pair(NeedsOf(loaded.config, 0), NeedsOf(loaded.config, 1));
  };
  const std::string redirect = "kind: redirect, target: veth2";
  EXPECT_EQ(needs(redirect, "program: gate").second.sum(), 0u);
  const auto [own, copies] = needs(redirect, "program: gate, copy: {when: always, policy: classes, pools: [second]}");
  EXPECT_EQ(own.rings, 2u * 64 + 2 * 256);
  EXPECT_EQ(copies.rings, own.rings);
  EXPECT_EQ(copies.bursts, 2u * 64 + 16) << "of a poll, twice, and of a flush";

  const std::string map =
      "maps: [{name: outs, kind: devmap, broadcast: true, entries: [{key: 0, device: veth2}, "
      "{key: 1, device: veth1}]}]\n";
  EXPECT_EQ(needs("kind: redirect, map: outs", "program: gate", map).first.bursts, 32u + 2 * 64 + 16);

  const std::string lanes =
      "maps: [{name: cpus, kind: cpumap, entries: [{key: 0, worker: 0, ring: 512}, "
      "{key: 1, worker: 0, ring: 128}]}]\n";
  EXPECT_EQ(needs("kind: redirect, map: cpus", "program: gate", lanes).first.rings, 2u * 64 + 512 + 128);
  EXPECT_EQ(needs(redirect, "program: gate", lanes).first.rings, 2u * 64 + 2 * 256) << "nobody redirects there";

  const std::string socks =
      "sinks: [{name: rings, kind: user, ring: 1024, chunks: 4096}]\n"
      "maps: [{name: socks, kind: xskmap, entries: [{key: 0, sink: rings}]}]\n";
  EXPECT_EQ(needs("kind: redirect, map: socks", "program: gate", socks).first.rings, 2u * 64 + 1024);
}

TEST(AutoSize, PoolThatNobodyUsesHoldsItsCache) {
  const LoadedConfig loaded =
      LoadText(TextOf("  - {name: a}\n  - {name: b, size: auto, cache: 512}\n  - {name: c, size: auto, cache: 0}\n"));
  ASSERT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(loaded.config.pools[1].size, 1024u);
  EXPECT_EQ(loaded.config.pools[2].size, 32u);
}

TEST(AutoSize, IsPrintedAsTheNumberItStandsFor) {
  const LoadedConfig loaded = LoadText(AutoText(256, 1, 256));
  const std::string printed = PrintConfig(loaded.config);
  EXPECT_THAT(printed, HasSubstr("size: 1024"));  // 512 + 384 + 112 are 1008
  EXPECT_EQ(LoadText(printed).config.pools[0].size, 1024u);
}

TEST(AutoSize, AnotherWordIsRefusedWithTheOneThatIsKnown) {
  const LoadedConfig loaded = LoadText(TextOf("  - {name: a, size: automatic}\n"));
  ASSERT_EQ(loaded.faults.size(), 1u);
  EXPECT_THAT(loaded.faults[0].message, HasSubstr("auto or 1 to"));
  EXPECT_EQ(LoadText(TextOf("  - {name: a, size: 0}\n")).faults.size(), 1u) << "0 is not auto";
}

// R04: two ports on two sockets, the second with four times the queues.
TEST(AutoSize, PoolsOfTwoSocketsFollowTheQueuesThere) {
  const std::string text =
      "version: 1\neal: {preset: hugepages, memory: 64GiB}\nprograms: [{name: gate}]\npools:\n"
      "  - {name: near, size: auto, cache: 0, socket: 0}\n  - {name: far, size: auto, cache: 0, socket: 1}\nports:\n"
      "  - {name: wan, device: net_null0, pool: near, socket: 0, queues: 2, rxd: 1024, program: gate}\n"
      "  - {name: lan, device: net_null1, pool: far, socket: 1, queues: 8, rxd: 1024, program: gate}\n";
  const LoadedConfig loaded = LoadText(text);
  ASSERT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(NeedsOf(loaded.config, 0).rings, 2u * 1024 + 256);
  EXPECT_EQ(NeedsOf(loaded.config, 1).rings, 8u * 1024 + 256);
  const MemoryPlan plan = PlanMemory(loaded.config);
  ASSERT_EQ(plan.sockets.size(), 2u);
  EXPECT_EQ(plan.sockets[0].socket, 0);
  EXPECT_EQ(plan.sockets[1].socket, 1);
  EXPECT_THAT(plan.sockets[1].pools, ElementsAre("far"));
  EXPECT_GT(plan.sockets[1].bytes, 3 * plan.sockets[0].bytes);
  EXPECT_EQ(plan.sockets[0].bytes + plan.sockets[1].bytes, plan.memory.total);
  EXPECT_THAT(PlanText(plan, {}), HasSubstr("  socket 1: "));
  const nlohmann::json json = nlohmann::json::parse(PlanJson(plan, {}));
  EXPECT_EQ(json["sockets"][1]["bytes"], plan.sockets[1].bytes);
  EXPECT_EQ(json["arenas"].size(), 2u);
}

TEST(Plan, SocketThatTheMachineHasNotGotIsNamedWithThoseItHas) {
  const MemoryPlan plan =
      PlanOf(TextOf("  - {name: a, socket: 0}\n  - {name: b, socket: 1}\n", "preset: hugepages, memory: 64GiB"));
  const std::vector<std::string> lines = SocketFaults(plan, {0});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("pools[1].socket: 1 is not on this machine, which has 0: write one of these"));
  EXPECT_THAT(SocketFaults(plan, {0, 1}), IsEmpty());
  EXPECT_THAT(SocketFaults(plan, {}), IsEmpty()) << "a machine that does not tell";
}

// A limit is there to be smaller than the sum; one that holds no pool is told of.
TEST(Plan, ArenaLimitThatHoldsNotEvenOnePoolWarnsWithOneThatDoes) {
  const auto load = [](const std::string& limit) {
    return LoadText(absl::StrCat("arena: {limit: ", limit, "}\n",
                                 TextOf("  - {name: a, size: 16384}\n  - {name: b, size: 4096}\n")));
  };
  const LoadedConfig small = load("8MiB");
  EXPECT_THAT(Printed(small.faults), IsEmpty());
  const auto warns = [](const LoadedConfig& loaded) {
    std::string text;
    for (const std::string& line : Printed(loaded.warnings)) {
      if (line.find("arena.limit") != std::string::npos) text = line;
    }
    return text;
  };
  const std::string warning = warns(small);
  EXPECT_THAT(warning, HasSubstr("pool `a` alone needs"));
  const size_t at = warning.find("write limit: ");
  ASSERT_NE(at, std::string::npos) << warning;
  const std::string enough = warning.substr(at + 13, warning.find(' ', at + 13) - at - 13);
  EXPECT_EQ(warns(load(enough)), "") << enough;
  EXPECT_NE(warns(load(absl::StrCat(std::stoul(enough) - 2, "MiB"))), "");
}

// R07: a pool of as many buffers as the ring has slots.
TEST(AutoSize, PoolAsLargeAsOneRingWarnsWithTheSizeThatAutoHas) {
  const std::string text = "version: 1\n" + kTraffic +
                           "pools: [{name: packets, size: 1024, cache: 0}]\n"
                           "veth: [{name: front, ring: 1024, ends: [{name: veth0}, {name: veth1}]}]\n";
  const std::vector<std::string> warnings = Printed(LoadText(text).warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("rings 2048 + caches 0 + bursts 112 = 2160"));
  EXPECT_THAT(warnings[0], HasSubstr("write size: auto (2176)"));
}

// R11: rooms for MTU 1500 and for MTU 9000 in two pools.
TEST(Plan, SharingIsWorthTheSmallerPoolWhileTheOtherIsFull) {
  const MemoryPlan plan =
      PlanOf(TextOf("  - {name: a, size: 16384, data_room: 1664}\n  - {name: b, size: 4096, data_room: 9216}\n"));
  ASSERT_EQ(plan.memory.arenas.size(), 1u);
  const PktmbufPoolConfig larger = plan.pools[1].config;
  const MemoryFootprint alone = ComputeFootprint({larger}, plan.terms);
  EXPECT_EQ(plan.needed - plan.one_at_a_time, plan.memory.arenas[0].chunk_bytes - alone.arenas[0].chunk_bytes);
  EXPECT_LT(plan.one_at_a_time, plan.needed * 3 / 4);
  EXPECT_LT(plan.needed, plan.stock_small);
  EXPECT_THAT(PlanText(plan, {}), HasSubstr("sharing: "));
  EXPECT_THAT(PlanText(PlanOf(TextOf("  - {name: a}\n")), {}), Not(HasSubstr("sharing: ")));
}

// R14: 2176 bytes that are 4096 and more.
TEST(Plan, RealBytesOfABufferStandBesideItsNominalOnes) {
  const MemoryPlan plan = PlanOf(TextOf("  - {name: a, size: 65536, ops: ring_mp_mc, cache: 0}\n"));
  const nlohmann::json json = nlohmann::json::parse(PlanJson(plan, {}));
  EXPECT_EQ(json["pools"][0]["bytes_per_buffer_nominal"], 2176);
  EXPECT_NEAR(json["pools"][0]["bytes_per_buffer_real"].get<double>(), 4096 + 16, 1);  // and a ring of 131072 slots
  EXPECT_NEAR(json["pools"][0]["stock"]["hugepages"]["bytes_per_buffer_real"].get<double>(), 2370 + 16, 1);
}

// R15: the room that a message asks for is a room that passes.
TEST(Plan, RoomThatAMessageAsksForPasses) {
  const auto text = [](const std::string& room) {
    return "version: 1\nprograms: [{name: bounce, kind: tx}]\npools: [{name: packets, data_room: " + room + "}]\n" +
           "traffic: [{name: udp, into: veth1}]\n"
           "veth: [{name: front, ends: [{name: veth0, program: bounce, mtu: 9000}, {name: veth1, mtu: 9000}]}]\n";
  };
  const std::vector<std::string> faults = Printed(LoadText(text("2048")).faults);
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults, testing::Each(HasSubstr("data_room: 9142 or more")));
  EXPECT_THAT(Printed(LoadText(text("9142")).faults), IsEmpty());
}

TEST(Plan, CliffIsToldWithTheRoomThatAvoidsIt) {
  const std::string text = PlanText(PlanOf(TextOf("  - {name: a, page_size: 4KiB, data_room: 1920}\n")), {});
  EXPECT_THAT(text, HasSubstr("room 1920: 1 per page of 4KiB"));
  EXPECT_THAT(text, HasSubstr("64 bytes less (data_room: 1856): 2 per page"));
}

TEST(Plan, ReasonOfThePageSizeIsTold) {
  const auto reason = [](const std::string& keys) {
    return PlanOf(TextOf("  - {name: a, " + keys + "}\n")).pools[0].page_reason;
  };
  EXPECT_THAT(reason("page_size: 4KiB, data_room: 1024"), HasSubstr("as page_size says"));
  EXPECT_THAT(reason("data_room: 2176"), HasSubstr("32KiB waste little"));
  EXPECT_THAT(reason("data_room: 192"), HasSubstr("more than the 63 buffers"));
  EXPECT_THAT(reason("data_room: 16384"), HasSubstr("fewer than three"));
  EXPECT_THAT(reason("ops: ring_mp_mc"), HasSubstr("without hugepages"));
}

TEST(Plan, MachineWithLessThanIsNeededIsAFaultWithTheLargestPool) {
  const LoadedConfig loaded = LoadText(TextOf("  - {name: a, size: 100000}\n"));
  const MemoryPlan plan = PlanMemory(loaded.config);
  const std::vector<MemoryLimit> enough = {{"MemAvailable", "/proc/meminfo", plan.needed}};
  EXPECT_FALSE(FindMachineOverrun(loaded.config, plan, enough).has_value());
  const std::vector<MemoryLimit> little = {{"cgroup memory limit 128MiB", "/sys/fs/cgroup/memory.max", 100u << 20}};
  const auto overrun = FindMachineOverrun(loaded.config, plan, little);
  ASSERT_TRUE(overrun.has_value());
  const std::string fault = MachineFault(plan, *overrun);
  EXPECT_THAT(fault, HasSubstr("pools[0].size: the pools need "));
  EXPECT_THAT(fault, HasSubstr("cgroup memory limit 128MiB"));
  EXPECT_THAT(fault, HasSubstr(absl::StrCat("write size: ", overrun->pool.largest, " or less")));
  EXPECT_THAT(PlanText(plan, little), HasSubstr("DOES NOT FIT"));
  EXPECT_EQ(nlohmann::json::parse(PlanJson(plan, little))["fits"], false);
  EXPECT_EQ(nlohmann::json::parse(PlanJson(plan, enough))["fits"], true);
}

TEST(Plan, RingsOfEveryPairAreInTheSum) {
  const MemoryPlan small = PlanOf(AutoText(64, 1, 0));
  const MemoryPlan large = PlanOf(AutoText(32768, 16, 0));
  // 2 ends x 16 queues x 65536 slots of 8 bytes: a ring of 2^n usable slots has twice as many.
  EXPECT_EQ(large.ring_bytes, 2u * 16 * (65536 * 8 + 512));
  EXPECT_EQ(small.ring_bytes, 2u * (128 * 8 + 512));
  EXPECT_EQ(large.needed, large.memory.total + large.ring_bytes);
}

TEST(Plan, ConfigurationsThatAreShippedAreHeldToTheirPlan) {
  for (const char* file : {"conf/quickstart.yaml", "conf/imix.yaml", "conf/jumbo.yaml", "conf/two_workers.yaml"}) {
    const LoadedConfig loaded = LoadConfig(SourcePath(file), {});
    ASSERT_THAT(Printed(loaded.faults), IsEmpty()) << file;
    const MemoryPlan plan = PlanMemory(loaded.config);
    EXPECT_FALSE(plan.overrun.has_value()) << file;
    EXPECT_LE(plan.needed, plan.available) << file;
    EXPECT_LT(plan.needed, plan.stock_small) << file;
  }
}

// By hand: 2 x 256 slots. Of 4 frames 3 are short: 384 slots and 4 x sqrt(512 x 3/4 x 1/4) = 39.2 more; of the long
// ones 128 and as many more.
TEST(Plan, AutoSizesClassesByTheirShareOfTheFrames) {
  const auto plan = [](const std::string& sizes) {
    return PlanOf(absl::StrCat("version: 1\n", kVeth, "traffic: [{name: udp, into: veth1, classes: [b, a], sizes: ",
                               sizes, "}]\npools:\n  - {name: a, size: auto, data_room: 1664, cache: 0}\n",
                               "  - {name: b, size: auto, data_room: 192, cache: 0}\n"));
  };
  const MemoryPlan mixed = plan("[{size: 64, weight: 3}, 1514]");
  EXPECT_EQ(mixed.pools[1].needs.rings, 424u);
  EXPECT_EQ(mixed.pools[0].needs.rings, 168u);
  EXPECT_THAT(mixed.pools[1].taken_for, ElementsAre(HasSubstr("class of `udp`: frames of 1 to 64 bytes; when empty")));
  EXPECT_THAT(mixed.pools[0].taken_for,
              ElementsAre(HasSubstr("frames of 65 to 1536 bytes, and longer ones as chains")));
  const MemoryPlan small = plan("64");
  EXPECT_EQ(small.pools[1].needs.rings, 512u);
  EXPECT_EQ(small.pools[0].needs.sum(), 0u);
}

// 1536 bytes stand in the first buffer. Behind it are 192 of 1728, which fill a short one; 193 of 1729 take a long one.
TEST(Plan, ClassesCountTheEndsOfChains) {
  const auto rings_of_short = [](const char* sizes) {
    return PlanOf(
               absl::StrCat("version: 1\nveth: [{name: front, ends: [{name: veth0, mtu: 9000}, "
                            "{name: veth1, mtu: 9000}]}]\ntraffic: [{name: udp, into: veth1, classes: [b, a], sizes: ",
                            sizes, "}]\npools:\n  - {name: a, size: auto, data_room: 1664, cache: 0}\n",
                            "  - {name: b, size: auto, data_room: 192, cache: 0}\n"))
        .pools[1]
        .needs.rings;
  };
  EXPECT_EQ(rings_of_short("1728"), 512u);
  EXPECT_EQ(rings_of_short("1729"), 0u);
  EXPECT_EQ(rings_of_short("[{size: 1728, weight: 3}, 1514]"), 424u);
  EXPECT_EQ(rings_of_short("[{size: 1537, weight: 1}, {size: 64, weight: 2}, 1514]"), 424u);
}

TEST(Plan, ExactPoolsArePlannedByTheLengthsTakenFromThem) {
  const auto plan = [](const std::string& sizes) {
    return PlanOf(absl::StrCat("version: 1\n", kVeth,
                               "traffic: [{name: udp, into: veth1, pool: a, buffers: exact, sizes: ", sizes,
                               "}]\npools:\n  - {name: a, exact: true, size: 30000}\n"));
  };
  EXPECT_EQ(plan("64").pools[0].own.object_bytes, 320u);
  EXPECT_EQ(plan("1514").pools[0].own.object_bytes, 1792u);
  const MemoryPlan imix = plan("imix");
  EXPECT_GT(imix.pools[0].own.object_bytes, 560u);
  EXPECT_LT(imix.pools[0].own.object_bytes, 660u);
  EXPECT_THAT(PlanText(imix, {}), HasSubstr("as long as its frame"));
}

}  // namespace
}  // namespace halfpage
