// What a queue's private copies are told: which frames are copied, and into what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct rte_mempool;

namespace halfpage {

inline constexpr size_t kMostCopyPools = 8;

// How copies are cut.
enum class CopyCut : uint8_t {
  kRooms,   // buffers of ordinary pools, the smallest room that the frame fits
  kExact,   // as long as the frame, from an exact pool
  kKernel,  // as long as the kernel's (KernelFragments), pieces past 3520 bytes in pages, from an exact pool
};

struct ConverterConfig {
  CopyCut cut = CopyCut::kRooms;
  std::vector<rte_mempool*> pools;  // kRooms: one or more; else one exact pool
  bool always = false;              // every frame
  bool needed = true;               // frames for one of the reasons above
  uint16_t headroom_wanted = 0;     // fewer bytes in front are a reason
  uint16_t headroom = 256;          // of copies
  uint16_t tailroom = 0;            // of copies
  bool writes = true;               // the program may write, so what is shared must be copied
  bool linear = false;              // the program takes no chained frames: copy those that fit one buffer
  bool unchain = false;             // copy every chained frame (kernel)
};

}  // namespace halfpage
