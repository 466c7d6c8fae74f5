#include "app/nearest_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace halfpage {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kMostListed = 24;

std::string Folded(absl::string_view name) {
  std::string folded = absl::AsciiStrToLower(name);
  std::replace(folded.begin(), folded.end(), '-', '_');
  return folded;
}

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours, one each.
size_t Slips(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::optional<std::string> NearestName(absl::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongestName) return std::nullopt;
  const std::string wanted = Folded(name);
  std::optional<std::string> nearest;
  size_t fewest = kLongestName;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestName) continue;
    const size_t slips = Slips(wanted, Folded(candidate));
    if (slips < fewest && slips <= std::max<size_t>(1, candidate.size() / 3)) {
      fewest = slips;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string ListNames(const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "none";
  const size_t listed = std::min(candidates.size(), kMostListed);
  std::string names = absl::StrJoin(candidates.begin(), candidates.begin() + listed, ", ");
  if (listed < candidates.size()) absl::StrAppend(&names, " and ", candidates.size() - listed, " more");
  return names;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = NearestName(name, candidates);
  return nearest.has_value() ? absl::StrCat(", did you mean `", *nearest, "`?") : "";
}

}  // namespace halfpage
