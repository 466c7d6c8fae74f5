// What `start`, `stop`, `set`, `port` and `xdp` do.
#include <rte_ethdev.h>
#include <rte_log.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/config_values.h"
#include "app/prompt/commands.h"
#include "app/report.h"

namespace halfpage {
namespace {

using Change = absl::Status (Topology::*)(DeviceIndex, bool);

absl::Status ForEach(Session& session, const std::string& word, Change change, bool value) {
  const auto devices = session.Devices(word);
  if (!devices.ok()) return devices.status();
  for (const DeviceIndex device : *devices) {
    absl::Status status = (session.topology.*change)(device, value);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status OnlyThat(const std::string& word, const char* what, size_t there) {
  const auto number = NumberIn(word, what, 1, 1024);
  if (!number.ok()) return number.status();
  if (*number == there) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: the configuration has %d %s, which are fixed at the start", word, there, what));
}

absl::Status SetMulticast(DeviceIndex device, bool on, Session& session) {
  const uint16_t port = session.topology.devices()[device].port;
  const int result = on ? rte_eth_allmulticast_enable(port) : rte_eth_allmulticast_disable(port);
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(-result, absl::StrFormat("%s: its driver does not change multicast reception",
                                                      session.topology.devices()[device].name));
}

}  // namespace

absl::Status StartForwarding(Session& session, const Words&) {
  if (session.topology.forwarding()) {
    session.out += "Packet forwarding already started\n";
    return absl::OkStatus();
  }
  return session.topology.Start();
}

absl::Status StopForwarding(Session& session, const Words& words) {
  if (!session.topology.forwarding()) {
    session.out += "Packet forwarding not started\n";
    return absl::OkStatus();
  }
  session.topology.Pause(session.topology.config().measure.drain_timeout);
  return ShowForward(session, words);
}

absl::Status SetForward(Session& session, const Words& words) {
  const std::string& mode = words[2];
  const std::pair<const char*, const char*> others[] = {
      {"flowgen", "frames are made by sources, fixed at the start (`traffic`, --forward-mode)"},
      {"txonly", "frames are made by sources, fixed at the start (`traffic`, --forward-mode)"},
      {"noisy", "programs of kind touch do work on each frame: xdp attach"},
      {"ieee1588", "no port here stamps times"},
      {"shared-rxq", "receive queues are not shared"}};
  for (const auto& [name, instead] : others) {
    if (mode != name) continue;
    absl::StrAppend(&session.out, "ours: ", instead, "; nothing was changed\n");
    return absl::OkStatus();
  }
  const bool known =
      mode == "io" || mode == "rxonly" ||
      std::find(std::begin(kForwardModeNames), std::end(kForwardModeNames), mode) != std::end(kForwardModeNames);
  if (!known) {
    return absl::InvalidArgumentError(absl::StrFormat("no forwarding mode %s; ours are io, rxonly, %s", mode,
                                                      absl::StrJoin(kForwardModeNames, ", ")));
  }
  absl::Status status = session.topology.SetForward(mode);
  if (!status.ok()) return status;
  absl::StrAppend(&session.out, "Set ", mode, " packet forwarding mode\n");
  for (const Device& device : session.topology.devices()) {
    absl::StrAppend(&session.out, "  ", device.name, ": program ", device.program.empty() ? "none" : device.program,
                    "\n");
  }
  return absl::OkStatus();
}

absl::Status SetEthPeer(Session& session, const Words& words) {
  const auto device = session.Device(words[2]);
  if (!device.ok()) return device.status();
  const auto address = ParseMac(words[3]);
  return address.ok() ? session.topology.SetEthPeer(*device, *address) : address.status();
}

absl::Status SetNumber(Session& session, const Words& words) {
  Topology& topology = session.topology;
  const std::string& what = words[1];
  if (what == "nbcore") return OnlyThat(words[2], "workers", topology.config().lcores.workers.size());
  if (what == "nbport") return OnlyThat(words[2], "ports", topology.devices().size());
  const bool rate = what == "rate";
  const auto number = NumberIn(words[rate ? 3 : 2], rate ? "the rate" : "the number of frames", rate ? 0 : 1,
                               rate ? 1000000000 : kMaxBurst);
  if (!number.ok()) return number.status();
  if (rate) return topology.SetRate(words[2], *number);
  return what == "burst" ? topology.SetBurst(static_cast<uint32_t>(*number))
                         : topology.SetBulk(static_cast<uint32_t>(*number));
}

absl::Status SetSwitch(Session& session, const Words& words) {
  if (words[1] == "link-up" || words[1] == "link-down") {
    return ForEach(session, words[3], &Topology::SetLink, words[1] == "link-up");
  }
  if (words[1] == "promisc") return ForEach(session, words[2], &Topology::SetPromiscuous, words[3] == "on");
  const auto devices = session.Devices(words[2]);
  if (!devices.ok()) return devices.status();
  for (const DeviceIndex device : *devices) {
    absl::Status status = SetMulticast(device, words[3] == "on", session);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SetPolicy(Session& session, const Words& words) {
  using Policy = CopyConfig::Policy;
  const std::pair<const char*, Policy> policies[] = {
      {"stock", Policy::kStock}, {"classes", Policy::kClasses}, {"whole", Policy::kWhole},  {"half", Policy::kHalf},
      {"fixed", Policy::kFixed}, {"exact", Policy::kExact},     {"kernel", Policy::kKernel}};
  const auto device = session.Device(words[2]);
  if (!device.ok()) return device.status();
  for (const auto& [name, policy] : policies) {
    if (words[3] == name) return session.topology.SetCopyPolicy(*device, policy);
  }
  return absl::InvalidArgumentError(absl::StrCat("no policy ", words[3]));
}

absl::Status SetRecycle(Session& session, const Words& words) {
  const RecycleMode mode = words[3] == "lifo"   ? RecycleMode::kLifo
                           : words[3] == "ring" ? RecycleMode::kRing
                                                : RecycleMode::kOff;
  return session.topology.SetRecycle(words[2], mode);
}

absl::Status SetLog(Session& session, const Words& words) {
  const auto level = NumberIn(words[3], "the level", 1, 8);
  if (!level.ok()) return level.status();
  const std::string pattern = words[2] == "global" ? "*" : words[2];
  if (rte_log_set_level_pattern(pattern.c_str(), static_cast<uint32_t>(*level)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("no log type %s; dump_log_types lists them", words[2]));
}

absl::Status Port(Session& session, const Words& words) {
  if (words[1] == "config" && words[2] == "all") return SetNumber(session, {"set", "burst", words[4]});
  if (words[1] == "config") {
    const auto mtu = NumberIn(words[4], "the MTU", 68, 65521);
    if (!mtu.ok()) return mtu.status();
    const auto devices = session.Devices(words[3]);
    if (!devices.ok()) return devices.status();
    for (const DeviceIndex device : *devices) {
      absl::Status status = session.topology.SetMtu(device, static_cast<uint32_t>(*mtu));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  if (words[1] == "close" || words[1] == "reset") {
    const auto devices = session.Devices(words[2]);
    if (!devices.ok()) return devices.status();
    absl::StrAppend(&session.out,
                    "ours: ports are closed when the run ends; port stop takes one out of use, port start "
                    "brings it back\n");
    return absl::OkStatus();
  }
  return ForEach(session, words[2], &Topology::SetUp, words[1] == "start");
}

absl::Status Xdp(Session& session, const Words& words) {
  if (words[1] == "verdict") {
    XdpAction action = XdpAction::kPass;
    for (int a = 0; a < kXdpActions; ++a) {
      if (XdpActionName(static_cast<XdpAction>(a)) == words[3]) action = static_cast<XdpAction>(a);
    }
    return session.topology.SetVerdict(words[2], action);
  }
  const auto device = session.Device(words[2]);
  if (!device.ok()) return device.status();
  const std::string& now = session.topology.devices()[*device].program;
  if (words[1] == "attach" && !now.empty() && now != words[3]) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s has the program %s; replace it (xdp replace) or detach it first", words[2], now));
  }
  if (words[1] != "attach" && now.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat("%s has no program; attach one (xdp attach)", words[2]));
  }
  return session.topology.Attach(*device, words[1] == "detach" ? "" : words[3]);
}

}  // namespace halfpage
