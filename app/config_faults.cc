#include "app/config_faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace halfpage {
namespace {

std::vector<ConfigFault> SortedByLine(std::vector<ConfigFault> faults) {
  std::stable_sort(faults.begin(), faults.end(),
                   [](const ConfigFault& a, const ConfigFault& b) { return a.line < b.line; });
  return faults;
}

}  // namespace

std::string ConfigFault::ToString() const {
  std::string text = file;
  if (line > 0) absl::StrAppend(&text, ":", line);
  if (!path.empty()) absl::StrAppend(&text, ": ", path);
  return absl::StrCat(text, ": ", message);
}

ConfigPosition FaultList::PositionOf(const std::string& path) const {
  // "veth[1].ends[0].mtu", "veth[1].ends[0]", "veth[1].ends", "veth[1]", "veth", "".
  std::string known = path;
  for (;;) {
    const auto found = positions_.find(known);
    if (found != positions_.end()) return found->second;
    if (known.empty()) return {};
    const size_t cut = known.find_last_of(".[");
    known.resize(cut == std::string::npos ? 0 : cut);
  }
}

ConfigFault FaultList::Make(const ConfigPosition& position, const std::string& path, std::string message) const {
  return {position.origin.empty() ? file_ : position.origin, position.line, path, std::move(message)};
}

void FaultList::Fault(const std::string& path, std::string message) {
  FaultAt(PositionOf(path), path, std::move(message));
}

void FaultList::FaultAt(const ConfigPosition& position, const std::string& path, std::string message) {
  faulty_.insert(path);
  faults_.push_back(Make(position, path, std::move(message)));
}

void FaultList::Warn(const std::string& path, std::string message) {
  warnings_.push_back(Make(PositionOf(path), path, std::move(message)));
}

bool FaultList::Touches(const std::string& path) const {
  if (faulty_.contains(path)) return true;
  for (const char separator : {'.', '['}) {
    const std::string below = path + separator;
    const auto first = faulty_.lower_bound(below);
    if (first != faulty_.end() && absl::StartsWith(*first, below)) return true;
  }
  return false;
}

std::vector<ConfigFault> FaultList::TakeFaults() {
  return SortedByLine(std::move(faults_));
}
std::vector<ConfigFault> FaultList::TakeWarnings() {
  return SortedByLine(std::move(warnings_));
}

}  // namespace halfpage
