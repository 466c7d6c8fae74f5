#include "app/config_sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/device.h"
#include "app/frame_limits.h"
#include "app/redirects.h"
#include "mempool/page_layout.h"
#include "xdp_emul/device_string.h"

namespace halfpage {
namespace {

constexpr uint32_t kFrameOverMtu = 18;  // Ethernet header and a VLAN tag
constexpr uint32_t kWithoutCache = 32;  // sizes without a cache are a multiple of it
constexpr uint64_t kMostBuffers = 1u << 27;

// The ends that frames of a device may be redirected to: by its program, and by those of cpumaps behind it.
std::vector<std::string> EndsBehind(const Config& config, const Device& device) {
  RedirectEnds ends = RedirectsOf(config, device.program);
  for (const LaneOf& lane : ends.lanes) {
    for (std::string& further : RedirectsOf(config, lane.slot->program).devices) {
      ends.devices.push_back(std::move(further));
    }
  }
  return ends.devices;
}

// The devices whose rings can hold frames that enter at one of them: that one, the other end of its pair, and where
// redirects and sinks take them from there.
std::set<DeviceIndex> DevicesFed(const Config& config, const std::vector<Device>& devices, const std::string& into) {
  std::vector<std::string> reached = {into};
  std::set<DeviceIndex> fed;
  while (!reached.empty()) {
    const DeviceIndex index = FindDevice(devices, reached.back());
    reached.pop_back();
    if (index == kNoDevice || !fed.insert(index).second) continue;
    const Device& device = devices[index];
    if (device.peer != kNoDevice) reached.push_back(devices[device.peer].name);
    for (std::string& target : EndsBehind(config, device)) reached.push_back(std::move(target));
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

// Frames that a sink of the fed devices keeps for its reader. A frame is charged for at least one of the pool's
// buffers.
uint64_t HeldFrames(const SinkConfig& sink, uint32_t data_room) {
  constexpr uint32_t kMbuf = 128;
  constexpr uint32_t kLeastOfKernel = 896;  // a 64-byte frame's
  if (sink.kind == SinkConfig::Kind::kUser) return std::min(sink.ring, sink.chunks);
  if (sink.kind != SinkConfig::Kind::kUdpSocket) return 0;
  return sink.rcvbuf / (sink.accounting == Accounting::kKernel ? kLeastOfKernel : kMbuf + data_room) + 1;
}

// No longer than the MTU of the device that receives it; of a capture, nothing else is known here.
uint32_t LongestFrame(const std::vector<Device>& devices, const TrafficConfig& traffic) {
  const DeviceIndex into = FindDevice(devices, traffic.into);
  if (into == kNoDevice) return 0;
  const uint32_t limit = FrameLimitThrough(devices, into);
  if (traffic.source == TrafficConfig::Source::kCapture) return limit;
  uint32_t longest = 0;
  for (const auto& [size, weight] : traffic.sizes) longest = std::max(longest, size);
  return traffic.gso != 0 ? longest : std::min(longest, limit);
}

// Headroom is kept in a frame's first buffer only.
uint32_t Segments(uint32_t frame, uint32_t data_room) {
  const uint32_t first = data_room - kMbufHeadroom;
  return frame <= first ? 1 : 2 + (frame - first - 1) / data_room;
}

// Of the source's frames, those that go into buffers with this range.
double ShareOf(const TrafficConfig& traffic, const ClassRange& range, uint32_t longest) {
  if (traffic.source == TrafficConfig::Source::kCapture) return longest > range.above ? 1 : 0;
  uint64_t inside = 0;
  uint64_t all = 0;
  for (const auto& [size, weight] : traffic.sizes) {
    all += weight;
    inside += range.Holds(size) ? weight : 0;
  }
  return static_cast<double>(inside) / static_cast<double>(std::max<uint64_t>(all, 1));
}

// How many of `slots` hold such a frame at most, when each holds one with a chance of `share`.
uint64_t SlotsHeld(uint64_t slots, double share) {
  const auto all = static_cast<double>(slots);
  return std::min(slots, static_cast<uint64_t>(std::ceil(all * share + 4 * std::sqrt(all * share * (1 - share)))));
}

bool TakesFrom(const TrafficConfig& traffic, const PktmbufPoolConfig& pool) {
  const std::vector<std::string> names = traffic.PoolNames();
  return std::find(names.begin(), names.end(), pool.name) != names.end();
}

// Of a buffer in one piece, headroom included.
uint32_t RoomOf(const TrafficConfig& traffic, const PktmbufPoolConfig& pool) {
  if (traffic.buffers != TrafficConfig::Buffers::kExact) return pool.data_room;
  const auto layout = LayOutPage(static_cast<uint32_t>(PktmbufObjectBytes(pool.data_room)), pool.page_frag.page_size,
                                 pool.page_frag.colour);
  return layout.has_value() ? LargestExactBytes(layout->page_size()) - kMbufBytes : pool.data_room;
}

}  // namespace

uint32_t LargestRoomOf(const Config& config, const TrafficConfig& traffic) {
  uint32_t largest = 0;
  for (const PktmbufPoolConfig& pool : config.pools) {
    if (TakesFrom(traffic, pool)) largest = std::max(largest, RoomOf(traffic, pool));
  }
  return largest;
}

ClassRange RangeOf(const Config& config, const TrafficConfig& traffic, const PktmbufPoolConfig& pool) {
  const uint32_t room = RoomOf(traffic, pool);
  ClassRange range;
  range.up_to = room - kMbufHeadroom;
  if (traffic.classes.empty()) return range;
  for (const PktmbufPoolConfig& other : config.pools) {
    if (!TakesFrom(traffic, other)) continue;
    if (other.data_room < room) range.above = std::max<uint32_t>(range.above, other.data_room - kMbufHeadroom);
    if (other.data_room > room) range.last = false;
  }
  return range;
}

FrameMix ExactMixOf(const Config& config, const PktmbufPoolConfig& pool) {
  constexpr uint64_t kParts = 1'000'000;
  const std::vector<Device> devices = ListDevices(config);
  FrameMix mix;
  for (const TrafficConfig& traffic : config.traffic) {
    if (traffic.buffers != TrafficConfig::Buffers::kExact || !TakesFrom(traffic, pool)) continue;
    if (traffic.source == TrafficConfig::Source::kCapture) {
      mix.emplace_back(LongestFrame(devices, traffic), kParts);
      continue;
    }
    uint64_t all = 0;
    for (const auto& [size, weight] : traffic.sizes) all += weight;
    for (const auto& [size, weight] : traffic.sizes) {
      mix.emplace_back(size, static_cast<uint32_t>(std::max<uint64_t>(1, weight * kParts / all)));
    }
  }
  return mix;
}

BufferNeeds NeedsOf(const Config& config, size_t number) {
  const PktmbufPoolConfig& pool = config.pools[number];
  const std::vector<Device> devices = ListDevices(config);
  BufferNeeds needs;
  uint64_t frames = 0;
  std::map<DeviceIndex, double> shares;  // by device, of the source with most
  const auto feed = [&](const std::string& into, double share) {
    for (const DeviceIndex device : DevicesFed(config, devices, into)) {
      shares[device] = std::max(shares[device], share);
    }
  };
  for (const TrafficConfig& traffic : config.traffic) {
    if (!TakesFrom(traffic, pool)) continue;
    const ClassRange range = RangeOf(config, traffic, pool);
    const uint32_t longest = LongestFrame(devices, traffic);
    const double share = ShareOf(traffic, range, longest);
    if (share == 0) continue;
    if (range.last) needs.segments = std::max(needs.segments, Segments(longest, RoomOf(traffic, pool)));
    frames += traffic.burst;
    feed(traffic.into, share);
  }
  for (const PortConfig& port : config.ports) {
    if (port.pool != pool.name) continue;
    needs.segments = std::max(needs.segments, Segments(port.mtu + kFrameOverMtu, pool.data_room));
    feed(port.name, 1);
  }
  std::map<double, uint64_t> slots_by_share;
  for (const auto& [device, share] : shares) slots_by_share[share] += Slots(config, device);
  uint64_t slots = 0;
  for (const auto& [share, count] : slots_by_share) slots += SlotsHeld(count, share);
  for (const SinkConfig& sink : config.sinks) {
    const bool fed = std::any_of(shares.begin(), shares.end(),
                                 [&](const auto& each) { return devices[each.first].sink == sink.name; });
    if (fed) slots += HeldFrames(sink, pool.data_room);
  }
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
