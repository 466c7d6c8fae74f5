// Helpers about maps, targets and the machine.
#include <time.h>

#include <cerrno>

#include "xdp_emul/bpf/functions.h"
#include "xdp_emul/bpf/map.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage::bpf {
namespace {

Map* MapAt(uint64_t address) {
  return reinterpret_cast<Map*>(address);
}
const uint8_t* BytesAt(uint64_t address) {
  return reinterpret_cast<const uint8_t*>(address);
}
uint64_t Errno(int error) {
  return static_cast<uint64_t>(int64_t{error});
}

constexpr auto kAborted = static_cast<uint64_t>(XdpAction::kAborted);
constexpr auto kRedirected = static_cast<uint64_t>(XdpAction::kRedirect);
constexpr uint64_t kMostTurns = 1 << 23;

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
  if (turns > kMostTurns) return Errno(-E2BIG);
  for (uint32_t turn = 0; turn < turns; ++turn) {
    const uint64_t arguments[5] = {turn, context};
    const uint64_t stop = state->call(state, static_cast<uint32_t>(function), arguments);
    if (state->Failed() || stop != 0) return turn + 1;
  }
  return turns;
}

}  // namespace halfpage::bpf
