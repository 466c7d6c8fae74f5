#include "xdp_emul/refusal.h"

namespace halfpage {

absl::string_view RefusalName(Refusal refusal) {
  static constexpr absl::string_view kNames[kRefusals] = {"ring_full", "mtu", "frags_unsupported", "no_buffer",
                                                          "gso_unsupported"};
  return kNames[static_cast<int>(refusal)];
}

}  // namespace halfpage
