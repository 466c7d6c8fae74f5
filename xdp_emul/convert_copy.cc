// Hot path: which frames of a burst need a private copy, and copying them.
#include <algorithm>

#include "xdp_emul/convert.h"

namespace halfpage {
namespace {

bool Shared(const rte_mbuf* frame) {
  for (; frame != nullptr; frame = frame->next) {
    if (rte_mbuf_refcnt_read(frame) != 1 || RTE_MBUF_CLONED(frame)) return true;
    if (RTE_MBUF_HAS_EXTBUF(frame) && rte_mbuf_ext_refcnt_read(frame->shinfo) != 1) return true;
  }
  return false;
}

// Copies all bytes of `from` over the buffers of `to`, whose lengths add up to the same.
void CopyBytes(rte_mbuf* to, const rte_mbuf* from) {
  uint32_t at_from = 0;
  uint32_t at_to = 0;
  while (to != nullptr && from != nullptr) {
    const uint32_t n = std::min<uint32_t>(to->data_len - at_to, from->data_len - at_from);
    __builtin_memcpy(rte_pktmbuf_mtod_offset(to, uint8_t*, at_to), rte_pktmbuf_mtod_offset(from, uint8_t*, at_from), n);
    at_to += n;
    at_from += n;
    if (at_to == to->data_len) {
      to = to->next;
      at_to = 0;
    }
    if (at_from == from->data_len) {
      from = from->next;
      at_from = 0;
    }
  }
}

void Append(rte_mbuf** first, rte_mbuf** last, rte_mbuf* segment, uint32_t length) {
  segment->data_len = static_cast<uint16_t>(length);
  if (*first == nullptr) {
    *first = segment;
    segment->pkt_len = length;
  } else {
    (*last)->next = segment;
    ++(*first)->nb_segs;
    (*first)->pkt_len += length;
  }
  *last = segment;
}

}  // namespace

bool Converter::Reason(const rte_mbuf* frame, CopyCause* cause) const {
  if (config_.needed) {
    if (config_.writes && Shared(frame)) {
      *cause = CopyCause::kShared;
      return true;
    }
    if (frame->data_off < config_.headroom_wanted) {
      *cause = CopyCause::kHeadroom;
      return true;
    }
    if (frame->nb_segs > 1 && (config_.unchain || (config_.linear && frame->pkt_len <= longest_))) {
      *cause = CopyCause::kChained;
      return true;
    }
  }
  *cause = CopyCause::kAlways;
  return config_.always;
}

// A chain of the largest rooms where one does not suffice. Where the right class is empty, the next larger one lends.
rte_mbuf* Converter::AllocRooms(uint32_t length) {
  rte_mbuf* first = nullptr;
  rte_mbuf* last = nullptr;
  do {
    const uint32_t in_front = first == nullptr ? config_.headroom : 0;
    size_t c = 0;
    while (c + 1 < room_count_ && room_bytes_[c] + config_.headroom - in_front < length) ++c;
    rte_mbuf* segment = nullptr;
    while (c < room_count_ && (segment = rte_pktmbuf_alloc(rooms_[c])) == nullptr) ++c;
    if (segment == nullptr) {
      rte_pktmbuf_free(first);
      return nullptr;
    }
    segment->data_off = static_cast<uint16_t>(in_front);
    const uint32_t piece = std::min(length, room_bytes_[c] + config_.headroom - in_front);
    Append(&first, &last, segment, piece);
    length -= piece;
  } while (length != 0);
  return first;
}

// As the kernel: up to 3520 bytes with head- and tailroom in a fragment or page, the rest in pieces of up to a page.
rte_mbuf* Converter::AllocKernel(uint32_t length) {
  rte_mbuf* first = nullptr;
  rte_mbuf* last = nullptr;
  do {
    const uint32_t piece = std::min(length, first == nullptr ? longest_ : kKernelPage);
    const uint32_t whole = first == nullptr ? fragments_.Take(piece) : (piece + 63) / 64 * 64;
    ExactRoom room = {0, static_cast<uint16_t>(whole - piece)};
    if (first == nullptr) room = {kKernelHeadroom, static_cast<uint16_t>(whole - kKernelHeadroom - piece)};
    rte_mbuf* segment = nullptr;
    if (exact_->AllocBulk(&segment, &piece, 1, room) == 0) {
      rte_pktmbuf_free(first);
      return nullptr;
    }
    if (first == nullptr) truesize.Add(KernelFragments::Truesize(0));
    truesize.Add(whole);
    Append(&first, &last, segment, piece);
    length -= piece;
  } while (length != 0);
  return first;
}

rte_mbuf* Converter::Copy(const rte_mbuf* frame) {
  rte_mbuf* copy = nullptr;
  switch (config_.cut) {
    case CopyCut::kRooms:
      copy = AllocRooms(frame->pkt_len);
      break;
    case CopyCut::kExact:
      copy = exact_->Alloc(frame->pkt_len, {config_.headroom, config_.tailroom});
      break;
    case CopyCut::kKernel:
      copy = frame->pkt_len <= kKernelLongest ? AllocKernel(frame->pkt_len) : nullptr;
      break;
  }
  if (copy == nullptr) return nullptr;
  CopyBytes(copy, frame);
  copy->ol_flags = frame->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
  copy->packet_type = frame->packet_type;
  copy->port = frame->port;
  copy->vlan_tci = frame->vlan_tci;
  copy->vlan_tci_outer = frame->vlan_tci_outer;
  copy->hash = frame->hash;
  copy->tx_offload = frame->tx_offload;
  return copy;
}

uint16_t Converter::Convert(rte_mbuf** frames, uint16_t n) {
  uint16_t kept = 0;
  for (uint16_t i = 0; i < n; ++i) {
    rte_mbuf* frame = frames[i];
    CopyCause cause;
    if (!Reason(frame, &cause)) {
      frames[kept++] = frame;
      continue;
    }
    rte_mbuf* copy = Copy(frame);
    if (copy != nullptr) {
      buffers[static_cast<int>(cause)].Add(copy->nb_segs);
      bytes[static_cast<int>(cause)].Add(copy->pkt_len);
      frames[kept++] = copy;
    } else {
      no_buffer.Add(1);
    }
    rte_pktmbuf_free(frame);
  }
  return kept;
}

}  // namespace halfpage
