#include "xdp_emul/maps.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

constexpr size_t kMostTargets = size_t{kNoDevice} - kFirstMapTarget;
constexpr size_t kBesideSlots = 3;  // of the queue; everywhere, with and without ingress

}  // namespace

DeviceIndex RedirectMap::TargetOf(uint32_t key) const {
  if (config_.broadcast) return Everywhere(config_.exclude_ingress);
  return key == kKeyOfQueue ? SlotOfQueue() : Slot(key);
}

absl::StatusOr<std::unique_ptr<RedirectMaps>> RedirectMaps::Create(const std::vector<RedirectMapConfig>& configs) {
  std::unique_ptr<RedirectMaps> maps(new RedirectMaps());
  for (const RedirectMapConfig& config : configs) {
    if (config.size == 0 || config.size > kMostMapSlots) {
      return absl::InvalidArgumentError(
          absl::StrFormat("map %s: %u slots; give it 1 to %u", config.name, config.size, kMostMapSlots));
    }
    const size_t numbers = config.size + kBesideSlots;
    if (maps->owners_.size() + numbers > kMostTargets) {
      return absl::InvalidArgumentError(
          absl::StrFormat("map %s: with its %u slots there are more than %u in all maps; make them smaller",
                          config.name, config.size, kMostTargets));
    }
    auto map = std::make_unique<RedirectMap>();
    map->config_ = config;
    map->first_ = static_cast<DeviceIndex>(kFirstMapTarget + maps->owners_.size());
    map->slots_ = std::make_unique<std::atomic<DeviceIndex>[]>(config.size);
    for (uint32_t key = 0; key < config.size; ++key) map->Put(key, kNoDevice);
    maps->owners_.insert(maps->owners_.end(), numbers, map.get());
    maps->maps_.push_back(std::move(map));
  }
  return maps;
}

RedirectMap* RedirectMaps::Find(absl::string_view name) const {
  for (const auto& map : maps_) {
    if (map->name() == std::string(name)) return map.get();
  }
  return nullptr;
}

bool RedirectMaps::Leads(DeviceIndex target, DeviceIndex to) const {
  const RedirectMap* map = Of(target);
  if (map == nullptr) return ThroughDevice(target) == to && to != kNoDevice;
  const uint32_t key = map->KeyOf(target);
  if (key < map->size()) return ThroughDevice(map->Read(key)) == to;
  for (uint32_t slot = 0; slot < map->size(); ++slot) {
    if (ThroughDevice(map->Read(slot)) == to) return true;
  }
  return false;
}

}  // namespace halfpage
