#include "xdp_emul/attach.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace halfpage {
namespace {

constexpr uint32_t kEthernetHeader = 14;
constexpr uint32_t kLeastMtu = 68;
constexpr uint64_t kLargestRoom = 65535;

uint32_t InFirst(const FrameBuffers& buffers) {
  const uint32_t kept = buffers.headroom + buffers.tailroom;
  return buffers.size > kept ? buffers.size - kept : 0;
}

// The first link that takes no chained frames; there is one.
const ProgramLink& Culprit(const AttachRequest& request) {
  return *std::find_if(request.links.begin(), request.links.end(), [](const ProgramLink& link) { return !link.frags; });
}

// "its program `gate` has frags: false", "`b` of its chain `all` is of section xdp"; and what to do about it.
std::string CulpritText(const AttachRequest& request) {
  const ProgramLink& culprit = Culprit(request);
  return absl::StrCat(
      culprit.name == request.program ? absl::StrCat("its program `", culprit.name, "`")
                                      : absl::StrCat("`", culprit.name, "` of its chain `", request.program, "`"),
      culprit.object ? " is of section xdp" : " has frags: false", " and must see a frame in one buffer: ",
      culprit.object ? "compile it into section xdp.frags, write " : "write frags: true on the program, ");
}

}  // namespace

bool TakesFrags(const std::vector<ProgramLink>& links) {
  return std::all_of(links.begin(), links.end(), [](const ProgramLink& link) { return link.frags; });
}

FrameBudget BudgetOf(const FrameBuffers& buffers, bool frags) {
  FrameBudget budget;
  budget.frame = InFirst(buffers);
  if (frags) {
    budget.frame = buffers.fragments == kNoFragmentLimit ? uint64_t{UINT32_MAX}
                                                         : budget.frame + uint64_t{buffers.fragments} * buffers.size;
  }
  budget.mtu = budget.frame > kEthernetHeader ? budget.frame - kEthernetHeader : 0;
  return budget;
}

std::string BudgetText(const FrameBuffers& buffers, bool frags) {
  std::string text = absl::StrCat(buffers.size, " buffer - ", buffers.headroom, " headroom");
  if (buffers.tailroom != 0) absl::StrAppend(&text, " - ", buffers.tailroom, " tailroom");
  if (frags) absl::StrAppend(&text, " + ", buffers.fragments, " x ", buffers.size);
  return absl::StrCat(text, " - ", kEthernetHeader, " Ethernet");
}

absl::Status CheckHook(const AttachRequest& request) {
  for (const ProgramLink& link : request.links) {
    if (link.hook == ProgramHook::kAny || link.hook == ProgramHook::kDevice) continue;
    const char* const map = link.hook == ProgramHook::kDevmap ? "devmap" : "cpumap";
    return absl::InvalidArgumentError(absl::StrCat(
        "`", link.name, "` is of section ", SectionOf(link.hook, link.frags), ": it runs behind an entry of a ", map,
        ", not at a device, and `", request.device, "` is one (kernel: EINVAL); name it as `program` of an entry of a ",
        map, ", or compile it into section ", SectionOf(ProgramHook::kDevice, link.frags)));
  }
  return absl::OkStatus();
}

absl::Status CheckAttach(const AttachRequest& request) {
  const absl::Status hook = CheckHook(request);
  if (!hook.ok()) return hook;
  const bool frags = TakesFrags(request.links);
  const FrameBudget budget = BudgetOf(request.buffers, frags);
  if (request.mtu <= budget.mtu) return absl::OkStatus();
  std::string text = absl::StrCat("mtu ", request.mtu, " is past ", budget.mtu, ", the limit for `", request.device,
                                  "`: ", BudgetText(request.buffers, frags), " = ", budget.mtu, " of ",
                                  request.buffers_name, " (frame budget ", budget.frame, ", mtu ", budget.mtu, ")");
  absl::StrAppend(&text, frags ? ": write " : absl::StrCat("; ", CulpritText(request)));
  const uint64_t wanted = uint64_t{request.mtu} + kEthernetHeader + request.buffers.headroom + request.buffers.tailroom;
  if (!request.room_key.empty() && wanted <= kLargestRoom) {
    absl::StrAppend(&text, request.room_key, ": ", wanted, " or more ", request.room_place, ", ");
  }
  if (request.mode == XdpMode::kKernel) absl::StrAppend(&text, "mode: halfpage, ");
  return absl::InvalidArgumentError(budget.mtu >= kLeastMtu
                                        ? absl::StrCat(text, "or mtu: ", budget.mtu, " or less on both ends")
                                        : absl::StrCat(text, "or remove the program"));
}

uint32_t KernelFragments::Take(uint32_t length) {
  const uint32_t wanted = kKernelHeadroom + (std::min(length, kKernelFirst) + 63) / 64 * 64 + kKernelTailroom;
  if (2 * wanted > kKernelPage) return kKernelPage;
  if (used_ + wanted > kKernelPage) used_ = 0;
  const uint32_t left = kKernelPage - used_ - wanted;
  const uint32_t taken = left < wanted ? wanted + left : wanted;
  used_ += taken;
  return taken;
}

}  // namespace halfpage
