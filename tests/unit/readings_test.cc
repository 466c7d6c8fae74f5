#include "app/readings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "app/baseline.h"
#include "app/snapshot_json.h"

namespace halfpage {
namespace {

Snapshot TwoEnds() {
  Snapshot snapshot;
  snapshot.at = 3;
  snapshot.traffic.push_back({.name = "mix", .into = "veth0", .generated = 100, .sent = 90});
  for (const char* name : {"veth0", "veth1"}) {
    DeviceSnapshot& device = snapshot.devices.emplace_back();
    device.name = name;
    device.program = "gate";
    device.received = 90;
    device.queues.resize(2);
    device.queues[1].high_water = 7;
    device.hits = {{"rule 0", 5}};
    device.copies = {{"shared", 1, 64}};
  }
  SinkSnapshot& sink = snapshot.sinks.emplace_back();
  sink.name = "socket";
  sink.held = true;
  sink.dropped = {{"rcvbuf_errors", 4}};
  sink.counters = {{"most_held", 9}, {"condensed", 2}};
  PoolSnapshot& pool = snapshot.pools.emplace_back();
  pool.name = "packets";
  pool.page_frag = true;
  pool.buffers_in_use = 11;
  pool.counters = {{"alloc_fast", 21}};
  snapshot.workers.push_back({1, 1000, 10});
  return snapshot;
}

TEST(Readings, NoTwoNumbersHaveTheSameNameAndLabels) {
  Snapshot snapshot = TwoEnds();
  std::set<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> seen;
  ForEachReading(snapshot, [&](const Reading& reading) {
    EXPECT_TRUE(seen.insert({reading.name, reading.labels}).second) << reading.name;
  });
  EXPECT_GT(seen.size(), 200u);
}

TEST(Readings, EveryNameIsOneThatPrometheusTakes) {
  Snapshot snapshot = TwoEnds();
  const auto good = [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_'; };
  ForEachReading(snapshot, [&](const Reading& reading) {
    EXPECT_TRUE(std::all_of(reading.name.begin(), reading.name.end(), good)) << reading.name;
    EXPECT_FALSE(std::string(reading.help).empty()) << reading.name;
    EXPECT_FALSE(absl::EndsWith(reading.name, "_total")) << reading.name;
  });
}

TEST(Readings, OneNameIsOneKindWhereverItIsSaid) {
  Snapshot snapshot = TwoEnds();
  std::map<std::string, Reading::Kind> kinds;
  ForEachReading(snapshot, [&](const Reading& reading) {
    EXPECT_EQ(kinds.emplace(reading.name, reading.kind).first->second, reading.kind) << reading.name;
  });
}

TEST(Baseline, CountersStartFromZeroAndGaugesStay) {
  Snapshot before = TwoEnds();
  Snapshot now = TwoEnds();
  now.at = 5;
  now.devices[1].received = 95;
  now.devices[1].hits[0].second = 8;
  now.pools[0].buffers_in_use = 3;
  const Snapshot since = Since(now, before);
  EXPECT_EQ(since.devices[0].received, 0u);
  EXPECT_EQ(since.devices[1].received, 5u);
  EXPECT_EQ(since.devices[1].hits[0].second, 3u);
  EXPECT_EQ(since.devices[1].queues[1].high_water, 7u);
  EXPECT_EQ(since.sinks[0].counters[0].second, 9u);
  EXPECT_EQ(since.sinks[0].counters[1].second, 0u);
  EXPECT_EQ(since.pools[0].buffers_in_use, 3u);
  EXPECT_EQ(since.at, 5);
}

TEST(Baseline, WhatWasNotThereBeforeCountsFromZero) {
  Snapshot now = TwoEnds();
  now.pools.push_back(now.pools[0]);
  now.pools[1].name = "copy_veth0";
  now.devices[0].program = "other";
  const Snapshot since = Since(now, TwoEnds());
  EXPECT_EQ(since.pools[0].counters[0].second, 0u);
  EXPECT_EQ(since.pools[1].counters[0].second, 21u);
  EXPECT_EQ(since.devices[0].hits[0].second, 5u) << "the rules of another program";
}

// Every number in `json`.
void Collect(const nlohmann::ordered_json& json, std::multiset<uint64_t>& numbers) {
  if (json.is_number_unsigned()) numbers.insert(json.get<uint64_t>());
  if (!json.is_structured()) return;
  for (const nlohmann::ordered_json& each : json) Collect(each, numbers);
}

TEST(SnapshotJson, HasEachNumberOfTheSnapshotThatReadingsNameOnce) {
  Snapshot snapshot = TwoEnds();
  DeviceSnapshot& port = snapshot.devices.emplace_back(snapshot.devices[0]);
  port.name = "wan";
  port.real = true;
  snapshot.traffic[0].classes = {{.pool = "packets"}};
  snapshot.lanes.push_back({1, snapshot.devices[0]});
  snapshot.lanes[0].judged.name = "cpus[0]";
  snapshot.maps.push_back({.name = "outs", .slots = {{.key = 0, .leads_to = "wan"}}});
  snapshot.pools.emplace_back(snapshot.pools[0]).name = "others";
  snapshot.objects.emplace_back().name = "tally";
  // Numbers that nothing else has: each is found in what it was put into, and nowhere twice.
  std::map<uint64_t, std::string> names;
  ForEachReading(snapshot, [&](const Reading& reading) {
    if (reading.count == nullptr) return;
    *reading.count = 1'000'000'000 + 1'000 * names.size();
    std::string name = reading.name;
    for (const auto& [label, value] : reading.labels) absl::StrAppend(&name, " ", label, "=", value);
    names.emplace(*reading.count, name);
  });
  EXPECT_GT(names.size(), 400u);
  std::multiset<uint64_t> numbers;
  Collect(SnapshotJson(snapshot), numbers);
  for (const auto& [number, name] : names) EXPECT_EQ(numbers.count(number), 1u) << name;
}

TEST(SnapshotJson, NamesAreThoseOfTheReport) {
  const nlohmann::ordered_json json = SnapshotJson(TwoEnds());
  EXPECT_EQ(json["devices"][1]["received"], 90);
  EXPECT_EQ(json["devices"][1]["rules"]["rule 0"], 5);
  EXPECT_EQ(json["pools"][0]["counters"]["alloc_fast"], 21);
  EXPECT_EQ(json["sinks"][0]["reader"]["dropped"]["rcvbuf_errors"], 4);
  EXPECT_EQ(json["workers"][0]["idle_rounds"], 10);
}

}  // namespace
}  // namespace halfpage
