// How a socket's queue is charged.
#pragma once

#include <cstdint>

namespace halfpage {

enum class Accounting : uint8_t {
  kBuffers,  // what our buffers take: room, mbuf, and the pool's header in front
  kKernel,   // what the kernel charges after veth's private copy: fragment + 256 for the skb
};

}  // namespace halfpage
