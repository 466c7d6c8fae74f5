// --top: a run as one screen, redrawn in place.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/output.h"
#include "app/snapshot.h"

namespace halfpage {

// The screen as lines of at most `columns` characters, at most `rows` of them, without a line break behind the last:
// rates per device and verdict, frames lost by reason, buffers and pages, the busy share of each lcore, all between
// the two snapshots; and `warnings` where there are any, the latest first. Sections that have not room for all say how
// many more there are. Pure.
std::string TopScreen(const std::string& title, const Snapshot& now, const Snapshot& before,
                      const std::vector<std::string>& warnings, size_t columns, size_t rows);

// Whether standard output is a terminal that can be drawn on.
bool CanDraw();

// Draws the screen at the size that the terminal has at this moment, over the one before. Changes nothing that would
// have to be undone: no mode, no second screen, no hidden cursor.
Written DrawTop(const std::string& title, const Snapshot& now, const Snapshot& before,
                const std::vector<std::string>& warnings);

}  // namespace halfpage
