// Redirect maps, as the kernel's DEVMAP, XSKMAP and CPUMAP: slots that lead to devices, to a user's rings or to other
// workers.
//
// A verdict's target is a number of 16 bits (Verdicts::target). Direct numbers say where a frame goes: a device, a
// device behind a program, a sink or a lane to another worker. The numbers behind them stand for slots of maps, which
// are looked up when frames leave, so that a slot may be changed while workers run. An empty slot, or a key past the
// map's end, is bad_target.
//
// A program that has a map and a key says `map->Slot(key)` as target. One that must know whether the slot leads
// anywhere (bpf_redirect_map() gives back another verdict where it does not) asks Read() first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xdp_emul/map_config.h"
#include "xdp_emul/program.h"

namespace halfpage {

// Ranges of target numbers behind those of devices.
inline constexpr DeviceIndex kFirstSinkTarget = 0x100;    // + number of the sink in the configuration
inline constexpr DeviceIndex kFirstLaneTarget = 0x500;    // + number of the lane: entries of all cpumaps in their order
inline constexpr DeviceIndex kFirstEgressTarget = 0x600;  // + program behind the slot * 32 + device
inline constexpr DeviceIndex kFirstMapTarget = 0x1600;    // slots
inline constexpr uint32_t kMostEgressDevices = 32;        // DPDK has no more ports
inline constexpr uint32_t kMostEgressPrograms = (kFirstMapTarget - kFirstEgressTarget) / kMostEgressDevices;

constexpr DeviceIndex SinkTarget(size_t sink) {
  return static_cast<DeviceIndex>(kFirstSinkTarget + sink);
}
constexpr DeviceIndex LaneTarget(size_t lane) {
  return static_cast<DeviceIndex>(kFirstLaneTarget + lane);
}

// Through a device, but before that by a program of this number; kNoDevice past the ranges.
constexpr DeviceIndex EgressTarget(uint32_t program, DeviceIndex device) {
  return program < kMostEgressPrograms && device < kMostEgressDevices
             ? static_cast<DeviceIndex>(kFirstEgressTarget + program * kMostEgressDevices + device)
             : kNoDevice;
}
constexpr bool IsEgressTarget(DeviceIndex direct) {
  return direct >= kFirstEgressTarget && direct < kFirstMapTarget;
}
constexpr uint32_t EgressProgramOf(DeviceIndex egress) {
  return (egress - kFirstEgressTarget) / kMostEgressDevices;
}
// The device that a direct number leads through in the end; of others the number itself.
constexpr DeviceIndex ThroughDevice(DeviceIndex direct) {
  return IsEgressTarget(direct) ? static_cast<DeviceIndex>((direct - kFirstEgressTarget) % kMostEgressDevices) : direct;
}

class RedirectMap {
 public:
  const std::string& name() const { return config_.name; }
  const RedirectMapConfig& config() const { return config_; }
  uint32_t size() const { return config_.size; }

  // Targets for a verdict. kNoDevice past the end.
  DeviceIndex Slot(uint32_t key) const {
    return key < config_.size ? static_cast<DeviceIndex>(first_ + key) : kNoDevice;
  }
  // The slot whose key is the number of the queue that received the frame.
  DeviceIndex SlotOfQueue() const { return static_cast<DeviceIndex>(first_ + config_.size); }
  // All slots of a devmap that lead somewhere, perhaps not the device that received the frame.
  DeviceIndex Everywhere(bool exclude_ingress) const {
    return static_cast<DeviceIndex>(first_ + config_.size + 1 + exclude_ingress);
  }
  // What a redirect to `key` (or kKeyOfQueue) means where the map's configuration decides about broadcast.
  DeviceIndex TargetOf(uint32_t key) const;

  // The direct number that a slot leads to, kNoDevice where it is empty or not there. Any thread.
  DeviceIndex Read(uint32_t key) const {
    return key < config_.size ? slots_[key].load(std::memory_order_relaxed) : kNoDevice;
  }
  // Makes a slot lead to a direct number, or with kNoDevice nowhere. Bursts under way may still see what it was.
  // Workers must have been made ready to send there: see RedirectMaps::Leads(). Any thread; `key` is below size().
  void Put(uint32_t key, DeviceIndex to) { slots_[key].store(to, std::memory_order_relaxed); }

  // How a target of this map is to be read. Hot.
  bool IsSlotOfQueue(DeviceIndex target) const { return target == SlotOfQueue(); }
  bool IsEverywhere(DeviceIndex target) const { return target > SlotOfQueue(); }
  bool ExcludesIngress(DeviceIndex target) const { return target == Everywhere(true); }
  uint32_t KeyOf(DeviceIndex target) const { return target - first_; }

 private:
  friend class RedirectMaps;
  RedirectMapConfig config_;
  DeviceIndex first_ = kNoDevice;
  std::unique_ptr<std::atomic<DeviceIndex>[]> slots_;
};

// The maps of a run. They and their numbers stay as long as it does.
class RedirectMaps {
 public:
  // Makes the maps, all slots empty. Errors: InvalidArgument for a size of none or more than kMostMapSlots, and for
  // more slots in all than there are numbers.
  static absl::StatusOr<std::unique_ptr<RedirectMaps>> Create(const std::vector<RedirectMapConfig>& configs);

  size_t size() const { return maps_.size(); }
  RedirectMap& at(size_t map) const { return *maps_[map]; }
  // Null where there is none of that name.
  RedirectMap* Find(absl::string_view name) const;

  // How many numbers from kFirstMapTarget on are given out.
  size_t targets() const { return owners_.size(); }
  // The map that a target belongs to; null for any other number. Hot.
  const RedirectMap* Of(DeviceIndex target) const {
    const size_t number = target - size_t{kFirstMapTarget};
    return number < owners_.size() ? owners_[number] : nullptr;
  }
  // Whether a redirect to `target` may end at the direct number `to`, as slots stand now, behind a program or not.
  bool Leads(DeviceIndex target, DeviceIndex to) const;

 private:
  RedirectMaps() = default;
  std::vector<std::unique_ptr<RedirectMap>> maps_;
  std::vector<const RedirectMap*> owners_;  // by target - kFirstMapTarget
};

}  // namespace halfpage
