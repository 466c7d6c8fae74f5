#include "app/baseline.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "app/readings.h"

namespace halfpage {
namespace {

std::string Key(const Reading& reading) {
  std::string key = reading.name;
  for (const auto& [label, value] : reading.labels) absl::StrAppend(&key, "\n", label, "\n", value);
  return key;
}

}  // namespace

Snapshot Since(Snapshot now, Snapshot before) {
  absl::flat_hash_map<std::string, uint64_t> counted;
  ForEachReading(before, [&](const Reading& reading) {
    if (reading.kind == Reading::Kind::kCounter && reading.count != nullptr) counted[Key(reading)] = *reading.count;
  });
  ForEachReading(now, [&](const Reading& reading) {
    if (reading.kind != Reading::Kind::kCounter || reading.count == nullptr) return;
    const auto found = counted.find(Key(reading));
    if (found != counted.end()) *reading.count -= std::min(*reading.count, found->second);
  });
  return now;
}

}  // namespace halfpage
