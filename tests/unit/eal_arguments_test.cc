#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/eal.h"

namespace halfpage {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

std::string ValueOf(const std::vector<std::string>& arguments, const std::string& option) {
  const auto found = std::find(arguments.begin(), arguments.end(), option);
  return found == arguments.end() || found + 1 == arguments.end() ? "" : *(found + 1);
}

TEST(EalArguments, LabNeedsNoHugepagesNicOrRoot) {
  EalConfig config;
  config.memory = 256ull << 20;
  const auto arguments = EalArguments(config, 1, {0, 1});
  EXPECT_THAT(arguments, IsSupersetOf({"--no-huge", "--no-pci"}));
  EXPECT_EQ(ValueOf(arguments, "-m"), "256");
  EXPECT_THAT(arguments, Not(Contains("--in-memory"))) << "EAL refuses both together";
}

TEST(EalArguments, HugepagesNeedNoMount) {
  EalConfig config;
  config.preset = EalConfig::Preset::kHugepages;
  EXPECT_THAT(EalArguments(config, 1, {0}), Contains("--in-memory"));
}

TEST(EalArguments, EachWorkerGetsAnLcoreBesidesTheMainOneOnTheCpusThereAre) {
  EXPECT_EQ(ValueOf(EalArguments({}, 1, {0, 1}), "--lcores"), "0@0,1@1");
  EXPECT_EQ(ValueOf(EalArguments({}, 2, {0, 1}), "--lcores"), "0@0,1@1,2@0");
  EXPECT_EQ(ValueOf(EalArguments({}, 1, {5}), "--lcores"), "0@5,1@5");
  EXPECT_EQ(ValueOf(EalArguments({}, 3, {2, 4, 6, 8}), "--lcores"), "0@2,1@4,2@6,3@8");
}

TEST(EalArguments, WhatTheUserSaysOfLcoresAndPrefixIsKept) {
  for (const std::vector<std::string>& own : std::vector<std::vector<std::string>>{
           {"-l", "0-1"}, {"-l0-1"}, {"-c", "3"}, {"--lcores", "0@0"}, {"--lcores=0@0"}}) {
    EalConfig config;
    config.preset = EalConfig::Preset::kNone;
    config.args = own;
    const auto arguments = EalArguments(config, 1, {0, 1});
    EXPECT_EQ(std::count(arguments.begin(), arguments.end(), "--lcores"), own[0] == "--lcores" ? 1 : 0) << own[0];
  }
  EalConfig config;
  config.args = {"--file-prefix=mine"};
  const auto arguments = EalArguments(config, 1, {0, 1});
  EXPECT_THAT(arguments, Not(Contains("--file-prefix")));
}

TEST(EalArguments, TheFilePrefixIsThisProcesssAloneUnlessTheConfigNamesOne) {
  EXPECT_THAT(ValueOf(EalArguments({}, 1, {0}), "--file-prefix"), StartsWith("halfpage-"));
  EalConfig config;
  config.file_prefix = "shared";
  EXPECT_EQ(ValueOf(EalArguments(config, 1, {0}), "--file-prefix"), "shared");
}

TEST(AllowedCpus, ThereIsAtLeastOne) {
  EXPECT_FALSE(AllowedCpus().empty());
}

}  // namespace
}  // namespace halfpage
