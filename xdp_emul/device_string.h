// What names a real device to EAL ("net_af_packet0,iface=eth0", "0000:03:00.0"), taken apart. Text only, no DPDK.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace halfpage {

struct DeviceString {
  std::string name;                              // up to the first comma: EAL's name of the device
  std::string driver;                            // of a virtual device: the name less its number; else empty
  std::map<std::string, std::string> arguments;  // the last of a key counts
  bool pci = false;                              // an address on the PCI bus

  // A numeric argument, `otherwise` where it is not there or no number.
  uint64_t Number(const std::string& key, uint64_t otherwise) const;
  // An argument's text, "" where it is not there.
  std::string Text(const std::string& key) const;
};

DeviceString ParseDeviceString(absl::string_view text);

// net_af_packet: bytes that a frame of the ring has for its header before the packet's own begin, and those that the
// driver wants to have in an mbuf for a frame of the ring (rte_eth_af_packet.c; the kernel's tpacket_rcv).
inline constexpr uint32_t kAfPacketReceiveGap = 66;
inline constexpr uint32_t kAfPacketHeader = 32;
inline constexpr uint32_t kAfPacketFrame = 2048;  // framesz where the string has none
inline constexpr uint32_t kAfPacketBlock = 4096;  // blocksz where the string has none

// net_af_xdp: buffers in the fill ring of each queue, and the most that it does not give back when the port is closed:
// those, and what it sent and has not looked at since.
inline constexpr uint32_t kAfXdpFillRing = 2048;
inline constexpr uint32_t kAfXdpKept = 2 * kAfXdpFillRing;

// net_tap lets out no frame beyond 1522 bytes, whatever MTU is asked for.
inline constexpr uint32_t kTapMostMtu = 1500;

}  // namespace halfpage
