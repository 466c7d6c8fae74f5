// VLAN tags, IP and MAC addresses.
#include <arpa/inet.h>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "app/config_units.h"
#include "app/config_values.h"

namespace halfpage {
namespace {

absl::Status Refuse(absl::string_view text, absl::string_view why, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat(Shown(text), " ", why, ": give ", rule));
}

absl::StatusOr<AddressPrefix> ParsePrefix(absl::string_view text, const std::string& rule) {
  AddressPrefix prefix;
  const size_t slash = text.find('/');
  const std::string address(text.substr(0, slash));
  prefix.ipv6 = address.find(':') != std::string::npos;
  if (inet_pton(prefix.ipv6 ? AF_INET6 : AF_INET, address.c_str(), prefix.bytes) != 1) {
    return Refuse(text, "is no address", rule);
  }
  const uint32_t longest = prefix.ipv6 ? 128 : 32;
  uint32_t length = longest;
  if (slash != absl::string_view::npos && (!absl::SimpleAtoi(text.substr(slash + 1), &length) || length > longest)) {
    return Refuse(text, absl::StrCat("has no prefix length from 0 to ", longest), rule);
  }
  prefix.length = static_cast<uint8_t>(length);
  for (uint32_t bit = length; bit < longest; ++bit) {
    if ((prefix.bytes[bit / 8] & (0x80u >> bit % 8)) != 0) {
      return Refuse(text, absl::StrCat("has bits behind its first ", length), absl::StrCat("them as 0, or ", rule));
    }
  }
  return prefix;
}

}  // namespace

absl::StatusOr<MacAddress> ParseMac(absl::string_view text) {
  MacAddress address;
  const std::vector<std::string> bytes = absl::StrSplit(text, ':');
  bool good = bytes.size() == address.size();
  for (size_t i = 0; good && i < address.size(); ++i) {
    uint32_t byte = 0;
    good = bytes[i].size() == 2 && absl::ascii_isxdigit(bytes[i][0]) && absl::SimpleHexAtoi(bytes[i], &byte);
    address[i] = static_cast<uint8_t>(byte);
  }
  if (good) return address;
  return Refuse(text, "is no MAC address", "six bytes as in 02:00:00:00:00:0a");
}

FieldValue Mac(std::optional<MacAddress>& field) {
  auto parse = [&field](absl::string_view text, bool) -> absl::Status {
    field.reset();
    if (text == "auto") return absl::OkStatus();
    const auto address = ParseMac(text);
    if (address.ok()) field = *address;
    return address.status();
  };
  auto format = [&field]() -> std::string {
    if (!field.has_value()) return "auto";
    const MacAddress& a = *field;
    return YamlText(absl::StrFormat("%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4], a[5]));
  };
  return {parse, format, "auto, or a MAC address"};
}

FieldValue Vlan(std::optional<uint16_t>& field) {
  const std::string rule = "any, or an id from 0 to 4095";
  auto parse = [&field, rule](absl::string_view text, bool) -> absl::Status {
    if (text == "any") {
      field.reset();
      return absl::OkStatus();
    }
    uint32_t id = 0;
    if (!absl::SimpleAtoi(text, &id) || id > 4095) return Refuse(text, "is no VLAN id", rule);
    field = static_cast<uint16_t>(id);
    return absl::OkStatus();
  };
  auto format = [&field]() -> std::string { return field.has_value() ? absl::StrCat(*field) : "any"; };
  return {parse, format, rule};
}

FieldValue Prefix(std::optional<AddressPrefix>& field) {
  const std::string rule = "any, an IPv4 or IPv6 address, or a prefix as in 10.0.0.0/8";
  auto parse = [&field, rule](absl::string_view text, bool) -> absl::Status {
    if (text == "any") {
      field.reset();
      return absl::OkStatus();
    }
    absl::StatusOr<AddressPrefix> prefix = ParsePrefix(text, rule);
    if (!prefix.ok()) return prefix.status();
    field = *prefix;
    return absl::OkStatus();
  };
  auto format = [&field]() -> std::string {
    if (!field.has_value()) return "any";
    char text[INET6_ADDRSTRLEN];
    inet_ntop(field->ipv6 ? AF_INET6 : AF_INET, field->bytes, text, sizeof(text));
    return YamlText(absl::StrCat(text, "/", field->length));
  };
  return {parse, format, rule};
}

}  // namespace halfpage
