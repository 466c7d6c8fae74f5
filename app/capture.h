// Frames of a capture file, read once and kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace halfpage {

// A capture's frames in file order, back to back in one block.
class Capture {
 public:
  // Reads all of `path` (pcap or pcapng, any byte order and time resolution that libpcap knows).
  //
  // Errors, each with what to do about it: NotFound/PermissionDenied for the file; InvalidArgument for what is not a
  // capture and for a link type other than Ethernet; FailedPrecondition where not one frame is usable;
  // ResourceExhausted past `max_bytes` of frames. Damage behind at least one good frame is not an error: reading stops
  // there and `skipped()` says why.
  static absl::StatusOr<Capture> Read(const std::string& path, uint64_t max_bytes = 1ull << 30);

  size_t size() const { return frames_.size(); }
  // Frame `i`'s bytes as captured (from the Ethernet header on, no FCS added or taken).
  absl::Span<const uint8_t> frame(size_t i) const {
    return absl::MakeConstSpan(bytes_.data() + frames_[i].offset, frames_[i].length);
  }
  // Nanoseconds since the first frame's time stamp; never decreasing in frame order.
  uint64_t time_ns(size_t i) const { return frames_[i].time_ns; }
  uint32_t longest() const { return longest_; }
  uint64_t total_bytes() const { return bytes_.size(); }

  // Records of the file that did not become frames, by reason: "too_short" (below 14 bytes), "too_long" (above 65535
  // bytes), "damaged" (at most one: nothing behind it can be read). And "cut_by_snaplen": frames that were used, with
  // fewer bytes than were on the wire.
  const std::map<std::string, uint64_t>& skipped() const { return skipped_; }
  // What the damage is, mostly in libpcap's words; empty where there is none.
  const std::string& damage() const { return damage_; }

 private:
  struct Frame {
    uint64_t offset;
    uint64_t time_ns;
    uint32_t length;
  };
  std::vector<uint8_t> bytes_;
  std::vector<Frame> frames_;
  std::map<std::string, uint64_t> skipped_;
  std::string damage_;
  uint32_t longest_ = 0;
};

}  // namespace halfpage
