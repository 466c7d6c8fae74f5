// What one worker hands to a program and gets back: packet, context, faults, redirect target.
#pragma once

#include <cstdint>
#include <string>

#include "xdp_emul/bpf/decode.h"

namespace halfpage::bpf {

class Map;
class Program;
struct RunState;

inline constexpr uint32_t kStackBytes = 512;
// The kernel keeps a frame's description in its headroom: where test runs let data_meta begin.
inline constexpr uint32_t kKernelFrameBytes = 40;

// Why a run ended early; its verdict is aborted then.
enum class FaultKind : uint32_t {
  kNone = 0,
  kPacket,     // an access outside data_meta to data_end
  kStack,      // outside the function's 512 bytes
  kValue,      // outside a map's value; offset 0 of nothing is a null pointer that was not looked at
  kAlignment,  // an atomic access across words
  kPointer,    // through something that points at nothing of the program's
  kArgument,   // memory, map or context handed to a helper
  kFuel,       // too many loops
  kCalls,      // functions nested too deep
  kOpcode,     // code that was thought to be unreachable
  kTurns,      // too many turns of callbacks
  kLock,       // a bpf_spin_lock taken twice, given back without being held, or never given back
  kHeld,       // a lock or a record still held where the program ended
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  static constexpr uint32_t kNowhere = UINT32_MAX;
  const Program* program = nullptr;  // whose instruction it is
  uint32_t instruction = kNowhere;   // kNowhere until who called says it, and where the program had ended
  uint64_t address = 0;
  uint64_t size = 0;
  int64_t from_data = 0;     // the address as an offset from `data` when it happened
  int64_t packet_bytes = 0;  // data_end - data when it happened
};

// Where a frame goes whose verdict is redirect. `map` is null for bpf_redirect().
struct RedirectTarget {
  static constexpr uint64_t kNone = UINT64_MAX;  // flags where no helper named a target
  Map* map = nullptr;
  uint64_t key = 0;  // the map's key, or the interface for bpf_redirect()
  uint64_t flags = 0;
};

// Receives a line of bpf_trace_printk(), without its end of line.
using PrintFunction = void (*)(void* to, const char* line);
// Receives what bpf_perf_event_output() sends, and as many bytes of the packet behind it.
using EventFunction = void (*)(void* to, const Map& map, const uint8_t* data, uint64_t size, const uint8_t* packet,
                               uint64_t packet_bytes);
// Calls the function at instruction `function` of the running program with up to five arguments, for helpers with
// callbacks.
using CallFunction = uint64_t (*)(RunState* state, uint32_t function, const uint64_t* arguments);

// A route for bpf_fib_lookup(), and the other tables of the outside world that helpers ask.
class Surroundings;

// What helpers do to a frame in several buffers; data to data_end is then the first of them. All take `state->frame`.
// Offsets and lengths were looked at before, but for AdjustTail(), which gives 0 or a negative errno.
struct ChainCalls {
  uint64_t (*length)(const RunState& state);
  void (*read)(RunState* state, uint32_t offset, void* to, uint32_t size);
  void (*write)(RunState* state, uint32_t offset, const void* from, uint32_t size);
  int (*adjust_tail)(RunState* state, int32_t delta);
};

// A record of a ring buffer between reserve and submit.
struct HeldRecord {
  Map* ring = nullptr;
  uint8_t* data = nullptr;
};

// Owned by one worker, reused for each packet. The first members are at fixed places for compiled code.
struct RunState {
  uint8_t* data = nullptr;
  uint8_t* data_end = nullptr;
  uint8_t* data_meta = nullptr;   // equals data where there is none
  uint8_t* hard_start = nullptr;  // where bpf_xdp_adjust_head() and _meta() may move to
  uint8_t* hard_end = nullptr;    // where bpf_xdp_adjust_tail() may move data_end to
  uint32_t ingress_ifindex = 0;
  uint32_t rx_queue_index = 0;
  uint32_t egress_ifindex = 0;
  uint32_t worker = 0;
  int64_t fuel = 0;  // loops left
  Fault fault;
  uint8_t* frame_top = nullptr;  // end of the running function's stack
  const Program* program = nullptr;
  RedirectTarget redirect;
  uint64_t random = 0x853c49e6748fea9b;
  uint32_t tail_calls = 0;
  uint32_t turns = 0;  // of callbacks
  // What the program took and has to give back (held.h).
  static constexpr uint32_t kMostRecords = 8;
  uint32_t* lock = nullptr;
  uint32_t records = 0;
  HeldRecord record[kMostRecords];
  const Surroundings* surroundings = nullptr;
  PrintFunction print = nullptr;
  EventFunction event = nullptr;  // null: nobody reads events
  void* print_to = nullptr;
  void* frame = nullptr;              // of who runs the program
  const ChainCalls* chain = nullptr;  // null where the frame is in one buffer
  CallFunction call = nullptr;
  alignas(16) uint8_t context[32] = {};  // stands for xdp_md: its address is what programs hold
  alignas(16) uint8_t stack[(kMostFrames + 1) * kStackBytes] = {};

  bool Failed() const { return fault.kind != FaultKind::kNone; }
  // Of all its buffers, without metadata.
  uint64_t FrameBytes() const {
    return chain == nullptr ? static_cast<uint64_t>(data_end - data) : chain->length(*this);
  }
  // Notes the first fault of a run.
  void Fail(FaultKind kind, uint64_t address, uint64_t size);
};

// "instruction 12 reads ...": what happened, in words.
std::string FaultText(const Program& program, const Fault& fault);

}  // namespace halfpage::bpf
