#include <rte_ring.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "xdp_emul/sinks/udp_socket.h"

namespace halfpage {
namespace {

// No frame is charged less: an mbuf and a line for an Ethernet header.
constexpr uint32_t kLeastCharge = ExactTruesize(1);

}  // namespace

absl::StatusOr<std::unique_ptr<UdpSocket>> UdpSocket::Create(const UdpSocketOptions& options) {
  auto socket = std::make_unique<UdpSocket>();
  socket->options = options;
  // rcvbuf is what limits the queue, never its ring.
  const uint32_t most = options.rcvbuf / kLeastCharge + 1;
  auto ring =
      MakeRing({.name = absl::StrCat(options.name, "_q"), .slots = most, .many_producers = options.many_senders});
  if (!ring.ok()) return ring.status();
  socket->queue = *std::move(ring);
  if (options.condense && options.accounting == Accounting::kBuffers) {
    ExactFragConfig config;
    config.name = absl::StrCat(options.name, "_s");
    config.size = most;
    config.page_size =
        4096;  // frames of a queue leave in the order they came: pages empty soon, the smaller the sooner
    auto small = ExactFrag::Create(config);
    if (!small.ok()) return small.status();
    socket->small.emplace(*std::move(small));
    socket->longest_small = socket->small->longest({0, 0});
  }
  return socket;
}

UdpSocket::~UdpSocket() {
  if (queue != nullptr) Flush();
}

uint32_t UdpSocket::Waiting() const {
  return rte_ring_count(queue.get());
}

uint64_t UdpSocket::Flush() {
  const uint64_t left = FreeFramesIn(queue.get());
  charged.store(0, std::memory_order_relaxed);
  if (small.has_value()) small->Flush();
  return left;
}

}  // namespace halfpage
