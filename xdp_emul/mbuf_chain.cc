// Hot path: helpers on frames in several mbufs.
#include "xdp_emul/mbuf_chain.h"

#include <cerrno>
#include <cstring>

#include "xdp_emul/frame.h"

namespace halfpage {
namespace {

rte_mbuf* FrameOf(const bpf::RunState& state) {
  return static_cast<rte_mbuf*>(state.frame);
}

uint64_t Length(const bpf::RunState& state) {
  const rte_mbuf* frame = FrameOf(state);
  return frame->pkt_len - frame->data_len + static_cast<uint64_t>(state.data_end - state.data);
}

// Calls `each(part, bytes)` for the parts of [offset, offset + size), which is inside the frame.
template <typename Each>
void ForParts(bpf::RunState* state, uint32_t offset, uint32_t size, Each each) {
  rte_mbuf* frame = FrameOf(*state);
  StoreEnds(*state, frame);
  for (const rte_mbuf* part = frame; size != 0; part = part->next) {
    if (offset >= part->data_len) {
      offset -= part->data_len;
      continue;
    }
    const uint32_t here = part->data_len - offset < size ? part->data_len - offset : size;
    each(rte_pktmbuf_mtod_offset(part, uint8_t*, offset), here);
    offset = 0;
    size -= here;
  }
}

void Read(bpf::RunState* state, uint32_t offset, void* to, uint32_t size) {
  auto* out = static_cast<uint8_t*>(to);
  ForParts(state, offset, size, [&out](const uint8_t* part, uint32_t bytes) {
    memmove(out, part, bytes);
    out += bytes;
  });
}

void Write(bpf::RunState* state, uint32_t offset, const void* from, uint32_t size) {
  const auto* in = static_cast<const uint8_t*>(from);
  ForParts(state, offset, size, [&in](uint8_t* part, uint32_t bytes) {
    memmove(part, in, bytes);
    in += bytes;
  });
}

int AdjustTail(bpf::RunState* state, int32_t delta) {
  rte_mbuf* frame = FrameOf(*state);
  StoreEnds(*state, frame);
  if (!FrameView(frame).AdjustTail(delta)) return -EINVAL;
  state->data_end = state->data + frame->data_len;
  return 0;
}

}  // namespace

const bpf::ChainCalls kMbufChain = {Length, Read, Write, AdjustTail};

}  // namespace halfpage
