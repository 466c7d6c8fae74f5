// How many frames each burst has that a port sends.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>
#include <vector>

namespace halfpage {

// For rte_eth_add_tx_callback(): appends the size of each burst to `sizes`, a std::vector<uint16_t>. The port's sender
// runs it.
inline uint16_t CountBursts(uint16_t, uint16_t, rte_mbuf*[], uint16_t n, void* sizes) {
  static_cast<std::vector<uint16_t>*>(sizes)->push_back(n);
  return n;
}

}  // namespace halfpage
