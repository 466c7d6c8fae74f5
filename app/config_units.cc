#include "app/config_units.h"

#include <charconv>
#include <cstddef>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

constexpr std::pair<absl::string_view, uint64_t> kByteUnits[] = {
    {"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1}};
constexpr std::pair<absl::string_view, double> kTimeUnits[] = {
    {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Shown(text), " ", what));
}

size_t LeadingDigits(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  return digits;
}

// A number and its unit, told apart; one blank may stand between them.
std::pair<absl::string_view, absl::string_view> SplitUnit(absl::string_view text) {
  size_t end = LeadingDigits(text);
  if (end > 0 && end < text.size() && text[end] == '.') end += 1 + LeadingDigits(text.substr(end + 1));
  absl::string_view unit = text.substr(end);
  if (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
  return {text.substr(0, end), unit};
}

}  // namespace

std::string Shown(absl::string_view text) {
  constexpr size_t kMost = 60;
  size_t shown = text.size();
  if (shown > kMost) {
    shown = kMost;
    while (shown > 0 && (static_cast<unsigned char>(text[shown]) & 0xc0) == 0x80) --shown;  // not inside a UTF-8 letter
  }
  std::string quoted = "`";
  for (const char c : text.substr(0, shown)) {
    if (absl::ascii_iscntrl(c)) {
      absl::StrAppendFormat(&quoted, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  absl::StrAppend(&quoted, shown < text.size() ? "...`" : "`");
  return quoted;
}

absl::StatusOr<uint64_t> ParseWhole(absl::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("an empty text is not a number");
  if (text[0] == '-' && text.size() > 1 && LeadingDigits(text.substr(1)) == text.size() - 1) {
    return Wrong(text, "is negative");
  }
  const size_t digits = LeadingDigits(text);
  if (digits < text.size()) {
    double real = 0;
    const bool fraction = absl::ascii_isdigit(text[0]) && absl::SimpleAtod(text, &real);
    return Wrong(text, fraction ? "is not a whole number" : "is not a number");
  }
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return Wrong(text, "is too large to count");
  return value;
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  const auto [number, unit] = SplitUnit(text);
  if (unit.empty() || number.empty()) return ParseWhole(text);
  if (absl::StrContains(number, '.')) return Wrong(text, "is not a whole number; take a smaller unit");
  uint64_t factor = 0;
  for (const auto& [name, bytes] : kByteUnits) {
    if (absl::EqualsIgnoreCase(unit, name)) factor = bytes;
  }
  if (factor == 0) return Wrong(text, "has no known unit of bytes (B, KiB, MiB, GiB, TiB)");
  absl::StatusOr<uint64_t> value = ParseWhole(number);
  if (!value.ok()) return value;
  if (*value > UINT64_MAX / factor) return Wrong(text, "is too large to count");
  return *value * factor;
}

std::string FormatBytes(uint64_t bytes) {
  for (const auto& [name, size] : kByteUnits) {
    if (size > 1 && bytes >= size && bytes % size == 0) return absl::StrCat(bytes / size, name);
  }
  return absl::StrCat(bytes);
}

std::string DescribeBytes(uint64_t bytes) {
  return absl::StrFormat("%d bytes (%.1f MiB)", bytes, static_cast<double>(bytes) / (1 << 20));
}

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  const auto [number, unit] = SplitUnit(text);
  double value = 0;
  if (!text.empty() && text[0] == '-') return Wrong(text, "is negative");
  if (number.empty() || !absl::SimpleAtod(number, &value)) return Wrong(text, "is not a duration");
  if (unit.empty()) {
    if (value == 0) return 0.0;
    return Wrong(text, absl::StrCat("has no unit (us, ms, s, min, h; for seconds write ", number, "s)"));
  }
  for (const auto& [name, seconds] : kTimeUnits) {
    // Small units divide: 500ms is 0.5 and not 500 times the nearest double to 0.001.
    if (unit == name) return seconds < 1 ? value / (seconds == 1e-3 ? 1e3 : 1e6) : value * seconds;
  }
  return Wrong(text, "has no known unit of time (us, ms, s, min, h)");
}

std::string FormatSeconds(double seconds) {
  if (seconds == 0) return "0";
  char digits[400];  // the longest double in fixed notation has 309 digits before the point
  const std::to_chars_result end =
      std::to_chars(std::begin(digits), std::end(digits), seconds, std::chars_format::fixed);
  if (end.ec != std::errc()) return absl::StrFormat("%fs", seconds);
  return absl::StrCat(absl::string_view(digits, end.ptr - digits), "s");
}

}  // namespace halfpage
