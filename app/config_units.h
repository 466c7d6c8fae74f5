// Numbers as people write them: whole numbers, bytes ("2KiB"), durations ("500ms"). Text to value and back.
//
// Errors are InvalidArgument and say what is wrong with the text, to be followed by what is allowed ("`1.5` is not a
// whole number"). Formatting and parsing again gives the same value, bit for bit.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halfpage {

// `text` in backticks for a message: cut behind 60 bytes, control characters as \xNN (no terminal sees them raw).
std::string Shown(absl::string_view text);

// Decimal digits and nothing else.
absl::StatusOr<uint64_t> ParseWhole(absl::string_view text);

// A whole number, of bytes or with the unit B, KiB, MiB, GiB or TiB.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);
// With the largest unit that leaves a whole number: "512MiB", "2176".
std::string FormatBytes(uint64_t bytes);
// For messages, where every byte counts but nobody can read ten digits: "503316480 bytes (480.0 MiB)".
std::string DescribeBytes(uint64_t bytes);

// A number with the unit us, ms, s, min or h; 0 needs no unit. Gives seconds.
absl::StatusOr<double> ParseSeconds(absl::string_view text);
// "2s", "0.5s", "0".
std::string FormatSeconds(double seconds);

}  // namespace halfpage
