// Two ethdev ports joined back to back by rings, as the kernel's veth: what one end sends, the other receives.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct rte_mempool;
struct rte_ring;

namespace halfpage {

struct VethPairOptions {
  std::string names[2];  // of the ends, 1 to 20 bytes, unique in the process
  uint16_t queues = 1;   // per end
  uint32_t ring = 256;   // usable slots per queue (kernel: VETH_RING_SIZE)
  // For each end, whether several workers send through it. Each receive queue has one poller in any case.
  bool many_senders[2] = {false, false};
  rte_mempool* pool = nullptr;  // ethdev wants one per receive queue; ring ports deliver the sender's buffers
  int socket = 0;
};

// Move-only owner of a pair: its rings and its started ports.
class VethPair {
 public:
  // Makes rings and ports and starts them. A failed step undoes all before it. Errors: ResourceExhausted when DPDK has
  // no more ports (32) or memory, AlreadyExists for names that are taken, otherwise DPDK's. Control threads only.
  static absl::StatusOr<VethPair> Create(const VethPairOptions& options);

  VethPair(VethPair&& other) noexcept;
  VethPair& operator=(VethPair&& other) noexcept;
  ~VethPair() { Close(); }

  uint16_t port(int end) const { return ports_[end]; }

  // Where frames for a queue of `end` wait. For counting them: the ports own what is in there.
  const rte_ring* ring(int end, uint16_t queue) const { return receive_[end][queue]; }

  // Frames that wait to be received at `end`. Any thread.
  uint32_t Waiting(int end) const;

  // Whether several workers may send through `end`, and lets them from now on. One that sends already may go on
  // meanwhile; a second one may begin once that one's current send is over. Control threads.
  bool many_senders(int end) const;
  void AllowManySenders(int end);

  // Stops and closes the ports, frees the frames still in the rings and then the rings. Gives how many frames waited at
  // each end; zeros when it was closed before. No worker may use the ports any more.
  std::array<uint64_t, 2> Close();

 private:
  VethPair() = default;

  void TakeFrom(VethPair& other);
  absl::Status MakeRings(const VethPairOptions& options);
  absl::Status MakePort(const VethPairOptions& options, int end);

  static constexpr uint16_t kNoPort = UINT16_MAX;
  uint16_t ports_[2] = {kNoPort, kNoPort};
  // receive_[e][q]: frames on their way to queue q of end e.
  std::vector<rte_ring*> receive_[2];
};

}  // namespace halfpage
