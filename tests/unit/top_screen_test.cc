#include "app/top_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace halfpage {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

Snapshot SnapshotOf(size_t devices, size_t pools, size_t workers) {
  Snapshot snapshot;
  snapshot.at = 10;
  for (size_t d = 0; d < devices; ++d) {
    snapshot.devices.emplace_back().name = absl::StrCat("device-number-", d).substr(0, 15);
  }
  for (size_t p = 0; p < pools; ++p) {
    PoolSnapshot& pool = snapshot.pools.emplace_back();
    pool.name = absl::StrCat("pool", p);
    pool.size = 134217728;
    pool.page_frag = true;
  }
  for (size_t w = 0; w < workers; ++w) snapshot.workers.emplace_back().lcore = static_cast<unsigned>(w + 1);
  return snapshot;
}

Snapshot Later(Snapshot snapshot) {
  snapshot.at += 2;
  for (DeviceSnapshot& device : snapshot.devices) {
    device.received = 2'000'000'000;
    device.sent_through = 24'690'000;
    device.verdicts[static_cast<size_t>(XdpAction::kDrop)] = 246;
    device.verdicts[static_cast<size_t>(XdpAction::kRedirect)] = 2'000'000'000;
    device.refused_through[static_cast<size_t>(Refusal::kRingFull)] = 3000;
  }
  for (PoolSnapshot& pool : snapshot.pools) {
    pool.buffers_in_use = 321;
    pool.pages_in_flight = 25;
    pool.bytes_resident = 2 << 20;
  }
  for (WorkerSnapshot& worker : snapshot.workers) {
    worker.rounds = 1000;
    worker.idle_rounds = 250;
  }
  return snapshot;
}

TEST(TopScreen, RatesLossesPagesAndBusyLcoresAreThoseBetweenTheSnapshots) {
  const Snapshot before = SnapshotOf(2, 1, 1);
  const std::string screen = TopScreen("a.yaml", Later(before), before, {}, 80, 24);
  EXPECT_THAT(screen, ContainsRegex("device-number-0 +1.00G +12.3M +123 +0 +0 +0 +1.00G"));
  EXPECT_THAT(screen, ContainsRegex("ring_full +3.00k"));
  EXPECT_THAT(screen, ContainsRegex("pool0 +321 +134217728 +25 +2MiB"));
  EXPECT_THAT(screen, ContainsRegex("lcore 1 +75.0 %"));
  EXPECT_THAT(screen, HasSubstr("halfpage a.yaml: 12 s"));
}

std::vector<std::string> Many(size_t warnings) {
  return std::vector<std::string>(warnings, "3 s: veth0: " + std::string(100, 'x') + " " + std::string(60, 'y'));
}

TEST(TopScreen, ItFitsEveryTerminalWhateverThereIsToShow) {
  for (const size_t rows : {1u, 5u, 10u, 24u, 60u}) {
    for (const size_t columns : {1u, 40u, 80u, 200u}) {
      for (const size_t things : {1u, 5u, 32u, 127u}) {
        const Snapshot before = SnapshotOf(things, things, things);
        const std::vector<std::string> lines = absl::StrSplit(
            TopScreen("conf/a-long-name.yaml", Later(before), before, Many(things), columns, rows), '\n');
        EXPECT_LE(lines.size(), rows) << things;
        for (const std::string& line : lines) EXPECT_LE(line.size(), columns) << line;
      }
    }
  }
}

TEST(TopScreen, AtTheUsualSizeNothingIsCutOffAndWhatIsLeftOutIsSaid) {
  const Snapshot before = SnapshotOf(32, 8, 4);
  const std::string narrow = TopScreen("conf/quickstart.yaml", Later(before), before, {}, 80, 24);
  const std::string wide = TopScreen("conf/quickstart.yaml", Later(before), before, {}, 500, 24);
  EXPECT_EQ(narrow, wide) << "a line is longer than 80 characters";
  EXPECT_THAT(narrow, ContainsRegex("\\.\\.\\. and [0-9]+ lines more"));
  EXPECT_THAT(narrow, HasSubstr("lcore 4"));
}

TEST(TopScreen, WarningsAreShownInFullTheLatestFirstAndLeaveRoomForTheRest) {
  const Snapshot before = SnapshotOf(4, 2, 2);
  const std::string words =
      "5 s: veth0: program gate aborted 2000 frames: verdict of the program 1999, headroom 1 "
      "(first: gate could not push 200 bytes, 128 are there) -- the end";
  const std::string screen = TopScreen("a.yaml", Later(before), before, {"1 s: an older one", words}, 80, 24);
  const std::vector<std::string> lines = absl::StrSplit(screen, '\n');
  EXPECT_EQ(lines[1], "warnings, the latest first");
  std::string told;
  for (size_t i = 2; i < 5; ++i) absl::StrAppend(&told, i == 2 ? "" : " ", absl::StripLeadingAsciiWhitespace(lines[i]));
  EXPECT_EQ(told, words + " 1 s: an older one");
  EXPECT_THAT(screen, HasSubstr("lcore 2"));
  const std::string full = TopScreen("a.yaml", Later(before), before, Many(60), 80, 24);
  for (const char* part : {"device-number-3", "ring_full", "pool1", "lcore 2", "lines more"}) {
    EXPECT_THAT(full, HasSubstr(part));
  }
}

}  // namespace
}  // namespace halfpage
