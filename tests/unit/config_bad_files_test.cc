// The broken configurations of tests/config/bad: each says in its first lines what must be said about it.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "app/config.h"
#include "gtest/gtest.h"
#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

std::vector<std::string> BadFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("tests/config/bad"))) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The texts behind `# expect: `, each of which must be part of a printed fault.
std::vector<std::string> Expectations(const std::string& file) {
  const std::string mark = "# expect: ";
  std::vector<std::string> texts;
  std::istringstream lines(FileText(file));
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, mark.size(), mark) == 0) texts.push_back(line.substr(mark.size()));
  }
  return texts;
}

class ConfigBadFile : public ::testing::TestWithParam<std::string> {};

TEST_P(ConfigBadFile, EveryExpectationIsMetAndNoFaultIsUnexpected) {
  const std::string file = SourcePath("tests/config/bad/" + GetParam() + ".yaml");
  const std::vector<std::string> expected = Expectations(file);
  ASSERT_FALSE(expected.empty()) << file << " has no `# expect:` line";
  const std::vector<std::string> faults = Printed(LoadConfig(file, {}).faults);
  for (const std::string& text : expected) {
    EXPECT_TRUE(std::any_of(faults.begin(), faults.end(),
                            [&text](const std::string& fault) { return fault.find(text) != std::string::npos; }))
        << "nothing says: " << text;
  }
  for (const std::string& fault : faults) {
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(),
                            [&fault](const std::string& text) { return fault.find(text) != std::string::npos; }))
        << "not expected: " << fault;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ConfigBadFile, ::testing::ValuesIn(BadFiles()),
                         [](const auto& file) { return file.param; });

TEST(ConfigBadFiles, CoverTheTenKindsOfFault) {
  const std::vector<std::string> files = BadFiles();
  for (const char* name :
       {"unknown_key", "misspelt_key", "wrong_type", "out_of_range", "broken_reference", "ring_not_power_of_two",
        "mtu_past_policy", "memory_past_budget", "unreadable_capture", "two_faults"}) {
    EXPECT_TRUE(std::binary_search(files.begin(), files.end(), name)) << name;
  }
}

}  // namespace
}  // namespace halfpage
