#include "xdp_emul/veth_pair.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

absl::Status DpdkError(int error, const std::string& what) {
  if (error == ENOSPC || error == ENOMEM) return absl::ResourceExhaustedError(what + ": " + rte_strerror(error));
  return absl::ErrnoToStatus(error, what);
}

}  // namespace

absl::Status VethPair::MakeRings(const VethPairOptions& options) {
  for (int end = 0; end < 2; ++end) {
    // The frames for this end come from whoever sends through the other.
    const unsigned senders = options.many_senders[1 - end] ? 0 : RING_F_SP_ENQ;
    for (uint16_t queue = 0; queue < options.queues; ++queue) {
      const std::string name = absl::StrFormat("%s_rx%u", options.names[end], queue);
      // A plain ring of 2^n holds one less; RING_F_EXACT_SZ gives every slot that was asked for.
      rte_ring* ring =
          rte_ring_create(name.c_str(), options.ring, options.socket, senders | RING_F_SC_DEQ | RING_F_EXACT_SZ);
      if (ring == nullptr) {
        return DpdkError(rte_errno, absl::StrFormat("veth end %s: ring of %u slots", options.names[end], options.ring));
      }
      receive_[end].push_back(ring);
    }
  }
  return absl::OkStatus();
}

absl::Status VethPair::MakePort(const VethPairOptions& options, int end) {
  const std::string& name = options.names[end];
  const int port = rte_eth_from_rings(name.c_str(), receive_[end].data(), options.queues, receive_[1 - end].data(),
                                      options.queues, static_cast<unsigned>(options.socket));
  if (port < 0) {
    const int error = rte_eth_dev_count_total() == RTE_MAX_ETHPORTS ? ENOSPC : rte_errno;  // the driver says EINVAL
    return DpdkError(error, absl::StrFormat("veth end %s: no ethdev port (DPDK has %d)", name, RTE_MAX_ETHPORTS));
  }
  ports_[end] = static_cast<uint16_t>(port);
  rte_eth_conf conf;
  std::memset(&conf, 0, sizeof(conf));
  int result = rte_eth_dev_configure(ports_[end], options.queues, options.queues, &conf);
  for (uint16_t queue = 0; queue < options.queues && result == 0; ++queue) {
    const auto slots = static_cast<uint16_t>(options.ring);
    result =
        rte_eth_rx_queue_setup(ports_[end], queue, slots, static_cast<unsigned>(options.socket), nullptr, options.pool);
    if (result == 0) {
      result = rte_eth_tx_queue_setup(ports_[end], queue, slots, static_cast<unsigned>(options.socket), nullptr);
    }
  }
  if (result == 0) result = rte_eth_dev_start(ports_[end]);
  if (result != 0) return DpdkError(-result, absl::StrFormat("veth end %s: port set-up", name));
  return absl::OkStatus();
}

absl::StatusOr<VethPair> VethPair::Create(const VethPairOptions& options) {
  VethPair pair;
  absl::Status status = pair.MakeRings(options);
  for (int end = 0; end < 2 && status.ok(); ++end) status = pair.MakePort(options, end);
  if (!status.ok()) return status;
  return pair;
}

void VethPair::TakeFrom(VethPair& other) {
  for (int end = 0; end < 2; ++end) {
    ports_[end] = std::exchange(other.ports_[end], kNoPort);
    receive_[end] = std::exchange(other.receive_[end], {});
  }
}

VethPair::VethPair(VethPair&& other) noexcept {
  TakeFrom(other);
}

VethPair& VethPair::operator=(VethPair&& other) noexcept {
  if (this != &other) {
    Close();
    TakeFrom(other);
  }
  return *this;
}

uint32_t VethPair::Waiting(int end) const {
  uint32_t waiting = 0;
  for (const rte_ring* ring : receive_[end]) waiting += rte_ring_count(ring);
  return waiting;
}

// What goes out at an end waits for its peer. With one sender, head and tail are equal between two sends in either
// mode, and rings look their mode up with each send.
bool VethPair::many_senders(int end) const {
  return receive_[1 - end].front()->prod.sync_type == RTE_RING_SYNC_MT;
}

void VethPair::AllowManySenders(int end) {
  for (rte_ring* ring : receive_[1 - end]) {
    __atomic_store_n(&ring->prod.sync_type, RTE_RING_SYNC_MT, __ATOMIC_RELAXED);
  }
}

std::array<uint64_t, 2> VethPair::Close() {
  std::array<uint64_t, 2> waited = {0, 0};
  for (uint16_t& port : ports_) {
    if (port == kNoPort) continue;
    // The ring driver's virtual device outlives its closed port and would keep its name taken.
    rte_eth_dev_info info;
    rte_device* device = rte_eth_dev_info_get(port, &info) == 0 ? info.device : nullptr;
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
    if (device != nullptr) rte_dev_remove(device);
    port = kNoPort;
  }
  for (int end = 0; end < 2; ++end) {
    for (rte_ring* ring : receive_[end]) {
      void* frame = nullptr;
      while (rte_ring_dequeue(ring, &frame) == 0) {
        rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
        ++waited[end];
      }
      rte_ring_free(ring);
    }
    receive_[end].clear();
  }
  return waited;
}

}  // namespace halfpage
