// Helpers that take something and give it back: locks in map values, records of ring buffers.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/held.h"
#include "xdp_emul/bpf/ring_map.h"
#include "xdp_emul/bpf/spin_lock.h"

namespace halfpage::bpf {
namespace {

RingMap* RingAt(uint64_t address) {
  return static_cast<RingMap*>(reinterpret_cast<Map*>(address));
}

// Gives a record back that the program holds; false where it does not.
bool Give(RunState* state, uint64_t address, bool discard) {
  HeldRecord* const end = state->record + state->records;
  HeldRecord* const held = std::find_if(state->record, end, [address](const HeldRecord& record) {
    return reinterpret_cast<uint64_t>(record.data) == address;
  });
  if (held == end) {
    state->Fail(FaultKind::kArgument, address, 0);
    return false;
  }
  static_cast<RingMap*>(held->ring)->Submit(held->data, discard);
  *held = *(end - 1);
  --state->records;
  return true;
}

}  // namespace

uint64_t TakeSpinLock(RunState* state, uint64_t lock, uint64_t, uint64_t, uint64_t, uint64_t) {
  auto* const word = reinterpret_cast<uint32_t*>(lock);
  if (lock % sizeof(*word) != 0) {
    state->Fail(FaultKind::kAlignment, lock, sizeof(*word));
  } else if (state->lock != nullptr || !TakeLockWord(word)) {
    state->Fail(FaultKind::kLock, lock, sizeof(*word));
  } else {
    state->lock = word;
  }
  return 0;
}

uint64_t GiveSpinLock(RunState* state, uint64_t lock, uint64_t, uint64_t, uint64_t, uint64_t) {
  if (lock == 0 || reinterpret_cast<uint64_t>(state->lock) != lock) {
    state->Fail(FaultKind::kLock, lock, sizeof(uint32_t));
    return 0;
  }
  GiveLockWord(state->lock);
  state->lock = nullptr;
  return 0;
}

uint64_t RingOutput(RunState*, uint64_t ring, uint64_t data, uint64_t size, uint64_t flags, uint64_t) {
  if ((flags & ~static_cast<uint64_t>(BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP)) != 0) return Errno(-EINVAL);
  uint8_t* const record = RingAt(ring)->Reserve(size);
  if (record == nullptr) return Errno(-EAGAIN);
  if (size != 0) memcpy(record, reinterpret_cast<const void*>(data), size);
  RingAt(ring)->Submit(record, false);
  return 0;
}

uint64_t RingReserve(RunState* state, uint64_t ring, uint64_t size, uint64_t flags, uint64_t, uint64_t) {
  if (flags != 0 || state->records == RunState::kMostRecords) return 0;
  uint8_t* const record = RingAt(ring)->Reserve(size);
  if (record != nullptr) state->record[state->records++] = {RingAt(ring), record};
  return reinterpret_cast<uint64_t>(record);
}

uint64_t RingSubmit(RunState* state, uint64_t record, uint64_t, uint64_t, uint64_t, uint64_t) {
  Give(state, record, false);
  return 0;
}

uint64_t RingDiscard(RunState* state, uint64_t record, uint64_t, uint64_t, uint64_t, uint64_t) {
  Give(state, record, true);
  return 0;
}

uint64_t RingQuery(RunState*, uint64_t ring, uint64_t what, uint64_t, uint64_t, uint64_t) {
  return RingAt(ring)->Query(what);
}

void LetGo(RunState* state) {
  if (state->lock == nullptr && state->records == 0) return;
  if (state->lock != nullptr) GiveLockWord(state->lock);
  state->lock = nullptr;
  while (state->records != 0) Give(state, reinterpret_cast<uint64_t>(state->record[0].data), true);
  state->Fail(FaultKind::kHeld, 0, 0);
}

}  // namespace halfpage::bpf
