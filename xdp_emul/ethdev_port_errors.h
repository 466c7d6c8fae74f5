// Why a real port cannot be had, in words that say how to mend it. DPDK's own reasons are in its log only.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xdp_emul/device_string.h"

struct rte_mempool;

namespace halfpage {

// What a driver would fail on without a clear word: an interface that is not there, /dev/net/tun, rights.
absl::Status CheckBeforeProbe(const std::string& port, const DeviceString& device);

// The device cannot be made; `error` is an errno.
absl::Status ProbeError(const std::string& port, const std::string& text, const DeviceString& device, int error);

// The device takes no such MTU; `most` is what it states.
absl::Status MtuError(const std::string& port, const DeviceString& device, uint32_t mtu, uint32_t most, int error);

// The device has fewer queues than the run wants.
absl::Status QueueError(const std::string& port, const DeviceString& device, uint16_t receive, uint16_t most_receive,
                        uint16_t send, uint16_t most_send);

// A receive queue cannot be set up on the pool.
absl::Status ReceiveRoomError(const std::string& port, const DeviceString& device, const rte_mempool* pool, int error);

// Any other step.
absl::Status SetUpError(const std::string& port, const DeviceString& device, absl::string_view what, int error);

}  // namespace halfpage
