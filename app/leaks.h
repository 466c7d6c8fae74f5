// Buffers that are out: how many, who had them last, for how long. At the end of a run, and while it goes on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mempool/pktmbuf_pool.h"

namespace halfpage {

// The buffers of one pool that one stage holds. Without owner tracking there is one entry with an empty stage.
struct LeakedBuffers {
  std::string stage;
  uint64_t count = 0;
  double oldest = 0;  // seconds since the hand-over to the stage; 0 without tracking
  double youngest = 0;

  // One more.
  void Add(const std::string& holder, double age) {
    stage = holder;
    oldest = std::max(oldest, age);
    youngest = count == 0 ? age : std::min(youngest, age);
    ++count;
  }
};

// Looks for the buffers that are out of a flushed pool that nobody uses. `stages` names the numbers that were stamped
// (buffer_stamp.h). Pools of page_frag are walked page by page; of any other handler the free objects are taken out,
// and what is missing is out. Control thread only.
std::vector<LeakedBuffers> FindLeaks(const PktmbufPool& pool, const std::vector<std::string>& stages);

// One buffer that somebody has not let go of.
struct HeldBuffer {
  const void* object = nullptr;
  std::string stage;  // empty where nobody stamped it
  double age = 0;     // seconds since the hand-over to the stage; 0 without a stamp
};

struct HeldBuffers {
  uint64_t out = 0;                     // all that are out, those in no mempool cache
  std::vector<LeakedBuffers> by_stage;  // of those that are old enough, or without a stamp
  std::vector<HeldBuffer> oldest;       // the first of these, oldest first; those without a stamp last
};

// The buffers that have been out of a page_frag pool for `older_than` seconds or longer, `most` of them one by one,
// while lcores use it; they are held for about a millisecond per 10 000 buffers. Two looks, a moment apart, so that
// what was just on its way to a mempool cache is not taken for held. Errors: Unimplemented for pools whose free buffers
// cannot be told from others while they are in use (other handlers, exact pools), with the way out; Unavailable when an
// lcore did not leave a call in time. Control threads.
absl::StatusOr<HeldBuffers> FindHeld(const PktmbufPool& pool, const std::vector<std::string>& stages, double older_than,
                                     size_t most);

// The lines of a listing: a sentence, the stages, the buffers.
std::string HeldText(const PktmbufPool& pool, const HeldBuffers& held, double older_than);

}  // namespace halfpage
