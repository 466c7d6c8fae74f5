#include "xdp_emul/xdp_action.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace halfpage {
namespace {

// By value of XdpAction.
constexpr absl::string_view kNames[kXdpActions] = {"aborted", "drop", "pass", "tx", "redirect"};

}  // namespace

absl::string_view XdpActionName(XdpAction action) {
  const auto value = static_cast<uint8_t>(action);
  return value < kXdpActions ? kNames[value] : absl::string_view("unknown");
}

absl::optional<XdpAction> ParseXdpAction(absl::string_view name) {
  for (int value = 0; value < kXdpActions; ++value) {
    if (name == kNames[value] || name == absl::StrCat("XDP_", absl::AsciiStrToUpper(kNames[value]))) {
      return static_cast<XdpAction>(value);
    }
  }
  return absl::nullopt;
}

}  // namespace halfpage
