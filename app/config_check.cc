#include "app/config_check.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "app/config_sizes.h"
#include "app/config_units.h"
#include "app/copies.h"
#include "app/device.h"

namespace halfpage {
namespace {

// A file that the run reads or writes, by the key that names it.
struct FileUse {
  std::string file;
  std::string path;
};

// The same for two paths exactly if they lead to one regular file, be it there yet or not; empty for devices and pipes,
// which many may write.
std::string FileIdentity(const std::string& file) {
  struct stat there;
  if (stat(file.c_str(), &there) == 0) {
    return S_ISREG(there.st_mode) ? absl::StrCat(there.st_dev, ":", there.st_ino) : "";
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(file, error);
  return std::filesystem::weakly_canonical(error ? std::filesystem::path(file) : absolute, error).string();
}

void CheckWritable(const FileUse& output, FaultList& faults) {
  std::error_code error;
  if (std::filesystem::is_directory(output.file, error)) {
    faults.Fault(output.path, absl::StrCat(Shown(output.file), " is a folder: name a file in it"));
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(output.file).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    faults.Fault(output.path, absl::StrCat("there is no folder ", Shown(folder.string()), ": make it with mkdir -p"));
  }
}

// So that a printed configuration means the same wherever it is put.
std::string AbsolutePath(const std::string& folder, const std::string& file) {
  return std::filesystem::absolute(std::filesystem::path(folder) / file).lexically_normal().string();
}

}  // namespace

std::map<std::string, EndPlace> EndsByName(const Config& config) {
  std::map<std::string, EndPlace> ends;
  for (size_t pair = 0; pair < config.veth.size(); ++pair) {
    for (size_t end = 0; end < 2; ++end) ends.emplace(config.veth[pair].ends[end].name, EndPlace{pair, end});
  }
  return ends;
}

void FillIn(const std::string& folder, const FaultList& faults, Config& config) {
  for (ProgramConfig& program : config.programs) {
    for (size_t i = 0; i < program.rules.size(); ++i) {
      if (program.rules[i].name.empty()) program.rules[i].name = absl::StrCat("rule ", i);
    }
    if (!program.object.empty()) program.object = AbsolutePath(folder, program.object);
  }
  for (size_t p = 0; p < config.pools.size(); ++p) {
    PktmbufPoolConfig& pool = config.pools[p];
    if (pool.page_frag.exact && !faults.Given(absl::StrCat("pools[", p, "].cache"))) pool.cache = 0;
  }
  for (PortConfig& port : config.ports) {
    if (port.pool.empty() && config.pools.size() == 1) port.pool = config.pools[0].name;
  }
  for (TrafficConfig& traffic : config.traffic) {
    if (traffic.pool.empty() && traffic.classes.empty() && config.pools.size() == 1)
      traffic.pool = config.pools[0].name;
    if (!traffic.file.empty()) {
      traffic.file = AbsolutePath(folder, traffic.file);
    }
  }
  if (config.lcores.workers.empty()) {
    WorkerConfig everything;
    for (const Device& device : ListDevices(config)) everything.poll.push_back(device.name);
    for (const TrafficConfig& traffic : config.traffic) everything.generate.push_back(traffic.name);
    for (const SinkConfig& sink : config.sinks) {
      if (sink.held()) everything.read.push_back(sink.name);
    }
    config.lcores.workers.push_back(std::move(everything));
  }
  FillInObjects(config);
  FillInCopies(config);
  ResolveSizes(config);  // last: they depend on sources, pairs and workers
}

void CheckConfig(const Config& config, FaultList& faults) {
  CheckEal(config, faults);
  CheckNames(config, faults);
  CheckWorkers(config, faults);
  CheckRules(config, faults);
  CheckMaps(config, faults);
  CheckObjects(config, faults);
  CheckBuffers(config, faults);
  CheckCopies(config, faults);
  CheckPools(config, faults);
  CheckAttachments(config, faults);
  CheckPorts(config, faults);
  CheckFrames(config, faults);
  CheckOutputs(config, faults);
}

void CheckEal(const Config& config, FaultList& faults) {
  const auto has = [](absl::string_view arg, absl::string_view option) {
    return arg == option || absl::StartsWith(arg, absl::StrCat(option, "=")) ||
           absl::StartsWith(arg, absl::StrCat(option, " "));
  };
  for (size_t i = 0; i < config.eal.args.size(); ++i) {
    const std::string& arg = config.eal.args[i];
    const std::string path = absl::StrCat("eal.args[", i, "]");
    if (config.eal.preset == EalConfig::Preset::kLab && has(arg, "--in-memory")) {
      faults.Fault(
          path,
          "--in-memory asks for hugepages without files, and `preset: lab` runs without hugepages (--no-huge); "
          "EAL refuses the two together: remove the argument, or write `preset: hugepages`");
    } else if (config.eal.preset == EalConfig::Preset::kHugepages && has(arg, "--no-huge")) {
      faults.Fault(path,
                   "--no-huge runs without hugepages, and `preset: hugepages` asks for them (--in-memory); EAL refuses "
                   "the two together: remove the argument, or write `preset: lab`");
    } else if (arg.size() > 1 && arg[0] == '-' && arg[1] != ' ' &&
               absl::StrContains(arg.substr(0, arg.find('=')), ' ')) {
      faults.Fault(path, absl::StrCat(Shown(arg),
                                      " is an option and its value in one item, which EAL does not take "
                                      "apart: make two items of it, or join them with `=`"));
    }
  }
}

void CheckOutputs(const Config& config, FaultList& faults) {
  std::vector<FileUse> inputs;
  if (config.file != "-") inputs.push_back({config.file, "this configuration"});
  for (size_t i = 0; i < config.traffic.size(); ++i) {
    if (!config.traffic[i].file.empty())
      inputs.push_back({config.traffic[i].file, absl::StrCat("traffic[", i, "].file")});
  }
  std::vector<FileUse> outputs;
  for (size_t i = 0; i < config.sinks.size(); ++i) {
    const std::string path = absl::StrCat("sinks[", i, "].file");
    if (!config.sinks[i].file.empty() && !faults.Touches(path)) outputs.push_back({config.sinks[i].file, path});
  }
  if (!config.report.json.empty() && config.report.json != "-" && !faults.Touches("report.json")) {
    outputs.push_back({config.report.json, "report.json"});
  }
  std::map<std::string, std::string> readers;
  std::map<std::string, std::string> writers;
  for (const FileUse& input : inputs) readers.emplace(FileIdentity(input.file), input.path);
  for (const FileUse& output : outputs) {
    const std::string identity = FileIdentity(output.file);
    const auto reader = readers.find(identity);
    const auto [writer, first] = writers.emplace(identity, output.path);
    if (!identity.empty() && reader != readers.end()) {
      faults.Fault(output.path, absl::StrCat(Shown(output.file), " would be written over while it is read as ",
                                             reader->second, ": name another file"));
    } else if (!identity.empty() && !first) {
      faults.Fault(output.path,
                   absl::StrCat(Shown(output.file), " is written by ", writer->second, " too: name a file for each"));
    } else {
      CheckWritable(output, faults);
    }
  }
}

}  // namespace halfpage
