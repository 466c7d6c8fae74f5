#include "app/copies.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "app/behind_maps.h"
#include "app/config_sizes.h"
#include "app/frame_limits.h"

namespace halfpage {
namespace {

using Policy = CopyConfig::Policy;

constexpr uint32_t kMbuf = 128;             // sizeof(rte_mbuf)
constexpr uint32_t kObjectHeaders = 192;    // mempool header and mbuf
constexpr uint32_t kExactPage = 32 * 1024;  // pages of exact buffers, so that a whole kernel page fits beside others
constexpr uint32_t kMostRoom = 65535;

bool FromPools(Policy policy) {
  return policy == Policy::kStock || policy == Policy::kClasses;
}

bool IsExact(Policy policy) {
  return policy == Policy::kExact || policy == Policy::kKernel;
}

// Bytes behind each mbuf of the device's own pool.
uint32_t OwnRoom(const CopyConfig& copy) {
  if (copy.policy == Policy::kWhole) return std::min(copy.page_size - kObjectHeaders, kMostRoom);
  if (copy.policy == Policy::kHalf) return copy.page_size / 2 - kObjectHeaders;
  if (copy.policy == Policy::kFixed) return copy.size;
  return 2176;
}

uint32_t CopyHeadroom(const Device& device) {
  if (device.copy.headroom != CopyConfig::kAutoHeadroom) return std::max(device.copy.headroom, kMbufHeadroom);
  if (device.mode == XdpMode::kKernel || !FromPools(device.copy.policy)) return kKernelHeadroom;
  return kMbufHeadroom;
}

// The kernel's buffers, shaped as the policy says.
FrameBuffers KernelBuffers(const Device& device) {
  FrameBuffers buffers;
  if (device.copy.policy == Policy::kHalf) buffers.size = device.copy.page_size / 2;
  if (device.copy.policy == Policy::kFixed) buffers.size = device.copy.size;
  if (device.copy.policy == Policy::kWhole) buffers.size = device.copy.page_size;
  if (device.copy.headroom != CopyConfig::kAutoHeadroom) buffers.headroom = device.copy.headroom;
  return buffers;
}

// What copies make of a frame.
FrameBuffers CopyBuffers(const Config& config, const Device& device) {
  FrameBuffers buffers = {0, CopyHeadroom(device), device.copy.tailroom, kNoFragmentLimit};
  if (FromPools(device.copy.policy)) {
    for (const std::string& name : device.copy.pools) {
      const PktmbufPoolConfig* pool = config.FindPool(name);
      if (pool != nullptr) buffers.size = std::max<uint32_t>(buffers.size, pool->data_room);
    }
  } else if (device.copy.policy == Policy::kExact) {
    buffers.size = std::max(device.copy.page_size, kExactPage) - kMbuf;
  } else if (device.copy.policy == Policy::kKernel) {
    buffers.size = kKernelPage;
    buffers.tailroom = kKernelTailroom;
  } else {
    buffers.size = OwnRoom(device.copy);
  }
  return buffers;
}

// The pool that a source's longest frames come from.
// What the first frames to need a second buffer are in: the smallest of the largest buffers of all sources and ports.
struct Tightest {
  const PktmbufPoolConfig* pool = nullptr;  // none without sources and ports
  uint32_t room = 0;                        // of one buffer, headroom included
};

Tightest TightestRoom(const Config& config) {
  Tightest tightest;
  const auto look = [&tightest](const PktmbufPoolConfig* pool, uint32_t room) {
    if (pool != nullptr && (tightest.pool == nullptr || room < tightest.room)) tightest = {pool, room};
  };
  for (const TrafficConfig& traffic : config.traffic) {
    look(config.LargestPool(traffic), LargestRoomOf(config, traffic));
  }
  for (const PktmbufPoolConfig& pool : config.pools) {
    for (const PortConfig& port : config.ports) {
      if (port.pool == pool.name) look(&pool, pool.data_room);
    }
  }
  return tightest;
}

void SetRoom(const std::string& key, const std::string& place, AttachRequest* request) {
  request->room_key = key;
  request->room_place = place;
}

// Buffers as the program of a device finds its frames in them.
void SetBuffers(const Config& config, const Device& device, const Tightest& tightest, AttachRequest* request) {
  const std::string copies = absl::StrCat("`copy` of `", device.name, "`");
  if (device.mode == XdpMode::kKernel) {
    request->buffers = KernelBuffers(device);
    if (device.copy.policy == Policy::kFixed) SetRoom("size", "under `copy`", request);
    request->buffers_name = absl::StrCat("mode: kernel and ", copies);
    return;
  }
  request->buffers = {tightest.room, kMbufHeadroom, 0, kNoFragmentLimit};
  request->buffers_name = absl::StrCat("pool `", tightest.pool->name, "`");
  SetRoom("data_room", "on the pool", request);
  if (device.copy.when == CopyConfig::When::kNever) return;
  const FrameBuffers copied = CopyBuffers(config, device);
  const bool always = device.copy.when == CopyConfig::When::kAlways;
  if (!always && BudgetOf(copied, false).frame <= BudgetOf(request->buffers, false).frame) return;
  request->buffers = copied;
  request->buffers_name = copies;
  SetRoom("", "", request);
  if (FromPools(device.copy.policy)) SetRoom("data_room", absl::StrCat("on a pool of ", copies), request);
  if (device.copy.policy == Policy::kFixed) SetRoom("size", "under `copy`", request);
}

std::vector<ProgramLink> LinksOf(const Config& config, const ProgramConfig& program) {
  const auto link_of = [](const ProgramConfig& each) {
    return ProgramLink{each.name, each.frags, each.kind == ProgramKind::kObject, each.hook};
  };
  if (program.kind != ProgramKind::kChain) return {link_of(program)};
  std::vector<ProgramLink> links;
  for (const std::string& name : program.programs) {
    const ProgramConfig* link = FindProgramConfig(config, name);
    if (link != nullptr) links.push_back(link_of(*link));
  }
  return links;
}

void FillInCopy(const std::string& device, Policy policy, const std::string& pool, Config& config, CopyConfig* copy) {
  if (copy->policy == Policy::kAuto) copy->policy = policy;
  if (!copy->pools.empty()) return;
  if (FromPools(copy->policy)) {
    if (!pool.empty()) copy->pools = {pool};
    return;
  }
  copy->pools = {"copy_" + device};
  if (config.FindPool(copy->pools.front()) == nullptr) config.pools.push_back(CopyPool(copy->pools.front(), *copy));
}

}  // namespace

bool CopiesIntoOwnPool(Policy policy) {
  return !FromPools(policy);
}

PktmbufPoolConfig CopyPool(const std::string& name, const CopyConfig& copy) {
  PktmbufPoolConfig pool;
  pool.name = name;
  pool.size = copy.buffers;
  pool.data_room = static_cast<uint16_t>(OwnRoom(copy));
  pool.cache = std::min(256u, copy.buffers * 2 / 3);
  pool.page_frag.page_size = copy.page_size;
  pool.page_frag.recycle = copy.recycle;
  if (IsExact(copy.policy)) {
    pool.page_frag.exact = true;
    pool.page_frag.page_size = std::max(copy.page_size, kExactPage);
    pool.cache = 0;
  }
  return pool;
}

void FillInCopies(Config& config) {
  const std::string first = config.pools.empty() ? "" : config.pools.front().name;
  for (VethConfig& veth : config.veth) {
    for (VethEndConfig& end : veth.ends) {
      const bool kernel = veth.mode == XdpMode::kKernel && !end.program.empty();
      FillInCopy(end.name, kernel ? Policy::kKernel : Policy::kStock, first, config, &end.copy);
    }
  }
  for (PortConfig& port : config.ports) {
    FillInCopy(port.name, Policy::kStock, port.pool.empty() ? first : port.pool, config, &port.copy);
  }
}

std::vector<Attachment> AttachmentsOf(const Config& config, const std::vector<Device>& devices) {
  std::vector<Attachment> attachments(devices.size());
  const Tightest tightest = TightestRoom(config);
  if (tightest.pool == nullptr) return attachments;
  for (DeviceIndex d = 0; d < devices.size(); ++d) {
    const Device& device = devices[d];
    const ProgramConfig* program = FindProgramConfig(config, device.program);
    if (program == nullptr) continue;
    // As the kernel does at attach, the peer's MTU counts too: it is what comes in.
    const bool peers = device.peer != kNoDevice && devices[device.peer].mtu > device.mtu;
    Attachment& attachment = attachments[d];
    attachment.mtu_device = peers ? device.peer : d;
    AttachRequest& request = attachment.request;
    request.mode = device.mode;
    request.device = device.name;
    request.program = program->name;
    request.links = LinksOf(config, *program);
    request.mtu = devices[attachment.mtu_device].mtu;
    request.mtu_device = devices[attachment.mtu_device].name;
    SetBuffers(config, device, tightest, &request);
  }
  return attachments;
}

ConverterConfig ConverterOf(const Device& device, bool writes, bool frags) {
  const CopyConfig& copy = device.copy;
  const bool kernel = device.mode == XdpMode::kKernel;
  ConverterConfig out;
  if (IsExact(copy.policy)) out.cut = copy.policy == Policy::kExact ? CopyCut::kExact : CopyCut::kKernel;
  out.needed = copy.when != CopyConfig::When::kNever;
  out.always = copy.when == CopyConfig::When::kAlways;
  out.headroom = static_cast<uint16_t>(CopyHeadroom(device));
  out.headroom_wanted = static_cast<uint16_t>(copy.headroom != CopyConfig::kAutoHeadroom ? copy.headroom
                                              : kernel                                   ? kKernelHeadroom
                                                                                         : 0);
  if (!out.needed) out.headroom_wanted = 0;
  out.tailroom = static_cast<uint16_t>(copy.tailroom);
  out.writes = kernel || writes;
  out.linear = !frags;
  out.unchain = kernel;
  return out;
}

bool NeedsConverter(const ConverterConfig& config) {
  return config.always ||
         (config.needed && (config.writes || config.linear || config.unchain || config.headroom_wanted != 0));
}

}  // namespace halfpage
