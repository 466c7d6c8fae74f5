#include "mempool/page_layout.h"

#include <algorithm>

namespace halfpage {
namespace {

constexpr uint32_t kDefaultPageShift = 15;
constexpr uint32_t kFewObjects = 3;

uint32_t RoundUpToLine(uint32_t bytes) {
  return (bytes + kCacheLine - 1) & ~(kCacheLine - 1);
}

uint32_t ChoosePageShift(uint32_t stride) {
  uint32_t shift = kDefaultPageShift;
  while (shift < kMaxPageShift && (1u << shift) / stride < kFewObjects) {
    if (shift == kMaxPageShift - 1 && (1u << shift) / stride >= 1) break;
    ++shift;
  }
  while (shift > kMinPageShift && (1u << shift) / stride > kMaxObjectsPerPage) --shift;
  return shift;
}

uint32_t PowerOfTwoAtMost(uint32_t value) {
  uint32_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

}  // namespace

absl::optional<PageLayout> LayOutPage(uint32_t object_size, uint32_t page_size, bool colour) {
  if (object_size == 0 || object_size > (1u << kMaxPageShift)) return absl::nullopt;
  PageLayout layout;
  layout.stride = RoundUpToLine(object_size);
  if (page_size == 0) {
    layout.page_shift = ChoosePageShift(layout.stride);
  } else {
    layout.page_shift = kMinPageShift;
    while (layout.page_shift < kMaxPageShift && (1u << layout.page_shift) < page_size) ++layout.page_shift;
    if ((1u << layout.page_shift) != page_size) return absl::nullopt;
  }
  layout.objects = std::min(layout.page_size() / layout.stride, kMaxObjectsPerPage);
  if (layout.objects == 0) return absl::nullopt;
  // A colour below one stride keeps IndexOf() exact without knowing the page's colour.
  const uint32_t slack = std::min(layout.page_size() - layout.objects * layout.stride, layout.stride - kCacheLine);
  if (colour) layout.colour_mask = PowerOfTwoAtMost(slack / kCacheLine + 1) - 1;
  layout.reciprocal = ((uint64_t{1} << 40) + layout.stride - 1) / layout.stride;
  layout.full_mask = (uint64_t{1} << layout.objects) - 1;
  return layout;
}

ChunkLayout LayOutChunk(uint32_t page_shift, bool last_of_extent) {
  const uint64_t page = uint64_t{1} << page_shift;
  const uint64_t header = kChunkHeaderBytes + (kChunkBytes >> page_shift) * kPageMetaBytes;
  ChunkLayout layout;
  layout.first_page = static_cast<uint32_t>((header + page - 1) >> page_shift);
  const uint64_t bytes = kChunkBytes - (last_of_extent ? kExtentShortfall : 0);
  layout.pages = static_cast<uint32_t>(bytes >> page_shift) - layout.first_page;
  return layout;
}

uint32_t NextExtentChunks(uint64_t chunks, uint64_t missing) {
  const uint64_t wanted = missing > 0 ? std::min(chunks / 2, missing) : chunks / 16;
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, kMaxExtentChunks));
}

}  // namespace halfpage
