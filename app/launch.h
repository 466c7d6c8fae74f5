// A launch without a configuration, dpdk-testpmd's way: the ports that EAL's arguments make, forwarded as the options
// say, written down as the configuration that means the same. So it is checked, planned, printed and run like any
// other.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halfpage {

// Values as they were given; empty: not given.
struct LaunchOptions {
  std::vector<std::string> eal;  // EAL's arguments, which name the ports
  std::string forward_mode;
  std::string port_topology;
  std::string portlist;
  std::string portmask;
  std::string nb_ports;
  std::string nb_cores;
  std::string burst;
  std::vector<std::string> eth_peers;  // each as it was given: "0,02:00:00:00:00:0a"
  bool tx_first = false;
  std::string first_given;  // the first option that is of use here only: "--portlist"

  // Stores the value of an option of this struct. Gives false where `name` is none of them.
  bool Take(absl::string_view name, const std::string& value);
};

// The ports that EAL's arguments make, in the order of their numbers: PCI devices, then virtual ones.
std::vector<std::string> PortsOfEal(const std::vector<std::string>& eal);

// The file prefix that EAL's arguments ask for, or "".
std::string FilePrefixOf(const std::vector<std::string>& eal);

// Whether frames are made in this mode, rather than only forwarded.
bool MakesFrames(const LaunchOptions& options);

// The configuration as YAML. Errors: InvalidArgument naming the option, what it takes, and what to do instead.
absl::StatusOr<std::string> LaunchConfig(const LaunchOptions& options);

}  // namespace halfpage
