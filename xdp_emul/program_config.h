// What a built-in XDP program is told: its kind, and for the filter its rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "xdp_emul/map_config.h"
#include "xdp_emul/program_hook.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage {

enum class ProgramKind : uint8_t {
  kPass,
  kDrop,
  kTx,
  kAborted,
  kRedirect,
  kFilter,
  kChain,
  kTouch,
  kAdjust,
  kObject,
  kForward
};

// How much of each frame a kTouch program looks at before its verdict: what a lab varies.
enum class Touch : uint8_t {
  kNone,
  kRead,     // the Ethernet header
  kParse,    // all headers, as a filter does
  kRewrite,  // swaps MAC addresses
};

// What a kForward program does to each frame, as dpdk-testpmd's mode of that name.
enum class ForwardMode : uint8_t {
  kMac,            // destination: who is behind the device that the frame leaves through; source: that device
  kMacswap,        // MAC addresses change places
  kCsum,           // as kMac; IPv4, TCP and UDP checksums are computed anew, but a UDP checksum of 0 stays
  kIcmpecho,       // ARP and ICMP echo requests become their answers, all else is dropped
  kFiveTupleSwap,  // MAC and IP addresses, TCP and UDP ports change places
};

inline constexpr const char* kForwardModeNames[] = {"mac", "macswap", "csum", "icmpecho", "5tswap"};

// How an object's program is run.
enum class Jit : uint8_t {
  kAuto,  // compiled where there is a compiler
  kLlvm,  // compiled, or not at all
  kOff,   // interpreted
};

// One entry of an object's map before the run, as text (xdp_emul/bpf/map_text.h); of maps of targets, who is meant.
struct MapEntryConfig {
  std::string map;
  std::string key;
  std::string value;         // or
  std::string device;        // DEVMAP, DEVMAP_HASH, and any map that holds interface numbers; or
  std::string program;       // with the device, of the first two: judges frames before they leave
  std::string redirect_map;  // DEVMAP, XSKMAP, CPUMAP: this map of the run in the object's place, without a key
};

// What a kAdjust program does to each frame, in this order. A step that the frame or its buffer has no room for ends in
// aborted with the reason adjust_head or adjust_tail.
struct Adjustment {
  uint16_t pull = 0;      // bytes taken away in front
  uint16_t push = 0;      // zeros put in front
  uint16_t trim = 0;      // bytes cut off at the end
  uint16_t grow = 0;      // zeros added at the end
  uint16_t metadata = 0;  // bytes of metadata in front of the data, a multiple of 4
};

// Addresses of one family that agree in their first `length` bits.
struct AddressPrefix {
  uint8_t bytes[16] = {};  // network byte order; IPv4: the first four
  uint8_t length = 0;      // bits
  bool ipv6 = false;
};

// An inclusive range of TCP or UDP ports, host byte order.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 65535;
};

// One line of a filter. All fields that are set must match; the first matching rule decides.
struct FilterRule {
  std::string name;                   // counter's name; "rule N" (N from 0) where the config has none
  std::optional<uint16_t> ethertype;  // behind at most two VLAN tags, host byte order: 0x0800, 0x86dd, 0x0806, ...
  std::optional<uint8_t> protocol;    // IPv4 protocol or last IPv6 next header: 6 TCP, 17 UDP, 1 ICMP, ...
  std::optional<uint16_t> vlan;       // id of the outermost VLAN tag, 0 to 4095
  std::optional<AddressPrefix> source;
  std::optional<AddressPrefix> destination;
  std::optional<PortRange> source_port;  // TCP, UDP or SCTP; never matches a later fragment
  std::optional<PortRange> destination_port;
  XdpAction verdict = XdpAction::kPass;
  std::string target;  // device end that kRedirect sends through, or
  std::string map;     // the map, and the key in it
  uint32_t key = 0;    // or kKeyOfQueue
};

struct ProgramConfig {
  std::string name;
  ProgramKind kind = ProgramKind::kPass;
  bool frags = false;                     // may be shown chained frames (the kernel's xdp.frags)
  ProgramHook hook = ProgramHook::kAny;   // where it may run; of kObject as its section says
  std::string target;                     // kRedirect: device end that frames leave through, or
  std::string map;                        // kRedirect: the map, and the key in it
  uint32_t key = 0;                       // or kKeyOfQueue
  std::vector<FilterRule> rules;          // kFilter
  XdpAction fallback = XdpAction::kPass;  // kFilter: verdict of a frame that no rule matches (`default:`)
  std::string fallback_target;            // kFilter: device end where `default: redirect`, or
  std::string fallback_map;               // the map, and the key in it
  uint32_t fallback_key = 0;              // or kKeyOfQueue
  std::vector<std::string> programs;      // kChain: run in this order, the next one on pass (as xdp-dispatcher)
  Touch touch = Touch::kRead;             // kTouch
  Adjustment adjust;                      // kAdjust
  ForwardMode mode = ForwardMode::kMac;   // kForward
  std::string object;                     // kObject: the file
  std::string program;                    // kObject: its name in the object; empty: the only one
  std::string maps_of;                    // kObject: another program of the object whose maps it shares; empty: own
  std::vector<MapEntryConfig> maps;       // kObject: put into its maps first
  Jit jit = Jit::kAuto;                   // kObject
  XdpAction verdict = XdpAction::kPass;   // kTouch, kAdjust, kForward: of every frame (kIcmpecho: of answers); `target`
                                          // where it is redirect
};

}  // namespace halfpage
