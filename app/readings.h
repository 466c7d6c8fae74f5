// The names of all numbers in a snapshot, for programs that read them: one list for metrics, telemetry and baselines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/snapshot.h"

namespace halfpage {

// One number of a snapshot.
struct Reading {
  enum class Kind : uint8_t { kCounter, kGauge };

  std::string name;  // with its unit: "device_received_frames"
  Kind kind = Kind::kCounter;
  const char* help = "";                                    // what is counted, as a noun phrase
  std::vector<std::pair<std::string, std::string>> labels;  // {"device", "veth0"}
  uint64_t* count = nullptr;                                // in the snapshot; null: `number` is it
  double number = 0;
};

// Calls `visit` for each number of `snapshot`, those of one name one after the other only within one device, sink or
// the like. Any thread that owns the snapshot.
void ForEachReading(Snapshot& snapshot, const std::function<void(const Reading&)>& visit);

}  // namespace halfpage
