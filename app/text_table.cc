#include "app/text_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace halfpage {

std::string TextTable(const std::vector<TableRow>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const TableRow& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    std::string line = absl::StrFormat("  %-*s", static_cast<int>(widths[0]), row[0]);
    for (size_t c = 1; c < row.size(); ++c) absl::StrAppendFormat(&line, "  %*s", static_cast<int>(widths[c]), row[c]);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace halfpage
