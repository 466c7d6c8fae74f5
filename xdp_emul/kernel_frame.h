// A frame of nobody's pool, as the kernel's test run lays it out (bpf_prog_test_run_xdp() in net/bpf/test_run.c): for
// tests of programs, without EAL.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage {

// 256 bytes of headroom, 320 kept behind the first buffer, and up to 3520 bytes of the frame between; the rest in pages
// of 4096. Not to be used by two threads.
class KernelFrame {
 public:
  static constexpr uint32_t kPage = 4096;
  static constexpr uint32_t kHeadroom = 256;
  static constexpr uint32_t kTailroom = 320;
  static constexpr uint32_t kFirst = kPage - kHeadroom - kTailroom;

  KernelFrame() = default;
  KernelFrame(const KernelFrame&) = delete;
  KernelFrame& operator=(const KernelFrame&) = delete;

  // Takes a copy of `frame`, 0 to 65535 bytes; all around it are zeros. `frags`: the program is shown frames in several
  // buffers. For one that is not, a frame of more than kFirst bytes lies in one buffer that is longer; no kernel would
  // hand it over.
  void Place(absl::Span<const uint8_t> frame, bool frags);

  // Points `state` at the frame with its ends where Place() put them; bytes that a run changed stay changed, but the
  // buffers that it cut off are there again.
  void PointAt(bpf::RunState* state);

  // What a run left between data_meta and the end of the last buffer.
  std::vector<uint8_t> Bytes(const bpf::RunState& state) const;

 private:
  struct Piece {
    uint32_t at;  // in buffer_
    uint32_t room;
    uint32_t offset;
    uint32_t length;
  };

  void Link();

  uint32_t length_ = 0;
  std::vector<uint8_t> buffer_;
  std::vector<Piece> pieces_;
  std::vector<rte_mbuf> mbufs_;
};

}  // namespace halfpage
