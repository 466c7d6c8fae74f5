// Hot path: built-in programs that are told how much of a frame to look at or what to change, and chains of programs.
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "xdp_emul/frame.h"
#include "xdp_emul/packet_headers.h"
#include "xdp_emul/program.h"

namespace halfpage {
namespace {

constexpr auto kAborted = static_cast<uint8_t>(XdpAction::kAborted);
constexpr auto kPass = static_cast<uint8_t>(XdpAction::kPass);

bool TouchFrame(Touch touch, rte_mbuf* frame, uint32_t* seen) {
  PacketHeaders headers;
  uint8_t scratch[sizeof(rte_ether_hdr)];
  const uint8_t* ethernet = nullptr;
  switch (touch) {
    case Touch::kRead:
      ethernet = FrameBytes(frame, 0, sizeof(rte_ether_hdr), scratch);
      if (ethernet == nullptr) return false;
      *seen += Load16(ethernet + 12);
      return true;
    case Touch::kParse:
      if (!ParseHeaders(frame, &headers)) return false;
      *seen += headers.destination_port;
      return true;
    case Touch::kRewrite:
      return SwapAddresses(frame);
    case Touch::kNone:
      break;
  }
  return true;
}

bool Short(Refusal cause, uint32_t asked, uint32_t available, Shortage* shortage) {
  *shortage = {cause, asked, available};
  return false;
}

// Gives whether all was done; else why not.
bool Adjust(const Adjustment& adjust, rte_mbuf* frame, uint8_t* metadata, Shortage* shortage) {
  FrameView view(frame, *metadata);
  if (adjust.pull != 0 && !view.AdjustHead(adjust.pull)) {
    return Short(Refusal::kAdjustHead, adjust.pull, view.head_spare(), shortage);
  }
  if (adjust.push != 0) {
    if (!view.AdjustHead(-static_cast<int32_t>(adjust.push))) {
      return Short(Refusal::kAdjustHead, adjust.push, view.head_room(), shortage);
    }
    __builtin_memset(view.data(), 0, adjust.push);
  }
  if (adjust.trim != 0 && !view.AdjustTail(-static_cast<int32_t>(adjust.trim))) {
    return Short(Refusal::kAdjustTail, adjust.trim, view.tail_spare(), shortage);
  }
  if (adjust.grow != 0 && !view.AdjustTail(adjust.grow)) {
    return Short(Refusal::kAdjustTail, adjust.grow, view.tail_room(), shortage);
  }
  if (adjust.metadata == 0) return true;
  if (!view.AdjustMetadata(-static_cast<int32_t>(adjust.metadata))) {
    return Short(Refusal::kAdjustHead, adjust.metadata + view.metadata(), view.metadata_room(), shortage);
  }
  __builtin_memset(view.data_meta(), 0, adjust.metadata);
  *metadata = static_cast<uint8_t>(view.metadata());
  return true;
}

}  // namespace

int Program::RunTouch(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*) {
  uint32_t seen = 0;
  for (uint16_t i = 0; i < n; ++i) {
    verdicts->action[i] = TouchFrame(program.config_.touch, frames[i], &seen) ? program.action_ : kAborted;
    verdicts->target[i] = program.target_;
  }
  asm volatile("" : : "r"(seen));  // what was read counts as used
  return verdicts->Alike(n);
}

int Program::RunAdjust(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*) {
  for (uint16_t i = 0; i < n; ++i) {
    Shortage shortage;
    verdicts->action[i] = program.action_;
    verdicts->target[i] = program.target_;
    if (!verdicts->has_metadata) verdicts->metadata[i] = 0;
    if (!Adjust(program.config_.adjust, frames[i], &verdicts->metadata[i], &shortage)) {
      verdicts->action[i] = kAborted;
      verdicts->faults.Add(program, shortage);
    } else if (program.action_ == static_cast<uint8_t>(XdpAction::kTx) && !SwapAddresses(frames[i])) {
      verdicts->action[i] = kAborted;
    }
  }
  verdicts->has_metadata |= program.config_.adjust.metadata != 0;
  return verdicts->Alike(n);
}

// Each link sees the frames that all before it have passed.
int Program::RunChain(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter* hits) {
  rte_mbuf* left[kMaxBurst];
  uint8_t place[kMaxBurst];  // of left[i] in `frames`
  for (uint16_t i = 0; i < n; ++i) {
    left[i] = frames[i];
    place[i] = static_cast<uint8_t>(i);
    verdicts->action[i] = kPass;
    verdicts->target[i] = kNoDevice;
  }
  uint16_t remaining = n;
  for (const Program* link : program.links_) {
    Verdicts own;
    own.faults = verdicts->faults;
    own.from = verdicts->from;
    own.has_metadata = verdicts->has_metadata;
    for (uint16_t i = 0; own.has_metadata && i < remaining; ++i) own.metadata[i] = verdicts->metadata[place[i]];
    const int alike = link->Run(left, remaining, &own, hits);
    hits += link->hit_counters();
    verdicts->faults = own.faults;
    verdicts->has_metadata = own.has_metadata;
    for (uint16_t i = 0; own.has_metadata && i < remaining; ++i) verdicts->metadata[place[i]] = own.metadata[i];
    if (alike == kPass) continue;
    uint16_t passed = 0;
    for (uint16_t i = 0; i < remaining; ++i) {
      const uint8_t action = alike >= 0 ? static_cast<uint8_t>(alike) : own.action[i];
      verdicts->action[place[i]] = action;
      if (action == static_cast<uint8_t>(XdpAction::kRedirect)) verdicts->target[place[i]] = own.target[i];
      left[passed] = left[i];
      place[passed] = place[i];
      passed = static_cast<uint16_t>(passed + (action == kPass));
    }
    remaining = passed;
    if (remaining == 0) break;
  }
  return verdicts->Alike(n);
}

}  // namespace halfpage
