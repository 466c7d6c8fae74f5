// The kinds of values that keys can have. Each function ties one kind to one field; see FieldValue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "app/config.h"
#include "app/config_fields.h"
#include "xdp_emul/program_config.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage {

struct NumberRule {
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
  bool bytes = false;          // may have a unit, "2KiB"
  bool power_of_two = false;   // `min` and `max` are, too
  const char* word = nullptr;  // stands for `word_value`: "auto"
  uint64_t word_value = 0;     // need not lie in the range
};

// For Number(): checks and stores through functions, whatever the field's type.
FieldValue NumberValue(const NumberRule& rule, std::function<uint64_t()> get, std::function<void(uint64_t)> set);

// A whole number. The rule's range fits the field's type.
template <typename N>
FieldValue Number(N& field, const NumberRule& rule) {
  return NumberValue(
      rule, [&field] { return static_cast<uint64_t>(field); }, [&field](uint64_t n) { field = static_cast<N>(n); });
}

// A duration from 0 to `max` seconds.
FieldValue Duration(double& field, double max);

// true or false.
FieldValue Flag(bool& field);

struct TextRule {
  enum class Letters : uint8_t {
    kName,    // letters, digits, `_`, `.`, `-`
    kLabel,   // the same and blanks
    kLcores,  // what EAL's --lcores is made of
    kAny,     // no control characters
  };
  Letters letters = Letters::kAny;
  size_t max = 4095;
  bool may_be_empty = false;
  const char* word = nullptr;  // accepted whatever the letters: "auto"
};
FieldValue Text(std::string& field, const TextRule& rule);
// A name of 1 to `max` bytes.
FieldValue Name(std::string& field, size_t max = 31);
// The same, or "" for none.
FieldValue OptionalName(std::string& field, size_t max = 31);

// For Choice(): one of `words`, by number.
FieldValue ChoiceValue(std::vector<std::string> words, std::function<size_t()> get, std::function<void(size_t)> set);

// One of the words; word i stands for the enumerator with value i.
template <typename E>
FieldValue Choice(E& field, std::vector<std::string> words) {
  return ChoiceValue(
      std::move(words), [&field] { return static_cast<size_t>(field); },
      [&field](size_t i) { field = static_cast<E>(i); });
}

// The name of one of XDP's verdicts, as ParseXdpAction() knows them.
FieldValue Verdict(XdpAction& field);

// What a filter rule compares, or "any" (the field unset) for all: Ethernet types and IP protocols by name or number,
// ports as "53" or "1024-2047".
FieldValue Ethertype(std::optional<uint16_t>& field);
FieldValue Protocol(std::optional<uint8_t>& field);
FieldValue Ports(std::optional<PortRange>& field);
// "any", a VLAN id; "any", an address or a prefix as in "10.0.0.0/8" or "2001:db8::/32".
FieldValue Vlan(std::optional<uint16_t>& field);
FieldValue Prefix(std::optional<AddressPrefix>& field);
// "auto", the field unset, or a MAC address.
FieldValue Mac(std::optional<MacAddress>& field);

// "02:00:00:00:00:0a". Error: InvalidArgument with an example.
absl::StatusOr<MacAddress> ParseMac(absl::string_view text);

// The file's `version`: 1, which is nothing that a Config holds.
FieldValue Version();

// The text in double quotes where YAML would read it as something else, else as it is.
std::string YamlText(const std::string& text);

}  // namespace halfpage
