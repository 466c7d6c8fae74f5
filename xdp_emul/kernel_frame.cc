#include "xdp_emul/kernel_frame.h"

#include <algorithm>
#include <cstring>

#include "xdp_emul/attach.h"
#include "xdp_emul/mbuf_chain.h"

namespace halfpage {

void KernelFrame::Place(absl::Span<const uint8_t> frame, bool frags) {
  const auto length = static_cast<uint32_t>(frame.size());
  const uint32_t first = frags ? std::min(length, kKernelFirst) : length;
  const uint32_t page = (kKernelHeadroom + first + kKernelTailroom + kKernelPage - 1) / kKernelPage * kKernelPage;
  pieces_ = {{0, page - kKernelTailroom, kKernelHeadroom, first}};
  uint32_t end = page;
  for (uint32_t done = first; done < length; done += pieces_.back().length, end += kKernelPage) {
    pieces_.push_back({end, kKernelPage, 0, std::min(length - done, kKernelPage)});
  }
  buffer_.assign(end, 0);
  for (uint32_t done = 0; const Piece& piece : pieces_) {
    if (piece.length != 0) memcpy(&buffer_[piece.at + piece.offset], &frame[done], piece.length);
    done += piece.length;
  }
  mbufs_.assign(pieces_.size(), rte_mbuf{});
}

void KernelFrame::Link() {
  rte_mbuf& first = mbufs_[0];
  first.nb_segs = static_cast<uint16_t>(mbufs_.size());
  first.pkt_len = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    rte_mbuf& mbuf = mbufs_[i];
    mbuf.buf_addr = &buffer_[piece.at];
    mbuf.buf_len = static_cast<uint16_t>(piece.room);
    mbuf.data_off = static_cast<uint16_t>(piece.offset);
    mbuf.data_len = static_cast<uint16_t>(piece.length);
    mbuf.refcnt = 2;  // freed, it is still held here and asks for no pool
    mbuf.next = i + 1 < mbufs_.size() ? &mbufs_[i + 1] : nullptr;
    first.pkt_len += piece.length;
  }
}

void KernelFrame::PointAt(bpf::RunState* state) {
  const Piece& first = pieces_[0];
  state->hard_start = &buffer_[bpf::kKernelFrameBytes];
  state->data_meta = state->data = &buffer_[first.offset];
  state->data_end = state->data + first.length;
  state->hard_end = buffer_.data() + first.room;
  state->chain = nullptr;
  if (pieces_.size() == 1) return;
  Link();
  state->frame = mbufs_.data();
  state->chain = &kMbufChain;
}

std::vector<uint8_t> KernelFrame::Bytes(const bpf::RunState& state) const {
  std::vector<uint8_t> bytes(state.data_meta, state.data_end);
  if (state.chain == nullptr) return bytes;
  for (const rte_mbuf* part = mbufs_[0].next; part != nullptr; part = part->next) {
    const uint8_t* const data = rte_pktmbuf_mtod(part, const uint8_t*);
    bytes.insert(bytes.end(), data, data + part->data_len);
  }
  return bytes;
}

}  // namespace halfpage
