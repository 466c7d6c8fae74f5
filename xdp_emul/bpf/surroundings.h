// What programs ask about the world outside: the routing table of bpf_fib_lookup().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halfpage::bpf {

struct Route {
  uint8_t family = 0;                   // AF_INET or AF_INET6
  uint8_t length = 0;                   // of the prefix, bits
  std::array<uint8_t, 16> prefix = {};  // network order; IPv4 in the first 4 bytes
  std::array<uint8_t, 16> gateway = {};
  bool has_gateway = false;
  bool has_neighbour = false;  // the next hop's hardware address is known
  uint32_t ifindex = 0;
  uint16_t mtu = 1500;
  std::array<uint8_t, 6> source_mac = {};
  std::array<uint8_t, 6> destination_mac = {};
};

class Surroundings {
 public:
  // Adds "10.0.0.0/8 dev 3 [via 10.0.0.1] [src 02:..:01 dst 02:..:02] [mtu 1500]" (interfaces by number). A route
  // without dst has no known neighbour. Errors: InvalidArgument naming the word that is wrong and an example.
  absl::Status AddRoute(absl::string_view text);

  // The longest prefix that holds `address`; null where none does. Any thread, while nobody adds.
  const Route* FindRoute(uint8_t family, const uint8_t* address) const;

 private:
  std::vector<Route> routes_;  // longest prefix first
};

}  // namespace halfpage::bpf
