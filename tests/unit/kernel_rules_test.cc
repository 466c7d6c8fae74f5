// Pairs in `mode: kernel`, from their configuration to what a run has counted: each figure is one that was measured on
// Linux 6.18 or stands in its source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/ledger.h"
#include "app/topology.h"
#include "tests/support/counted_bursts.h"

namespace halfpage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kFrames = 100;

LoadedConfig Load(const std::string& text) {
  return LoadConfigText("version: 1\n" + text, "rules.yaml", {});
}

// What a run counted, after every frame was accounted for. `bursts`: of frames sent through the first device.
Snapshot RunOf(const std::string& text, std::vector<uint16_t>* bursts = nullptr) {
  Snapshot snapshot;
  snapshot.devices.resize(16);
  for (DeviceSnapshot& device : snapshot.devices) device.queues.resize(1);
  const LoadedConfig loaded = Load(text);
  for (const ConfigFault& fault : loaded.faults) ADD_FAILURE() << fault.ToString();
  if (!loaded.faults.empty()) return snapshot;
  auto topology = Topology::Create(loaded.config);
  EXPECT_TRUE(topology.ok()) << topology.status();
  if (!topology.ok()) return snapshot;
  Topology& run = **topology;
  const uint16_t port = run.devices()[0].port;
  const auto* counting = bursts == nullptr ? nullptr : rte_eth_add_tx_callback(port, 0, CountBursts, bursts);
  EXPECT_TRUE(run.Start().ok());
  for (int look = 0; !run.SourcesDone() && look < 50000; ++look) usleep(100);
  run.Pause(4);
  if (counting != nullptr) {
    EXPECT_EQ(rte_eth_remove_tx_callback(port, 0, counting), 0);
  }
  EXPECT_TRUE(run.Stop(4).ok());
  snapshot = run.Read();
  EXPECT_THAT(CheckLedger(snapshot), IsEmpty());
  EXPECT_THAT(Topology::End(*std::move(topology)), IsEmpty());
  return snapshot;
}

uint64_t Of(const RefusalCounts& counts, Refusal reason) {
  return counts[static_cast<size_t>(reason)];
}

uint64_t Verdict(const DeviceSnapshot& device, XdpAction action) {
  return device.verdicts[static_cast<size_t>(action)];
}

uint64_t Copies(const DeviceSnapshot& device, const std::string& cause) {
  for (const CopyCount& copies : device.copies) {
    if (copies.cause == cause) return copies.buffers;
  }
  return 0;
}

// Frames come into a0, whose program judges; tx goes back to a1, redirects to b1.
enum : size_t { kA0, kA1, kB0, kB1 };
struct Scene {
  std::string judge;      // the program's kind and what belongs to it
  std::string a0 = "";    // further keys
  std::string peer = "";  // of a1 and b1
  std::string sizes = "64";
  uint32_t mtu = 1500;  // of a0 and a1
  std::string pool = "data_room: 16KiB";
  const char* mode = "kernel";
  uint64_t frames = kFrames;
};

std::string Text(const Scene& scene) {
  return absl::StrCat("pools: [{name: packets, size: 2048, cache: 0, ", scene.pool, "}]\nprograms:\n  - {name: judge, ",
                      scene.judge, "}\n  - {name: plain, kind: drop}\n  - {name: frags, kind: drop, frags: true}\n",
                      "veth:\n  - {name: a, mode: ", scene.mode, ", ends: [{name: a0, program: judge, mtu: ", scene.mtu,
                      scene.a0, "}, {name: a1, mtu: ", scene.mtu, scene.peer, "}]}\n  - {name: b, mode: ", scene.mode,
                      ", ends: [{name: b0}, {name: b1", scene.peer, "}]}\n", "traffic: [{name: s, into: a1, burst: 64,",
                      " count: ", scene.frames, ", sizes: [", scene.sizes, "]}]\n");
}

// Admission.

TEST(KernelMode, MtusAreAdmittedUpToTheKernelsLimitsAndTheRefusalSaysWhatTheyAre) {
  struct Row {
    bool frags;
    const char* copy;
    uint32_t admitted;
    const char* frame_budget;
  };
  for (const Row& row : {Row{false, "", 3506, "3520"}, Row{false, "policy: half, headroom: 192", 1522, "1536"},
                         Row{true, "policy: half, headroom: 192", 36338, "36352"},
                         Row{true, "policy: half, headroom: 194", 36336, "36350"}}) {
    Scene scene{absl::StrCat("kind: pass, frags: ", row.frags ? "true" : "false"),
                absl::StrCat(", copy: {", row.copy, "}")};
    scene.mtu = row.admitted;
    EXPECT_THAT(Load(Text(scene)).faults, IsEmpty()) << row.admitted;
    scene.mtu = row.admitted + 1;
    const LoadedConfig refused = Load(Text(scene));
    ASSERT_EQ(refused.faults.size(), 1u) << scene.mtu;
    EXPECT_THAT(refused.faults[0].message,
                AllOf(HasSubstr(absl::StrCat("mtu ", scene.mtu, " is past ", row.admitted)),
                      HasSubstr(absl::StrCat("frame budget ", row.frame_budget, ", mtu ", row.admitted))));
  }
  Scene jumbo{"kind: pass"};
  jumbo.mtu = 8000;
  ASSERT_EQ(Load(Text(jumbo)).faults.size(), 1u);
  EXPECT_THAT(Load(Text(jumbo)).faults[0].message, HasSubstr("write frags: true"));
  jumbo.judge = "kind: pass, frags: true";
  jumbo.mtu = 65535;  // below 73138, which no MTU here can reach
  EXPECT_THAT(Load(Text(jumbo)).faults, IsEmpty());
}

// Peers.

TEST(KernelMode, XdpFramesReachAPeerWithAProgramOrGroAndNoOther) {
  struct Row {
    const char* peer;
    uint64_t delivered, closed;
  };
  for (const Row& row : {Row{"", 0, 100}, Row{", gro: true", 100, 0}, Row{", program: plain", 100, 0},
                         Row{", program: plain, gro: true", 100, 0}, Row{", program: frags", 100, 0},
                         Row{", program: frags, gro: true", 100, 0}}) {
    SCOPED_TRACE(row.peer);
    const Snapshot tx = RunOf(Text({"kind: tx", "", row.peer}));
    EXPECT_EQ(Verdict(tx.devices[kA0], XdpAction::kTx), 100u);
    EXPECT_EQ(tx.devices[kA0].queues[0].xdp_tx, row.delivered);
    EXPECT_EQ(tx.devices[kA0].queues[0].xdp_tx_errors, row.closed);
    EXPECT_EQ(Of(tx.devices[kA0].tx_errors, Refusal::kPeerNoXdp), row.closed);
    EXPECT_EQ(tx.devices[kA1].received, row.delivered);
    const Snapshot redirect = RunOf(Text({"kind: redirect, target: b0", "", row.peer}));
    EXPECT_EQ(redirect.devices[kA0].queues[0].xdp_redirect, 100u);
    EXPECT_EQ(redirect.devices[kB0].queues[0].xdp_xmit, row.delivered);
    EXPECT_EQ(redirect.devices[kB0].queues[0].xdp_xmit_errors, row.closed);
    EXPECT_EQ(Of(redirect.devices[kA0].redirect_errors, Refusal::kPeerNoXdp), row.closed);
    EXPECT_EQ(redirect.devices[kB1].received, row.delivered);
  }
  Scene ours{"kind: tx"};
  ours.mode = "halfpage";
  EXPECT_EQ(RunOf(Text(ours)).devices[kA1].received, 100u) << "our mode delivers";
}

TEST(KernelMode, FramesThatThePeerWillNotTakeAreForetoldWithTheWayOut) {
  const auto warnings = [](const Scene& scene) {
    std::string all;
    for (const ConfigFault& warning : Load(Text(scene)).warnings) absl::StrAppend(&all, warning.ToString(), "\n");
    return all;
  };
  EXPECT_THAT(warnings({"kind: tx"}), AllOf(HasSubstr("veth[0].ends[0]: its program sends frames back through it, and "
                                                      "its peer `a1` has no program: they are dropped (peer_no_xdp)"),
                                            HasSubstr("give it a program, or gro: true")));
  EXPECT_THAT(warnings({"kind: redirect, target: b0"}),
              HasSubstr("veth[1].ends[0]: frames are redirected into it, and its peer `b1` has no program: they are "
                        "dropped (peer_no_xdp)"));
  Scene ours{"kind: redirect, target: b0"};
  ours.mode = "halfpage";
  EXPECT_THAT(warnings(ours), HasSubstr("they are delivered all the same"));
  for (const char* peer : {", gro: true", ", program: plain"}) {
    EXPECT_THAT(warnings({"kind: redirect, target: b0", "", peer}), Not(HasSubstr("peer_no_xdp")));
    EXPECT_THAT(warnings({"kind: tx", "", peer}), Not(HasSubstr("peer_no_xdp")));
  }
}

TEST(KernelMode, VerdictsThatSendNothingDoNotDependOnThePeer) {
  for (const char* peer : {"", ", gro: true", ", program: plain", ", program: frags"}) {
    SCOPED_TRACE(peer);
    const Snapshot pass = RunOf(Text({"kind: pass", "", peer}));
    EXPECT_EQ(Verdict(pass.devices[kA0], XdpAction::kPass), 100u);
    EXPECT_EQ(pass.devices[kA0].queues[0].xdp_drops, 0u);
    EXPECT_EQ(RunOf(Text({"kind: drop", "", peer})).devices[kA0].queues[0].xdp_drops, 100u);
    const Snapshot aborted = RunOf(Text({"kind: aborted", "", peer}));
    EXPECT_EQ(Verdict(aborted.devices[kA0], XdpAction::kAborted), 100u);
    EXPECT_EQ(aborted.devices[kA0].queues[0].xdp_drops, 100u);
  }
}

TEST(KernelMode, APeerTakesFramesUpToItsMtuAndEthernetHeaderAndOneTag) {
  for (const auto& [size, delivered] : {std::pair{1514u, 100u}, {1518u, 100u}, {1519u, 0u}}) {
    Scene scene{"kind: redirect, target: b0", "", ", gro: true", absl::StrCat(size)};
    scene.mtu = 3000;
    const Snapshot snapshot = RunOf(Text(scene));
    EXPECT_EQ(snapshot.devices[kB1].received, delivered) << size;
    EXPECT_EQ(Of(snapshot.devices[kA0].redirect_errors, Refusal::kMtu), 100 - delivered) << size;
    EXPECT_EQ(snapshot.devices[kB0].queues[0].xdp_xmit_errors, 100 - delivered) << size;
  }
}

// Rings and bulks.

// `sources` devices with a burst each, before anybody receives what they redirect into b.
Snapshot Burst(const std::vector<uint32_t>& bursts, const std::string& ring) {
  std::string veth =
      absl::StrCat("veth:\n  - {name: b, mode: kernel", ring, ", ends: [{name: b0}, {name: b1, gro: true}]}\n");
  std::string traffic = "traffic:\n";
  std::string polled;
  std::string sources;
  for (size_t i = 0; i < bursts.size(); ++i) {
    absl::StrAppend(&veth, "  - {name: p", i, ", mode: kernel, ends: [{name: p", i, "a, program: away}, {name: p", i,
                    "b}]}\n");
    absl::StrAppend(&traffic, "  - {name: s", i, ", into: p", i, "b, burst: ", bursts[i], ", count: ", bursts[i],
                    "}\n");
    absl::StrAppend(&polled, "p", i, "a, p", i, "b, ");
    absl::StrAppend(&sources, i == 0 ? "s" : ", s", i);
  }
  return RunOf(
      "pools: [{name: packets, size: 2048, cache: 0}]\nprograms: [{name: away, kind: redirect, target: b0}]\n" + veth +
      traffic + "lcores: {workers: [{poll: [" + polled + "b1, b0], generate: [" + sources + "]}]}\n");
}

TEST(KernelMode, OfABurstOf300IntoARingOf256Exactly44AreRefusedAsRingFullAndNamedAtTheirRing) {
  struct Row {
    std::vector<uint32_t> bursts;
    const char* ring;
    uint64_t delivered, refused;
  };
  for (const Row& row : {Row{{60, 60, 60, 60, 60}, "", 256, 44}, Row{{64, 64, 64, 64}, "", 256, 0},
                         Row{{64, 64, 64, 64, 1}, "", 256, 1}, Row{{60, 60, 60, 60, 60}, ", ring: 512", 300, 0}}) {
    const Snapshot snapshot = Burst(row.bursts, row.ring);
    const DeviceSnapshot& b0 = snapshot.devices[0];
    const DeviceSnapshot& b1 = snapshot.devices[1];
    EXPECT_EQ(b1.received, row.delivered);
    EXPECT_EQ(Of(b0.refused_through, Refusal::kRingFull), row.refused);
    EXPECT_EQ(Sum(b0.refused_through), row.refused);
    EXPECT_EQ(b0.queues[0].xdp_xmit_errors, row.refused);
    EXPECT_EQ(b1.queues[0].high_water, row.delivered);
    EXPECT_EQ(Of(snapshot.devices[2 * row.bursts.size()].redirect_errors, Refusal::kRingFull), row.refused)
        << "whoever comes last";
  }
}

TEST(KernelMode, TxLeavesInBulksOf16AndTheRestAtTheEndOfThePoll) {
  std::vector<uint16_t> bursts;
  Scene scene{"kind: tx", "", ", gro: true"};
  scene.frames = 64;
  RunOf(Text(scene), &bursts);
  EXPECT_THAT(bursts, ElementsAre(16, 16, 16, 16));
  bursts.clear();
  scene.frames = 40;
  RunOf(Text(scene), &bursts);
  EXPECT_THAT(bursts, ElementsAre(16, 16, 8));
}

// Private copies.

TEST(KernelMode, CopiesHaveTheKernelsPiecesAndChargesAtEveryFrameSize) {
  struct Row {
    bool frags;
    const char* size;
    uint32_t mtu;
    uint64_t passed, buffers, truesize;
  };
  for (const Row& row : {
           Row{false, "64", 1500, 100, 100, 16 * (5 * 896 + 1152) + 4 * 896},
           Row{false, "300", 1500, 100, 100, 25 * (3 * 1152 + 1664)},
           Row{false, "1472", 1500, 100, 100, 100 * 2304},
           Row{false, "1473", 1500, 100, 100, 100 * 4352},
           Row{false, "1514", 1500, 100, 100, 100 * 4352},
           Row{false, "3520", 3506, 100, 100, 100 * 4352},
           Row{false, "3521", 3506, 0, 200, 100 * (4352 + 64)},  // a tag's bytes: two pieces, and no frags
           Row{true, "3520", 3506, 100, 100, 100 * 4352},
           Row{true, "3521", 3520, 100, 200, 100 * (4352 + 64)},
           Row{true, "9014", 9000, 100, 300, 100 * (4352 + 4096 + 1408)},
           Row{true, "65535", 65535, 100, 1700, 100 * (4352 + 15 * 4096 + 576)},
       }) {
    SCOPED_TRACE(absl::StrCat(row.size, row.frags ? " frags" : ""));
    Scene scene{row.frags ? "kind: pass, frags: true" : "kind: pass"};
    scene.sizes = row.size;
    scene.mtu = row.mtu;
    const DeviceSnapshot a0 = RunOf(Text(scene)).devices[kA0];
    EXPECT_EQ(a0.received, 100u);
    EXPECT_EQ(Verdict(a0, XdpAction::kPass), row.passed);
    EXPECT_EQ(Of(a0.refused, Refusal::kFragsUnsupported), 100 - row.passed);
    EXPECT_EQ(Copies(a0, "headroom"), row.buffers);
    EXPECT_EQ(a0.copied_truesize, row.truesize);
  }
}

TEST(KernelMode, FramesWithLessThan256BytesInFrontAreCopiedAndThoseInPieces) {
  struct Row {
    const char* copy;
    const char* pool;
    uint64_t headroom, chained;
  };
  for (const Row& row : {Row{"", "data_room: 2176", 100, 0}, Row{", copy: {headroom: 256}", "data_room: 2176", 100, 0},
                         Row{", copy: {headroom: 128}", "data_room: 2176", 0, 0},
                         Row{", copy: {headroom: 128}", "data_room: 1024", 0, 100},
                         Row{", copy: {when: never}", "data_room: 2176", 0, 0}}) {
    SCOPED_TRACE(absl::StrCat(row.copy, " ", row.pool));
    Scene scene{"kind: pass", row.copy};
    scene.sizes = "1500";
    scene.pool = row.pool;
    const DeviceSnapshot a0 = RunOf(Text(scene)).devices[kA0];
    EXPECT_EQ(Verdict(a0, XdpAction::kPass), 100u);
    EXPECT_EQ(Copies(a0, "headroom"), row.headroom);
    EXPECT_EQ(Copies(a0, "chained"), row.chained);
    EXPECT_EQ(Copies(a0, "shared") + Copies(a0, "always"), 0u);
  }
}

TEST(KernelMode, HeadroomIsAllOfItForAProgramAndARefusalSaysWhatWasAskedAndWhatThereIs) {
  struct Row {
    const char* program;
    const char* copy;
    const char* fault;  // null: every frame passes
  };
  for (const Row& row :
       {Row{"push: 256", "", nullptr}, Row{"push: 257", "", "program judge: adjust_head, asked 257, available 256"},
        Row{"push: 192", ", copy: {policy: half, headroom: 192}", nullptr},
        Row{"push: 200", ", copy: {policy: half, headroom: 192}",
            "program judge: adjust_head, asked 200, available 192"},
        Row{"push: 250, metadata: 8", "", "program judge: adjust_head, asked 8, available 4"},
        Row{"pull: 51", "", "program judge: adjust_head, asked 51, available 50"},
        Row{"trim: 51", "", "program judge: adjust_tail, asked 51, available 50"},
        Row{"grow: 1600", ", copy: {policy: half, headroom: 192}", nullptr},
        Row{"grow: 1601", ", copy: {policy: half, headroom: 192}",
            "program judge: adjust_tail, asked 1601, available 1600"}}) {
    SCOPED_TRACE(row.program);
    const DeviceSnapshot a0 = RunOf(Text({absl::StrCat("kind: adjust, ", row.program), row.copy})).devices[kA0];
    EXPECT_EQ(Verdict(a0, XdpAction::kPass), row.fault == nullptr ? 100u : 0u);
    EXPECT_EQ(Sum(a0.faults), row.fault == nullptr ? 0u : 100u);
    EXPECT_EQ(a0.fault, row.fault == nullptr ? "" : row.fault);
  }
}

}  // namespace
}  // namespace halfpage
