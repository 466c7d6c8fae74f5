#include "xdp_emul/device_string.h"

#include <cctype>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace halfpage {
namespace {

// "0000:03:00.0" or "03:00.0".
bool IsPciAddress(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, ':');
  if (parts.size() < 2 || parts.size() > 3 || !absl::StrContains(parts.back(), '.')) return false;
  for (const char c : name) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0 && c != ':' && c != '.') return false;
  }
  return true;
}

}  // namespace

uint64_t DeviceString::Number(const std::string& key, uint64_t otherwise) const {
  const auto found = arguments.find(key);
  uint64_t number = 0;
  return found != arguments.end() && absl::SimpleAtoi(found->second, &number) ? number : otherwise;
}

std::string DeviceString::Text(const std::string& key) const {
  const auto found = arguments.find(key);
  return found == arguments.end() ? "" : found->second;
}

DeviceString ParseDeviceString(absl::string_view text) {
  DeviceString device;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  device.name = parts[0];
  device.pci = IsPciAddress(device.name);
  if (!device.pci && (absl::StartsWith(device.name, "net_") || absl::StartsWith(device.name, "eth_"))) {
    size_t end = device.name.size();
    while (end > 0 && std::isdigit(static_cast<unsigned char>(device.name[end - 1])) != 0) --end;
    device.driver = device.name.substr(0, end);
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::string> pair = absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    device.arguments[pair[0]] = pair.size() == 2 ? pair[1] : "";
  }
  return device;
}

}  // namespace halfpage
