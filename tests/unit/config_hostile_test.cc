// Files that mean harm or are no files at all: never a crash, a hang, or an exception.
#include <sys/stat.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/config.h"
#include "app/config_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> FaultLines(const std::string& text) {
  return Printed(LoadText(text).faults);
}

std::string Times(size_t n, const std::string& text) {
  std::string all;
  all.reserve(n * text.size());
  for (size_t i = 0; i < n; ++i) all += text;
  return all;
}

TEST(ConfigHostile, EmptyFilesSayHowToBegin) {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "--- ~\n", "\xef\xbb\xbf"}) {
    EXPECT_THAT(FaultLines(text), ElementsAre(HasSubstr("the file is empty: begin with `version: 1`"))) << text;
  }
}

TEST(ConfigHostile, VersionAloneLacksTheThreeSectionsThatAreNeeded) {
  EXPECT_THAT(FaultLines("version: 1\n"),
              ElementsAre(HasSubstr("pools: missing"), HasSubstr("veth: missing"), HasSubstr("traffic: missing")));
}

TEST(ConfigHostile, AnythingButAMapAtTheTopIsOneFault) {
  for (const char* text : {"5", "[]", "- version: 1\n", "\"version: 1\"", "version"}) {
    EXPECT_THAT(FaultLines(text), ElementsAre(HasSubstr("must be a map of keys"))) << text;
  }
}

TEST(ConfigHostile, SyntaxErrorsAreOneFaultWithTheirLine) {
  EXPECT_THAT(FaultLines("version: 1\npools: [\n"), ElementsAre(HasSubstr("test.yaml:2: not valid YAML: ")));
  EXPECT_THAT(FaultLines("version: 1\n\tpools: 1\n"), ElementsAre(HasSubstr("test.yaml:2: not valid YAML: ")));
  EXPECT_THAT(FaultLines("a: *nowhere\n"), ElementsAre(HasSubstr("test.yaml:1: not valid YAML: ")));
  EXPECT_THAT(FaultLines("%YAML 9.9\n---\na: 1\n"), SizeIs(1));
}

TEST(ConfigHostile, QuoteThatIsNeverClosedIsFoundWhereItBegins) {
  for (const char* text :
       {"a: 1\nb: \"x", "a: 1\nb: \"x\n", "a: 1\nb: 'x\n\nc: 1\n", "a: 1\nb: \"x\\\"\n", "a: 1\nb: 'x''\n"}) {
    EXPECT_THAT(FaultLines(text), ElementsAre(HasSubstr("test.yaml:2: not valid YAML: a quote that begins here")))
        << text;
  }
}

TEST(ConfigHostile, EndMarksAndStartMarksAreNoFaults) {
  for (const std::string& text : {kSmallest + "...\n", kSmallest + "...\n...\n", "---\n" + kSmallest,
                                  "%YAML 1.2\n---\n" + kSmallest, "\xef\xbb\xbf" + kSmallest}) {
    EXPECT_THAT(FaultLines(text), IsEmpty()) << text;
  }
  EXPECT_EQ(LoadText(kSmallest + "report:\n  json: |-\n    x y\n").config.report.json, "x y");
  EXPECT_EQ(LoadText(kSmallest + "report:\n  json: >-\n    x\n    y").config.report.json, "x y");
}

TEST(ConfigHostile, NestingIsBounded) {
  for (const char* open : {"[", "{a: ", "- ", "? ", "a: [", "[{a: "}) {
    EXPECT_THAT(FaultLines("a: " + Times(20, open)), SizeIs(1)) << open;
    EXPECT_THAT(FaultLines(Times(100'000, open)), SizeIs(1)) << open;
  }
  EXPECT_THAT(FaultLines(Times(20, "[") + Times(20, "]")), ElementsAre(HasSubstr("nested deeper than 16 levels")));
}

TEST(ConfigHostile, AliasBombsAreBounded) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [", Times(10, absl::StrCat("*a", i - 1, ", ")), "]\n");
  }
  EXPECT_THAT(FaultLines(bomb), ElementsAre(HasSubstr("more than 50000 values: split the configuration")));
  EXPECT_THAT(FaultLines("a: &a [*a]\n"), SizeIs(1));
  EXPECT_THAT(FaultLines("&a a: &b {*a : *b}\n"), SizeIs(1));
  // A chain: each level is one deeper than the one before.
  std::string chain = "c0: &c0 []\n";
  for (int i = 1; i < 5000; ++i) {
    absl::StrAppend(&chain, "c", i, ": &c", i, " [*c", i - 1, "]\n");
  }
  EXPECT_THAT(FaultLines(chain), ElementsAre(HasSubstr("more than 50000 values")));
}

TEST(ConfigHostile, SizeIsBounded) {
  EXPECT_THAT(FaultLines(kSmallest + "#" + Times(kMaxConfigBytes, "x")), ElementsAre(HasSubstr("has more than 1MiB")));
  EXPECT_THAT(Printed(LoadConfig("/dev/zero", {}).faults), ElementsAre(HasSubstr("/dev/zero: has more than 1MiB")));
}

TEST(ConfigHostile, LargestFileOfEachKindIsJudgedInAFewSeconds) {
  const size_t most = kMaxConfigBytes - 1000;
  const std::vector<std::string> texts = {
      kSmallest + "x: " + Times(most, "y"),
      kSmallest + Times(most, "y") + ": 1\n",
      kSmallest + "x: \"" + Times(most / 4, "\\x1b") + "\"\n",
      kSmallest + "x: [" + Times(24'000, "1, ") + "]\n",
      kSmallest + Times(24'000, "ring: 1\n"),
      kSmallest + Times(most / 2, "- "),
      kSmallest + Times(most / 2, ": "),
      kSmallest + Times(most / 2, "&a "),
      kSmallest + Times(most / 2, "!a "),
      kSmallest + Times(most, " "),
      kSmallest + Times(most, "\n"),
      kSmallest + Times(most / 2, "#\n"),
      kSmallest + "x: |\n" + Times(most / 3, " y\n"),
      kSmallest + "x: 'y" + Times(most / 2, "''"),
      kSmallest + Times(most / 4, "---\n"),
      kSmallest + Times(most / 4, "%a\n"),
      kSmallest + "lcores: {workers: [{poll: [" + Times(20'000, "veth0, ") + "]}]}\n",
      "version: 1\n" + kPools + kVeth + "traffic: [" + Times(10'000, "{name: t, into: veth1}, ") + "]\n",
  };
  for (const std::string& text : texts) {
    const auto begin = std::chrono::steady_clock::now();
    LoadText(text);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << text.substr(0, 200);
  }
}

TEST(ConfigHostile, BinaryIsNamedByItsByteAndLine) {
  EXPECT_THAT(FaultLines(std::string("version: 1\npools: \0\n", 20)),
              ElementsAre(HasSubstr("test.yaml:2: byte 0x00: this is not a text file in UTF-8")));
  EXPECT_THAT(FaultLines("version: \x1b[31m1\n"), ElementsAre(HasSubstr("test.yaml:1: byte 0x1b")));
  EXPECT_THAT(FaultLines("\xff\xfe"
                         "a: 1"),
              ElementsAre(HasSubstr("this is UTF-16: save the file as UTF-8")));
  EXPECT_THAT(Printed(LoadConfig("/proc/self/exe", {}).faults), SizeIs(1));
}

TEST(ConfigHostile, ControlCharactersOfAFileNeverReachTheTerminal) {
  for (const std::string& line :
       {std::string("\"\\x1b[31m\": 1"), std::string("measure: {bulk: \"\\x1b[31m\"}"),
        std::string("measure: {\"a\\nb\": 1, \"a\\nb\": 1}"), std::string("report: {json: \"a\\0b\"}")}) {
    const std::vector<std::string> faults = FaultLines(kSmallest + line + "\n");
    EXPECT_THAT(faults, Not(IsEmpty())) << line;
    for (const std::string& fault : faults) {
      for (const char c : fault) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << fault;
    }
  }
}

TEST(ConfigHostile, LongValuesAreCutInMessages) {
  for (const std::string& fault : FaultLines(kSmallest + "measure: {bulk: " + Times(100'000, "9") + "}\n")) {
    EXPECT_LT(fault.size(), 300u);
  }
}

TEST(ConfigHostile, TagsAndOddKeysAreRefused) {
  EXPECT_THAT(FaultLines("version: !!python/object 1\n"), ElementsAre(HasSubstr("the tag ")));
  EXPECT_THAT(FaultLines("? [a]\n: 1\n"), ElementsAre(HasSubstr("a key must be a plain word")));
  EXPECT_THAT(FaultLines("~: 1\n"), ElementsAre(HasSubstr("a key must be a plain word")));
  EXPECT_THAT(FaultLines("version: 1\n---\nversion: 1\n"), ElementsAre(HasSubstr("test.yaml:2: a second document")));
}

TEST(ConfigHostile, CaptureThatIsAPipeOrAFolderDoesNotHang) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo(folder.File("pipe").c_str(), 0600), 0);
  for (const std::string& file : {folder.File("pipe"), folder.File("")}) {
    EXPECT_THAT(FaultLines("version: 1\n" + kPools + kVeth +
                           "traffic: [{name: t, source: capture, into: veth1, file: " + file + "}]\n"),
                ElementsAre(HasSubstr("traffic[0].file: ")));
  }
}

// Every value of a good file replaced by what a value can wrongly be, in turn.
TEST(ConfigHostile, NoValueCrashesAnyKey) {
  const std::string good = FileText(SourcePath("tests/config/everything.yaml"));
  const std::vector<std::string> values = {"~",    "[]",    "{}",      "-1",   "1.5",     "12abc",
                                           "\"\"", "1e999", "0x",      "[[]]", "{a: {}}", "18446744073709551616",
                                           "-",    "auto",  "\"\\0\"", "[~]",  "*x"};
  std::vector<std::pair<size_t, size_t>> places;  // of values
  for (size_t colon = good.find(": "); colon != std::string::npos; colon = good.find(": ", colon + 1)) {
    places.emplace_back(colon + 2, good.find_first_of(",}\n", colon));
  }
  // Alone, so that what is judged when nothing else is wrong meets it; then every value at every place, many at a time.
  size_t turn = 0;
  for (const auto& [begin, end] : places) {
    for (int i = 0; i < 6; ++i) LoadText(good.substr(0, begin) + values[turn++ % values.size()] + good.substr(end));
  }
  constexpr size_t kStride = 8;
  for (const std::string& value : values) {
    for (size_t first = 0; first < kStride; ++first) {
      std::string text = good;
      size_t i = places.size();
      while (i-- > 0) {  // from the end, for places before it to stay
        if (i % kStride == first) text.replace(places[i].first, places[i].second - places[i].first, value);
      }
      LoadText(text);
    }
  }
}

TEST(ConfigHostile, RandomDamageNeverCrashes) {
  const std::string good = FileText(SourcePath("tests/config/everything.yaml"));
  const std::string marks = "[]{}:,-#&*!|>'\"%@`?~ \n\t0a";
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string text = good;
    for (int change = random() % 8; change >= 0; --change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = marks[random() % marks.size()];
          break;
        case 1:
          text.insert(at, 1, marks[random() % marks.size()]);
          break;
        case 2:
          text.erase(at, random() % 40);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 60));
      }
    }
    const LoadedConfig loaded = LoadText(text);
    if (loaded.faults.empty()) PrintConfig(loaded.config);
  }
}

}  // namespace
}  // namespace halfpage
