#include "app/config_values.h"

#include <array>
#include <bit>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "app/config_units.h"
#include "app/nearest_name.h"

namespace halfpage {
namespace {

using NumberNames = std::vector<std::pair<std::string, uint16_t>>;

const NumberNames& EthertypeNames() {
  static const auto& names = *new NumberNames{{"ipv4", 0x0800}, {"ipv6", 0x86dd}, {"arp", 0x0806}};
  return names;
}

const NumberNames& ProtocolNames() {
  static const auto& names = *new NumberNames{{"tcp", 6}, {"udp", 17}, {"icmp", 1}, {"icmpv6", 58}, {"sctp", 132}};
  return names;
}

std::string Count(const NumberRule& rule, uint64_t n) {
  return rule.bytes ? FormatBytes(n) : absl::StrCat(n);
}

std::string RuleText(const NumberRule& rule) {
  std::string range;
  if (rule.max == UINT64_MAX) {
    range = absl::StrCat(Count(rule, rule.min), " or more");
  } else {
    range = absl::StrCat(Count(rule, rule.min), " to ", Count(rule, rule.max));
  }
  return absl::StrCat(rule.word != nullptr ? absl::StrCat(rule.word, " or ") : "",
                      rule.power_of_two ? "a power of two, " : "", range);
}

absl::Status Refuse(absl::string_view what, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": give ", rule));
}

// A number in quotes is a text to every other YAML reader, so it is one here.
absl::Status RefuseQuotes(absl::string_view text, absl::string_view rule) {
  return Refuse(absl::StrCat("\"", text.substr(0, 60), "\" is a text; write it without quotes"), rule);
}

absl::Status CheckNumber(const NumberRule& rule, uint64_t n, absl::string_view text) {
  if (n < rule.min) return Refuse(absl::StrCat(Shown(text), " is below ", Count(rule, rule.min)), RuleText(rule));
  if (n > rule.max) return Refuse(absl::StrCat(Shown(text), " is above ", Count(rule, rule.max)), RuleText(rule));
  if (rule.power_of_two && !std::has_single_bit(n)) {
    const uint64_t below = std::bit_floor(n);
    const uint64_t nearest = n - below < below * 2 - n ? below : below * 2;
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is not a power of two (nearest ", Count(rule, nearest), ")"));
  }
  return absl::OkStatus();
}

// One of the names, a decimal or an 0x number within the range, or "any".
template <typename N>
FieldValue NamedNumber(std::optional<N>& field, const NumberNames& names, uint64_t min, bool hex) {
  std::vector<std::string> words;
  for (const auto& [name, number] : names) words.push_back(name);
  constexpr uint64_t kMax = static_cast<N>(-1);
  const std::string limits = hex ? absl::StrFormat("%#x to %#x", min, kMax) : absl::StrCat(min, " to ", kMax);
  const std::string rule = absl::StrCat("any, ", absl::StrJoin(words, ", "), " or ", limits);
  auto parse = [&field, &names, words, min, rule](absl::string_view text, bool quoted) -> absl::Status {
    if (text == "any") {
      field.reset();
      return absl::OkStatus();
    }
    for (const auto& [name, number] : names) {
      if (text == name) {
        field = static_cast<N>(number);
        return absl::OkStatus();
      }
    }
    uint64_t number = 0;
    if (absl::StartsWith(text, "0x")) {
      if (!absl::SimpleHexAtoi(text, &number)) return Refuse(absl::StrCat(Shown(text), " is not a number"), rule);
    } else if (!text.empty() && absl::ascii_isalpha(text[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat("no such name: ", Shown(text), DidYouMean(text, words), " (", rule, ")"));
    } else {
      absl::StatusOr<uint64_t> whole = ParseWhole(text);
      if (!whole.ok()) return Refuse(whole.status().message(), rule);
      number = *whole;
    }
    if (quoted) return RefuseQuotes(text, rule);
    if (number < min || number > kMax) return Refuse(absl::StrCat(Shown(text), " is out of range"), rule);
    field = static_cast<N>(number);
    return absl::OkStatus();
  };
  auto format = [&field, &names, hex]() -> std::string {
    if (!field.has_value()) return "any";
    for (const auto& [name, number] : names) {
      if (*field == number) return name;
    }
    return hex ? absl::StrFormat("%#06x", *field) : absl::StrCat(*field);
  };
  return {parse, format, rule};
}

bool Allowed(TextRule::Letters letters, char c) {
  switch (letters) {
    case TextRule::Letters::kName:
      return absl::ascii_isalnum(c) || absl::StrContains("_.-", c);
    case TextRule::Letters::kLabel:
      return absl::ascii_isalnum(c) || absl::StrContains("_.- ", c);
    case TextRule::Letters::kLcores:
      return absl::ascii_isdigit(c) || absl::StrContains("@,()-", c);
    case TextRule::Letters::kAny:
      break;
  }
  return !absl::ascii_iscntrl(c);
}

absl::string_view LettersText(TextRule::Letters letters) {
  switch (letters) {
    case TextRule::Letters::kName:
      return "letters, digits, `_`, `.` and `-`";
    case TextRule::Letters::kLabel:
      return "letters, digits, blanks, `_`, `.` and `-`";
    case TextRule::Letters::kLcores:
      return "digits and `@`, `,`, `-`, `(`, `)`, as EAL's --lcores";
    case TextRule::Letters::kAny:
      break;
  }
  return "printable characters";
}

absl::StatusOr<uint16_t> ParsePort(absl::string_view text) {
  absl::StatusOr<uint64_t> port = ParseWhole(text);
  if (!port.ok()) return port.status();
  if (*port > 65535) return absl::InvalidArgumentError(absl::StrCat(Shown(text), " is above 65535"));
  return static_cast<uint16_t>(*port);
}

}  // namespace

FieldValue NumberValue(const NumberRule& rule, std::function<uint64_t()> get, std::function<void(uint64_t)> set) {
  auto parse = [rule, set](absl::string_view text, bool quoted) -> absl::Status {
    if (rule.word != nullptr && text == rule.word) {
      set(rule.word_value);
      return absl::OkStatus();
    }
    absl::StatusOr<uint64_t> n = rule.bytes ? ParseBytes(text) : ParseWhole(text);
    if (!n.ok()) return Refuse(n.status().message(), RuleText(rule));
    if (quoted && !rule.bytes) return RefuseQuotes(text, RuleText(rule));
    if (absl::Status status = CheckNumber(rule, *n, text); !status.ok()) return status;
    set(*n);
    return absl::OkStatus();
  };
  auto format = [rule, get]() -> std::string {
    const uint64_t n = get();
    return rule.word != nullptr && n == rule.word_value ? rule.word : Count(rule, n);
  };
  return {parse, format, RuleText(rule)};
}

FieldValue Duration(double& field, double max) {
  const std::string rule = absl::StrCat("0 to ", FormatSeconds(max));
  auto parse = [&field, max, rule](absl::string_view text, bool) -> absl::Status {
    absl::StatusOr<double> seconds = ParseSeconds(text);
    if (!seconds.ok()) return Refuse(seconds.status().message(), rule);
    if (*seconds > max) return Refuse(absl::StrCat(Shown(text), " is above ", FormatSeconds(max)), rule);
    field = *seconds;
    return absl::OkStatus();
  };
  return {parse, [&field] { return FormatSeconds(field); }, rule};
}

FieldValue Flag(bool& field) {
  auto parse = [&field](absl::string_view text, bool quoted) -> absl::Status {
    if (quoted || (text != "true" && text != "false")) {
      return Refuse(absl::StrCat(quoted ? "the text " : "", Shown(text), " is neither yes nor no"), "true or false");
    }
    field = text == "true";
    return absl::OkStatus();
  };
  return {parse, [&field]() -> std::string { return field ? "true" : "false"; }, "true or false"};
}

FieldValue Text(std::string& field, const TextRule& rule) {
  auto parse = [&field, rule](absl::string_view text, bool) -> absl::Status {
    field = std::string(text);  // kept even if refused: a reference to a badly spelt name is not a second fault
    if (rule.word != nullptr && text == rule.word) return absl::OkStatus();
    if (text.empty() && !rule.may_be_empty) return absl::InvalidArgumentError("an empty text: give at least a letter");
    if (text.size() > rule.max) {
      return absl::InvalidArgumentError(
          absl::StrCat(Shown(text), " has ", text.size(), " bytes: give at most ", rule.max));
    }
    for (const char c : text) {
      if (Allowed(rule.letters, c)) continue;
      const std::string letter = absl::ascii_isascii(c) ? Shown(absl::string_view(&c, 1)) : "beyond ASCII";
      return absl::InvalidArgumentError(absl::StrCat(Shown(text), " has a letter ", letter, ": give ",
                                                     rule.word != nullptr ? absl::StrCat(rule.word, " or ") : "",
                                                     LettersText(rule.letters)));
    }
    return absl::OkStatus();
  };
  return {parse, [&field] { return YamlText(field); }, ""};
}

FieldValue Name(std::string& field, size_t max) {
  return Text(field, {.letters = TextRule::Letters::kName, .max = max});
}

FieldValue OptionalName(std::string& field, size_t max) {
  return Text(field, {.letters = TextRule::Letters::kName, .max = max, .may_be_empty = true});
}

FieldValue ChoiceValue(std::vector<std::string> words, std::function<size_t()> get, std::function<void(size_t)> set) {
  auto parse = [words, set](absl::string_view text, bool) -> absl::Status {
    for (size_t i = 0; i < words.size(); ++i) {
      if (text != words[i]) continue;
      set(i);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("no such choice: ", Shown(text), DidYouMean(text, words),
                                                   " (one of ", absl::StrJoin(words, ", "), ")"));
  };
  return {parse, [words, get] { return words[get()]; }, absl::StrJoin(words, ", ")};
}

FieldValue Verdict(XdpAction& field) {
  std::vector<std::string> words;
  for (int i = 0; i < kXdpActions; ++i) words.emplace_back(XdpActionName(static_cast<XdpAction>(i)));
  FieldValue choice = Choice(field, words);
  choice.parse = [&field, by_word = choice.parse](absl::string_view text, bool quoted) -> absl::Status {
    const auto action = ParseXdpAction(text);
    if (!action.has_value()) return by_word(text, quoted);  // for its message
    field = *action;
    return absl::OkStatus();
  };
  return choice;
}

FieldValue Ethertype(std::optional<uint16_t>& field) {
  return NamedNumber(field, EthertypeNames(), 0x600, true);
}
FieldValue Protocol(std::optional<uint8_t>& field) {
  return NamedNumber(field, ProtocolNames(), 0, false);
}

FieldValue Ports(std::optional<PortRange>& field) {
  const std::string rule = "any, a port from 0 to 65535, or a range as in 1024-2047";
  auto parse = [&field, rule](absl::string_view text, bool) -> absl::Status {
    if (text == "any") {
      field.reset();
      return absl::OkStatus();
    }
    const size_t dash = text.find('-', 1);
    const absl::StatusOr<uint16_t> first = ParsePort(text.substr(0, dash));
    if (!first.ok()) return Refuse(first.status().message(), rule);
    const absl::StatusOr<uint16_t> last = dash == absl::string_view::npos ? first : ParsePort(text.substr(dash + 1));
    if (!last.ok()) return Refuse(last.status().message(), rule);
    if (*last < *first) return Refuse(absl::StrCat(Shown(text), " ends before it begins"), rule);
    field = PortRange{*first, *last};
    return absl::OkStatus();
  };
  auto format = [&field]() -> std::string {
    if (!field.has_value()) return "any";
    return field->first == field->last ? absl::StrCat(field->first) : absl::StrCat(field->first, "-", field->last);
  };
  return {parse, format, rule};
}

FieldValue Version() {
  auto parse = [](absl::string_view text, bool) -> absl::Status {
    if (text == "1") return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("version ", Shown(text), " is not known here: this halfpage reads version 1, so write 1"));
  };
  return {parse, [] { return std::string("1"); }, "1"};
}

std::string YamlText(const std::string& text) {
  bool plain = !text.empty() && (absl::ascii_isalpha(text[0]) || text[0] == '/') && text.back() != ' ';
  for (const char c : text) plain = plain && (absl::ascii_isalnum(c) || absl::StrContains("_./+=- ", c));
  for (const absl::string_view word : {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}) {
    plain = plain && !absl::EqualsIgnoreCase(text, word);
  }
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (absl::ascii_iscntrl(c)) {
      absl::StrAppendFormat(&quoted, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return absl::StrCat(quoted, "\"");
}

}  // namespace halfpage
