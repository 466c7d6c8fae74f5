// Helpers about maps, targets and the machine.
#include <time.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/map.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/queue_map.h"
#include "xdp_emul/bpf/slots_map.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage::bpf {
namespace {

Map* MapAt(uint64_t address) {
  return reinterpret_cast<Map*>(address);
}
const uint8_t* BytesAt(uint64_t address) {
  return reinterpret_cast<const uint8_t*>(address);
}
constexpr auto kAborted = static_cast<uint64_t>(XdpAction::kAborted);
constexpr auto kRedirected = static_cast<uint64_t>(XdpAction::kRedirect);

// One more turn of a callback; false where the run has had too many, or its callback ended in a fault.
bool Turn(RunState* state) {
  if (++state->turns > Program::kMostTurns) state->Fail(FaultKind::kTurns, 0, 0);
  return !state->Failed();
}

}  // namespace

uint64_t MapLookup(RunState* state, uint64_t map, uint64_t key, uint64_t, uint64_t, uint64_t) {
  return reinterpret_cast<uint64_t>(MapAt(map)->Lookup(BytesAt(key), state->worker));
}

uint64_t MapUpdate(RunState* state, uint64_t map, uint64_t key, uint64_t value, uint64_t flags, uint64_t) {
  return Errno(MapAt(map)->Update(BytesAt(key), BytesAt(value), flags, state->worker));
}

uint64_t MapDelete(RunState*, uint64_t map, uint64_t key, uint64_t, uint64_t, uint64_t) {
  return Errno(MapAt(map)->Delete(BytesAt(key)));
}

uint64_t MapPush(RunState*, uint64_t map, uint64_t value, uint64_t flags, uint64_t, uint64_t) {
  return Errno(static_cast<KeylessMap*>(MapAt(map))->Push(BytesAt(value), flags));
}

uint64_t MapPop(RunState*, uint64_t map, uint64_t value, uint64_t, uint64_t, uint64_t) {
  return Errno(static_cast<KeylessMap*>(MapAt(map))->Next(reinterpret_cast<uint8_t*>(value), true));
}

uint64_t MapPeek(RunState*, uint64_t map, uint64_t value, uint64_t, uint64_t, uint64_t) {
  return Errno(static_cast<KeylessMap*>(MapAt(map))->Next(reinterpret_cast<uint8_t*>(value), false));
}

uint64_t TailCall(RunState*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  return Errno(-ENOENT);
}

const Program* TailTarget(RunState* state, uint64_t map, uint64_t index) {
  constexpr uint32_t kMostTailCalls = 33;  // as the kernel's
  const auto* target =
      static_cast<const Program*>(static_cast<const SlotsMap*>(MapAt(map))->Get(static_cast<uint32_t>(index)));
  if (target == nullptr || state->tail_calls == kMostTailCalls) return nullptr;
  // It takes the place of the function that calls it. Compiled functions do not look whether there is room for them.
  const auto used = static_cast<uint64_t>(state->frame_top - state->stack) - kStackBytes;
  if (used + uint64_t{target->image().height} * kStackBytes > sizeof(state->stack)) {
    state->Fail(FaultKind::kCalls, 0, 0);
    return nullptr;
  }
  ++state->tail_calls;
  return target;
}

uint64_t EventOutput(RunState* state, uint64_t, uint64_t map, uint64_t flags, uint64_t data, uint64_t size) {
  const uint64_t packet_bytes = (flags & BPF_F_CTXLEN_MASK) >> 32;
  const uint64_t index = flags & BPF_F_INDEX_MASK;
  if ((flags & ~static_cast<uint64_t>(BPF_F_CTXLEN_MASK | BPF_F_INDEX_MASK)) != 0) return Errno(-EINVAL);
  if (packet_bytes > state->FrameBytes()) return Errno(-EFAULT);
  if (index != BPF_F_CURRENT_CPU && index >= MapAt(map)->spec().max_entries) return Errno(-E2BIG);
  if (state->event == nullptr) return Errno(-ENOENT);
  std::vector<uint8_t> gathered;
  const uint8_t* packet = state->data;
  if (packet_bytes > static_cast<uint64_t>(state->data_end - state->data)) {
    gathered.resize(packet_bytes);
    state->chain->read(state, 0, gathered.data(), static_cast<uint32_t>(packet_bytes));
    packet = gathered.data();
  }
  state->event(state->print_to, *MapAt(map), BytesAt(data), size, packet, packet_bytes);
  return 0;
}

uint64_t Redirect(RunState* state, uint64_t interface, uint64_t flags, uint64_t, uint64_t, uint64_t) {
  if (flags != 0) return kAborted;
  state->redirect = {nullptr, static_cast<uint32_t>(interface), 0};
  return kRedirected;
}

uint64_t RedirectMap(RunState* state, uint64_t address, uint64_t key, uint64_t flags, uint64_t, uint64_t) {
  Map* map = MapAt(address);
  const bool devices = map->spec().type == BPF_MAP_TYPE_DEVMAP || map->spec().type == BPF_MAP_TYPE_DEVMAP_HASH;
  constexpr uint64_t kVerdict = 3;  // what to give back where there is no such target
  const uint64_t allowed = kVerdict | (devices ? BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS : 0);
  if ((flags & ~allowed) != 0) return kAborted;
  const auto index = static_cast<uint32_t>(key);
  const bool everywhere = (flags & BPF_F_BROADCAST) != 0;
  if (!everywhere && map->Lookup(reinterpret_cast<const uint8_t*>(&index), state->worker) == nullptr) {
    return flags & kVerdict;
  }
  state->redirect = {map, index, flags};
  return kRedirected;
}

uint64_t KtimeGetNs(RunState*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t WorkerNumber(RunState* state, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  return state->worker;
}

uint64_t NodeNumber(RunState*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  return 0;
}

// An xorshift generator, one for each worker.
uint64_t Random(RunState* state, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  uint64_t word = state->random;
  word ^= word << 13;
  word ^= word >> 7;
  word ^= word << 17;
  state->random = word;
  return static_cast<uint32_t>(word >> 32);
}

uint64_t Loop(RunState* state, uint64_t times, uint64_t function, uint64_t context, uint64_t flags, uint64_t) {
  const auto turns = static_cast<uint32_t>(times);
  if (flags != 0) return Errno(-EINVAL);
  if (turns > Program::kMostTurns) return Errno(-E2BIG);
  for (uint32_t turn = 0; turn < turns; ++turn) {
    if (!Turn(state)) return turn;
    const uint64_t arguments[5] = {turn, context};
    const uint64_t stop = state->call(state, static_cast<uint32_t>(function), arguments);
    if (state->Failed() || stop != 0) return turn + 1;
  }
  return turns;
}

// The callback gets a copy of the key, in a frame of its own on the program's stack.
uint64_t ForEachElement(RunState* state, uint64_t map, uint64_t function, uint64_t context, uint64_t flags, uint64_t) {
  if (flags != 0) return Errno(-EINVAL);
  uint8_t* const key_place = state->frame_top;
  if (key_place + kStackBytes > state->stack + sizeof(state->stack)) {
    state->Fail(FaultKind::kCalls, 0, 0);
    return 0;
  }
  state->frame_top += kStackBytes;
  memset(key_place, 0, kStackBytes);  // behind the key there is nothing of an earlier function
  struct Walk {
    RunState* state;
    uint64_t map, function, context, visited;
    uint8_t* key_place;
  } walk = {state, map, function, context, 0, key_place};
  const auto visit = [](void* to, const uint8_t* key, uint8_t* value) {
    auto* const at = static_cast<Walk*>(to);
    if (!Turn(at->state)) return false;
    ++at->visited;
    memcpy(at->key_place, key, MapAt(at->map)->spec().key_size);
    const uint64_t arguments[5] = {at->map, reinterpret_cast<uint64_t>(at->key_place),
                                   reinterpret_cast<uint64_t>(value), at->context};
    const uint64_t stop = at->state->call(at->state, static_cast<uint32_t>(at->function), arguments);
    return stop == 0 && !at->state->Failed();
  };
  MapAt(map)->Each(state->worker, visit, &walk);
  state->frame_top = key_place;
  return walk.visited;
}

}  // namespace halfpage::bpf
