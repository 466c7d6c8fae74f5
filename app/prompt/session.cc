#include "app/prompt/session.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/baseline.h"

namespace halfpage {

Snapshot Session::Read() const {
  return Since(topology.Read(), cleared);
}

absl::StatusOr<DeviceIndex> Session::Device(const std::string& word) const {
  std::vector<std::string> known;
  for (DeviceIndex device = 0; device < topology.devices().size(); ++device) {
    const halfpage::Device& each = topology.devices()[device];
    if (word == each.name || word == absl::StrCat(each.port)) return device;
    known.push_back(absl::StrCat(each.port, " (", each.name, ")"));
  }
  return absl::NotFoundError(
      absl::StrFormat("there is no port %s; there are %s", word, known.empty() ? "none" : absl::StrJoin(known, ", ")));
}

absl::StatusOr<std::vector<DeviceIndex>> Session::Devices(const std::string& word) const {
  std::vector<DeviceIndex> devices;
  if (word == "all") {
    for (DeviceIndex device = 0; device < topology.devices().size(); ++device) devices.push_back(device);
    return devices;
  }
  const auto device = Device(word);
  if (!device.ok()) return device.status();
  devices.push_back(*device);
  return devices;
}

absl::StatusOr<uint64_t> NumberIn(const std::string& word, const char* what, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(word, &number) && number >= least && number <= most) return number;
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s is no number from %u to %u", word, what, least, most));
}

}  // namespace halfpage
