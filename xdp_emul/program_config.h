// What a built-in XDP program is told: its kind, and for the filter its rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "xdp_emul/xdp_action.h"

namespace halfpage {

enum class ProgramKind : uint8_t { kPass, kDrop, kTx, kAborted, kRedirect, kFilter };

// An inclusive range of TCP or UDP ports, host byte order.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 65535;
};

// One line of a filter. All fields that are set must match; the first matching rule decides.
struct FilterRule {
  std::string name;                      // counter's name; "rule N" (N from 0) where the config has none
  std::optional<uint16_t> ethertype;     // behind at most two VLAN tags, host byte order: 0x0800, 0x86dd, 0x0806, ...
  std::optional<uint8_t> protocol;       // IPv4 protocol or last IPv6 next header: 6 TCP, 17 UDP, 1 ICMP, ...
  std::optional<PortRange> source_port;  // TCP, UDP or SCTP; never matches a later fragment
  std::optional<PortRange> destination_port;
  XdpAction verdict = XdpAction::kPass;
  std::string target;  // device end that kRedirect sends through
};

struct ProgramConfig {
  std::string name;
  ProgramKind kind = ProgramKind::kPass;
  bool frags = false;                     // may be shown chained frames (the kernel's xdp.frags)
  std::string target;                     // kRedirect: device end that frames leave through
  std::vector<FilterRule> rules;          // kFilter
  XdpAction fallback = XdpAction::kPass;  // kFilter: verdict of a frame that no rule matches (`default:`)
  std::string fallback_target;            // kFilter: device end where `default: redirect`
};

}  // namespace halfpage
