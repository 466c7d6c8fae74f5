// "Did you mean": the valid name that a misspelt one was meant to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halfpage {

// The candidate that takes the fewest slips of the keys (a letter wrong, missing, extra, or two swapped) to become
// `name`; the first of several. Nothing where even that one takes more than a third of its letters. Upper and lower
// case, and `-` and `_`, count as equal. Names above 64 bytes are near nothing, which bounds the work.
std::optional<std::string> NearestName(absl::string_view name, const std::vector<std::string>& candidates);

// What follows "unknown key `rign`" in a message: ", did you mean `ring`?"; empty where nothing is near.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

// The candidates as prose, "a, b, c", at most 24 and then how many more; "none" for an empty list.
std::string ListNames(const std::vector<std::string>& candidates);

}  // namespace halfpage
