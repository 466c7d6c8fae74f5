#include "app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halfpage {
namespace {

using testing::HasSubstr;

absl::StatusOr<Options> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "halfpage");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseOptions(static_cast<int>(argv.size()), argv.data());
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  const auto options = Parse(arguments);
  return options.ok() ? "no error" : std::string(options.status().message());
}

const ConfigOverride* Find(const Options& options, const std::string& path) {
  for (const ConfigOverride& each : options.overrides) {
    if (each.path == path) return &each;
  }
  return nullptr;
}

TEST(Options, PlanTakesTheSameFileForItsJson) {
  const auto options = Parse({"--config", "a.yaml", "--plan", "--json", "-"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->action, Options::Action::kPlan);
  EXPECT_EQ(Find(*options, "report.json")->value, "'-'");
  EXPECT_FALSE(Parse({"--plan"}).ok()) << "there is no plan without a configuration";
}

TEST(Options, WithoutDashesAllAreOurs) {
  const auto options = Parse({"--config", "a.yaml", "--duration", "2s", "--count=7"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->config, "a.yaml");
  ASSERT_EQ(options->overrides.size(), 2u);
  EXPECT_EQ(options->overrides[0].path, "measure.duration");
  EXPECT_EQ(options->overrides[0].value, "2s");
  EXPECT_EQ(options->overrides[0].origin, "--duration");
  EXPECT_EQ(options->overrides[1].value, "7");
}

TEST(Options, WhatStandsBeforeTheDashesReplacesTheEalSection) {
  const auto options = Parse({"-l", "0,1", "--no-huge", "-m", "256", "--", "--config", "a.yaml"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(Find(*options, "eal.preset")->value, "none");
  EXPECT_EQ(Find(*options, "eal.args")->value, "['-l', '0,1', '--no-huge', '-m', '256']");
  EXPECT_EQ(Find(*options, "eal.memory")->value, "256MiB");
}

TEST(Options, WithoutHugepagesAndMemoryOptionEalTakes64MiB) {
  EXPECT_EQ(Find(*Parse({"--no-huge", "--", "--config", "a.yaml"}), "eal.memory")->value, "64MiB");
  EXPECT_EQ(Find(*Parse({"--no-huge", "-m128", "--", "--config", "a.yaml"}), "eal.memory")->value, "128MiB");
  EXPECT_EQ(Find(*Parse({"--in-memory", "--", "--config", "a.yaml"}), "eal.memory"), nullptr);
}

TEST(Options, AQuoteInAnEalArgumentStaysOneArgument) {
  EXPECT_EQ(Find(*Parse({"--vdev=it's", "--", "--config", "a"}), "eal.args")->value, "['--vdev=it''s']");
}

TEST(Options, AnUnknownOptionIsNamedWithTheNearestOne) {
  EXPECT_THAT(ErrorOf({"--config", "a", "--duratoin", "2s"}), HasSubstr("`--duratoin`, did you mean `--duration`?"));
  EXPECT_THAT(ErrorOf({"--config", "a", "--stat-period=1"}), HasSubstr("did you mean `--stats-period`?"));
  EXPECT_THAT(ErrorOf({"stray"}), HasSubstr("unknown option `stray`"));
  EXPECT_THAT(ErrorOf({"-x"}), HasSubstr("unknown option `-x`"));
}

TEST(Options, AValueThatIsMissingEmptyOrUnwantedIsTold) {
  EXPECT_THAT(ErrorOf({"--config"}), HasSubstr("--config needs a value: --config FILE"));
  EXPECT_THAT(ErrorOf({"--config="}), HasSubstr("the value is empty"));
  EXPECT_THAT(ErrorOf({"--check=yes", "--config", "a"}), HasSubstr("--check takes no value"));
  EXPECT_THAT(ErrorOf({"--set", "no_equals", "--config", "a"}), HasSubstr("give PATH=VALUE"));
}

TEST(Options, AConfigurationIsNeededForAllButHelpAndVersion) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("--config FILE"));
  EXPECT_THAT(ErrorOf({"--check"}), HasSubstr("--config FILE"));
  EXPECT_EQ(Parse({"--help"})->action, Options::Action::kHelp);
  EXPECT_EQ(Parse({"-v"})->action, Options::Action::kVersion);
}

TEST(Options, SetKeepsEverythingBehindTheFirstEqualsSign) {
  const auto options = Parse({"--config", "a", "--set", "report.json=a=b.json"});
  EXPECT_EQ(Find(*options, "report.json")->value, "a=b.json");
}

TEST(Options, HelpNamesEveryOptionAndEveryExitCode) {
  const std::string help = HelpText();
  for (const char* option :
       {"--config FILE", "--set PATH=VALUE", "--check", "--print-config", "--duration TIME", "--count N",
        "--stats-period TIME", "--json FILE", "--seed N", "-h, --help", "-v, --version"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
  for (const char* code : {"0 good", "1 start-up", "2 bad usage", "3 ledger", "4 an expectation"}) {
    EXPECT_THAT(help, HasSubstr(code));
  }
}

}  // namespace
}  // namespace halfpage
