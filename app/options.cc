#include "app/options.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "app/nearest_name.h"
#include "app/option_table.h"

namespace halfpage {
namespace {

absl::Status Unknown(absl::string_view argument) {
  const absl::string_view name = argument.substr(0, argument.find('='));
  const ForeignOption* foreign = FindForeignOption(absl::StripPrefix(name, "--"));
  if (foreign != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is an option of dpdk-testpmd that is not here: ", foreign->instead));
  }
  std::vector<std::string> names;
  for (const Option& option : AllOptions()) names.push_back(option.name);
  absl::string_view bare = absl::StripPrefix(argument, "--");
  bare = bare.substr(0, bare.find('='));
  const std::optional<std::string> nearest = NearestName(bare, names);
  return absl::InvalidArgumentError(
      absl::StrFormat("unknown option `%s`%s; EAL's options stand before `--`, all of ours are in --help", argument,
                      nearest.has_value() ? absl::StrFormat(", did you mean `--%s`?", *nearest) : ""));
}

// As a YAML text in single quotes.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
}

absl::Status ApplyNumber(const Option& option, const std::string& value, uint32_t least, uint32_t* to) {
  if (absl::SimpleAtoi(value, to) && *to >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s %s: give a number from %d to %d", option.name, value, least, UINT32_MAX));
}

// Those of --xdp-test. Nothing where `option` is none of them.
absl::optional<absl::Status> ApplyXdpTest(const Option& option, const std::string& value, XdpTestOptions* test) {
  const absl::string_view name = option.name;
  const std::pair<const char*, std::string*> texts[] = {{"program", &test->program}, {"pcap-in", &test->pcap_in},
                                                        {"out", &test->out},         {"expect", &test->expect},
                                                        {"maps", &test->maps_file},  {"junit", &test->junit}};
  const std::pair<const char*, std::vector<std::string>*> lists[] = {
      {"packet", &test->packets}, {"map", &test->maps}, {"route", &test->routes}};
  const std::pair<const char*, bool*> switches[] = {
      {"dump-maps", &test->dump_maps}, {"trace", &test->trace}, {"interpret", &test->interpret}};
  for (const auto& [text, to] : texts) {
    if (name == text) return *to = value, absl::OkStatus();
  }
  for (const auto& [list, to] : lists) {
    if (name == list) return to->push_back(value), absl::OkStatus();
  }
  for (const auto& [flag, to] : switches) {
    if (name == flag) return *to = true, absl::OkStatus();
  }
  if (name == "ingress-ifindex") return ApplyNumber(option, value, 0, &test->ingress_ifindex);
  if (name == "rx-queue") return ApplyNumber(option, value, 0, &test->rx_queue);
  if (name == "repeat") return ApplyNumber(option, value, 1, &test->repeat);
  return absl::nullopt;
}

// "64,1450": the segments that testpmd cuts a frame into; here their sum.
absl::StatusOr<std::string> SumOf(const Option& option, const std::string& value) {
  uint64_t sum = 0;
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    uint32_t bytes = 0;
    if (!absl::SimpleAtoi(part, &bytes) || bytes == 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--%s %s: give lengths in bytes, as in 64 or 64,1450", option.name, value));
    }
    sum += bytes;
  }
  return absl::StrCat(sum);
}

absl::StatusOr<std::string> MtuOf(const Option& option, const std::string& value) {
  constexpr uint32_t kHeaderAndFcs = 18;
  uint32_t longest = 0;
  if (absl::SimpleAtoi(value, &longest) && longest > kHeaderAndFcs) return absl::StrCat(longest - kHeaderAndFcs);
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s %s: give the longest frame in bytes, as in 1518", option.name, value));
}

// Those of a launch without --config. Nothing where `option` is none of them.
absl::optional<absl::Status> ApplyLaunch(const Option& option, const std::string& value, Options* options) {
  const absl::string_view name = option.name;
  if (options->launch.Take(name, value)) return absl::OkStatus();
  if (name == "no-flush-rx") return absl::OkStatus();
  if (name == "burst") options->launch.burst = value;
  uint32_t seconds = 0;
  if (name == "stats-period" && absl::SimpleAtoi(value, &seconds)) {
    options->overrides.push_back({option.path, absl::StrCat(seconds, "s"), absl::StrCat("--", name)});
    return absl::OkStatus();
  }
  const bool sum = name == "txpkts";
  if (!sum && name != "max-pkt-len") return absl::nullopt;
  const absl::StatusOr<std::string> converted = sum ? SumOf(option, value) : MtuOf(option, value);
  if (!converted.ok()) return converted.status();
  options->overrides.push_back({option.path, *converted, absl::StrCat("--", name)});
  return absl::OkStatus();
}

absl::Status Apply(const Option& option, const std::string& value, Options* options) {
  const absl::string_view name = option.name;
  const absl::optional<absl::Status> launch = ApplyLaunch(option, value, options);
  if (launch.has_value()) return *launch;
  const absl::optional<absl::Status> test = ApplyXdpTest(option, value, &options->xdp_test);
  if (test.has_value()) return *test;
  const std::pair<const char*, bool*> switches[] = {{"interactive", &options->prompt.interactive},
                                                    {"auto-start", &options->prompt.auto_start},
                                                    {"keep-going", &options->prompt.keep_going}};
  for (const auto& [flag, to] : switches) {
    if (name == flag) return *to = true, absl::OkStatus();
  }
  if (name == "config") {
    options->config = value;
  } else if (name == "metrics") {
    options->prompt.metrics = value;
  } else if (name == "cmdline-file") {
    options->prompt.cmdline_file = value;
  } else if (name == "set") {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--set %s: give PATH=VALUE, for example --set measure.duration=5s", value));
    }
    options->overrides.push_back({value.substr(0, equals), value.substr(equals + 1), "--set"});
  } else if (name == "check") {
    options->action = Options::Action::kCheck;
  } else if (name == "plan") {
    options->action = Options::Action::kPlan;
  } else if (name == "print-config") {
    options->action = Options::Action::kPrintConfig;
  } else if (name == "xdp-test") {
    options->action = Options::Action::kXdpTest;
    options->xdp_test.object = value;
  } else if (name == "man") {
    options->action = Options::Action::kMan;
  } else if (name == "doctor") {
    options->action = Options::Action::kDoctor;
  } else if (name == "remove-stale") {
    options->remove_stale = true;
  } else if (name == "help") {
    options->action = Options::Action::kHelp;
  } else if (name == "version") {
    options->action = Options::Action::kVersion;
  } else {
    // One without a value switches something on.
    if (option.value == nullptr) {
      options->overrides.push_back({option.path, "true", absl::StrCat("--", option.name)});
      return absl::OkStatus();
    }
    // A file's name is a text whatever it looks like in YAML ("-" would begin a list).
    const bool file = absl::string_view(option.value) == "FILE";
    options->overrides.push_back({option.path, file ? Quoted(value) : value, absl::StrCat("--", option.name)});
  }
  return absl::OkStatus();
}

// Tells of the program only.
bool NeedsNothing(Options::Action action) {
  return action == Options::Action::kHelp || action == Options::Action::kVersion || action == Options::Action::kMan;
}

// Without --config: the configuration that the options and EAL's ports make.
absl::Status Launch(Options* options) {
  if (!options->config.empty()) {
    if (options->launch.first_given.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(options->launch.first_given, " says what to forward, and so does --config ", options->config,
                     ": give one of the two, and change single values of the file with --set"));
  }
  absl::StatusOr<std::string> text = LaunchConfig(options->launch);
  if (!text.ok()) return text.status();
  options->launch_text = *std::move(text);
  for (const ConfigOverride& setting : options->overrides) {
    if (setting.origin != "--txpkts" || MakesFrames(options->launch)) continue;
    return absl::InvalidArgumentError(
        "--txpkts is about frames that are made here: add --forward-mode=txonly or flowgen, or --tx-first");
  }
  return absl::OkStatus();
}

absl::Status ParseOurs(const std::vector<std::string>& arguments, Options* options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const Option* option = nullptr;
    std::string value;
    bool has_value = false;
    if (absl::StartsWith(argument, "--")) {
      const size_t equals = argument.find('=');
      has_value = equals != std::string::npos;
      if (has_value) value = argument.substr(equals + 1);
      option = FindOption(absl::string_view(argument).substr(2, has_value ? equals - 2 : std::string::npos));
    } else if (argument.size() == 2 && argument[0] == '-') {
      option = FindOptionByLetter(argument[1]);
    }
    if (option == nullptr) return Unknown(argument);
    if (option->value == nullptr && has_value) {
      return absl::InvalidArgumentError(absl::StrFormat("--%s takes no value", option->name));
    }
    if (option->value != nullptr && !has_value) {
      if (i + 1 == arguments.size()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("--%s needs a value: --%s %s", option->name, option->name, option->value));
      }
      value = arguments[++i];
    }
    if (option->value != nullptr && value.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--%s: the value is empty; it takes %s", option->name, option->value));
    }
    absl::Status status = Apply(*option, value, options);
    if (!status.ok()) return status;
    // Like everywhere else: whoever asks for help gets it, whatever follows.
    if (NeedsNothing(options->action)) break;
  }
  return absl::OkStatus();
}

// EAL arguments of the command line take the place of the whole `eal:` section. Memory is read from them, so that the
// plan of what fits is made with what EAL will get.
void OverrideEal(const std::vector<std::string>& arguments, std::vector<ConfigOverride>* overrides) {
  std::vector<std::string> quoted;
  bool hugepages = true;
  uint64_t megabytes = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    quoted.push_back(Quoted(argument));
    if (argument == "--no-huge") hugepages = false;
    std::string memory;
    if (argument == "-m" && i + 1 < arguments.size()) memory = arguments[i + 1];
    if (argument.size() > 2 && absl::StartsWith(argument, "-m")) memory = argument.substr(2);
    uint64_t number = 0;
    if (absl::SimpleAtoi(memory, &number)) megabytes = number;
  }
  constexpr char kOrigin[] = "command line, before `--`";
  overrides->push_back({"eal.preset", "none", kOrigin});
  overrides->push_back({"eal.lcores", "auto", kOrigin});
  overrides->push_back({"eal.file_prefix", "auto", kOrigin});
  overrides->push_back({"eal.args", absl::StrCat("[", absl::StrJoin(quoted, ", "), "]"), kOrigin});
  // EAL without hugepages and without -m takes 64 MiB (its MEMSIZE_IF_NO_HUGE_PAGE).
  if (megabytes == 0 && !hugepages) megabytes = 64;
  if (megabytes != 0) overrides->push_back({"eal.memory", absl::StrCat(megabytes, "MiB"), kOrigin});
}

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  Options options;
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    options.launch.eal.assign(arguments.begin(), dashes);
    OverrideEal(options.launch.eal, &options.overrides);
    arguments.erase(arguments.begin(), dashes + 1);
  }
  absl::Status status = ParseOurs(arguments, &options);
  if (!status.ok()) return status;
  if (options.remove_stale && options.action != Options::Action::kDoctor) {
    return absl::InvalidArgumentError("--remove-stale belongs to --doctor: halfpage --doctor --remove-stale");
  }
  const bool forwards = options.action != Options::Action::kXdpTest && options.action != Options::Action::kDoctor;
  if (!NeedsNothing(options.action) && forwards) {
    status = Launch(&options);
    if (!status.ok()) return status;
  }
  return options;
}

}  // namespace halfpage
