// Buffers that are still out at the end: how many, who had them last, for how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mempool/pktmbuf_pool.h"

namespace halfpage {

// The buffers of one pool that one stage holds. Without owner tracking there is one entry with an empty stage.
struct LeakedBuffers {
  std::string stage;
  uint64_t count = 0;
  double oldest = 0;  // seconds since the hand-over to the stage; 0 without tracking
  double youngest = 0;
};

// Looks for the buffers that are out of a flushed pool that nobody uses. `stages` names the numbers that were stamped
// (buffer_stamp.h). Pools of page_frag are walked page by page; of any other handler the free objects are taken out,
// and what is missing is out. Control thread only.
std::vector<LeakedBuffers> FindLeaks(const PktmbufPool& pool, const std::vector<std::string>& stages);

}  // namespace halfpage
