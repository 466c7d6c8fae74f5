// A real port: any ethdev that EAL has or makes, from its name to started queues and back.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct rte_mempool;

namespace halfpage {

struct EthdevPortOptions {
  std::string name;    // for messages
  std::string device;  // EAL's string: "net_af_packet0,iface=eth0", a PCI address, or the name of a port that is there
  rte_mempool* pool = nullptr;  // what it receives into
  uint32_t mtu = 1500;
  bool promiscuous = true;
  uint16_t rx_queues = 1;
  uint16_t tx_queues = 1;
  uint16_t rx_slots = 256;  // asked for; a driver with limits of its own gets what is nearest
  uint16_t tx_slots = 256;
  int socket = 0;
};

// What the driver has counted.
struct DriverCounts {
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t sent_bytes = 0;
  uint64_t missed = 0;          // came while the receive ring was full
  uint64_t receive_errors = 0;  // damaged or too long
  uint64_t send_errors = 0;     // taken for sending and not sent
  uint64_t no_buffer = 0;       // the pool was empty
};

// Move-only owner of a port. Some drivers hold buffers of the pool until Close() (tap, NICs), so the pool outlives it.
class EthdevPort {
 public:
  // Makes the device unless EAL has it already, sets it up and starts it. Waits at most 2 s for its link; a port whose
  // link is still down is a port all the same. Errors: NotFound, PermissionDenied and the like with what is missing and
  // how to mend it; InvalidArgument for an MTU or a number of queues that the device has not got. A failed step undoes
  // all before it. Control threads only.
  static absl::StatusOr<EthdevPort> Create(const EthdevPortOptions& options);

  EthdevPort(EthdevPort&& other) noexcept;
  EthdevPort& operator=(EthdevPort&& other) noexcept;
  ~EthdevPort() { Close(); }

  uint16_t port() const { return port_; }
  bool link_up() const { return link_up_; }
  uint16_t tx_queues() const { return tx_queues_; }
  // Whether its driver sends frames of several buffers.
  bool sends_chains() const { return sends_chains_; }
  // Any thread, also while workers use the port; zeros once it is closed.
  DriverCounts Read() const;

  // Stops the port, closes it and takes its device out of EAL again where Create() put it there. No worker may use it
  // any more.
  void Close();

 private:
  EthdevPort() = default;

  absl::Status Find(const EthdevPortOptions& options);
  absl::Status Configure(const EthdevPortOptions& options);
  absl::Status SetMtu(const EthdevPortOptions& options, uint32_t most);
  absl::Status StartPort(const EthdevPortOptions& options);

  static constexpr uint16_t kNoPort = UINT16_MAX;
  uint16_t port_ = kNoPort;
  uint16_t tx_queues_ = 0;
  bool made_ = false;  // by us
  bool link_up_ = false;
  bool sends_chains_ = false;
};

}  // namespace halfpage
