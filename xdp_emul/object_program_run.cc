// Hot path: an object's program over a burst. Per frame: where its bytes are, one call, what became of it.
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "xdp_emul/maps.h"
#include "xdp_emul/mbuf_chain.h"
#include "xdp_emul/object_lane.h"

namespace halfpage {
namespace {

constexpr auto kAborted = static_cast<uint8_t>(XdpAction::kAborted);
constexpr auto kRedirect = static_cast<uint8_t>(XdpAction::kRedirect);
constexpr uint8_t kUnknown = bpf::kUnknownVerdict;
static_assert(kUnknown == kXdpActions);
constexpr uint32_t kTimedEvery = 64;  // bursts

bool AnyChained(rte_mbuf* const* frames, uint16_t n) {
  uint32_t more = 0;
  for (uint16_t i = 0; i < n; ++i) more |= frames[i]->nb_segs ^ 1u;
  return more != 0;
}

}  // namespace

DeviceIndex ObjectProgram::TargetOf(const bpf::RedirectTarget& redirect, uint32_t worker) const {
  if (redirect.flags == bpf::RedirectTarget::kNone) return kNoDevice;
  uint64_t interface = redirect.key;
  if (redirect.map != nullptr) {
    for (const Binding& binding : bindings_) {
      if (binding.map != redirect.map) continue;
      if ((redirect.flags & BPF_F_BROADCAST) != 0)
        return binding.by->Everywhere((redirect.flags & BPF_F_EXCLUDE_INGRESS) != 0);
      return binding.by->Slot(static_cast<uint32_t>(redirect.key));
    }
    if ((redirect.flags & BPF_F_BROADCAST) != 0) return kNoDevice;
    const bpf::MapSpec& spec = redirect.map->spec();
    if (spec.type != BPF_MAP_TYPE_DEVMAP && spec.type != BPF_MAP_TYPE_DEVMAP_HASH) return kNoDevice;  // nobody there
    const auto key = static_cast<uint32_t>(redirect.key);
    const uint8_t* value = redirect.map->Lookup(reinterpret_cast<const uint8_t*>(&key), worker);
    uint32_t stored[2] = {};  // struct bpf_devmap_val
    if (value != nullptr) memcpy(stored, value, std::min<size_t>(spec.value_size, sizeof(stored)));
    interface = stored[0];
    if (stored[1] != 0 && interface - 1 < devices_) {
      return EgressTarget(stored[1] - 1, static_cast<DeviceIndex>(interface - 1));
    }
  }
  return interface - 1 < devices_ ? static_cast<DeviceIndex>(interface - 1) : kNoDevice;
}

// Frames of a burst mostly go where the one before goes.
void ObjectProgram::FindTargets(const bpf::RedirectTarget* redirects, uint16_t n, uint32_t worker,
                                DeviceIndex* targets) const {
  targets[0] = TargetOf(redirects[0], worker);
  for (uint16_t i = 1; i < n; ++i) {
    const bpf::RedirectTarget& now = redirects[i];
    const bpf::RedirectTarget& before = redirects[i - 1];
    const bool same = (now.map == before.map) & (now.key == before.key) & (now.flags == before.flags);
    targets[i] = __builtin_expect(same, 1) ? targets[i - 1] : TargetOf(now, worker);
  }
}

void ObjectProgram::RecordFault(const Program& owner, Verdicts* verdicts, Lane* lane) const {
  verdicts->faults.Add(owner, {Refusal::kProgramFault, 0, 0});
  lane->faults.Add(1);
  if (lane->has_fault.load(std::memory_order_relaxed)) return;
  lane->fault = lane->state.fault;
  lane->has_fault.store(true, std::memory_order_release);
}

// What programs said, counted and told as Program::Run() tells it.
int ObjectProgram::Sum(const uint8_t* said, uint16_t n, Verdicts* verdicts, Lane* lane) const {
  lane->runs.Add(n);
  const uint8_t first = said[0];
  uint8_t different = 0;
  for (uint16_t i = 1; i < n; ++i) different = static_cast<uint8_t>(different | (said[i] ^ first));
  if (__builtin_expect(different == 0 && first < kXdpActions, 1)) {
    lane->verdicts[first].Add(n);
    return first;
  }
  uint64_t counts = 0;  // 8 bits for each action
  for (uint16_t i = 0; i < n; ++i) {
    counts += uint64_t{1} << (8 * said[i]);
    verdicts->action[i] = said[i] == kUnknown ? kAborted : said[i];
  }
  for (int a = 0; a < kXdpActions; ++a) lane->verdicts[a].Add(counts >> (8 * a) & 255);
  const uint64_t unknown = counts >> (8 * kUnknown) & 255;
  lane->unknown.Add(unknown);
  return unknown == n ? kAborted : -1;
}

// Frames in one buffer each, without metadata, and a program that leaves their ends where they are.
int ObjectProgram::RunBursts(const Program& owner, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts,
                             Lane* lane) const {
  bpf::RunState& state = lane->state;
  uint8_t said[kMaxBurst];
  bpf::RedirectTarget redirects[kMaxBurst];
  state.chain = nullptr;
  uint16_t judged = 0;
  for (;;) {
    const auto* const left = reinterpret_cast<void* const*>(frames + judged);
    judged = static_cast<uint16_t>(
        judged + program_->RunBurst(&state, left, uint64_t{n} - judged, said + judged, redirects + judged));
    if (__builtin_expect(!state.Failed(), 1)) break;
    RecordFault(owner, verdicts, lane);
    if (judged == n) break;
  }
  if (redirects_) {
    FindTargets(redirects, n, state.worker, verdicts->target);
  } else {
    std::fill_n(verdicts->target, n, kNoDevice);  // for one that says so without a target
  }
  return Sum(said, n, verdicts, lane);
}

// Frame by frame: all programs, all frames.
template <bool kReshapes>
int ObjectProgram::RunFrames(const Program& owner, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts,
                             Lane* lane) const {
  bpf::RunState& state = lane->state;
  const bpf::Program& program = *program_;
  uint8_t metadata[kMaxBurst];
  uint8_t said[kMaxBurst];
  for (uint16_t i = 0; i < n; ++i) {
    rte_mbuf* frame = frames[i];
    PointAt(&state, frame);
    if (__builtin_expect(verdicts->has_metadata, 0)) state.data_meta -= verdicts->metadata[i];
    if (kReshapes) {
      state.hard_start = static_cast<uint8_t*>(frame->buf_addr);
      state.hard_end = state.hard_start + frame->buf_len;
    }
    if (frags_) {
      state.frame = frame;
      state.chain = frame->nb_segs == 1 ? nullptr : &kMbufChain;
    }
    const uint32_t verdict = program.RunNext(&state);
    said[i] = verdict < kXdpActions ? static_cast<uint8_t>(verdict) : kUnknown;
    if (kReshapes) {
      StoreEnds(state, frame);
      metadata[i] = static_cast<uint8_t>(state.data - state.data_meta);
    }
    if (__builtin_expect(state.Failed(), 0)) RecordFault(owner, verdicts, lane);
    if (said[i] == kRedirect) verdicts->target[i] = TargetOf(state.redirect, state.worker);
  }
  if (kReshapes && (sets_metadata_ || verdicts->has_metadata)) {
    memcpy(verdicts->metadata, metadata, n);
    verdicts->has_metadata = true;
  }
  return Sum(said, n, verdicts, lane);
}

int ObjectProgram::Run(const Program& owner, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts) const {
  const Origin& from = *verdicts->from;
  Lane& lane = lanes_[from.worker];
  lane.state.ingress_ifindex = from.interface;
  lane.state.rx_queue_index = from.queue;
  lane.state.egress_ifindex = from.egress;
  program_->Begin(&lane.state);
  const bool timed = ++lane.bursts % kTimedEvery == 0;
  maps_->epochs().Enter(from.worker);
  const uint64_t begin = timed ? rte_rdtsc() : 0;
  int alike;
  if (program_->runs_bursts() && !verdicts->has_metadata && !(frags_ && AnyChained(frames, n))) {
    alike = RunBursts(owner, frames, n, verdicts, &lane);
  } else if (reshapes_) {
    alike = RunFrames<true>(owner, frames, n, verdicts, &lane);
  } else {
    alike = RunFrames<false>(owner, frames, n, verdicts, &lane);
  }
  if (timed) {
    lane.timed_cycles.Add(rte_rdtsc() - begin);
    lane.timed_runs.Add(n);
  }
  maps_->epochs().Leave(from.worker);
  return alike;
}

int Program::RunObject(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*) {
  return program.object_->Run(program, frames, n, verdicts);
}

}  // namespace halfpage
