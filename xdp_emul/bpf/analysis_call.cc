// What helpers may be called with, and what they leave behind.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "xdp_emul/bpf/analyzer.h"
#include "xdp_emul/bpf/core_relocations.h"

namespace halfpage::bpf {
namespace {

constexpr uint64_t kLongestRecord = 1 << 28;

// What to do without a helper that is not there.
const char* Advice(uint32_t number) {
  switch (number) {
    case BPF_FUNC_probe_read:
    case BPF_FUNC_probe_read_kernel:
    case BPF_FUNC_probe_read_user:
    case BPF_FUNC_probe_read_str:
    case BPF_FUNC_probe_read_kernel_str:
    case BPF_FUNC_probe_read_user_str:
    case BPF_FUNC_get_current_task:
    case BPF_FUNC_get_current_task_btf:
      return "it reads a kernel's memory, and no kernel takes part: read the packet or a map";
    case BPF_FUNC_tcp_gen_syncookie:
    case BPF_FUNC_tcp_check_syncookie:
      return "it asks a kernel's sockets, and no kernel takes part: bpf_tcp_raw_gen_syncookie_ipv4() and its like do "
             "without";
    case BPF_FUNC_sk_lookup_tcp:
    case BPF_FUNC_skc_lookup_tcp:
    case BPF_FUNC_sk_lookup_udp:
    case BPF_FUNC_sk_release:
      return "it asks a kernel's sockets, and no kernel takes part: keep addresses and ports in a hash map";
    case BPF_FUNC_dynptr_from_mem:
    case BPF_FUNC_ringbuf_reserve_dynptr:
    case BPF_FUNC_ringbuf_submit_dynptr:
    case BPF_FUNC_ringbuf_discard_dynptr:
    case BPF_FUNC_dynptr_read:
    case BPF_FUNC_dynptr_write:
    case BPF_FUNC_dynptr_data:
      return "there are no dynptrs: use pointers, and bpf_ringbuf_reserve() with a constant size";
    case BPF_FUNC_user_ringbuf_drain:
      return "there are no dynptrs: put what users say into an array, which can be written while traffic runs";
    case BPF_FUNC_timer_init:
    case BPF_FUNC_timer_set_callback:
    case BPF_FUNC_timer_start:
    case BPF_FUNC_timer_cancel:
      return "there are no timers: look at bpf_ktime_get_ns() when a packet comes";
    case BPF_FUNC_check_mtu:
      return "compare bpf_xdp_get_buff_len() with a length of your own";
    case BPF_FUNC_strncmp:
      return "compare byte by byte";
    case BPF_FUNC_snprintf:
    case BPF_FUNC_snprintf_btf:
    case BPF_FUNC_trace_vprintk:
      return "call bpf_printk() with at most three values";
    case BPF_FUNC_jiffies64:
    case BPF_FUNC_ktime_get_tai_ns:
      return "call bpf_ktime_get_ns()";
    case BPF_FUNC_map_lookup_percpu_elem:
    case BPF_FUNC_per_cpu_ptr:
    case BPF_FUNC_this_cpu_ptr:
      return "bpf_map_lookup_elem() finds the value of the worker that runs, and the map's dump those of all";
    default:
      return "use one of those that README.md of xdp_emul/bpf lists";
  }
}

// The types of map in `types`, a bit each.
std::string TypeNames(uint64_t types) {
  std::vector<std::string> names;
  for (int type = 0; type < 64; ++type) {
    if ((types >> type & 1) != 0) names.push_back(MapTypeName(static_cast<bpf_map_type>(type)));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

const MapSpec* Analyzer::SpecOf(const Value& map) const {
  return map.map == kSeveralMaps ? nullptr : &object_.maps[map.map];
}

void Analyzer::ForgetPacket(State* state) const {
  state->ForEach([](Value& value) {
    if (!value.Has(kPacket | kPacketEnd) || value.kinds == kAnyKind) return;
    value = Value::Scalar();
  });
}

// The record in r1 is given back, and who knows under which other names it was known.
void Analyzer::ForgetRecord(State* state) {
  const uint32_t id = state->registers[1].id;
  state->ForEach([id](Value& value) {
    if (!value.Has(kRecord) || value.kinds == kAnyKind) return;
    if (id == 0 || value.id == 0 || value.id == id) value = Value::Scalar();
  });
}

void Analyzer::FailArgument(uint32_t index, const Helper& helper, int number, const Value& value,
                            absl::string_view wanted) {
  Fail(index, absl::StrFormat("%s as argument %d of %s", RegisterText(number + 1, value), number + 1, helper.name),
       absl::StrCat("it takes ", wanted));
}

// Memory of a helper: how long it is where that is known, what it points at, what is left to check.
void Analyzer::CheckMemoryArgument(uint32_t index, const Helper& helper, int number, State* state) {
  Instruction& insn = At(index);
  const Argument kind = helper.arguments[number];
  const Value value = state->registers[number + 1];
  uint64_t least = 0;
  uint64_t most = UINT32_MAX;
  if (kind == Argument::kKey || kind == Argument::kValue || kind == Argument::kValueOut) {
    const MapSpec* spec = SpecOf(state->registers[1]);
    if (spec != nullptr) least = most = kind == Argument::kKey ? spec->key_size : spec->value_size;
  } else if (FixedBytes(kind) != 0) {
    least = most = FixedBytes(kind);
  } else {
    const Value& size = state->registers[number + 2];
    if (size.Is(kScalar)) {
      least = size.min;
      most = size.max;
    }
  }
  const bool null_allowed = kind == Argument::kMemoryOrNull && (value.kinds & kPointers) == 0;
  const uint16_t memory = kPacket | kStack | kMapValue | kRecord;
  if (kind == Argument::kLock) CheckLock(index, helper, value);
  if (!value.Has(memory) && !null_allowed) {
    FailArgument(index, helper, number, value,
                 kind == Argument::kKey     ? "a pointer to a key"
                 : kind == Argument::kValue ? "a pointer to a value"
                                            : "a pointer to memory: the stack, the packet, a map's value or a record");
  }
  const bool write = IsWritten(kind);
  const bool proven = most <= kStackBytes * 128 && least > 0 && Proven(value, value.offset, most, write);
  if (value.Is(kStack) && value.own && value.offset_known && least == most && !proven && least > 0) {
    Fail(index,
         absl::StrFormat("%d bytes at %d of the stack as argument %d of %s, and the stack is r10-512 to r10", most,
                         value.offset, number + 1, helper.name),
         "make the variable as long as what is handed over");
  }
  if (write && reporting_) image_.writes_packet |= value.Has(kPacket);
  if (!proven && reporting_) insn.unproven |= static_cast<uint8_t>(1 << number);
  if (value.Has(kStack)) {
    UseStack(proven ? value.offset : -static_cast<int64_t>(kStackBytes));
    if (write) WriteStack(state, value, value.offset, proven ? static_cast<uint32_t>(most) : kStackBytes, nullptr);
    if (write && !proven) ForgetSlots(state);
  }
}

std::vector<uint32_t> Analyzer::TargetsOf(const Value& function) const {
  if (function.offset_known) return {static_cast<uint32_t>(function.offset)};
  std::vector<uint32_t> targets;
  for (const Instruction& insn : image_.code) {
    if (insn.constant == Constant::kFunction) targets.push_back(static_cast<uint32_t>(insn.off));
  }
  return targets;
}

void Analyzer::Callback(const Helper& helper, State* state) {
  if (!state->registers[2].Is(kFunction)) return;
  const std::vector<uint32_t> targets = TargetsOf(state->registers[2]);
  const bool changes_packet = std::any_of(targets.begin(), targets.end(),
                                          [this](uint32_t target) { return image_.FunctionOf(target).changes_packet; });
  State entry;
  Value context = state->registers[3];
  // The second turn gets what the first got, and the packet may have moved in between.
  if (changes_packet && context.Has(kPacket | kPacketEnd) && context.kinds != kAnyKind) context = Value::Scalar();
  context.id = context.id <= kMetaId ? context.id : 0;
  if (context.Has(kStack)) {
    context.own = false;
    context.offset_known = false;
  }
  if (helper.number == BPF_FUNC_loop) {
    // The turn's number and the context that was handed over.
    entry.registers[1] = Value::Scalar(0, UINT32_MAX);
    entry.registers[2] = context;
  } else {
    // The map, a copy of the key, the value, the context.
    entry.registers[1] = state->registers[1];
    entry.registers[2].kinds = kStack;
    entry.registers[2].own = false;
    entry.registers[2].offset_known = false;
    entry.registers[3].kinds = kMapValue;
    entry.registers[3].map = state->registers[1].map;
    entry.registers[3].map_set = MapBit(state->registers[1].map);
    entry.registers[3].not_null = true;
    entry.registers[4] = context;
    entry.registers[1].id = 0;
  }
  entry.registers[10].kinds = kStack;
  for (const uint32_t target : targets) {
    Push(target, entry);
    callers_[target].insert(head_);
  }
  if (changes_packet) ForgetPacket(state);
}

// The lock is where the map's types say; the check that it is memory at all comes on top.
void Analyzer::CheckLock(uint32_t index, const Helper& helper, const Value& value) {
  const MapSpec* spec = value.Is(kMapValue) ? SpecOf(value) : nullptr;
  if (spec == nullptr || (spec->lock_offset != MapSpec::kNoLock && !value.offset_known)) return;
  if (spec->lock_offset == MapSpec::kNoLock) {
    Fail(index, absl::StrFormat("map %s has no bpf_spin_lock that %s could work on", spec->name, helper.name),
         "put `struct bpf_spin_lock` into its value and build with -g");
  } else if (value.offset != static_cast<int32_t>(spec->lock_offset)) {
    Fail(index,
         absl::StrFormat("%s is given byte %d of a value of map %s, whose lock is at %d", helper.name, value.offset,
                         spec->name, spec->lock_offset),
         "hand over the address of that member");
  }
}

// False where checking further makes no sense.
bool Analyzer::CheckArgument(uint32_t index, const Helper& helper, int number, State* state) {
  Instruction& insn = At(index);
  const int reg = number + 1;
  const Value& value = state->registers[reg];
  const auto wrong = [&](const char* wanted) {
    FailArgument(index, helper, number, value, wanted);
    return false;
  };
  if (helper.arguments[number] == Argument::kAnything) return true;
  if (value.Is(kUnset)) return wrong("something");
  switch (helper.arguments[number]) {
    case Argument::kNumber:
    case Argument::kSizeOrZero:
    case Argument::kSize:
      if (!value.Has(kScalar)) return wrong("a number");
      return true;
    case Argument::kContext:
      if (!value.Has(kContext)) return wrong("the context (r1 as the program got it)");
      if (!value.Is(kContext) || !value.offset_known || value.offset != 0) {
        if (reporting_) insn.unproven |= static_cast<uint8_t>(1 << number);
      }
      return true;
    case Argument::kMap: {
      if (!value.Is(kMapPointer)) return wrong("a map");
      const MapSpec* spec = SpecOf(value);
      if (spec != nullptr && (helper.map_types >> spec->type & 1) == 0) {
        Fail(index,
             absl::StrFormat("map %s is of type %s, which %s does not take", spec->name, MapTypeName(spec->type),
                             helper.name),
             absl::StrCat("give it one of type ", TypeNames(helper.map_types)));
        return false;
      }
      if (reporting_) insn.map = value.map;
      // Which map of several it is shows when it runs.
      if (reporting_ && (!value.not_null || spec == nullptr)) insn.unproven |= static_cast<uint8_t>(1 << number);
      return true;
    }
    case Argument::kFunction:
      if (!value.Is(kFunction)) return wrong("a function of the program");
      return true;
    case Argument::kLock:
      if (!value.Is(kMapValue)) return wrong("a bpf_spin_lock of a map's value");
      return true;
    case Argument::kRecord:
      if (!value.Is(kRecord)) return wrong("a record that bpf_ringbuf_reserve() gave");
      return true;
    default:
      return true;
  }
}

void Analyzer::HelperCall(uint32_t index, State* state) {
  Instruction& insn = At(index);
  const auto number = static_cast<uint32_t>(insn.imm);
  const Helper* helper = FindHelper(number);
  if (reporting_) insn.unproven = 0;
  if (reporting_ && number == BPF_FUNC_xdp_store_bytes) image_.writes_packet = true;
  if (helper == nullptr && number >= kFirstMissing && number - kFirstMissing < object_.missing.size()) {
    const Missing& missing = object_.missing[number - kFirstMissing];
    Fail(index, missing.what, missing.mend);
  }
  if (helper == nullptr) {
    Fail(index, absl::StrFormat("calls %s (%d), which is not there for XDP in user space", HelperName(number), number),
         Advice(number));
    for (int i = 1; i <= 5; ++i) state->registers[i] = Value();
    state->registers[0] = Value::Scalar();
    return;
  }
  Value result = Value::Scalar();
  bool callback = false;
  bool stack = false;
  for (int i = 0; i < 5 && helper->arguments[i] != Argument::kNone; ++i) {
    if (!CheckArgument(index, *helper, i, state)) continue;
    if (IsMemory(helper->arguments[i])) CheckMemoryArgument(index, *helper, i, state);
    callback |= helper->arguments[i] == Argument::kFunction;
    stack |= state->registers[i + 1].Has(kStack);
    // A text for bpf_trace_printk(): nobody knows how long it is.
    const bool unbounded = helper->arguments[i] == Argument::kAnything && state->registers[i + 1].Has(kStack);
    if (unbounded) UseStack(-static_cast<int64_t>(kStackBytes));
  }
  if (helper->result == Result::kValueOrNull) {
    result = Value();
    const MapSpec* spec = SpecOf(state->registers[1]);
    const bool of_maps =
        spec != nullptr && (spec->type == BPF_MAP_TYPE_ARRAY_OF_MAPS || spec->type == BPF_MAP_TYPE_HASH_OF_MAPS);
    result.kinds = of_maps ? kMapPointer : kMapValue;
    result.map = of_maps ? kSeveralMaps : state->registers[1].map;
    result.map_set = MapBit(result.map);
    result.id = NewId(index, state);
  } else if (helper->result == Result::kRecordOrNull) {
    result = Value();
    result.kinds = kRecord;
    const Value& size = state->registers[2];
    result.range = size.IsNumber() && size.min <= kLongestRecord ? static_cast<uint32_t>(size.min) : 0;
    result.id = NewId(index, state);
  }
  if (helper->arguments[0] == Argument::kRecord) ForgetRecord(state);
  if (callback) {
    Callback(*helper, state);
    if (stack) {
      function_->stack_escapes = true;
      UseStack(-static_cast<int64_t>(kStackBytes));
      ForgetSlots(state);
    }
  }
  for (int i = 1; i <= 5; ++i) state->registers[i] = Value();
  // A tail call that returns has led nowhere, and nothing has changed.
  if (helper->changes_packet && number != BPF_FUNC_tail_call) ForgetPacket(state);
  state->registers[0] = result;
}

}  // namespace halfpage::bpf
