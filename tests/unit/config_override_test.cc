// Values from the command line.
#include <string>
#include <vector>

#include "app/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

LoadedConfig With(const std::string& path, const std::string& value) {
  return LoadText(kSmallest, {{path, value, "--set"}});
}

TEST(ConfigOverride, ReplacesAValueOfTheFile) {
  EXPECT_EQ(LoadText(kSmallest + "measure: {bulk: 8}\n", {{"measure.bulk", "32", "--set"}}).config.measure.bulk, 32u);
}

TEST(ConfigOverride, ReachesIntoListsAndMakesMissingMaps) {
  const LoadedConfig loaded = LoadText(kSmallest, {{"veth[0].ends[1].mtu", "1400", "--set"},
                                                   {"measure.duration", "500ms", "--duration"},
                                                   {"measure.bulk", "4", "--set"},
                                                   {"traffic[0].sizes", "[64, {size: 128, weight: 3}]", "--txpkts"}});
  EXPECT_THAT(Printed(loaded.faults), IsEmpty());
  EXPECT_EQ(loaded.config.veth[0].ends[1].mtu, 1400u);
  EXPECT_EQ(loaded.config.measure.duration, 0.5);
  EXPECT_EQ(loaded.config.measure.bulk, 4u);
  EXPECT_THAT(loaded.config.traffic[0].sizes, ElementsAre(Pair(64u, 1u), Pair(128u, 3u)));
}

TEST(ConfigOverride, ComesBeforeTheChecksSoThatItCanMendAFile) {
  const std::string broken = kSmallest + "measure: {bulk: 1000, bulk: 2000}\n";
  EXPECT_FALSE(LoadText(broken).faults.empty());
  EXPECT_THAT(Printed(LoadText(broken, {{"measure.bulk", "16", "--set"}}).faults), IsEmpty());
}

TEST(ConfigOverride, LastOfTwoWins) {
  EXPECT_EQ(LoadText(kSmallest, {{"measure.bulk", "1", "--set"}, {"measure.bulk", "2", "--set"}}).config.measure.bulk,
            2u);
}

TEST(ConfigOverride, FaultNamesTheOptionAndNoLine) {
  EXPECT_THAT(Printed(With("veth[0].ring", "1000").faults),
              ElementsAre("--set: veth[0].ring: 1000 is not a power of two (nearest 1024)"));
  EXPECT_THAT(Printed(LoadText(kSmallest, {{"traffic[0].burst", "65", "--burst"}}).faults),
              ElementsAre("--burst: traffic[0].burst: `65` is above 64: give 1 to 64"));
}

TEST(ConfigOverride, UnknownPathIsAnUnknownKey) {
  EXPECT_THAT(Printed(With("measure.duratoin", "1s").faults),
              ElementsAre("--set: measure.duratoin: unknown key `duratoin`, did you mean `duration`?"));
  EXPECT_THAT(Printed(With("mesure.duration", "1s").faults),
              ElementsAre("--set: mesure: unknown key `mesure`, did you mean `measure`?"));
}

TEST(ConfigOverride, ListItemThatTheFileLacksIsAFault) {
  EXPECT_THAT(
      Printed(With("pools[1].size", "5").faults),
      ElementsAre(HasSubstr("--set: pools[1].size: `pools` has 1 items, counted from 0: item 1 does not exist")));
  EXPECT_THAT(Printed(With("sinks[0].kind", "count").faults), ElementsAre(HasSubstr("`sinks` is not in the file")));
}

TEST(ConfigOverride, PathThroughAValueIsAFault) {
  EXPECT_THAT(Printed(With("version.minor", "5").faults),
              ElementsAre("--set: version.minor: `version` is not a map of keys, so it has no `minor`"));
}

TEST(ConfigOverride, MalformedPathsAreFaults) {
  for (const char* path :
       {"", ".", "a.", ".a", "a..b", "[0]", "pools[", "pools[]", "pools[x]", "pools[-1]", "pools[0", "pools[0]size",
        "pools[99999999999999999999]", "pools[+0]", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t"}) {
    EXPECT_THAT(Printed(With(path, "1").faults), ElementsAre(HasSubstr("this is not a path"))) << path;
  }
}

TEST(ConfigOverride, ValueThatIsNotYamlIsAFault) {
  EXPECT_THAT(Printed(With("pools[0].size", "[1").faults), ElementsAre(HasSubstr("the value `[1`: not valid YAML")));
  EXPECT_THAT(Printed(With("pools[0].size", std::string(1, '\0')).faults), ElementsAre(HasSubstr("byte 0x00")));
}

TEST(ConfigOverride, EmptyValueIsAKeyWithoutValue) {
  EXPECT_THAT(Printed(With("report.json", "").faults), ElementsAre(HasSubstr("--set: report.json: has no value")));
}

TEST(ConfigOverride, FaultInAnOverriddenSectionNamesTheOptionForAllOfIt) {
  EXPECT_THAT(Printed(With("measure", "{bulk: 0, sed: 1}").faults),
              ElementsAre(HasSubstr("--set: measure.bulk: "), HasSubstr("--set: measure.sed: unknown key")));
}

TEST(ConfigOverride, CrossCheckOfAnOverriddenValueNamesTheOption) {
  EXPECT_THAT(Printed(With("traffic[0].sizes", "9000").faults),
              Contains(HasSubstr("--set: traffic[0].sizes: every frame of 9000 bytes would be refused")));
}

TEST(ConfigOverride, WholeFileStillHasItsOwnFaults) {
  EXPECT_THAT(Printed(LoadText(kSmallest + "reprot: {}\n", {{"measure.bulk", "0", "--set"}}).faults),
              ElementsAre(HasSubstr("--set: measure.bulk"), HasSubstr("test.yaml:5: reprot")));
}

}  // namespace
}  // namespace halfpage
