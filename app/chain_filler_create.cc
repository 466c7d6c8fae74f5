#include "app/chain_filler.h"

namespace halfpage {

std::unique_ptr<ChainFiller> ChainFiller::Create(absl::Span<FrameTemplate> frames, rte_mempool* pool,
                                                 const PoolClasses* classes, uint32_t room) {
  const uint32_t data_room = room + RTE_PKTMBUF_HEADROOM;
  bool chains = false;
  for (FrameTemplate& frame : frames) {
    if (frame.length <= room) continue;
    chains = true;
    const uint32_t rest = frame.length - room;
    frame.between = static_cast<uint16_t>((rest - 1) / data_room);
    if (classes != nullptr) {
      frame.end_class = static_cast<uint8_t>(classes->EndClassOf(rest - frame.between * data_room));
    }
  }
  if (!chains) return nullptr;
  std::unique_ptr<ChainFiller> filler(new ChainFiller());
  filler->frames_ = frames.data();
  filler->size_ = frames.size();
  filler->room_ = room;
  filler->last_ = classes == nullptr ? 0 : classes->size() - 1;
  for (size_t c = 0; c <= filler->last_; ++c) {
    Stock& stock = filler->stocks_[c];
    stock.pool = classes == nullptr ? pool : classes->pool(c);
    const bool last = c == filler->last_;
    stock.buffers = last ? filler->segments_ : filler->ends_[c];
    stock.most = last ? kMostSegments : kMostFrames;
  }
  return filler;
}

}  // namespace halfpage
