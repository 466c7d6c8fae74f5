// Ending a run: sources off, rings run dry, workers home, ports closed, caches emptied.
#include <rte_cycles.h>
#include <rte_launch.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "app/plan.h"
#include "app/topology.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

constexpr useconds_t kLook = 200;  // microseconds between looks at the workers
constexpr double kAwaitLost =
    0.1;  // seconds; all who could free a buffer are gone, so this is for what nobody thought of

}  // namespace

uint64_t Topology::FramesWaiting() const {
  uint64_t frames = 0;
  for (const VethPair& pair : pairs_) frames += pair.Waiting(0) + pair.Waiting(1);
  return frames + WaitingInLanes();
}

bool Topology::RingsEmpty() const {
  return FramesWaiting() == 0 && HeldSinksEmpty();
}

uint64_t Topology::Received() const {
  uint64_t received = 0;
  for (const Worker& worker : workers_) {
    for (const ReceiveQueue& queue : worker.queues) received += queue.counters.packets.Read();
    for (const auto& queues : worker.remote_queues) {
      for (size_t device = 0; device < devices_.size(); ++device) received += queues[device].counters.packets.Read();
    }
  }
  return received + ReadByWorkers();
}

// Waits until every worker has completed `rounds` rounds more. Gives false at the deadline.
bool Topology::WaitRounds(uint64_t rounds, uint64_t deadline_tsc) const {
  std::vector<uint64_t> goals;
  for (const Worker& worker : workers_) goals.push_back(worker.rounds.load(std::memory_order_acquire) + rounds);
  for (size_t w = 0; w < workers_.size(); ++w) {
    while (workers_[w].rounds.load(std::memory_order_acquire) < goals[w]) {
      if (rte_get_timer_cycles() > deadline_tsc) return false;
      usleep(kLook);
    }
  }
  return true;
}

// Rings are dry when they were empty, every worker then went round twice, and nobody received anything meanwhile: no
// frame can have been in a worker's hands. Frames that go in circles (XDP_TX at both ends) never come to rest; they are
// what the deadline is for.
void Topology::Drain(double timeout) {
  phase_.store(Phase::kDraining, std::memory_order_relaxed);
  const uint64_t deadline =
      rte_get_timer_cycles() + static_cast<uint64_t>(timeout * static_cast<double>(rte_get_timer_hz()));
  if (!WaitRounds(2, deadline)) return;
  while (rte_get_timer_cycles() < deadline) {
    const uint64_t received = Received();
    if (RingsEmpty() && WaitRounds(2, deadline) && Received() == received && RingsEmpty()) return;
    usleep(kLook);
  }
}

void Topology::Halt(double drain_timeout) {
  end_tsc_ = rte_get_timer_cycles();
  forwarded_tsc_ += end_tsc_ - start_tsc_;
  Drain(drain_timeout);
  phase_.store(Phase::kStopped, std::memory_order_relaxed);
  for (Worker& worker : workers_) rte_eal_wait_lcore(worker.lcore);
  running_ = false;
}

void Topology::Pause(double drain_timeout) {
  if (running_ && !stopped_) Halt(drain_timeout);
}

absl::Status Topology::Stop(double drain_timeout) {
  if (stopped_) return absl::OkStatus();
  if (running_) Halt(drain_timeout);
  const std::lock_guard<std::mutex> lock(changing_);
  stopped_ = true;
  for (size_t p = 0; p < pairs_.size(); ++p) {
    const std::array<uint64_t, 2> waited = pairs_[p].Close();
    for (size_t end = 0; end < 2; ++end) left_in_ring_[2 * p + end] = waited[end];
  }
  FlushLanes();
  FlushHeldSinks();
  for (EthdevPort& port : ports_) {
    driver_counts_.push_back(port.Read());
    port.Close();
  }
  for (PktmbufPool& pool : pools_) pool.Flush();
  for (PktmbufPool& pool : pools_) {
    const bool clean = pool.in_use() <= KeptByDrivers(pool.config().name);
    leaks_.push_back(clean ? std::vector<LeakedBuffers>() : FindLeaks(pool, stages_));
  }
  absl::Status status;
  for (const auto& capture : captures_) {
    if (capture != nullptr) status.Update(capture->Close());
  }
  return status;
}

std::vector<std::string> Topology::End(std::unique_ptr<Topology> topology) {
  topology->Stop(0).IgnoreError();
  std::vector<uint64_t> kept;
  for (const PktmbufPool& pool : topology->pools_) kept.push_back(topology->KeptByDrivers(pool.config().name));
  const std::set<int> sockets = ArenaSockets(topology->config_);
  std::vector<PktmbufPool> pools = std::move(topology->pools_);
  topology->pools_.clear();
  topology.reset();
  std::vector<std::string> lines;
  double left = kAwaitLost;
  for (size_t p = 0; p < pools.size(); ++p) {
    const std::string name = pools[p].config().name;
    const PktmbufPool::Lost lost = pools[p].DestroyAndReclaim(left);
    left = std::max(0.0, left - lost.waited);
    if (lost.buffers <= kept[p]) continue;
    lines.push_back(absl::StrFormat("pool %s: %u buffers never came back; after %.2f s the pool was ended without them",
                                    name, lost.buffers, kAwaitLost - left));
    if (lost.pages != 0) absl::StrAppendFormat(&lines.back(), " and their %u pages were taken back", lost.pages);
  }
  for (const int socket : sockets) ShrinkPageFragArena(socket);
  return lines;
}

Topology::~Topology() {
  Stop(0).IgnoreError();
  workers_.clear();
  for (PktmbufPool& pool : pools_) TrimPageFragArena(pool.get());
}

}  // namespace halfpage
