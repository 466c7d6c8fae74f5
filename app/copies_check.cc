// What `--check` says of private copies and of programs against MTUs and peers.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "app/config_check.h"
#include "app/config_units.h"
#include "app/copies.h"
#include "app/redirects.h"

namespace halfpage {
namespace {

using Policy = CopyConfig::Policy;

// A frame of the least length behind the headroom.
void CheckRoom(const CopyConfig& copy, uint32_t room, const std::string& path, FaultList& faults) {
  const uint32_t headroom = copy.headroom == CopyConfig::kAutoHeadroom ? kKernelHeadroom : copy.headroom;
  if (headroom + copy.tailroom + 60 <= room) return;
  faults.Fault(path,
               absl::StrCat("a buffer of ", room, " bytes has no place for a frame of 60 behind headroom ", headroom,
                            " and tailroom ", copy.tailroom, ": write less of them, or a larger size or page_size"));
}

void CheckOwnPool(const Config& config, const CopyConfig& copy, const std::string& path, FaultList& faults) {
  const bool exact = copy.policy == Policy::kExact || copy.policy == Policy::kKernel;
  if (exact && config.measure.track_owners) {
    faults.Fault(path + ".policy",
                 "exact buffers have no header that a stamp fits into: write policy: half, or track_owners: false");
  }
  if (copy.policy == Policy::kFixed) {
    if (copy.size + 192 > copy.page_size) {
      faults.Fault(path + ".page_size",
                   absl::StrCat(FormatBytes(copy.page_size), " holds no buffer of size ", copy.size,
                                " + 192: write a larger page_size, or size: ", copy.page_size - 192, " or less"));
    }
    CheckRoom(copy, copy.size, path + ".size", faults);
  }
  if (copy.policy == Policy::kHalf) CheckRoom(copy, copy.page_size / 2 - 192, path + ".page_size", faults);
  if (copy.policy == Policy::kWhole) CheckRoom(copy, copy.page_size - 192, path + ".page_size", faults);
}

void CheckPoolsOf(const Config& config, const CopyConfig& copy, const std::string& path, FaultList& faults) {
  std::set<std::string> seen;
  for (size_t p = 0; p < copy.pools.size(); ++p) {
    const std::string item = absl::StrCat(path, ".pools[", p, "]");
    const PktmbufPoolConfig* pool = config.FindPool(copy.pools[p]);
    if (pool == nullptr || faults.Touches(item)) continue;
    if (!seen.insert(pool->name).second) {
      faults.Fault(item, absl::StrCat(Shown(pool->name), " is in this list already: name each pool once"));
    } else if (copy.headroom != CopyConfig::kAutoHeadroom || copy.tailroom != 0) {
      CheckRoom(copy, pool->data_room, item, faults);
    }
  }
  if (copy.policy == Policy::kStock && copy.pools.size() > 1) {
    faults.Fault(path + ".pools", "`policy: stock` has one pool: name one, or write policy: classes");
  }
}

void WarnOfPeer(const Device& device, const std::string& peer, bool redirected, FaultList& faults) {
  faults.Warn(device.path,
              absl::StrCat(redirected ? "frames are redirected into it" : "its program sends frames back through it",
                           ", and its peer `", peer, "` has no program: ",
                           device.mode == XdpMode::kKernel
                               ? "they are dropped (peer_no_xdp), as the kernel does; give it a program, or gro: true"
                               : "they are delivered all the same, which the kernel would not do; give it a program, "
                                 "gro: true, or write mode: kernel"));
}

}  // namespace

void CheckCopies(const Config& config, FaultList& faults) {
  if (faults.Touches("pools")) return;
  for (const Device& device : ListDevices(config)) {
    const std::string path = device.path + ".copy";
    if (faults.Touches(path)) continue;
    if (device.program.empty() && faults.Given(path)) {
      faults.Warn(path, "without a program nothing is copied: remove it, or name a `program`");
    }
    if (CopiesIntoOwnPool(device.copy.policy)) {
      CheckOwnPool(config, device.copy, path, faults);
    } else {
      CheckPoolsOf(config, device.copy, path, faults);
    }
  }
}

void CheckAttachments(const Config& config, FaultList& faults) {
  if (faults.Touches("pools") || faults.Touches("programs")) return;
  const std::vector<Device> devices = ListDevices(config);
  std::vector<std::string> sent_into;
  for (const ProgramConfig& program : config.programs) {
    if (program.kind == ProgramKind::kObject) continue;  // what is in its maps says little of where it redirects
    for (std::string& device : RedirectsOf(config, program.name).devices) sent_into.push_back(std::move(device));
  }
  const std::vector<Attachment> attachments = AttachmentsOf(config, devices);
  for (DeviceIndex d = 0; d < devices.size(); ++d) {
    const Device& device = devices[d];
    const Attachment& attachment = attachments[d];
    const absl::Status hook = CheckHook(attachment.request);
    if (!hook.ok() && !faults.Touches(device.path)) {
      faults.Fault(device.path + ".program", std::string(hook.message()));
      continue;
    }
    if (attachment.mtu_device != kNoDevice && device.peer != kNoDevice) {
      const std::string path = devices[attachment.mtu_device].path + ".mtu";
      if (faults.Touches(device.path) || faults.Touches(path)) continue;
      const absl::Status status = CheckAttach(attachment.request);
      if (!status.ok()) faults.Fault(path, std::string(status.message()));
    }
    if (device.peer == kNoDevice || devices[device.peer].takes_xdp) continue;
    const bool redirected = std::find(sent_into.begin(), sent_into.end(), device.name) != sent_into.end();
    // The kernel drops what it sends back; we deliver it, as whoever lets a program answer without a peer's wants.
    const bool back = device.mode == XdpMode::kKernel && RedirectsOf(config, device.program).back;
    if (redirected || back) WarnOfPeer(device, devices[device.peer].name, redirected, faults);
  }
}

}  // namespace halfpage
