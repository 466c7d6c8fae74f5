// DPDK's environment layer as an object: started once, its runtime directory gone when it ends.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/config.h"

namespace halfpage {

// EAL's arguments for a configuration: its preset's, one lcore per worker and one for control, a file prefix of this
// process alone where none is asked for. `cpus` are those the process may run on, at least one; `pci` the addresses
// that a preset lets EAL look at. Pure; program name first.
std::vector<std::string> EalArguments(const EalConfig& config, size_t workers, const std::vector<int>& cpus,
                                      const std::vector<std::string>& pci = {});

// CPUs the calling thread may run on, ascending.
std::vector<int> AllowedCpus();

// A started EAL. One per process, ever: DPDK cannot be started again.
class Eal {
 public:
  // Starts EAL. Its log goes to standard error. Errors: FailedPrecondition with EAL's reason and what to try; the
  // runtime directory is removed in that case too. Main thread.
  static absl::StatusOr<Eal> Start(const std::vector<std::string>& arguments);

  Eal(Eal&& other) noexcept;
  Eal& operator=(Eal&&) = delete;
  // Cleans up and removes the runtime directory of a primary process. No DPDK object may be alive.
  ~Eal();

 private:
  explicit Eal(std::string runtime_directory) : runtime_directory_(std::move(runtime_directory)) {}

  std::string runtime_directory_;  // empty: nothing to remove
  bool running_ = true;
};

}  // namespace halfpage
