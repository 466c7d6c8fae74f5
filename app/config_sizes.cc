#include "app/config_sizes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/device.h"
#include "xdp_emul/device_string.h"

namespace halfpage {
namespace {

constexpr uint32_t kHeadroom = 128;     // RTE_PKTMBUF_HEADROOM
constexpr uint32_t kFrameOverMtu = 18;  // Ethernet header and a VLAN tag
constexpr uint32_t kWithoutCache = 32;  // sizes without a cache are a multiple of it
constexpr uint64_t kMostBuffers = 1u << 27;

// The ends that frames of a program may be sent to.
std::vector<std::string> Targets(const Config& config, const std::string& name) {
  std::vector<std::string> targets;
  for (const ProgramConfig& program : config.programs) {
    if (program.name != name) continue;
    targets.push_back(program.target);
    targets.push_back(program.fallback_target);
    for (const FilterRule& rule : program.rules) targets.push_back(rule.target);
  }
  return targets;
}

// The devices whose rings can hold buffers of the pool: those it is sent into or received from, the other ends of their
// pairs, and where redirects and sinks take them from there.
std::set<DeviceIndex> DevicesFed(const Config& config, const std::vector<Device>& devices, const std::string& pool) {
  std::vector<std::string> reached;
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.pool == pool) reached.push_back(traffic.into);
  }
  for (const PortConfig& port : config.ports) {
    if (port.pool == pool) reached.push_back(port.name);
  }
  std::set<DeviceIndex> fed;
  while (!reached.empty()) {
    const DeviceIndex index = FindDevice(devices, reached.back());
    reached.pop_back();
    if (index == kNoDevice || !fed.insert(index).second) continue;
    const Device& device = devices[index];
    if (device.peer != kNoDevice) reached.push_back(devices[device.peer].name);
    if (!device.program.empty()) {
      for (std::string& target : Targets(config, device.program)) reached.push_back(std::move(target));
    }
    for (const SinkConfig& sink : config.sinks) {
      if (sink.name == device.sink) reached.push_back(sink.port);
    }
  }
  return fed;
}

// Frames that a device's rings hold: those of an end on their way to it, those of a port in both directions.
uint64_t Slots(const Config& config, DeviceIndex device) {
  const size_t ends = 2 * config.veth.size();
  if (device < ends) return uint64_t{config.veth[device / 2].queues} * config.veth[device / 2].ring;
  const PortConfig& port = config.ports[device - ends];
  const bool af_xdp = ParseDeviceString(port.device).driver == "net_af_xdp";
  return uint64_t{port.queues} * (af_xdp ? kAfXdpKept : port.rxd) + port.txd;
}

// No longer than the MTU of the device that receives it; of a capture, nothing else is known here.
uint32_t LongestFrame(const std::vector<Device>& devices, const TrafficConfig& traffic) {
  const DeviceIndex into = FindDevice(devices, traffic.into);
  if (into == kNoDevice) return 0;
  const uint32_t limit = FrameLimitThrough(devices, into);
  if (traffic.source == TrafficConfig::Source::kCapture) return limit;
  uint32_t longest = 0;
  for (const auto& [size, weight] : traffic.sizes) longest = std::max(longest, size);
  return std::min(longest, limit);
}

// Headroom is kept in a frame's first buffer only.
uint32_t Segments(uint32_t frame, uint32_t data_room) {
  const uint32_t first = data_room - kHeadroom;
  return frame <= first ? 1 : 2 + (frame - first - 1) / data_room;
}

}  // namespace

BufferNeeds NeedsOf(const Config& config, size_t number) {
  const PktmbufPoolConfig& pool = config.pools[number];
  const std::vector<Device> devices = ListDevices(config);
  BufferNeeds needs;
  uint64_t frames = 0;
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.pool != pool.name) continue;
    needs.segments = std::max(needs.segments, Segments(LongestFrame(devices, traffic), pool.data_room));
    frames += traffic.burst;
  }
  for (const PortConfig& port : config.ports) {
    if (port.pool == pool.name)
      needs.segments = std::max(needs.segments, Segments(port.mtu + kFrameOverMtu, pool.data_room));
  }
  uint64_t slots = 0;
  for (const DeviceIndex device : DevicesFed(config, devices, pool.name)) slots += Slots(config, device);
  if (slots == 0) return needs;
  const uint64_t workers = config.lcores.workers.size();
  frames += workers * (config.measure.budget + config.measure.bulk);
  needs.rings = slots * needs.segments;
  needs.bursts = frames * needs.segments;
  needs.caches = workers * CacheHolds(pool.cache);
  return needs;
}

uint32_t AutoSize(const Config& config, size_t pool) {
  const uint32_t cache = config.pools[pool].cache;
  const uint64_t step = cache > 0 ? cache : kWithoutCache;
  const uint64_t least = std::max({NeedsOf(config, pool).sum(), CacheHolds(cache), uint64_t{1}});
  // Past the largest size that the key takes, the check of memory speaks.
  return static_cast<uint32_t>(std::min((least + step - 1) / step * step, kMostBuffers));
}

void ResolveSizes(Config& config) {
  for (size_t p = 0; p < config.pools.size(); ++p) {
    if (config.pools[p].size == 0) config.pools[p].size = AutoSize(config, p);
  }
}

}  // namespace halfpage
