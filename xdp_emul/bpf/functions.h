// Functions that programs call by number: what they take, what they give, and the table of those that are there.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "xdp_emul/bpf/run_state.h"

namespace halfpage::bpf {

enum class Argument : uint8_t {
  kNone,
  kNumber,  // any value; pointers are refused
  kAnything,
  kContext,
  kMap,
  kKey,           // memory as long as the key of the map before it
  kValue,         // memory as long as its value, read
  kValueOut,      // the same, written
  kMemory,        // memory read, its length is the next argument
  kMemoryOrNull,  // the same, null with length 0
  kMemoryOut,     // memory written, its length is the next argument
  kSize,          // a length, at least 1
  kSizeOrZero,
  kFunction,  // a callback
  kRecord,    // what bpf_ringbuf_reserve() gave
  kLock,      // the bpf_spin_lock of a map's value
  kHeader20,  // memory of as many bytes, read: headers of IPv4 and TCP
  kHeader40,  // and of IPv6
};

enum class Result : uint8_t { kNumber, kValueOrNull, kMapValueOfArgument, kRecordOrNull };

using HelperFunction = uint64_t (*)(RunState* state, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);

struct Helper {
  uint32_t number;
  const char* name;
  HelperFunction function;
  Argument arguments[5];
  Result result;
  bool changes_packet;
  uint64_t map_types;     // bit t is set where a map of type t may be handed over; of those with kMap
  bool may_fail = false;  // may note a fault, by itself or by a callback
};

// Null where there is none.
const Helper* FindHelper(uint32_t number);

// "bpf_fib_lookup" for 69, whether it is there or not; "helper 999" for what nobody knows.
std::string HelperName(uint32_t number);

// Memory that the helper writes.
inline bool IsWritten(Argument argument) {
  return argument == Argument::kMemoryOut || argument == Argument::kValueOut || argument == Argument::kLock;
}

inline bool IsMemory(Argument argument) {
  return argument == Argument::kKey || argument == Argument::kValue || argument == Argument::kValueOut ||
         argument == Argument::kMemory || argument == Argument::kMemoryOrNull || argument == Argument::kMemoryOut ||
         argument == Argument::kLock || argument == Argument::kHeader20 || argument == Argument::kHeader40;
}

// How long memory is whose length neither a map nor another argument says; 0 for all other kinds.
inline uint32_t FixedBytes(Argument argument) {
  switch (argument) {
    case Argument::kLock:
      return 4;
    case Argument::kHeader20:
      return 20;
    case Argument::kHeader40:
      return 40;
    default:
      return 0;
  }
}

// What a helper gives for an error: a negative number of errno.h, in 64 bits.
inline uint64_t Errno(int error) {
  return static_cast<uint64_t>(int64_t{error});
}

// Functions of the table, by subject.
uint64_t MapLookup(RunState* state, uint64_t map, uint64_t key, uint64_t, uint64_t, uint64_t);
uint64_t MapUpdate(RunState* state, uint64_t map, uint64_t key, uint64_t value, uint64_t flags, uint64_t);
uint64_t MapDelete(RunState* state, uint64_t map, uint64_t key, uint64_t, uint64_t, uint64_t);
uint64_t MapPush(RunState* state, uint64_t map, uint64_t value, uint64_t flags, uint64_t, uint64_t);
uint64_t MapPop(RunState* state, uint64_t map, uint64_t value, uint64_t, uint64_t, uint64_t);
uint64_t MapPeek(RunState* state, uint64_t map, uint64_t value, uint64_t, uint64_t, uint64_t);
// Only where it leads nowhere: who runs a program makes its tail calls, by TailTarget().
uint64_t TailCall(RunState* state, uint64_t context, uint64_t map, uint64_t index, uint64_t, uint64_t);
uint64_t EventOutput(RunState* state, uint64_t context, uint64_t map, uint64_t flags, uint64_t data, uint64_t size);
uint64_t Redirect(RunState* state, uint64_t interface, uint64_t flags, uint64_t, uint64_t, uint64_t);
uint64_t RedirectMap(RunState* state, uint64_t map, uint64_t key, uint64_t flags, uint64_t, uint64_t);
uint64_t AdjustHead(RunState* state, uint64_t context, uint64_t delta, uint64_t, uint64_t, uint64_t);
uint64_t AdjustTail(RunState* state, uint64_t context, uint64_t delta, uint64_t, uint64_t, uint64_t);
uint64_t AdjustMeta(RunState* state, uint64_t context, uint64_t delta, uint64_t, uint64_t, uint64_t);
uint64_t LoadBytes(RunState* state, uint64_t context, uint64_t offset, uint64_t to, uint64_t size, uint64_t);
uint64_t StoreBytes(RunState* state, uint64_t context, uint64_t offset, uint64_t from, uint64_t size, uint64_t);
uint64_t BufferLength(RunState* state, uint64_t context, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t CsumDiff(RunState* state, uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t seed);
uint64_t TracePrintk(RunState* state, uint64_t format, uint64_t size, uint64_t a, uint64_t b, uint64_t c);
uint64_t FibLookup(RunState* state, uint64_t context, uint64_t parameters, uint64_t size, uint64_t flags, uint64_t);
uint64_t KtimeGetNs(RunState*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t WorkerNumber(RunState* state, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t Random(RunState* state, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t NodeNumber(RunState*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t Loop(RunState* state, uint64_t times, uint64_t function, uint64_t context, uint64_t flags, uint64_t);
uint64_t ForEachElement(RunState* state, uint64_t map, uint64_t function, uint64_t context, uint64_t flags, uint64_t);
uint64_t TakeSpinLock(RunState* state, uint64_t lock, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t GiveSpinLock(RunState* state, uint64_t lock, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t RingOutput(RunState*, uint64_t ring, uint64_t data, uint64_t size, uint64_t flags, uint64_t);
uint64_t RingReserve(RunState* state, uint64_t ring, uint64_t size, uint64_t flags, uint64_t, uint64_t);
uint64_t RingSubmit(RunState* state, uint64_t record, uint64_t flags, uint64_t, uint64_t, uint64_t);
uint64_t RingDiscard(RunState* state, uint64_t record, uint64_t flags, uint64_t, uint64_t, uint64_t);
uint64_t RingQuery(RunState*, uint64_t ring, uint64_t what, uint64_t, uint64_t, uint64_t);
uint64_t MakeCookie4(RunState*, uint64_t ip, uint64_t tcp, uint64_t tcp_bytes, uint64_t, uint64_t);
uint64_t MakeCookie6(RunState*, uint64_t ip, uint64_t tcp, uint64_t tcp_bytes, uint64_t, uint64_t);
uint64_t CheckCookie4(RunState*, uint64_t ip, uint64_t tcp, uint64_t, uint64_t, uint64_t);
uint64_t CheckCookie6(RunState*, uint64_t ip, uint64_t tcp, uint64_t, uint64_t, uint64_t);

// The program that a tail call goes on with; null where the slot is empty or the run made too many, and after a fault
// where its functions would not fit on the stack.
const Program* TailTarget(RunState* state, uint64_t map, uint64_t index);

}  // namespace halfpage::bpf
