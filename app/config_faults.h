// What is wrong with a configuration, collected: checks name a path, the list knows its line.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "app/config.h"
#include "app/config_node.h"

namespace halfpage {

class FaultList {
 public:
  // `file` as it is to be printed.
  explicit FaultList(std::string file) : file_(std::move(file)) {}

  // Remembers where the text at `path` ("veth[1].ring") stands; the last call for a path counts.
  void SetPosition(const std::string& path, const ConfigPosition& position) { positions_[path] = position; }
  // Whether the file or an override says anything at `path`; false for a default.
  bool Given(const std::string& path) const { return positions_.contains(path); }

  // Adds a fault at `path`, with the line of the nearest part of it that the file has.
  void Fault(const std::string& path, std::string message);
  // Adds a fault at `path` whose line is known better than by the path (the second of two equal keys).
  void FaultAt(const ConfigPosition& position, const std::string& path, std::string message);
  void Warn(const std::string& path, std::string message);

  // Whether `path` or anything below it has a fault: what a check reads there may be a default that nobody asked for,
  // so checks that build on it stay silent.
  bool Touches(const std::string& path) const;
  // Whether `path` itself has a fault.
  bool HasFaultAt(const std::string& path) const { return faulty_.contains(path); }
  bool empty() const { return faults_.empty(); }

  // In order of line; of one line, in the order they were found.
  std::vector<ConfigFault> TakeFaults();
  std::vector<ConfigFault> TakeWarnings();

 private:
  ConfigFault Make(const ConfigPosition& position, const std::string& path, std::string message) const;
  ConfigPosition PositionOf(const std::string& path) const;

  const std::string file_;
  std::map<std::string, ConfigPosition> positions_;
  std::set<std::string> faulty_;
  std::vector<ConfigFault> faults_;
  std::vector<ConfigFault> warnings_;
};

}  // namespace halfpage
