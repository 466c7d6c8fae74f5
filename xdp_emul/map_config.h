// What a redirect map is told: its kind, its slots, and where they lead when a run begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfpage {

enum class MapKind : uint8_t {
  kDevmap,  // to devices
  kXskmap,  // to a user's rings
  kCpumap,  // to other workers, who judge again or let pass
};

// "devmap", "xskmap", "cpumap".
constexpr const char* MapKindName(MapKind kind) {
  return kind == MapKind::kDevmap ? "devmap" : kind == MapKind::kXskmap ? "xskmap" : "cpumap";
}

// One slot that leads somewhere.
struct MapSlotConfig {
  uint32_t key = 0;
  std::string device;   // kDevmap: frames leave through it
  std::string sink;     // kXskmap: of kind user
  uint32_t worker = 0;  // kCpumap: in the configuration's order
  uint32_t ring = 256;  // kCpumap: frames that may wait for it (kernel: qsize)
  std::string program;  // kDevmap: judges before frames leave; kCpumap: on that worker; empty: everything passes
};

struct RedirectMapConfig {
  std::string name;
  MapKind kind = MapKind::kDevmap;
  uint32_t size = 64;            // keys are below it (kernel: max_entries)
  bool broadcast = false;        // kDevmap: a frame leaves through all slots, whatever its key (BPF_F_BROADCAST)
  bool exclude_ingress = false;  // kDevmap: but not through the device that received it (BPF_F_EXCLUDE_INGRESS)
  std::vector<MapSlotConfig> entries;
};

// In place of a key: the number of the queue that received the frame.
inline constexpr uint32_t kKeyOfQueue = UINT32_MAX;
inline constexpr uint32_t kMostMapSlots = 4096;

}  // namespace halfpage
