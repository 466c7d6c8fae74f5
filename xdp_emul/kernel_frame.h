// A frame of nobody's pool, as the kernel's test run lays it out (bpf_prog_test_run_xdp() in net/bpf/test_run.c): for
// tests of programs, without EAL.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage {

// kKernelHeadroom in front, up to kKernelFirst bytes in the first buffer, kKernelTailroom kept behind them, the rest in
// pages (attach.h). Not to be used by two threads.
class KernelFrame {
 public:
  KernelFrame() = default;
  KernelFrame(const KernelFrame&) = delete;
  KernelFrame& operator=(const KernelFrame&) = delete;

  // Takes a copy of `frame`, 0 to 65535 bytes; all around it are zeros. `frags`: the program is shown frames in several
  // buffers. For one that is not, a frame of more than kKernelFirst bytes lies in one buffer that is longer; no kernel
  // would hand it over.
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

  std::vector<uint8_t> buffer_;
  std::vector<Piece> pieces_;
  std::vector<rte_mbuf> mbufs_;
};

}  // namespace halfpage
