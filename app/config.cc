#include "app/config.h"

#include <exception>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "app/config_check.h"
#include "app/config_faults.h"
#include "app/config_override.h"
#include "app/config_reader.h"
#include "app/config_yaml.h"

namespace halfpage {
namespace {

// `origin` as for ParseYaml(), `folder` what paths in the text are relative to.
void LoadText(const std::string& text, const std::string& origin, const std::string& folder,
              const std::vector<ConfigOverride>& overrides, LoadedConfig& loaded, FaultList& faults) {
  Config& config = loaded.config;
  ParsedYaml yaml = ParseYaml(text, origin);
  if (!yaml.ok) {
    faults.FaultAt({yaml.line, ""}, "", yaml.message);
    return;
  }
  for (const ConfigOverride& setting : overrides) ApplyOverride(setting, yaml.root, faults);
  ReadConfig(yaml.root, config, faults);
  FillIn(folder, faults, config);
  CheckConfig(config, faults);
  const bool good = faults.empty();
  CheckMemory(config, faults);
  loaded.only_too_large = good && !faults.empty();
}

void LoadFile(const std::string& path, const std::vector<ConfigOverride>& overrides, LoadedConfig& loaded,
              FaultList& faults) {
  const absl::StatusOr<std::string> text = ReadConfigText(path);
  if (!text.ok()) {
    faults.Fault("", absl::StrCat(text.status().message(), ": give the path of a YAML file, or - for standard input"));
    return;
  }
  const bool standard_input = path == "-";
  const auto folder = standard_input ? std::filesystem::current_path() : std::filesystem::path(path).parent_path();
  LoadText(*text, "", folder.string(), overrides, loaded, faults);
}

// `load` into a LoadedConfig whose file is `name`, `shown` in messages.
template <typename Load>
LoadedConfig LoadSafely(const std::string& name, const std::string& shown, const Load& load) {
  LoadedConfig loaded;
  loaded.config.file = name;
  FaultList faults(shown);
  try {
    load(loaded, faults);
  } catch (const std::exception& error) {
    // Memory ran out, or the file system changed under us; nothing in the file itself leads here.
    faults.Fault("", absl::StrCat("cannot be loaded: ", error.what()));
  }
  loaded.faults = faults.TakeFaults();
  loaded.warnings = faults.TakeWarnings();
  return loaded;
}

}  // namespace

const PktmbufPoolConfig* Config::FindPool(const std::string& name) const {
  for (const PktmbufPoolConfig& pool : pools) {
    if (pool.name == name) return &pool;
  }
  return nullptr;
}

const PktmbufPoolConfig* Config::LargestPool(const TrafficConfig& source) const {
  const PktmbufPoolConfig* largest = nullptr;
  for (const std::string& name : source.PoolNames()) {
    const PktmbufPoolConfig* pool = FindPool(name);
    if (pool != nullptr && (largest == nullptr || pool->data_room > largest->data_room)) largest = pool;
  }
  return largest;
}

LoadedConfig LoadConfig(const std::string& path, const std::vector<ConfigOverride>& overrides) {
  return LoadSafely(path, path == "-" ? "<stdin>" : path,
                    [&](LoadedConfig& loaded, FaultList& faults) { LoadFile(path, overrides, loaded, faults); });
}

LoadedConfig LoadConfigText(const std::string& text, const std::string& name,
                            const std::vector<ConfigOverride>& overrides) {
  return LoadSafely(name, name, [&](LoadedConfig& loaded, FaultList& faults) {
    LoadText(text, name, std::filesystem::current_path().string(), overrides, loaded, faults);
  });
}

}  // namespace halfpage
