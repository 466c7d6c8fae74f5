#include "app/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace halfpage {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

bool Names(const std::vector<std::string>& arguments, std::initializer_list<absl::string_view> options) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return std::any_of(options.begin(), options.end(), [&](absl::string_view option) {
      const bool short_option = option.size() == 2;
      return argument == option || (short_option ? absl::StartsWith(argument, option)
                                                 : absl::StartsWith(argument, absl::StrCat(option, "=")));
    });
  });
}

// Lcore 0 controls; workers follow on the other CPUs, and share them once there are more workers than CPUs.
std::string LcoreMap(size_t workers, const std::vector<int>& cpus) {
  std::string map = absl::StrCat("0@", cpus.front());
  for (size_t w = 0; w < workers; ++w) absl::StrAppend(&map, ",", w + 1, "@", cpus[(w + 1) % cpus.size()]);
  return map;
}

void RemoveRuntimeDirectory(const std::string& directory) {
  std::error_code error;
  if (!directory.empty()) std::filesystem::remove_all(directory, error);
}

std::string RuntimeDirectory() {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) return "";
  const char* directory = rte_eal_get_runtime_dir();
  return directory == nullptr ? "" : directory;
}

}  // namespace

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::vector<std::string> EalArguments(const EalConfig& config, size_t workers, const std::vector<int>& cpus,
                                      const std::vector<std::string>& pci) {
  std::vector<std::string> arguments = {"halfpage"};
  std::vector<std::string> buses;
  if (pci.empty()) buses.push_back("--no-pci");
  for (const std::string& address : pci) buses.insert(buses.end(), {"-a", address});
  switch (config.preset) {
    case EalConfig::Preset::kLab:
      arguments.push_back("--no-huge");
      arguments.insert(arguments.end(), buses.begin(), buses.end());
      arguments.insert(arguments.end(), {"-m", absl::StrCat(config.memory / kMiB)});
      break;
    case EalConfig::Preset::kHugepages:
      arguments.push_back("--in-memory");
      arguments.insert(arguments.end(), buses.begin(), buses.end());
      break;
    case EalConfig::Preset::kNone:
      break;
  }
  arguments.insert(arguments.end(), config.args.begin(), config.args.end());
  if (!Names(config.args, {"-l", "-c", "--lcores"})) {
    arguments.insert(arguments.end(), {"--lcores", config.cores == "auto" ? LcoreMap(workers, cpus) : config.cores});
  }
  if (!Names(config.args, {"--file-prefix"})) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    // The number of a process comes again; with the time since boot it does not.
    arguments.insert(arguments.end(),
                     {"--file-prefix",
                      config.file_prefix != "auto"
                          ? config.file_prefix
                          : absl::StrFormat("halfpage-%d-%x", getpid(), now.tv_sec * 1000 + now.tv_nsec / 1000000)});
  }
  return arguments;
}

absl::StatusOr<Eal> Eal::Start(const std::vector<std::string>& arguments) {
  // EAL keeps pointers into its arguments and permutes them: copies that live on.
  static std::vector<std::string> kept;
  kept = arguments;
  std::vector<char*> argv;
  for (std::string& argument : kept) argv.push_back(argument.data());
  argv.push_back(nullptr);
  rte_openlog_stream(stderr);
  if (rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data()) < 0) {
    const int error = rte_errno;
    RemoveRuntimeDirectory(RuntimeDirectory());
    return absl::FailedPreconditionError(absl::StrFormat(
        "EAL does not start (%s); its own words stand above. It was called as: %s\nWithout hugepages, root or NIC, "
        "`eal: {preset: lab}` or `--no-huge --no-pci -m 512` always works",
        rte_strerror(error), absl::StrJoin(arguments, " ")));
  }
  return Eal(RuntimeDirectory());
}

Eal::Eal(Eal&& other) noexcept : runtime_directory_(std::move(other.runtime_directory_)), running_(other.running_) {
  other.running_ = false;
}

Eal::~Eal() {
  if (!running_) return;
  rte_eal_cleanup();
  RemoveRuntimeDirectory(runtime_directory_);
}

}  // namespace halfpage
