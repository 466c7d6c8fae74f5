// What the commands of the prompt act upon, and what they leave for each other.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "app/snapshot.h"
#include "app/topology.h"

namespace halfpage {

// A line as it was typed, word by word.
using Words = std::vector<std::string>;

// One prompt over one running topology. The control thread only.
struct Session {
  explicit Session(Topology& over) : topology(over), cleared(over.Read()), shown(cleared) {}

  Topology& topology;
  Snapshot cleared;  // the baseline of `clear`
  Snapshot shown;    // what the last `show port stats` saw, for rates
  std::string out;   // what the command says
  bool quit = false;
  std::vector<std::string> files;  // being loaded, the innermost last
  bool keep_going = false;

  // Counters since the last `clear`.
  Snapshot Read() const;
  // The device that a word names: its number as a port, or its name. Errors: NotFound with those there are.
  absl::StatusOr<DeviceIndex> Device(const std::string& word) const;
  // Those that a word names, `all` included.
  absl::StatusOr<std::vector<DeviceIndex>> Devices(const std::string& word) const;
};

// A whole number in a word. Errors: InvalidArgument with the limits.
absl::StatusOr<uint64_t> NumberIn(const std::string& word, const char* what, uint64_t least, uint64_t most);

}  // namespace halfpage
