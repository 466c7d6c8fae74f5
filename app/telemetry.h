// The snapshot on DPDK's telemetry socket: commands under /halfpage/, for dpdk-telemetry.py and its like.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/topology.h"

namespace halfpage {

// Answers while it lives. DPDK has no way to take a command back: what asks later is told that nothing runs.
class Telemetry {
 public:
  // Registers the commands, once per process. EAL is up; `topology` outlives it. Errors: DPDK's.
  static absl::StatusOr<Telemetry> Start(const Topology& topology);

  Telemetry(Telemetry&& other) noexcept;
  Telemetry& operator=(Telemetry&&) = delete;
  ~Telemetry();

 private:
  Telemetry() = default;
  bool answers_ = true;
};

}  // namespace halfpage
