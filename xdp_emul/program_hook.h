// Where a program is meant to run. Of an object its section says so, as libbpf reads it.
#pragma once

#include <cstdint>

namespace halfpage {

enum class ProgramHook : uint8_t {
  kAny,     // built-in programs
  kDevice,  // xdp, xdp.frags: where a device receives
  kDevmap,  // xdp/devmap, xdp.frags/devmap: behind a devmap's entry, before the frame leaves
  kCpumap,  // xdp/cpumap, xdp.frags/cpumap: behind a cpumap's entry, on its worker
};

// "xdp", "xdp/devmap", "xdp.frags/cpumap": the section that such a program is in.
constexpr const char* SectionOf(ProgramHook hook, bool frags) {
  switch (hook) {
    case ProgramHook::kDevmap:
      return frags ? "xdp.frags/devmap" : "xdp/devmap";
    case ProgramHook::kCpumap:
      return frags ? "xdp.frags/cpumap" : "xdp/cpumap";
    default:
      return frags ? "xdp.frags" : "xdp";
  }
}

}  // namespace halfpage
