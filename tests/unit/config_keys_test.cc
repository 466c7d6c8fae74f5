// Properties of every key, taken from the table of keys itself, so that a new key is covered by being there.
#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/config.h"
#include "app/config_fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Every key as "pools.page_size", whether it applies or not.
class KeyLister : public FieldVisitor {
 public:
  std::set<std::string> keys;

  void Value(const FieldInfo& info, const FieldValue&) override { Note(info); }
  void List(const FieldInfo& info, const FieldList& list) override {
    Note(info);
    if (list.default_fields) Below(info, list.default_fields);
  }
  void Section(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) override {
    Note(info);
    Below(info, fields);
  }
  void When(bool, absl::string_view, absl::string_view) override {}
  void Always() override {}

 private:
  void Note(const FieldInfo& info) {
    keys.insert(above_ + std::string(info.key));
    EXPECT_FALSE(info.comment.empty()) << above_ << info.key;
  }
  void Below(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) {
    const std::string above = above_;
    above_ += std::string(info.key) + ".";
    fields(*this);
    above_ = above;
  }
  std::string above_;
};

std::set<std::string> AllKeys() {
  KeyLister lister;
  Config config;
  VisitConfig(config, lister);
  return lister.keys;
}

Config Everything() {
  return LoadConfig(SourcePath("tests/config/everything.yaml"), {}).config;
}

struct PrintedKey {
  size_t line;        // from 0
  size_t column;      // where the key begins
  std::string key;    // "page_size"
  std::string where;  // "pools.page_size"
};

// The keys of a printed configuration, by its indentation.
std::vector<PrintedKey> KeysOf(const std::vector<std::string>& lines) {
  std::vector<PrintedKey> keys;
  std::vector<std::pair<size_t, std::string>> above;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t column = lines[i].find_first_not_of(" -");
    if (column == std::string::npos || lines[i][column] == '#') continue;
    const std::string name = lines[i].substr(column, lines[i].find(':') - column);
    while (!above.empty() && above.back().first >= column) above.pop_back();
    std::string where;
    for (const auto& [at, key] : above) where += key + ".";
    keys.push_back({i, column, name, where + name});
    above.emplace_back(column, name);
  }
  return keys;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// One-letter slips of a key: a letter replaced, doubled and, where the key has enough of them, left out or swapped.
std::vector<std::string> Slips(const std::string& key) {
  std::vector<std::string> slips;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] != 'q') slips.push_back(key.substr(0, i) + "q" + key.substr(i + 1));
    slips.push_back(key.substr(0, i) + key[i] + key.substr(i));
    if (key.size() > 3) slips.push_back(key.substr(0, i) + key.substr(i + 1));
    if (i > 0 && key[i] != key[i - 1]) {
      slips.push_back(key.substr(0, i - 1) + key[i] + key[i - 1] + key.substr(i + 1));
    }
  }
  return slips;
}

TEST(ConfigKeys, EveryKeyIsPrintedByAConfigurationThatUsesEverything) {
  std::set<std::string> printed;
  for (const PrintedKey& key : KeysOf(LinesOf(PrintConfig(Everything())))) printed.insert(key.where);
  for (const std::string& key : AllKeys()) {
    if (key == "traffic.sizes.size" || key == "traffic.sizes.weight") continue;  // printed below, where weights differ
    EXPECT_TRUE(printed.contains(key)) << key;
  }
  EXPECT_TRUE(printed.contains("traffic.sizes.size"));
  EXPECT_TRUE(printed.contains("traffic.sizes.weight"));
}

// Misspells the key and looks for what is said about its line.
void ExpectSuggestion(const PrintedKey& key, const std::string& slip, const std::vector<std::string>& faults) {
  const std::string line = "test.yaml:" + std::to_string(key.line + 1) + ": ";
  const std::string suggestion = "unknown key `" + slip + "`, did you mean `" + key.key + "`?";
  // Two keys that differ in one letter may be misspelt alike.
  EXPECT_THAT(faults,
              Contains(AllOf(StartsWith(line), AnyOf(HasSubstr(suggestion), HasSubstr("this key is here twice")))))
      << key.where;
}

TEST(ConfigKeys, OneLetterSlipOfAnyKeyIsRefusedWithTheRightSuggestion) {
  const std::vector<std::string> lines = LinesOf(PrintConfig(Everything()));
  const std::vector<PrintedKey> keys = KeysOf(lines);
  std::set<std::string> tried;
  std::vector<PrintedKey> leaves;  // all of these can be misspelt in one file
  size_t most_slips = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!tried.insert(keys[i].where).second) continue;
    if (i + 1 == keys.size() || keys[i + 1].column <= keys[i].column) {
      leaves.push_back(keys[i]);
      most_slips = std::max(most_slips, Slips(keys[i].key).size());
      continue;
    }
    for (const std::string& slip : Slips(keys[i].key)) {
      std::vector<std::string> broken = lines;
      broken[keys[i].line].replace(keys[i].column, keys[i].key.size(), slip);
      ExpectSuggestion(keys[i], slip, Printed(LoadText(Joined(broken)).faults));
    }
  }
  for (size_t s = 0; s < most_slips; ++s) {
    std::vector<std::string> broken = lines;
    for (const PrintedKey& key : leaves) {
      const std::vector<std::string> slips = Slips(key.key);
      broken[key.line].replace(key.column, key.key.size(), slips[s % slips.size()]);
    }
    const std::vector<std::string> faults = Printed(LoadText(Joined(broken)).faults);
    for (const PrintedKey& key : leaves) {
      const std::vector<std::string> slips = Slips(key.key);
      ExpectSuggestion(key, slips[s % slips.size()], faults);
    }
  }
  EXPECT_EQ(tried, AllKeys());
}

TEST(ConfigKeys, EveryKeyTwiceIsRefused) {
  const std::vector<std::string> lines = LinesOf(PrintConfig(Everything()));
  std::set<std::string> tried;
  for (const PrintedKey& key : KeysOf(lines)) {
    if (!tried.insert(key.where).second) continue;
    std::vector<std::string> broken = lines;
    broken.insert(broken.begin() + key.line, std::string(key.column, ' ') + key.key + ": 1");
    // The first key of a list item keeps its dash in front of both.
    const size_t dash = lines[key.line].rfind('-', key.column);
    if (dash != std::string::npos && dash < key.column) {
      broken[key.line][dash] = '-';
      broken[key.line + 1][dash] = ' ';
    }
    EXPECT_THAT(Printed(LoadText(Joined(broken)).faults),
                Contains(HasSubstr("this key is here twice, first in line " + std::to_string(key.line + 1))))
        << key.where;
  }
}

TEST(ConfigKeys, EveryKeyWithoutAValueIsRefused) {
  const std::vector<std::string> lines = LinesOf(PrintConfig(Everything()));
  std::set<std::string> tried;
  for (const PrintedKey& key : KeysOf(lines)) {
    if (!tried.insert(key.where).second) continue;
    std::vector<std::string> broken = lines;
    broken[key.line] = broken[key.line].substr(0, key.column) + key.key + ": ~";
    // What stood below the key goes with it.
    while (key.line + 1 < broken.size() && broken[key.line + 1].find_first_not_of(" -") != std::string::npos &&
           broken[key.line + 1].find_first_not_of(" -") > key.column) {
      broken.erase(broken.begin() + key.line + 1);
    }
    EXPECT_THAT(Printed(LoadText(Joined(broken)).faults), Contains(HasSubstr("has no value"))) << key.where;
  }
}

// Loads, prints, loads what was printed, prints again.
void ExpectRoundTrip(const std::string& file) {
  const LoadedConfig first = LoadConfig(file, {});
  ASSERT_THAT(Printed(first.faults), IsEmpty());
  const std::string printed = PrintConfig(first.config);
  const LoadedConfig second = LoadText(printed);
  ASSERT_THAT(Printed(second.faults), IsEmpty()) << printed;
  EXPECT_EQ(PrintConfig(second.config), printed);
}

TEST(ConfigPrint, PrintedQuickstartLoadsAgainAndIsEqual) {
  ExpectRoundTrip(SourcePath("conf/quickstart.yaml"));
}
TEST(ConfigPrint, PrintedEverythingLoadsAgainAndIsEqual) {
  ExpectRoundTrip(SourcePath("tests/config/everything.yaml"));
}

TEST(ConfigPrint, SmallestConfigurationPrintsEveryKeyThatApplies) {
  const std::string printed = PrintConfig(LoadText(kSmallest).config);
  EXPECT_THAT(Printed(LoadText(printed).faults), IsEmpty());
  EXPECT_THAT(printed, HasSubstr("\nprograms: []"));
  EXPECT_THAT(printed, HasSubstr("    sizes: 64 "));
  EXPECT_THAT(printed, Not(HasSubstr("    loop:")));
}

TEST(ConfigPrint, LineHasValueMeaningRangeAndDefault) {
  const std::string printed = PrintConfig(LoadText(kSmallest, {{"veth[0].ring", "512", "--rxd"}}).config);
  EXPECT_THAT(printed,
              HasSubstr("    ring: 512                           # usable slots per queue; a power of two, 2 to "
                        "32768; default 256\n"));
}

TEST(ConfigPrint, TextsThatYamlWouldReadOtherwiseKeepTheirMeaning) {
  for (const char* text : {"null", "~", "yes", "5",  "a: b", "#x", "x #y", "- x", "\"", "\\", "'",
                           "",     " ", "*a",  "&a", "!t",   "[",  "{",    "ä",   "@",  "%",  "x:"}) {
    Config config = LoadText(kSmallest).config;
    if (*text != '\0') config.eal.args = {text};
    config.report.json = std::string(text) == " " ? "" : text;
    const LoadedConfig loaded = LoadText(PrintConfig(config));
    ASSERT_THAT(Printed(loaded.faults), IsEmpty()) << text;
    EXPECT_EQ(loaded.config.eal.args, config.eal.args) << text;
    EXPECT_EQ(loaded.config.report.json, config.report.json) << text;
  }
}

}  // namespace
}  // namespace halfpage
