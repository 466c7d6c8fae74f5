#include "xdp_emul/bpf/surroundings.h"

#include <arpa/inet.h>
#include <netinet/ether.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace halfpage::bpf {
namespace {

bool ParseAddress(const std::string& text, uint8_t* family, uint8_t* to) {
  *family = text.find(':') == std::string::npos ? AF_INET : AF_INET6;
  return inet_pton(*family, text.c_str(), to) == 1;
}

bool ParseMac(const std::string& text, std::array<uint8_t, 6>* to) {
  ether_addr address;
  if (ether_aton_r(text.c_str(), &address) == nullptr) return false;
  memcpy(to->data(), address.ether_addr_octet, 6);
  return true;
}

bool Holds(const Route& route, const uint8_t* address) {
  const int whole = route.length / 8;
  const int rest = route.length % 8;
  if (memcmp(route.prefix.data(), address, static_cast<size_t>(whole)) != 0) return false;
  return rest == 0 || ((route.prefix[whole] ^ address[whole]) >> (8 - rest)) == 0;
}

}  // namespace

absl::Status Surroundings::AddRoute(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  const auto wrong = [&](absl::string_view word) {
    return absl::InvalidArgumentError(absl::StrCat("route `", text, "`: `", word,
                                                   "` is not understood; write 10.0.0.0/8 dev 3 via 10.0.0.1 src "
                                                   "02:00:00:00:00:01 dst 02:00:00:00:00:02 mtu 1500"));
  };
  Route route;
  if (words.empty()) return wrong("");
  const std::vector<std::string> parts = absl::StrSplit(words[0], '/');
  int length = 0;
  if (!ParseAddress(parts[0], &route.family, route.prefix.data())) return wrong(words[0]);
  const int longest = route.family == AF_INET ? 32 : 128;
  if (parts.size() > 2 ||
      (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &length) || length < 0 || length > longest))) {
    return wrong(words[0]);
  }
  route.length = static_cast<uint8_t>(parts.size() == 2 ? length : longest);
  for (size_t i = 1; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return wrong(words[i]);
    const std::string& value = words[i + 1];
    uint32_t number = 0;
    uint8_t family = 0;
    if (words[i] == "dev" && absl::SimpleAtoi(value, &number)) {
      route.ifindex = number;
    } else if (words[i] == "mtu" && absl::SimpleAtoi(value, &number) && number <= UINT16_MAX) {
      route.mtu = static_cast<uint16_t>(number);
    } else if (words[i] == "via" && ParseAddress(value, &family, route.gateway.data()) && family == route.family) {
      route.has_gateway = true;
    } else if (words[i] == "src" && ParseMac(value, &route.source_mac)) {
    } else if (words[i] == "dst" && ParseMac(value, &route.destination_mac)) {
      route.has_neighbour = true;
    } else {
      return wrong(absl::StrCat(words[i], " ", value));
    }
  }
  if (route.ifindex == 0) return wrong("no `dev`");
  const auto shorter = [&](const Route& other) { return other.length < route.length; };
  routes_.insert(std::find_if(routes_.begin(), routes_.end(), shorter), route);
  return absl::OkStatus();
}

const Route* Surroundings::FindRoute(uint8_t family, const uint8_t* address) const {
  for (const Route& route : routes_) {
    if (route.family == family && Holds(route, address)) return &route;
  }
  return nullptr;
}

}  // namespace halfpage::bpf
