#include "app/snapshot.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace halfpage {

uint64_t Sum(const RefusalCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

void QueueSnapshot::Names(const std::vector<QueueSnapshot>& queues,
                          std::vector<std::pair<std::string, uint64_t>>* out) {
  for (size_t q = 0; q < queues.size(); ++q) {
    const QueueSnapshot& queue = queues[q];
    const std::string prefix = absl::StrCat("rx_queue_", q, "_");
    out->insert(out->end(), {{prefix + "xdp_packets", queue.xdp_packets},
                             {prefix + "xdp_bytes", queue.xdp_bytes},
                             {prefix + "drops", queue.drops},
                             {prefix + "xdp_redirect", queue.xdp_redirect},
                             {prefix + "xdp_drops", queue.xdp_drops},
                             {prefix + "xdp_tx", queue.xdp_tx},
                             {prefix + "xdp_tx_errors", queue.xdp_tx_errors}});
  }
  for (size_t q = 0; q < queues.size(); ++q) {
    out->emplace_back(absl::StrCat("tx_queue_", q, "_xdp_xmit"), queues[q].xdp_xmit);
    out->emplace_back(absl::StrCat("tx_queue_", q, "_xdp_xmit_errors"), queues[q].xdp_xmit_errors);
  }
}

uint64_t Snapshot::frames_sent() const {
  uint64_t sum = 0;
  for (const TrafficSnapshot& source : traffic) sum += source.sent;
  return sum;
}

uint64_t Snapshot::frames_come() const {
  uint64_t sum = 0;
  for (const DeviceSnapshot& device : devices) sum += device.real ? device.received : 0;
  return sum;
}

uint64_t Snapshot::pages_in_flight() const {
  uint64_t sum = 0;
  for (const PoolSnapshot& pool : pools) sum += pool.pages_in_flight;
  return sum;
}

uint64_t Snapshot::buffers_in_use() const {
  uint64_t sum = 0;
  for (const PoolSnapshot& pool : pools) sum += pool.buffers_in_use - pool.kept_by_drivers;
  return sum;
}

}  // namespace halfpage
