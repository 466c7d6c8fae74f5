// Numbers in columns, for people.
#pragma once

#include <string>
#include <vector>

namespace halfpage {

using TableRow = std::vector<std::string>;

// Columns as wide as their widest cell; the first one to the left, numbers to the right. All rows have as many cells as
// the first; there is at least one.
std::string TextTable(const std::vector<TableRow>& rows);

}  // namespace halfpage
