// The private copy that a device makes of a frame before its program sees it, where the kernel would copy
// (skb_pp_cow_data) or where a lab asks for it: set up here; the copying is in convert_copy.cc.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "mempool/counter.h"
#include "mempool/exact_frag.h"
#include "xdp_emul/attach.h"
#include "xdp_emul/converter_config.h"

namespace halfpage {

// Why a frame was copied; of several reasons the first in this order.
enum class CopyCause : uint8_t {
  kShared,    // somebody else holds one of its buffers, or it borrows another's
  kHeadroom,  // less room in front than asked for
  kChained,   // several buffers, and the program (kernel: any) sees one
  kAlways,    // `when: always`
};
inline constexpr int kCopyCauses = 4;
// "shared", "headroom", "chained", "always".
absl::string_view CopyCauseName(CopyCause cause);

// One queue's copying. Belongs to the worker that polls the queue; the pools are shared.
class Converter {
 public:
  // Errors: InvalidArgument for no pool, too many, or one without room behind the headroom. Control threads only.
  static absl::StatusOr<Converter> Create(const ConverterConfig& config);

  // Whether bursts that a survey found simple (direct, unshared, single buffers) have to be looked at too.
  bool looks_at_simple() const { return config_.always || config_.headroom_wanted != 0; }

  // Puts copies in the place of frames that need one, frees the originals, and gives how many frames are left in
  // `frames`. Frames for which there was no buffer are freed and counted in no_buffer; a chain that no single buffer
  // holds stays as it is. Hot; the queue's worker.
  uint16_t Convert(rte_mbuf** frames, uint16_t n);

  // The longest frame that becomes one buffer.
  uint32_t longest() const { return longest_; }

  // Written by the worker, read by anyone.
  Counter buffers[kCopyCauses];
  Counter bytes[kCopyCauses];
  Counter truesize;  // kKernel: what the kernel's copies would be charged to sockets
  Counter no_buffer;

 private:
  Converter() = default;
  bool Reason(const rte_mbuf* frame, CopyCause* cause) const;
  rte_mbuf* Copy(const rte_mbuf* frame);
  rte_mbuf* AllocRooms(uint32_t length);
  rte_mbuf* AllocKernel(uint32_t length);

  ConverterConfig config_;
  rte_mempool* rooms_[kMostCopyPools] = {};  // by ascending room
  uint32_t room_bytes_[kMostCopyPools] = {};
  size_t room_count_ = 0;
  absl::optional<ExactFrag> exact_;
  KernelFragments fragments_;
  uint32_t longest_ = 0;

 public:
  Converter(Converter&& other) noexcept;
};

}  // namespace halfpage
