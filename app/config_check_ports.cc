// Real ports: what their drivers would refuse or, worse, take and cut short. Looks at the file only, not at the
// machine.
#include <string>

#include "absl/strings/str_cat.h"
#include "app/config_check.h"
#include "app/config_units.h"
#include "app/device.h"
#include "app/frame_limits.h"
#include "xdp_emul/device_string.h"

namespace halfpage {
namespace {

constexpr uint32_t kLine = 64;
constexpr size_t kMostDpdkPorts = 32;  // RTE_MAX_ETHPORTS

uint64_t PowerOfTwoFrom(uint64_t least) {
  uint64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// The kernel cuts what is longer than a frame of the ring, and the driver hands on what is left of it.
void CheckAfPacket(const PortConfig& port, const DeviceString& device, const PktmbufPoolConfig* pool,
                   const std::string& path, FaultList& faults) {
  const uint64_t frame = device.Number("framesz", kAfPacketFrame);
  const uint64_t block = device.Number("blocksz", kAfPacketBlock);
  const uint64_t wanted = port.mtu + kEthernetHeader + kAfPacketReceiveGap;
  if (wanted > frame) {
    const uint64_t size = PowerOfTwoFrom(wanted);
    faults.Fault(path + ".mtu",
                 absl::StrCat("mtu ", port.mtu, " needs ring frames of ", port.mtu, " + ", kEthernetHeader,
                              " Ethernet + ", kAfPacketReceiveGap, " for the ring = ", wanted,
                              " bytes, and `device` has framesz ", frame, ": write framesz=", size,
                              ",blocksz=", std::max(size, block), " in it and data_room: ", size + kMbufHeadroom,
                              " on its pool, or mtu: ", frame - kEthernetHeader - kAfPacketReceiveGap, " or less"));
    return;
  }
  if (block % frame != 0) {
    faults.Fault(path + ".device", absl::StrCat("blocksz ", block, " is no multiple of framesz ", frame,
                                                ", so frames would lie across blocks: write blocksz=",
                                                PowerOfTwoFrom(std::max(frame, block))));
  }
  const uint64_t room = frame - kAfPacketHeader + kMbufHeadroom;
  if (pool != nullptr && pool->data_room < room) {
    faults.Fault(path + ".pool",
                 absl::StrCat("net_af_packet puts a ring frame of ", frame, " bytes into one buffer, and pool `",
                              pool->name, "` has data_room ", pool->data_room, ": write data_room: ",
                              (frame + kMbufHeadroom + kLine - 1) / kLine * kLine, " (framesz + 128)"));
  }
  const uint64_t pairs = device.Number("qpairs", 1);
  if (port.queues != pairs) {
    faults.Fault(path + ".queues", absl::StrCat(port.queues, ", and `device` has qpairs ", pairs,
                                                ": what comes to a queue that nobody polls is lost; write queues: ",
                                                pairs, " or qpairs=", port.queues));
  }
}

void CheckAfXdp(const Config& config, const PortConfig& port, const PktmbufPoolConfig* pool, const std::string& path,
                FaultList& faults) {
  if (pool == nullptr) return;
  const std::string stock = "write `ops: ring_mp_mc` on it, or give the port a pool of its own";
  if (pool->ops == "page_frag") {
    faults.Fault(path + ".pool", absl::StrCat("pool `", pool->name,
                                              "` is of page_frag, and net_af_xdp finds a buffer by counting from "
                                              "the start of one piece of memory with the mbuf in front of each: ",
                                              stock));
  }
  const uint64_t least = uint64_t{port.queues} * kAfXdpKept;
  if (pool->size < least) {
    faults.Fault(
        path + ".pool",
        absl::StrCat("pool `", pool->name, "` has ", pool->size, " buffers, and net_af_xdp keeps ", kAfXdpFillRing,
                     " in the fill ring of each queue: write size: ", least, " or more on it"));
  }
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.pool != port.pool) continue;
    faults.Warn(path + ".pool",
                absl::StrCat("source `", traffic.name, "` uses pool `", port.pool,
                             "`, too: net_af_xdp never gives back what its rings hold, so a leak of up to ", kAfXdpKept,
                             " buffers would not show; give the port a pool of its own"));
  }
}

void CheckPort(const Config& config, size_t number, FaultList& faults) {
  const PortConfig& port = config.ports[number];
  const std::string path = absl::StrCat("ports[", number, "]");
  if (faults.Touches(path)) return;
  const DeviceString device = ParseDeviceString(port.device);
  const PktmbufPoolConfig* pool = faults.Touches("pools") ? nullptr : config.FindPool(port.pool);
  if (device.driver == "net_af_packet") CheckAfPacket(port, device, pool, path, faults);
  if (device.driver == "net_af_xdp") CheckAfXdp(config, port, pool, path, faults);
  if (device.driver == "net_tap" && port.mtu > kTapMostMtu) {
    faults.Fault(path + ".mtu", absl::StrCat("net_tap of DPDK 22.11 lets out no frame beyond 1522 bytes: write mtu: ",
                                             kTapMostMtu, " or less, or use net_af_packet on a kernel interface"));
  }
  for (size_t other = 0; other < number; ++other) {
    if (ParseDeviceString(config.ports[other].device).name != device.name) continue;
    faults.Fault(path + ".device", absl::StrCat(Shown(device.name), " is the device of ports[", other,
                                                "] already: number virtual devices, as in ", device.driver, "0 and ",
                                                device.driver, "1"));
  }
}

// As for an end of a pair: a program without frags must see each frame in one buffer.
void CheckProgram(const Config& config, size_t number, FaultList& faults) {
  const PortConfig& port = config.ports[number];
  const std::string path = absl::StrCat("ports[", number, "].mtu");
  const PktmbufPoolConfig* pool = config.FindPool(port.pool);
  if (pool == nullptr || faults.Touches("pools") || faults.Touches(path)) return;
  for (const ProgramConfig& program : config.programs) {
    if (program.name != port.program || program.frags) continue;
    const uint32_t room = port.mtu + kMbufHeadroom + kEthernetHeader;
    if (room <= pool->data_room) continue;
    faults.Fault(path,
                 absl::StrCat("mtu ", port.mtu, " needs data_room ", room, " for a frame in one buffer, pool `",
                              pool->name, "` has ", pool->data_room, ", and program `", program.name,
                              "` has frags: false: write frags: true on the program, data_room: ", room,
                              " or more, or mtu: ", pool->data_room - kMbufHeadroom - kEthernetHeader, " or less"));
  }
}

// Of the drivers that put a buffer into every slot of their receive rings when they start; others take one as a frame
// comes, and net_af_xdp has a rule of its own.
bool FillsItsRings(const DeviceString& device) {
  for (const char* other : {"net_af_packet", "net_af_xdp", "net_memif", "net_null", "net_pcap", "net_ring"}) {
    if (device.driver == other) return false;
  }
  return true;
}

// A port whose rings cannot be filled comes up and receives nothing, or fails in the middle of a start.
void CheckFilled(const Config& config, size_t number, FaultList& faults) {
  const PktmbufPoolConfig* pool = config.FindPool(config.ports[number].pool);
  if (pool == nullptr || !FillsItsRings(ParseDeviceString(config.ports[number].device))) return;
  uint64_t slots = 0;
  for (size_t p = 0; p <= number; ++p) {
    const PortConfig& port = config.ports[p];
    if (config.FindPool(port.pool) != pool || !FillsItsRings(ParseDeviceString(port.device))) continue;
    if (p == number && slots > pool->size) return;  // told of the port before
    slots += uint64_t{port.queues} * port.rxd;
  }
  if (slots <= pool->size) return;
  faults.Fault(absl::StrCat("ports[", number, "].pool"),
               absl::StrCat("receive rings up to this port's have ", slots,
                            " slots, each of which holds a buffer from ", "its start on, and pool `", pool->name,
                            "` has ", pool->size, ": write size: auto there, or a smaller rxd here"));
}

void CheckSocket(const Config& config, size_t number, FaultList& faults) {
  const PortConfig& port = config.ports[number];
  const PktmbufPoolConfig* pool = config.FindPool(port.pool);
  if (pool == nullptr || port.socket < 0 || pool->socket < 0 || pool->socket == port.socket) return;
  std::string there;
  for (const PktmbufPoolConfig& each : config.pools) {
    if (each.socket == port.socket) absl::StrAppend(&there, there.empty() ? "" : ", ", "`", each.name, "`");
  }
  faults.Fault(absl::StrCat("ports[", number, "].pool"),
               absl::StrCat("port `", port.name, "` is at socket ", port.socket, ", and pool `", pool->name,
                            "` at socket ", pool->socket, ", so every frame would cross between them: ",
                            there.empty() ? absl::StrCat("add a pool with socket: ", port.socket, " and name it here")
                                          : absl::StrCat("name a pool that is there (", there, ")"),
                            ", or write socket: auto on either"));
}

}  // namespace

void CheckPorts(const Config& config, FaultList& faults) {
  if (2 * config.veth.size() + config.ports.size() > kMostDpdkPorts) {
    faults.Fault("ports", absl::StrCat(config.ports.size(), " ports and ", config.veth.size(), " pairs of two make ",
                                       2 * config.veth.size() + config.ports.size(), ", and DPDK has ", kMostDpdkPorts,
                                       ": use fewer of either"));
  }
  for (size_t p = 0; p < config.ports.size(); ++p) {
    CheckPort(config, p, faults);
    CheckProgram(config, p, faults);
    if (faults.Touches("pools")) continue;
    CheckSocket(config, p, faults);
    CheckFilled(config, p, faults);
  }
  if (!config.traffic.empty() || config.ports.empty() || faults.Touches("ports")) return;
  // The reader of a file with ports asks for no source, so a misspelt section shows only here.
  for (const PortConfig& port : config.ports) {
    if (!port.sink.empty() || !port.program.empty()) return;
  }
  faults.Warn("ports", "no source sends, and no port has a program or a sink: what comes in is only counted");
}

}  // namespace halfpage
