// The devices of a run: ends of veth pairs and real ports alike, numbered in one order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "xdp_emul/program.h"

namespace halfpage {

// One device. What the configuration says of it, and the DPDK port that it becomes.
struct Device {
  std::string name;
  std::string path;     // of its configuration: "veth[0].ends[1]", "ports[0]"
  std::string program;  // judges what it receives; empty: none
  std::string sink;     // takes what passes; empty: counted and freed
  uint32_t mtu = 1500;
  XdpMode mode = XdpMode::kHalfpage;
  bool takes_xdp = true;               // frames of XDP_TX and redirects: it has a program, or GRO
  bool up = true;                      // both ends of its pair are
  CopyConfig copy;                     // before its program
  uint16_t queues = 1;                 // receive queues
  std::optional<MacAddress> eth_peer;  // who is behind it; none: 02:00:00:00:00:PORT
  DeviceIndex peer = kNoDevice;        // the other end of its pair; none: what it sends leaves the process
  uint16_t port = UINT16_MAX;          // DPDK's number, kept past closing; UINT16_MAX until it is made
};

// The devices of a configuration by DeviceIndex: pair p has 2p and 2p + 1, ports follow in their order. Of a
// configuration with faults, too: names may be empty or there twice.
std::vector<Device> ListDevices(const Config& config);

// The first of that name, kNoDevice where there is none.
DeviceIndex FindDevice(const std::vector<Device>& devices, const std::string& name);

// The longest frame that may be sent through a device: MTU of who receives it + 14 Ethernet + 4 VLAN (kernel:
// is_skb_forwardable, veth_xdp_xmit). A port's own MTU stands for whatever is behind it.
uint32_t FrameLimitThrough(const std::vector<Device>& devices, DeviceIndex device);

}  // namespace halfpage
