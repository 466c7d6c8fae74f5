// A snapshot as JSON: the tree that the final report, --json and telemetry show parts of.
#pragma once

#include <nlohmann/json.hpp>

#include "app/snapshot.h"

namespace halfpage {

// {"seconds": ..., "traffic": [...], "devices": [...], "sinks": [...], "objects": [...], "pools": [...],
// "workers": [...], "page_memory": {...}, ...}.
nlohmann::ordered_json SnapshotJson(const Snapshot& snapshot);

}  // namespace halfpage
