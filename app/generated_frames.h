// The frames of a generator, made ahead of the run: UDP (for segmentation, TCP) over IPv4 with valid checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "app/config.h"

namespace halfpage {

// Bytes of a frame that may differ from flow to flow: one cache line, which holds all headers.
inline constexpr uint32_t kFrameHeadBytes = 64;

// Every frame is a head (its first 64 bytes: headers and what payload fits) that belongs to one size and flow, and a
// tail that all flows and sizes share. So 65536 flows of 1514 bytes take 4 MiB and not 100, and a burst reads its
// payload from the first-level cache.
//
//   Ethernet  source 02:00:H:H:H:01, destination 02:00:H:H:H:02, H a hash of the traffic's name
//   IPv4      10.0.X.Y -> 10.128.0.1, X.Y the 16 bits of the flow; TTL 64, DF, no options
//   UDP       1024 + flow % 64512 -> destination_port + flow % ports
//   TCP       instead where `gso` is set: the same ports, sequence and acknowledgement 1, PSH and ACK, no options
//   payload   from the seed; a longer frame's begins with a shorter one's
class GeneratedFrames {
 public:
  // Whether Create() would take it, without making anything. Errors, with what to change: InvalidArgument for values
  // outside of what a frame can be, ResourceExhausted past 64 MiB of heads or 2^20 positions of the order.
  static absl::Status Check(const TrafficConfig& config);

  // Same traffic and seed, same bytes and order, on any platform. Errors: those of Check().
  static absl::StatusOr<GeneratedFrames> Create(const TrafficConfig& config, uint64_t seed);

  uint32_t flows() const { return flows_; }
  // Frame lengths in the order of the configuration. A frame shorter than a head uses the head's beginning only.
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  // The order in which sizes are sent, as indices into lengths(); whole cycles that each keep the exact ratio.
  const std::vector<uint32_t>& order() const { return order_; }
  // What to add to the flow at each end of the order, beside the one of every frame, for each position to meet each
  // flow. Below flows().
  uint32_t skew() const { return skew_; }

  // The first of the heads of one size; that of flow f is kFrameHeadBytes * f behind it. On a cache line.
  const uint8_t* heads(uint32_t size) const { return heads_[static_cast<size_t>(size) * flows_].bytes; }
  // Indexed by the offset in the frame, meaningful from kFrameHeadBytes on, readable from 0. On a cache line: frames
  // start on one in their buffers, and a copy from line to line has each load on one.
  const uint8_t* tail() const { return payload_.data()->bytes; }

 private:
  struct alignas(kFrameHeadBytes) Line {
    uint8_t bytes[kFrameHeadBytes];
  };

  GeneratedFrames() = default;

  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> order_;
  std::vector<Line> payload_;
  std::vector<Line> heads_;
  uint32_t flows_ = 1;
  uint32_t skew_ = 0;
};

}  // namespace halfpage
