#include "app/device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "app/frame_limits.h"

namespace halfpage {
namespace {}  // namespace

std::vector<Device> ListDevices(const Config& config) {
  std::vector<Device> devices;
  for (size_t p = 0; p < config.veth.size(); ++p) {
    for (size_t end = 0; end < 2; ++end) {
      const VethEndConfig& from = config.veth[p].ends[end];
      Device& device = devices.emplace_back();
      device.name = from.name;
      device.path = absl::StrCat("veth[", p, "].ends[", end, "]");
      device.program = from.program;
      device.sink = from.sink;
      device.mtu = from.mtu;
      device.mode = config.veth[p].mode;
      device.takes_xdp = !from.program.empty() || from.gro;
      device.up = from.up && config.veth[p].ends[1 - end].up;
      device.copy = from.copy;
      device.queues = static_cast<uint16_t>(config.veth[p].queues);
      device.peer = static_cast<DeviceIndex>(2 * p + 1 - end);
    }
  }
  for (size_t p = 0; p < config.ports.size(); ++p) {
    const PortConfig& from = config.ports[p];
    Device& device = devices.emplace_back();
    device.name = from.name;
    device.path = absl::StrCat("ports[", p, "]");
    device.program = from.program;
    device.sink = from.sink;
    device.mtu = from.mtu;
    device.copy = from.copy;
    device.queues = static_cast<uint16_t>(from.queues);
    device.eth_peer = from.eth_peer;
  }
  return devices;
}

DeviceIndex FindDevice(const std::vector<Device>& devices, const std::string& name) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const Device& each) { return each.name == name; });
  return found == devices.end() ? kNoDevice : static_cast<DeviceIndex>(found - devices.begin());
}

uint32_t FrameLimitThrough(const std::vector<Device>& devices, DeviceIndex device) {
  const DeviceIndex receiver = devices[device].peer == kNoDevice ? device : devices[device].peer;
  return devices[receiver].mtu + kEthernetHeader + kVlanTag;
}

}  // namespace halfpage
