#include "app/options.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "app/nearest_name.h"

namespace halfpage {
namespace {

struct Option {
  const char* name;
  char letter;        // 0: none
  const char* value;  // what it takes, null for nothing
  const char* path;   // configuration path it sets, null for an action
  const char* help;
};

// testpmd's names where the thing exists there.
constexpr Option kOptions[] = {
    {"config", 0, "FILE", nullptr, "YAML configuration to run; - reads standard input"},
    {"set", 0, "PATH=VALUE", nullptr, "override one value, e.g. veth[0].ring=512 (repeatable)"},
    {"check", 0, nullptr, nullptr, "check the configuration as a run would, then stop: 0 good, 2 not"},
    {"plan", 0, nullptr, nullptr,
     "print what memory the pools will take, without taking any: 0 it fits, 2 it does not"},
    {"print-config", 0, nullptr, nullptr, "print the effective configuration with every default, as a valid file"},
    {"interactive", 'i', nullptr, nullptr, "read commands from standard input; `help` there lists them"},
    {"auto-start", 0, nullptr, nullptr, "with -i or --cmdline-file: forward from the beginning"},
    {"cmdline-file", 0, "FILE", nullptr, "run the commands in FILE first; the first that fails ends the run"},
    {"keep-going", 0, nullptr, nullptr, "go on after a command of a file or a pipe that failed"},
    {"metrics", 0, "[ADDRESS:]PORT", nullptr, "serve Prometheus at http://ADDRESS:PORT/metrics; loopback unless told"},
    {"duration", 0, "TIME", "measure.duration", "stop after this long: 10s, 500ms; 0: until the sources end"},
    {"count", 0, "N", "measure.count", "stop after N frames over all sources; 0: no limit"},
    {"stats-period", 0, "TIME", "measure.stats_period", "print statistics this often; 0: never"},
    {"burst", 0, "N", "measure.budget", "frames per receive call, 1 to 64"},
    {"bulk", 0, "N", "measure.bulk", "frames per XDP_TX or redirect flush, 1 to 64"},
    {"seed", 0, "N", "measure.seed", "of everything random in the traffic"},
    {"total-num-mbufs", 0, "N", "pools[*].size", "buffers of each pool; auto: what can be held at once"},
    {"mbuf-size", 0, "BYTES", "pools[*].data_room", "room of each buffer, headroom of 128 included"},
    {"mbcache", 0, "N", "pools[*].cache", "per-lcore mempool cache of each pool, 0 to 512"},
    {"json", 0, "FILE", "report.json",
     "write the final report (with --plan, the plan) as JSON; - puts it on standard output in place of the text"},
    {"xdp-test", 0, "FILE", nullptr,
     "run an XDP object over packets, without EAL or privileges: 0 good, 4 a verdict is not the expected one"},
    {"program", 0, "NAME", nullptr, "of the object's programs the one to run; may be left out where there is one"},
    {"pcap-in", 0, "FILE", nullptr, "capture to test with; - reads standard input"},
    {"packet", 0, "HEX", nullptr, "one packet to test with, as hexadecimal digits (repeatable)"},
    {"out", 0, "FOLDER", nullptr, "write pass.pcap, tx.pcap and redirect.pcap there"},
    {"expect", 0, "FILE", nullptr, "lines of WHICH: VERDICT, WHICH a number, 4-9, any, or a filter such as udp port 9"},
    {"map", 0, "NAME:KEY=VALUE", nullptr, "put a value into a map of the object, e.g. filter_ports:9=1 (repeatable)"},
    {"maps", 0, "FILE", nullptr, "a file of such lines"},
    {"route", 0, "ROUTE", nullptr, "for bpf_fib_lookup(), e.g. '10.0.0.0/8 dev 3 dst 02:00:00:00:00:02' (repeatable)"},
    {"ingress-ifindex", 0, "N", nullptr, "interface that the test's packets came in by; 1"},
    {"rx-queue", 0, "N", nullptr, "receive queue that they came in by; 0"},
    {"repeat", 0, "N", nullptr, "run each packet so often, for its time; 1"},
    {"dump-maps", 0, nullptr, nullptr, "print the maps after the test"},
    {"trace", 0, nullptr, nullptr, "print each instruction and the registers before it, on standard error"},
    {"interpret", 0, nullptr, nullptr, "do not compile the program"},
    {"junit", 0, "FILE", nullptr, "write a JUnit report of the test; - is standard output"},
    {"help", 'h', nullptr, nullptr, "print this and stop"},
    {"version", 'v', nullptr, nullptr, "print the version and stop"},
};

const Option* FindOption(absl::string_view name) {
  for (const Option& option : kOptions) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

const Option* FindLetter(char letter) {
  for (const Option& option : kOptions) {
    if (option.letter != 0 && option.letter == letter) return &option;
  }
  return nullptr;
}

absl::Status Unknown(absl::string_view argument) {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.push_back(option.name);
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

absl::Status Apply(const Option& option, const std::string& value, Options* options) {
  const absl::string_view name = option.name;
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
  } else if (name == "help") {
    options->action = Options::Action::kHelp;
  } else if (name == "version") {
    options->action = Options::Action::kVersion;
  } else {
    // A file's name is a text whatever it looks like in YAML ("-" would begin a list).
    const bool file = absl::string_view(option.value) == "FILE";
    options->overrides.push_back({option.path, file ? Quoted(value) : value, absl::StrCat("--", option.name)});
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
      option = FindLetter(argument[1]);
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
    if (options->action == Options::Action::kHelp || options->action == Options::Action::kVersion) break;
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
    OverrideEal({arguments.begin(), dashes}, &options.overrides);
    arguments.erase(arguments.begin(), dashes + 1);
  }
  absl::Status status = ParseOurs(arguments, &options);
  if (!status.ok()) return status;
  const bool needs_config = options.action != Options::Action::kHelp && options.action != Options::Action::kVersion &&
                            options.action != Options::Action::kXdpTest;
  if (needs_config && options.config.empty()) {
    return absl::InvalidArgumentError(
        "no configuration: give one with --config FILE, for example conf/quickstart.yaml");
  }
  return options;
}

std::string HelpText() {
  std::string text =
      "usage: halfpage --config FILE [options]\n"
      "       halfpage [EAL options] -- --config FILE [options]\n"
      "       halfpage --xdp-test OBJECT.o --pcap-in FILE [options]\n"
      "\n"
      "Forwards packets through emulated veth pairs and XDP programs, out of buffers carved from shared pages.\n"
      "Without `--`, EAL is started with what the file's `eal:` section says.\n"
      "\n"
      "options:\n";
  for (const Option& option : kOptions) {
    std::string left = option.letter != 0 ? absl::StrFormat("  -%c, --%s", option.letter, option.name)
                                          : absl::StrFormat("  --%s", option.name);
    if (option.value != nullptr) absl::StrAppend(&left, " ", option.value);
    absl::StrAppendFormat(&text, "%-28s %s\n", left, option.help);
  }
  absl::StrAppend(&text,
                  "\n"
                  "exit codes: 0 good, 1 start-up or run failed, 2 bad usage or configuration,\n"
                  "            3 ledger not balanced or buffers leaked, 4 an expectation was missed\n");
  return text;
}

}  // namespace halfpage
