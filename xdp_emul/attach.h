// Which programs a device may have: the longest frame that its buffers give a program, and what to do about a longer
// MTU. Arithmetic only; `--check` and the run ask the same functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "xdp_emul/program_hook.h"

namespace halfpage {

// Where the kernel's rule and ours differ, which of them holds.
enum class XdpMode : uint8_t { kHalfpage, kKernel };

// The kernel's sizes with pages of 4 KiB and MAX_SKB_FRAGS 17, on x86-64.
inline constexpr uint32_t kKernelPage = 4096;
inline constexpr uint32_t kKernelHeadroom = 256;                                           // XDP_PACKET_HEADROOM
inline constexpr uint32_t kKernelTailroom = 320;                                           // skb_shared_info
inline constexpr uint32_t kKernelFragments = 17;                                           // further buffers of a frame
inline constexpr uint32_t kKernelFirst = kKernelPage - kKernelHeadroom - kKernelTailroom;  // bytes in the first buffer
// The longest frame that it copies, 73152 bytes: it drops longer ones (skb_pp_cow_data, ENOMEM).
inline constexpr uint32_t kKernelLongest = kKernelFirst + kKernelFragments * kKernelPage;
inline constexpr uint32_t kNoFragmentLimit = UINT32_MAX;

// Buffers as a program finds its frames in them.
struct FrameBuffers {
  uint32_t size = kKernelPage;            // bytes of each, mbuf and headers not counted
  uint32_t headroom = kKernelHeadroom;    // in front of the data, first buffer only
  uint32_t tailroom = kKernelTailroom;    // behind the data, first buffer only
  uint32_t fragments = kKernelFragments;  // how many buffers may follow the first
};

// The longest frame: `frame` counts the Ethernet header ("frame budget", what public tables quote), `mtu` does not.
struct FrameBudget {
  uint64_t frame = 0;
  uint64_t mtu = 0;  // 0 where not even the header fits
};
FrameBudget BudgetOf(const FrameBuffers& buffers, bool frags);
// "4096 buffer - 256 headroom - 320 tailroom - 14 Ethernet", with frags also " + 17 x 4096".
std::string BudgetText(const FrameBuffers& buffers, bool frags);

// A program, or the links of a chain in their order.
struct ProgramLink {
  std::string name;
  bool frags = false;
  bool object = false;  // its section says whether it takes frags
  ProgramHook hook = ProgramHook::kAny;
};
struct AttachRequest {
  XdpMode mode = XdpMode::kHalfpage;
  std::string device;
  std::string program;
  std::vector<ProgramLink> links;  // one that has the program's own name for a program that is no chain
  uint32_t mtu = 1500;             // of whoever sends to the device
  std::string mtu_device;          // whose MTU that is
  FrameBuffers buffers;
  std::string buffers_name;  // "pool `packets`", "`copy` of `veth0`"
  std::string room_key;      // what says their size, "data_room"; empty: nothing can be said of it
  std::string room_place;    // "on the pool"
};

// Whether its programs may run at a device at all (kernel: dev_xdp_attach, EINVAL). Errors: InvalidArgument with the
// program, its section, and where it may run.
absl::Status CheckHook(const AttachRequest& request);

// CheckHook(), and whether the program may be attached at this MTU (kernel: veth_xdp_set, ERANGE). Errors:
// InvalidArgument with MTU, limit, how it comes about, frame budget and MTU, the link of a chain that takes no chained
// frames, and the ways out.
absl::Status CheckAttach(const AttachRequest& request);

// Whether all links take chained frames.
bool TakesFrags(const std::vector<ProgramLink>& links);

// How the kernel sizes the head of a private copy (page_pool_alloc): a frame of `length` bytes needs S = 256 +
// align64(length) + 320; a whole page if two do not fit one, else a fragment, and a remainder that is too small for
// another of the size goes to this one. Owns the place in the page, as the kernel's pool does; start with one object.
class KernelFragments {
 public:
  // Bytes that a frame's first buffer takes, at most a page.
  uint32_t Take(uint32_t length);
  // What a socket is charged for such a buffer: with the sk_buff of 256 bytes.
  static uint32_t Truesize(uint32_t bytes) { return bytes + 256; }

 private:
  uint32_t used_ = kKernelPage;
};

}  // namespace halfpage
