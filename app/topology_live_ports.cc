// Changes of devices, rates and sizes while frames flow.
#include <rte_ethdev.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/topology.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

absl::Status DriverSays(int result, const Device& device, const char* what) {
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(-result, absl::StrFormat("%s: its driver does not %s", device.name, what));
}

}  // namespace

std::string Topology::HeldText(double older_than) const {
  std::string text;
  for (const PktmbufPool& pool : pools_) {
    const auto held = FindHeld(pool, stages_, older_than, 8);
    text += held.ok() ? halfpage::HeldText(pool, *held, older_than) : std::string(held.status().message()) + "\n";
  }
  return text;
}

absl::Status Topology::SetMtu(DeviceIndex device, uint32_t mtu) {
  const std::lock_guard<std::mutex> lock(changing_);
  if (mtu < 68 || mtu > 65521) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: an MTU of %u is not between 68 (IPv4's least) and 65521", devices_[device].name, mtu));
  }
  const uint32_t before = devices_[device].mtu;
  devices_[device].mtu = mtu;
  absl::Status status = CheckAttached();
  if (status.ok() && devices_[device].peer == kNoDevice) {
    status = DriverSays(rte_eth_dev_set_mtu(devices_[device].port, static_cast<uint16_t>(mtu)), devices_[device],
                        "take this MTU (some take one only while stopped: port stop)");
  }
  if (status.ok()) status = Publish();
  if (!status.ok() && !absl::IsUnavailable(status)) devices_[device].mtu = before;
  return status;
}

absl::Status Topology::SetBurst(uint32_t budget) {
  const std::lock_guard<std::mutex> lock(changing_);
  if (budget < 1 || budget > kMaxBurst) {
    return absl::InvalidArgumentError(absl::StrFormat("a burst of %u is not between 1 and %u", budget, kMaxBurst));
  }
  config_.measure.budget = budget;
  return Publish();
}

absl::Status Topology::SetBulk(uint32_t bulk) {
  const std::lock_guard<std::mutex> lock(changing_);
  if (bulk < 1 || bulk > kMaxBurst) {
    return absl::InvalidArgumentError(absl::StrFormat("a bulk of %u is not between 1 and %u", bulk, kMaxBurst));
  }
  config_.measure.bulk = bulk;
  return Publish();
}

absl::Status Topology::SetRate(const std::string& source, uint64_t rate) {
  const std::lock_guard<std::mutex> lock(changing_);
  bool found = false;
  for (TrafficConfig& traffic : config_.traffic) {
    if (source != "all" && traffic.name != source) continue;
    traffic.rate = rate;
    traffic.timing = TrafficConfig::Timing::kRate;
    found = true;
  }
  if (!found) {
    std::vector<std::string> names;
    for (const TrafficConfig& traffic : config_.traffic) names.push_back(traffic.name);
    return absl::NotFoundError(
        absl::StrFormat("there is no source %s; there are %s", source, absl::StrJoin(names, ", ")));
  }
  return Publish();
}

absl::Status Topology::SetRecycle(const std::string& name, RecycleMode mode) {
  const std::lock_guard<std::mutex> lock(changing_);
  std::vector<std::string> names;
  bool found = false;
  for (const PktmbufPool& pool : pools_) {
    names.push_back(pool.config().name);
    if (name != "all" && pool.config().name != name) continue;
    const bool changed = SetPageFragRecycle(pool.get(), mode) == 0;
    found = found || changed;
    if (changed || name == "all") continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("pool %s is of handler %s, which has no pages to recycle", name, pool.config().ops));
  }
  if (found) return absl::OkStatus();
  return absl::NotFoundError(absl::StrFormat("there is no pool %s; there are %s", name, absl::StrJoin(names, ", ")));
}

absl::Status Topology::SetUp(DeviceIndex device, bool up) {
  const std::lock_guard<std::mutex> lock(changing_);
  const DeviceIndex peer = devices_[device].peer;
  if (peer != kNoDevice) {
    VethConfig& pair = config_.veth[device / 2];
    pair.ends[device % 2].up = up;
    devices_[device].up = devices_[peer].up = pair.ends[0].up && pair.ends[1].up;
    return Publish();
  }
  if (devices_[device].up == up) return absl::OkStatus();
  const uint16_t port = devices_[device].port;
  absl::Status status;
  if (up) status = DriverSays(rte_eth_dev_start(port), devices_[device], "start");
  if (!status.ok()) return status;
  devices_[device].up = up;
  status = Publish();
  // Nobody is in the driver any more.
  if (status.ok() && !up) status = DriverSays(rte_eth_dev_stop(port), devices_[device], "stop");
  return status;
}

absl::Status Topology::SetPromiscuous(DeviceIndex device, bool on) {
  const uint16_t port = devices_[device].port;
  return DriverSays(on ? rte_eth_promiscuous_enable(port) : rte_eth_promiscuous_disable(port), devices_[device],
                    on ? "enter promiscuous mode" : "leave promiscuous mode");
}

absl::Status Topology::SetEthPeer(DeviceIndex device, const MacAddress& address) {
  const std::lock_guard<std::mutex> lock(changing_);
  devices_[device].eth_peer = address;
  return Publish();
}

absl::Status Topology::SetLink(DeviceIndex device, bool up) {
  if (devices_[device].peer != kNoDevice) return SetUp(device, up);
  const uint16_t port = devices_[device].port;
  return DriverSays(up ? rte_eth_dev_set_link_up(port) : rte_eth_dev_set_link_down(port), devices_[device],
                    up ? "set its link up" : "set its link down");
}

}  // namespace halfpage
