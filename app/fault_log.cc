#include "app/fault_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace halfpage {
namespace {

constexpr double kLongestPause = 60;

std::string Line(const DeviceSnapshot& device, uint64_t aborted, const RefusalCounts& before) {
  std::vector<std::string> causes;
  uint64_t faults = 0;
  for (size_t r = 0; r < kRefusals; ++r) {
    const uint64_t more = device.faults[r] - before[r];
    faults += more;
    if (more != 0) causes.push_back(absl::StrCat(RefusalName(static_cast<Refusal>(r)), " ", more));
  }
  if (aborted > faults) causes.push_back(absl::StrCat("verdict of the program ", aborted - faults));
  return absl::StrCat(device.name, ": program ", device.program, " aborted ", aborted, " frame",
                      aborted == 1 ? "" : "s", ": ", absl::StrJoin(causes, ", "),
                      device.fault.empty() ? "" : absl::StrCat(" (first: ", device.fault, ")"));
}

}  // namespace

std::vector<std::string> FaultLog::Sample(const Snapshot& snapshot, double seconds) {
  std::vector<std::string> lines;
  devices_.resize(snapshot.devices.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    const DeviceSnapshot& device = snapshot.devices[d];
    Told& told = devices_[d];
    const uint64_t aborted = device.verdicts[static_cast<size_t>(XdpAction::kAborted)];
    if (aborted == told.aborted || seconds < told.next) continue;
    lines.push_back(Line(device, aborted - told.aborted, told.faults));
    told.aborted = aborted;
    told.faults = device.faults;
    told.next = seconds + told.pause;
    told.pause = std::min(2 * told.pause, kLongestPause);
  }
  return lines;
}

}  // namespace halfpage
