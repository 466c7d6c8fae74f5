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

// Where frames that are there already go on to: rings between workers, and sinks of devices or of xskmaps.
void Follow(const Config& config, const Device& device, std::set<std::string>* lanes, std::set<std::string>* sinks) {
  const RedirectEnds ends = RedirectsOf(config, device.program);
  for (const LaneOf& lane : ends.lanes) {
    lanes->insert(lane.Name());
    for (const std::string& sink : RedirectsOf(config, lane.slot->program).sinks) sinks->insert(sink);
  }
  sinks->insert(device.sink);
  for (const std::string& sink : ends.sinks) sinks->insert(sink);
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

bool TakesFrom(const TrafficConfig& traffic, const PktmbufPoolConfig& pool) {
  const std::vector<std::string> names = traffic.PoolNames();
  return std::find(names.begin(), names.end(), pool.name) != names.end();
}

// Whether a device copies frames into a pool by rule: all of them, those with less headroom than a port or a source
// leaves, or because nobody else takes buffers from it. Copies of what happens to be shared take the place of others.
bool CopiesInto(const Config& config, const Device& device, const PktmbufPoolConfig& pool) {
  const CopyConfig& copy = device.copy;
  if (device.program.empty() || copy.when == CopyConfig::When::kNever) return false;
  if (std::find(copy.pools.begin(), copy.pools.end(), pool.name) == copy.pools.end()) return false;
  if (copy.when == CopyConfig::When::kAlways || device.mode == XdpMode::kKernel) return true;
  if (copy.headroom != CopyConfig::kAutoHeadroom && copy.headroom > kMbufHeadroom) return true;
  return std::none_of(config.traffic.begin(), config.traffic.end(),
                      [&](const TrafficConfig& traffic) { return TakesFrom(traffic, pool); }) &&
         std::none_of(config.ports.begin(), config.ports.end(),
                      [&](const PortConfig& port) { return port.pool == pool.name; });
}

// The range of a class with room for `room` bytes, `headroom` of a frame's first buffer free, beside `others`.
ClassRange RangeAmong(uint32_t room, uint32_t headroom, const std::vector<uint32_t>& others) {
  ClassRange range;
  range.up_to = room - std::min(headroom, room);
  for (const uint32_t other : others) {
    if (other < room && other > headroom) {
      range.above = std::max(range.above, other - headroom);
      range.end_above = std::max(range.end_above, other);
    }
    if (other <= room) continue;
    range.last = false;
    range.last_room = std::max(range.last_room, other);
  }
  range.end_up_to = room;
  range.last_up_to = range.last_room - std::min(headroom, range.last_room);
  return range;
}

// The lengths that a device copies into one of its pools, as RangeOf().
ClassRange CopyRangeOf(const Config& config, const CopyConfig& copy, const PktmbufPoolConfig& pool) {
  const uint32_t headroom = std::max(copy.headroom == CopyConfig::kAutoHeadroom ? 0 : copy.headroom, kMbufHeadroom);
  std::vector<uint32_t> others;
  for (const std::string& name : copy.pools) {
    const PktmbufPoolConfig* other = config.FindPool(name);
    if (other != nullptr && copy.policy != CopyConfig::Policy::kStock) others.push_back(other->data_room);
  }
  return RangeAmong(pool.data_room, headroom, others);
}

// How many of `slots` hold such a frame at most, when each holds one with a chance of `share`.
uint64_t SlotsHeld(uint64_t slots, double share) {
  const auto all = static_cast<double>(slots);
  return std::min(slots, static_cast<uint64_t>(std::ceil(all * share + 4 * std::sqrt(all * share * (1 - share)))));
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
  std::vector<uint32_t> others;
  if (!traffic.classes.empty()) {
    for (const PktmbufPoolConfig& other : config.pools) {
      if (TakesFrom(traffic, other)) others.push_back(other.data_room);
    }
  }
  return RangeAmong(RoomOf(traffic, pool), kMbufHeadroom, others);
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

namespace {

// What one pool's buffers can be in at the same time, gathered from everyone who takes some.
class Places {
 public:
  Places(const Config& config, const PktmbufPoolConfig& pool)
      : config_(config), pool_(pool), devices_(ListDevices(config)) {}

  void AddSources() {
    for (const TrafficConfig& traffic : config_.traffic) {
      if (!TakesFrom(traffic, pool_)) continue;
      const ClassRange range = RangeOf(config_, traffic, pool_);
      const uint32_t longest = LongestFrame(devices_, traffic);
      const double share = ShareOf(traffic, range, longest);
      if (share == 0) continue;
      if (range.last) Segment(longest, RoomOf(traffic, pool_));
      frames_ += traffic.burst;
      Feed(traffic.into, share);
    }
    for (const PortConfig& port : config_.ports) {
      if (port.pool != pool_.name) continue;
      Segment(port.mtu + kFrameOverMtu, pool_.data_room);
      Feed(port.name, 1);
    }
  }

  // Private copies that devices make of the frames that reach them, and those of broadcasts.
  void AddCopies(bool broadcasts) {
    for (const Device& device : devices_) {
      if (CopiesInto(config_, device, pool_)) {
        in_hand_ = config_.measure.budget;
        const ClassRange range = CopyRangeOf(config_, device.copy, pool_);
        EachThatReaches(
            device,
            [&](uint32_t longest, double share) {
              if (share == 0) return;
              if (range.last) Segment(longest, pool_.data_room);
              Feed(device.name, share);
            },
            range);
      }
      const RedirectEnds ends = RedirectsOf(config_, device.program);
      if (!broadcasts || ends.most_copies == 0) continue;
      EachThatReaches(
          device,
          [&](uint32_t longest, double) {
            Segment(longest, pool_.data_room);
            for (const std::string& target : ends.devices) Feed(target, 1);
            in_hand_ = config_.measure.budget;
          },
          ClassRange());
    }
  }

  BufferNeeds Needs() const {
    BufferNeeds needs;
    needs.segments = segments_;
    std::map<double, uint64_t> slots_by_share;
    for (const auto& [device, share] : shares_) slots_by_share[share] += Slots(config_, device);
    std::set<std::string> lanes;
    std::set<std::string> sinks;
    for (const auto& [device, share] : shares_) Follow(config_, devices_[device], &lanes, &sinks);
    uint64_t slots = 0;
    for (const auto& [share, count] : slots_by_share) slots += SlotsHeld(count, share);
    for (const LaneOf& lane : ListLanes(config_)) slots += lanes.count(lane.Name()) != 0 ? lane.slot->ring : 0;
    for (const SinkConfig& sink : config_.sinks) {
      if (sinks.count(sink.name) != 0) slots += HeldFrames(sink, pool_.data_room);
    }
    if (slots == 0) return needs;
    const uint64_t workers = config_.lcores.workers.size();
    const uint64_t hands = config_.measure.budget + config_.measure.bulk + in_hand_;
    needs.rings = slots * segments_;
    needs.bursts = (frames_ + workers * hands) * segments_;
    needs.caches = workers * CacheHolds(pool_.cache);
    return needs;
  }

 private:
  void Segment(uint32_t longest, uint32_t room) { segments_ = std::max(segments_, Segments(longest, room)); }
  void Feed(const std::string& into, double share) {
    for (const DeviceIndex device : DevicesFed(config_, devices_, into)) {
      shares_[device] = std::max(shares_[device], share);
    }
  }
  // `use(longest, share of its frames in the range)` of each source and port whose frames may reach a device.
  template <typename Use>
  void EachThatReaches(const Device& device, const Use& use, const ClassRange& range) {
    const DeviceIndex index = FindDevice(devices_, device.name);
    for (const TrafficConfig& traffic : config_.traffic) {
      if (DevicesFed(config_, devices_, traffic.into).count(index) == 0) continue;
      const uint32_t longest = LongestFrame(devices_, traffic);
      use(longest, ShareOf(traffic, range, longest));
    }
    for (const PortConfig& port : config_.ports) {
      if (DevicesFed(config_, devices_, port.name).count(index) == 0) continue;
      const uint32_t longest = port.mtu + kFrameOverMtu;
      use(longest, longest > range.above ? 1 : 0);
    }
  }

  const Config& config_;
  const PktmbufPoolConfig& pool_;
  const std::vector<Device> devices_;
  std::map<DeviceIndex, double> shares_;  // of the source with most
  uint32_t segments_ = 1;
  uint64_t frames_ = 0;   // in the hands of sources
  uint64_t in_hand_ = 0;  // of each worker: copies beside what they are copied from
};

// The pool that broadcasts copy into: Topology::BuildMapWays().
bool TakesBroadcasts(const Config& config, const PktmbufPoolConfig& pool) {
  const auto first = std::find_if(config.pools.begin(), config.pools.end(),
                                  [](const PktmbufPoolConfig& each) { return !each.page_frag.exact; });
  return first != config.pools.end() && first->name == pool.name;
}

}  // namespace

BufferNeeds NeedsOf(const Config& config, size_t number) {
  const PktmbufPoolConfig& pool = config.pools[number];
  Places places(config, pool);
  places.AddSources();
  places.AddCopies(TakesBroadcasts(config, pool));
  return places.Needs();
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
