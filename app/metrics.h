// The snapshot for Prometheus, over HTTP at /metrics: each scrape reads anew.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/topology.h"

namespace halfpage {

class Metrics {
 public:
  // Serves at `where`: PORT (loopback), ADDRESS:PORT, or [IPV6]:PORT; port 0 is one that is free. `topology` outlives
  // it. Errors: InvalidArgument for what is none of these, Unavailable where nobody may listen there.
  static absl::StatusOr<Metrics> Start(const std::string& where, const Topology& topology);

  Metrics(Metrics&&) noexcept;
  Metrics& operator=(Metrics&&) = delete;
  ~Metrics();

  int port() const;

 private:
  struct Server;
  explicit Metrics(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

}  // namespace halfpage
