// The five verdicts of XDP, with the one table that parses and prints their names.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace halfpage {

// Values as in the kernel's enum xdp_action (include/uapi/linux/bpf.h), so that objects and built-in programs agree.
enum class XdpAction : uint8_t { kAborted = 0, kDrop = 1, kPass = 2, kTx = 3, kRedirect = 4 };

inline constexpr int kXdpActions = 5;

// "aborted", "drop", "pass", "tx" or "redirect"; "unknown" for any other value.
absl::string_view XdpActionName(XdpAction action);

// The verdict that `name` means, in lower case as printed or as the kernel writes it (XDP_DROP); nothing otherwise.
absl::optional<XdpAction> ParseXdpAction(absl::string_view name);

}  // namespace halfpage
