// Frames: how long they may be on each way, and how long the sources' frames are.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "app/capture.h"
#include "app/config_check.h"
#include "app/config_sizes.h"
#include "app/config_units.h"
#include "app/device.h"
#include "app/frame_limits.h"
#include "app/generated_frames.h"
#include "xdp_emul/gso_limits.h"

namespace halfpage {
namespace {

constexpr uint32_t kMostDataRoom = 65535;

// The pool that a source's longest frames come from.
// The longest frame that can cross a pair, either way, or leave through a port, and how that comes about.
struct FrameLimit {
  uint32_t bytes = 0;
  std::string text;
};

FrameLimit LimitOf(const std::vector<Device>& devices, DeviceIndex into) {
  const Device& sender = devices[into];
  const Device& receiver = sender.peer == kNoDevice ? sender : devices[sender.peer];
  const Device& first = sender.peer < into ? receiver : sender;
  const Device& second = sender.peer < into ? sender : receiver;
  const Device& smaller = second.mtu < first.mtu ? second : first;
  const uint32_t bytes = smaller.mtu + kEthernetHeader + kVlanTag;
  return {bytes, absl::StrCat(bytes, " (mtu ", smaller.mtu, " of `", smaller.name, "` + ", kEthernetHeader,
                              " Ethernet + ", kVlanTag, " VLAN)")};
}

void CheckSizes(const TrafficConfig& traffic, const FrameLimit& limit, const std::string& path, FaultList& faults) {
  if (traffic.gso != 0) {
    // Longer frames are segmented where they must be; the segments have to fit.
    const uint32_t most = limit.bytes - kVlanTag - kGsoHeaderBytes;
    if (traffic.gso <= most) return;
    faults.Fault(path + ".gso", absl::StrCat("segments of ", traffic.gso, " bytes of payload and ", kGsoHeaderBytes,
                                             " of headers would be refused: the longest frame that crosses here has ",
                                             limit.text, "; write gso: ", most, " or less"));
    return;
  }
  std::vector<std::string> refused;
  uint32_t longest = 0;
  for (const auto& [size, weight] : traffic.sizes) {
    if (size <= limit.bytes) continue;
    refused.push_back(absl::StrCat(size));
    longest = std::max(longest, size);
  }
  if (refused.empty()) return;
  faults.Fault(path + ".sizes", absl::StrCat("every frame of ", absl::StrJoin(refused, ", "),
                                             " bytes would be refused: the longest that "
                                             "crosses this pair has ",
                                             limit.text, "; use shorter frames, or mtu: ",
                                             longest - kEthernetHeader - kVlanTag, " on both ends"));
}

// What the generator itself could not make ready: too many positions of its cycle, too many bytes of headers.
void CheckRecipe(const TrafficConfig& traffic, const std::string& path, FaultList& faults) {
  if (faults.Touches(path)) return;
  const absl::Status status = GeneratedFrames::Check(traffic);
  if (!status.ok()) faults.Fault(path + ".sizes", std::string(status.message()));
}

// A pool with fewer buffers than one frame has segments could never send it.
void CheckPoolHolds(const Config& config, const TrafficConfig& traffic, uint32_t longest, const std::string& path,
                    FaultList& faults) {
  if (faults.Touches(path) || faults.Touches("pools")) return;
  const PktmbufPoolConfig* pool = config.LargestPool(traffic);
  if (pool == nullptr) return;
  const uint32_t room = LargestRoomOf(config, traffic);
  const uint32_t first = room - kMbufHeadroom;
  const uint32_t segments = longest <= first ? 1 : 2 + (longest - first - 1) / room;
  if (segments <= pool->size) return;
  faults.Fault(
      absl::StrCat("pools[", pool - config.pools.data(), "].size"),
      absl::StrCat("a frame of ", longest, " bytes of `", traffic.name, "` takes ", segments, " buffers of data_room ",
                   room, ", the pool has ", pool->size, ": write size: ", segments, " or more, or a larger data_room"));
}

void WarnOfSkipped(const Capture& capture, const std::string& path, FaultList& faults) {
  std::vector<std::string> reasons;
  for (const auto& [reason, records] : capture.skipped()) {
    if (records > 0) reasons.push_back(absl::StrCat(reason, " ", records));
  }
  if (reasons.empty()) return;
  faults.Warn(path, absl::StrCat("not every record is used as it was on the wire: ", absl::StrJoin(reasons, ", "),
                                 capture.damage().empty() ? "" : absl::StrCat(" (", capture.damage(), ")"), "; ",
                                 capture.size(), " frames are"));
}

void WarnOfLong(const Capture& capture, const FrameLimit& limit, const std::string& path, FaultList& faults) {
  uint64_t refused = 0;
  for (size_t i = 0; i < capture.size(); ++i) refused += capture.frame(i).size() > limit.bytes ? 1 : 0;
  if (refused == 0) return;
  faults.Warn(path, absl::StrCat(refused, " of ", capture.size(), " frames are longer than ", limit.text,
                                 " and will be refused and counted; the longest has ", capture.longest(),
                                 ": raise mtu to ", capture.longest() - kEthernetHeader, " on both ends to take all"));
}

// What its own times cannot pace.
void CheckTiming(const TrafficConfig& traffic, const Capture& capture, const std::string& path, FaultList& faults) {
  if (traffic.timing != TrafficConfig::Timing::kCapture) return;
  if (traffic.rate != 0) {
    faults.Fault(path + ".rate", absl::StrCat("rate: ", traffic.rate,
                                              " and timing: capture both pace the frames: leave "
                                              "one of them out"));
  }
  if (capture.time_ns(capture.size() - 1) != 0) return;
  faults.Fault(path + ".timing", absl::StrCat("all ", capture.size(), " frames of ", traffic.file,
                                              " have one time stamp, so they have no times to keep: write rate: in "
                                              "place of it"));
}

}  // namespace

void CheckFrames(const Config& config, FaultList& faults) {
  const std::vector<Device> devices = ListDevices(config);
  std::map<std::string, absl::StatusOr<Capture>> captures;  // each file is read once, however many sources use it
  for (size_t i = 0; i < config.traffic.size(); ++i) {
    const TrafficConfig& traffic = config.traffic[i];
    const std::string path = absl::StrCat("traffic[", i, "]");
    const DeviceIndex into = FindDevice(devices, traffic.into);
    const bool limited = into != kNoDevice && !faults.Touches("veth") && !faults.Touches("ports");
    const FrameLimit limit = limited ? LimitOf(devices, into) : FrameLimit();
    if (traffic.source == TrafficConfig::Source::kGenerator) {
      if (limited && !faults.Touches(path + ".sizes") && !faults.Touches(path + ".source")) {
        CheckSizes(traffic, limit, path, faults);
      }
      uint32_t longest = 0;
      for (const auto& [size, weight] : traffic.sizes) longest = std::max(longest, size);
      CheckPoolHolds(config, traffic, longest, path, faults);
      if (traffic.destination_port + traffic.ports - 1 > 65535 && !faults.Touches(path)) {
        faults.Fault(
            path + ".ports",
            absl::StrCat("ports ", traffic.destination_port, " to ", traffic.destination_port + traffic.ports - 1,
                         " end past 65535: write ports: ", 65536 - traffic.destination_port, " or less"));
      }
      CheckRecipe(traffic, path, faults);
      continue;
    }
    const std::string file_path = path + ".file";
    if (traffic.file.empty() || faults.Touches(file_path)) continue;
    if (!captures.contains(traffic.file)) captures.emplace(traffic.file, Capture::Read(traffic.file));
    const absl::StatusOr<Capture>& capture = captures.at(traffic.file);
    if (!capture.ok()) {
      faults.Fault(file_path, std::string(capture.status().message()));
      continue;
    }
    CheckPoolHolds(config, traffic, capture->longest(), path, faults);
    CheckTiming(traffic, *capture, path, faults);
    WarnOfSkipped(*capture, file_path, faults);
    if (limited) WarnOfLong(*capture, limit, file_path, faults);
  }
}

}  // namespace halfpage
