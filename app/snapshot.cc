#include "app/snapshot.h"

namespace halfpage {

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
