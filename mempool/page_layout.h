// How objects lie on a page, pages in a chunk, and by how many chunks an arena grows: arithmetic only, no DPDK, no
// memory. The arena works by it and the footprint is planned by it, so that the two agree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/optional.h"

namespace halfpage {

inline constexpr uint32_t kCacheLine = 64;
inline constexpr uint32_t kMinPageShift = 12;  // 4 KiB
inline constexpr uint32_t kMaxPageShift = 17;  // 128 KiB: the largest room a mbuf can name, with its headers
inline constexpr uint32_t kPageClasses = kMaxPageShift - kMinPageShift + 1;
// A page's free objects are the bits of one 64-bit word, whose highest bit says that the page is on a list.
inline constexpr uint32_t kMaxObjectsPerPage = 63;

// Memory is taken from EAL in extents of whole chunks, each aligned to its size.
inline constexpr uint32_t kChunkShift = 21;
inline constexpr uintptr_t kChunkBytes = uintptr_t{1} << kChunkShift;
inline constexpr uint32_t kMaxExtentChunks = 32;    // 64 MiB
inline constexpr uint32_t kChunkHeaderBytes = 128;  // struct Chunk
inline constexpr uint32_t kPageMetaBytes = 32;      // struct PageMeta, one for every page of a chunk
// An extent is so much less than whole chunks: EAL puts its own header before an aligned block, and a full 2 MiB would
// therefore take two hugepages.
inline constexpr uint32_t kExtentShortfall = 1u << kMinPageShift;

// Object i of page p starts (with its mempool header) at p + colour(p) * 64 + i * stride.
struct PageLayout {
  uint32_t page_shift = 0;
  uint32_t stride = 0;       // bytes from one object to the next, a multiple of a cache line
  uint32_t objects = 0;      // per page, 1 to kMaxObjectsPerPage
  uint32_t colour_mask = 0;  // number of colours less one; colours are a power of two
  uint64_t reciprocal = 0;   // 2^40 / stride, rounded up
  uint64_t full_mask = 0;    // the low `objects` bits

  uint32_t page_size() const { return 1u << page_shift; }

  // Which object the byte `offset` (from the page's start, colour included) belongs to. Exact for every offset on a
  // page: a colour is smaller than a stride, and reciprocal * stride - 2^40 < stride <= 2^17.
  uint32_t IndexOf(uint32_t offset) const { return static_cast<uint32_t>((offset * reciprocal) >> 40); }

  // Offset of the first object on the page with this number in its chunk.
  uint32_t FirstOffset(uint32_t page_number) const { return (page_number & colour_mask) * kCacheLine; }
};

// Lays out objects of `object_size` bytes (mempool header, mbuf, private area and room) on pages of `page_size` bytes;
// page_size 0 chooses: the largest page up to 32 KiB that holds no more than 63 of them, and 64 or 128 KiB where fewer
// than three fit 32 KiB. With `colour` the page's slack shifts its objects, so that the headers of different pages do
// not all fall into the same cache sets. Nothing: the page size is no power of two in 4 KiB to 128 KiB, or too small
// for one object.
absl::optional<PageLayout> LayOutPage(uint32_t object_size, uint32_t page_size, bool colour);

// The largest buffer of an exact pool, mbuf included: a page of it, or what 16 bits of length can name.
inline constexpr uint32_t kMbufBytes = 128;  // sizeof(struct rte_mbuf)
constexpr uint32_t LargestExactBytes(uint32_t page_size) {
  constexpr uint32_t kMost = kMbufBytes + UINT16_MAX / kCacheLine * kCacheLine;
  return page_size < kMost ? page_size : kMost;
}

// Which pages of a chunk can be used: the first ones hold its header and metadata.
struct ChunkLayout {
  uint32_t first_page = 0;
  uint32_t pages = 0;
};

// Cuts a chunk into pages of 2^page_shift bytes. The last chunk of an extent ends kExtentShortfall early.
ChunkLayout LayOutChunk(uint32_t page_shift, bool last_of_extent);

// How many chunks an arena of `chunks` takes next, 1 to kMaxExtentChunks, when its pools could still fill `missing` of
// them: half of what there is, so that small users stay small and large ones need few extents, but no more than the
// pools can fill. Beyond that (pages in caches of other lcores) it grows by a sixteenth.
uint32_t NextExtentChunks(uint64_t chunks, uint64_t missing);

}  // namespace halfpage
