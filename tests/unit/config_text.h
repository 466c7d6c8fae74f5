// Configurations as text for tests: written to a folder of their own, loaded from there.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "app/config.h"

namespace halfpage {

// The folder that has this project's sources, whatever folder the test runs in.
inline std::string SourcePath(const std::string& relative) {
  return std::string(HALFPAGE_SOURCE_ROOT) + "/" + relative;
}

inline std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A new folder, gone at the end of the scope.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halfpage_config_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(File(name), std::ios::binary) << text;
    return File(name);
  }

 private:
  std::string path_;
};

// Loads `text` as a file. Faults of the file name it "test.yaml", without the folder.
inline LoadedConfig LoadText(const std::string& text, const std::vector<ConfigOverride>& overrides = {}) {
  const ScratchFolder folder;
  const std::string path = folder.Write("test.yaml", text);
  LoadedConfig loaded = LoadConfig(path, overrides);
  for (std::vector<ConfigFault>* list : {&loaded.faults, &loaded.warnings}) {
    for (ConfigFault& fault : *list) {
      if (fault.file == path) fault.file = "test.yaml";
    }
  }
  return loaded;
}

inline std::vector<std::string> Printed(const std::vector<ConfigFault>& faults) {
  std::vector<std::string> lines;
  for (const ConfigFault& fault : faults) lines.push_back(fault.ToString());
  return lines;
}

// The sections that a file needs, as lines to put others behind: pool `packets`, pair `front` of `veth0` and `veth1`,
// source `udp` into `veth1`.
inline const std::string kPools = "pools: [{name: packets}]\n";
inline const std::string kVeth = "veth: [{name: front, ends: [{name: veth0}, {name: veth1}]}]\n";
inline const std::string kTraffic = "traffic: [{name: udp, into: veth1}]\n";
inline const std::string kSmallest = "version: 1\n" + kPools + kVeth + kTraffic;

}  // namespace halfpage
