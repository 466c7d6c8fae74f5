#include "xdp_emul/refusal.h"

namespace halfpage {

absl::string_view RefusalName(Refusal refusal) {
  static constexpr absl::string_view kNames[kRefusals] = {
      "ring_full",     "mtu",         "frags_unsupported", "no_buffer",   "gso_unsupported",
      "peer_no_xdp",   "peer_down",   "adjust_head",       "adjust_tail", "bad_target",
      "program_fault", "devmap_drop", "devmap_aborted"};
  return kNames[static_cast<int>(refusal)];
}

}  // namespace halfpage
