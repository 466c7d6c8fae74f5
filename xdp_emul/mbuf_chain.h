// Hot path: where an object's program finds a frame's bytes, and what its helpers do to a frame in several mbufs.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "xdp_emul/bpf/run_state.h"

namespace halfpage {

// For frames of more than one buffer; RunState::frame is the first rte_mbuf. Buffers that become empty are freed.
extern const bpf::ChainCalls kMbufChain;

// data to data_end are the bytes of `frame`'s first buffer, without metadata.
inline void PointAt(bpf::RunState* state, const rte_mbuf* frame) {
  auto* const data = rte_pktmbuf_mtod(frame, uint8_t*);
  state->data = data;
  state->data_meta = data;
  state->data_end = data + frame->data_len;
}

// Takes over what the program made of the first buffer's ends. The others' are changed at once.
inline void StoreEnds(const bpf::RunState& state, rte_mbuf* frame) {
  const auto length = static_cast<uint16_t>(state.data_end - state.data);
  frame->pkt_len = frame->pkt_len - frame->data_len + length;
  frame->data_len = length;
  frame->data_off = static_cast<uint16_t>(state.data - static_cast<uint8_t*>(frame->buf_addr));
}

}  // namespace halfpage
