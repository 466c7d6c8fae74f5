// Helpers about the packet's place, length, bytes and checksums.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "xdp_emul/bpf/functions.h"

namespace halfpage::bpf {
namespace {

constexpr int64_t kEthernetHeader = 14;
constexpr int64_t kMostMeta = 252;

// Deltas are 32-bit numbers.
int64_t Delta(uint64_t argument) {
  return static_cast<int32_t>(argument);
}

uint32_t Fold(uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint32_t>(sum);
}

// The ones' complement sum of 16-bit words, in memory order.
uint64_t SumOf(const uint8_t* bytes, uint64_t size) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i + 4 <= size; i += 4) {
    uint32_t word;
    memcpy(&word, bytes + i, 4);
    sum += word;
  }
  return sum;
}

}  // namespace

uint64_t AdjustHead(RunState* state, uint64_t, uint64_t delta, uint64_t, uint64_t, uint64_t) {
  const int64_t meta = state->data - state->data_meta;
  const int64_t before = state->data - state->hard_start;
  const int64_t length = state->data_end - state->data;
  const int64_t move = Delta(delta);
  if (before + move < meta || move > length - kEthernetHeader) return Errno(-EINVAL);
  if (meta != 0) memmove(state->data_meta + move, state->data_meta, static_cast<size_t>(meta));
  state->data_meta += move;
  state->data += move;
  return 0;
}

uint64_t AdjustTail(RunState* state, uint64_t, uint64_t delta, uint64_t, uint64_t, uint64_t) {
  const int64_t move = Delta(delta);
  if (state->chain != nullptr) return Errno(state->chain->adjust_tail(state, static_cast<int32_t>(move)));
  const int64_t length = state->data_end - state->data;
  if (move > state->hard_end - state->data_end || length + move < kEthernetHeader) return Errno(-EINVAL);
  if (move > 0) memset(state->data_end, 0, static_cast<size_t>(move));
  state->data_end += move;
  return 0;
}

uint64_t AdjustMeta(RunState* state, uint64_t, uint64_t delta, uint64_t, uint64_t, uint64_t) {
  const int64_t move = Delta(delta);
  const int64_t meta = state->data - state->data_meta - move;
  const int64_t room = state->data - state->hard_start;
  if (meta < 0 || meta > room) return Errno(-EINVAL);
  if (meta % 4 != 0 || meta > kMostMeta) return Errno(-EACCES);
  state->data_meta += move;
  return 0;
}

uint64_t BufferLength(RunState* state, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  return state->FrameBytes();
}

uint64_t LoadBytes(RunState* state, uint64_t, uint64_t offset, uint64_t to, uint64_t size, uint64_t) {
  const auto at = static_cast<uint32_t>(offset);
  if (at > 0xffff || size > 0xffff) return Errno(-EFAULT);
  if (at + size > state->FrameBytes()) return Errno(-EINVAL);
  if (state->chain != nullptr) {
    state->chain->read(state, at, reinterpret_cast<void*>(to), static_cast<uint32_t>(size));
    return 0;
  }
  memmove(reinterpret_cast<void*>(to), state->data + at, size);
  return 0;
}

uint64_t StoreBytes(RunState* state, uint64_t, uint64_t offset, uint64_t from, uint64_t size, uint64_t) {
  const auto at = static_cast<uint32_t>(offset);
  if (at > 0xffff || size > 0xffff) return Errno(-EFAULT);
  if (at + size > state->FrameBytes()) return Errno(-EINVAL);
  if (state->chain != nullptr) {
    state->chain->write(state, at, reinterpret_cast<const void*>(from), static_cast<uint32_t>(size));
    return 0;
  }
  memmove(state->data + at, reinterpret_cast<const void*>(from), size);
  return 0;
}

uint64_t CsumDiff(RunState*, uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t seed) {
  const auto from_bytes = static_cast<uint32_t>(from_size);
  const auto to_bytes = static_cast<uint32_t>(to_size);
  if (from_bytes % 4 != 0 || to_bytes % 4 != 0) return Errno(-EINVAL);
  // Of zero ones' complement has two forms; the kernel's way of taking bytes away only decides which it is.
  if (to_bytes == 0 && from_bytes != 0) {
    uint64_t left = SumOf(reinterpret_cast<const uint8_t*>(from), from_bytes) + static_cast<uint32_t>(~seed);
    while (left >> 32 != 0) left = (left & UINT32_MAX) + (left >> 32);
    return Fold(static_cast<uint32_t>(~left));
  }
  const uint32_t removed = Fold(SumOf(reinterpret_cast<const uint8_t*>(from), from_bytes));
  const uint64_t added = SumOf(reinterpret_cast<const uint8_t*>(to), to_bytes) + static_cast<uint32_t>(seed);
  if (from_bytes == 0) return Fold(added);
  return Fold(added + (~removed & 0xffff));
}

}  // namespace halfpage::bpf
