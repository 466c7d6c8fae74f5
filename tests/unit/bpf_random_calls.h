// Random calls of helpers: each of the table, by what it says of its arguments, with maps of each type that it takes.
#pragma once

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tests/unit/bpf_outcome.h"
#include "xdp_emul/bpf/functions.h"

namespace halfpage::bpf {

// Of RandomMaps(): places of those that calls are told apart by.
enum RandomMap : int { kTable = 1, kRing = 12, kProgramArray = 15, kGuardedTable = 20, kGuardedNumbers };

// A map of each type that there is, two with a lock. Tail calls lead to `next`, to nothing and to `hand` itself.
inline std::vector<MapSpec> RandomMaps() {
  std::vector<MapSpec> maps = ObjectWith({}).maps;
  for (const MapSpec& spec :
       {Spec("own", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 16, 3), Spec("own_table", BPF_MAP_TYPE_PERCPU_HASH, 4, 12, 4),
        Spec("recent", BPF_MAP_TYPE_LRU_HASH, 4, 16, 3), Spec("own_recent", BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 8, 3),
        Spec("prefixes", BPF_MAP_TYPE_LPM_TRIE, 8, 8, 6), Spec("queue", BPF_MAP_TYPE_QUEUE, 0, 8, 3),
        Spec("stack", BPF_MAP_TYPE_STACK, 0, 12, 3), Spec("bloom", BPF_MAP_TYPE_BLOOM_FILTER, 0, 8, 16),
        Spec("ring", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096), Spec("several", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 4),
        Spec("several_by_key", BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 4), Spec("programs", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4),
        Spec("events", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2), Spec("outs_by_key", BPF_MAP_TYPE_DEVMAP_HASH, 4, 4, 4),
        Spec("sockets", BPF_MAP_TYPE_XSKMAP, 4, 4, 4), Spec("cpus", BPF_MAP_TYPE_CPUMAP, 4, 4, 4),
        Spec("guarded_table", BPF_MAP_TYPE_HASH, 4, 16, 4), Spec("guarded", BPF_MAP_TYPE_ARRAY, 4, 16, 3)}) {
    maps.push_back(spec);
  }
  for (MapSpec& spec : maps) {
    const bool of_maps = spec.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || spec.type == BPF_MAP_TYPE_HASH_OF_MAPS;
    if (of_maps) spec.targets = {"numbers", "table", "", "own"};
  }
  maps[kGuardedTable].lock_offset = 4;
  maps[kGuardedNumbers].lock_offset = 8;
  return maps;
}

// Code that grows, and what its registers hold: r6 to r9 stay the context, the packet, its end and a number.
class RandomCalls {
 public:
  RandomCalls(uint64_t seed, const std::vector<MapSpec>* maps) : maps_(*maps), random_(seed) {
    for (uint32_t number = 1; number < 256; ++number) {
      const Helper* helper = FindHelper(number);
      if (helper == nullptr) continue;
      if (helper->map_types == 0) calls_.push_back({helper, 0});
      for (int map = 0; map < static_cast<int>(maps->size()); ++map) {
        if ((helper->map_types >> maps_[static_cast<size_t>(map)].type & 1) != 0) calls_.push_back({helper, map});
      }
    }
  }

 protected:
  static constexpr int kNumber = 9;
  static constexpr int kKept = -56;        // where a value or a record is kept over calls
  static constexpr int kStructure = -128;  // what helpers that take a structure are given
  static constexpr int kIpHeader = -176;

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int Small() { return Below(8) == 0 ? static_cast<int>(random_()) : Below(80) - 16; }
  void Put(const std::vector<bpf_insn>& code) { code_.insert(code_.end(), code.begin(), code.end()); }
  // A jump that End() gives its distance.
  size_t Begin(bpf_insn jump) {
    code_.push_back(jump);
    return code_.size() - 1;
  }
  void End(size_t jump) { code_[jump].off = static_cast<int16_t>(code_.size() - jump - 1); }

  void Called(char result) {
    for (int reg = 1; reg < 6; ++reg) kinds_[reg] = 'U';
    kinds_[0] = result;
  }

  // One call of any helper, with what it needs before and after.
  void AnyCall() {
    const auto [place, map] = calls_[static_cast<size_t>(Below(static_cast<int>(calls_.size())))];
    const Helper& helper = *place;
    const Argument first = helper.arguments[0];
    if (first == Argument::kLock) return Locked();
    if (first == Argument::kRecord) return Recorded(static_cast<int>(helper.number));
    if (helper.result == Result::kRecordOrNull)
      return Recorded(Below(2) ? BPF_FUNC_ringbuf_submit : BPF_FUNC_ringbuf_discard);
    Simple(helper, map);
  }

  std::vector<Code> functions_;  // behind the program's own code
  bool calls_tail_ = false;
  const std::vector<MapSpec>& maps_;
  std::mt19937_64 random_;
  Code code_;
  char kinds_[12] = {};  // of registers: Unset, Scalar, Packet, its End, stacK, Value, Context

 private:
  void Number64(int reg, uint64_t number) {
    Put({Raw(BPF_LD | BPF_IMM | BPF_DW, reg, 0, 0, static_cast<int>(number)), Half(static_cast<int>(number >> 32))});
  }

  // r`reg` = a key of `map` on the stack.
  void Key(int reg, int map) {
    const bool prefix = maps_[static_cast<size_t>(map)].type == BPF_MAP_TYPE_LPM_TRIE;
    if (prefix) Put({StoreImm(BPF_W, 10, -8, 8 * Below(5) + Below(2)), StoreImm(BPF_W, 10, -4, Below(4) * 0x101)});
    if (!prefix) Put({StoreImm(BPF_W, 10, -4, Below(5))});
    Put({Copy(reg, 10), Add(reg, prefix ? -8 : -4)});
  }

  // r`reg` = somewhere with `bytes` bytes, mostly.
  void Memory(int reg, int bytes, bool written) {
    if (!written && Below(4) == 0) return Put({Copy(reg, 7), Add(reg, Below(2) ? Below(6) : 0)});
    Put({Copy(reg, 10), Add(reg, -std::max(8, (bytes + 7) / 8 * 8) - 8 * Below(4))});
  }

  int SizeFor(const Helper& helper) {
    switch (helper.number) {
      case BPF_FUNC_csum_diff:
        return 4 * Below(6);
      case BPF_FUNC_fib_lookup:
        return Below(8) == 0 ? 63 : 64;
      case BPF_FUNC_tcp_raw_gen_syncookie_ipv4:
      case BPF_FUNC_tcp_raw_gen_syncookie_ipv6:
        return Below(4) == 0 ? 24 : 20;
      case BPF_FUNC_trace_printk:
        return 8;
      default:
        return 1 + Below(24);
    }
  }

  void NumberFor(int reg, const Helper& helper, int map) {
    switch (helper.number) {
      case BPF_FUNC_perf_event_output:
        if (Below(2) == 0)
          return Number64(reg,
                          uint64_t(Below(30)) << 32 | (Below(3) ? uint64_t{BPF_F_CURRENT_CPU} : uint64_t(Below(3))));
        return Put({Raw(BPF_ALU | BPF_MOV | BPF_K, reg, 0, 0, -1)});
      case BPF_FUNC_loop:
        if (reg == 4) return Put({Mov(reg, Below(16) == 0)});
        return Put({Mov(reg, Below(16) == 0 ? (1 << 23) + 1 : Below(12))});
      case BPF_FUNC_ringbuf_output:
      case BPF_FUNC_map_push_elem:
      case BPF_FUNC_for_each_map_elem:
        return Put({Mov(reg, Below(3) ? 0 : Below(4))});
      case BPF_FUNC_map_update_elem:
        if (Below(2) == 0 && maps_[static_cast<size_t>(map)].lock_offset != MapSpec::kNoLock)
          return Put({Mov(reg, BPF_F_LOCK)});
        return Put({Mov(reg, Below(2) ? 0 : Below(4))});
      case BPF_FUNC_redirect_map:
        return Put({Mov(reg, Below(6) == 0 ? int{BPF_F_BROADCAST} : Below(5))});
      case BPF_FUNC_xdp_adjust_head:
      case BPF_FUNC_xdp_adjust_tail:
      case BPF_FUNC_xdp_adjust_meta:
        return Put({Mov(reg, Below(2) ? 4 * Below(10) - 20 : Below(40) - 20)});
      case BPF_FUNC_xdp_load_bytes:
      case BPF_FUNC_xdp_store_bytes:
        return Put({Mov(reg, Below(8) == 0 ? Small() : Below(70))});
      case BPF_FUNC_redirect:
        return Put({Mov(reg, reg == 1 ? Below(9) : Below(4) == 0)});
      default:
        if (Below(4) == 0) return Put({Copy(reg, kNumber)});
        return Put({Mov(reg, Below(6))});
    }
  }

  static bool IsCookie(const Helper& helper) {
    return helper.number == BPF_FUNC_tcp_raw_gen_syncookie_ipv4 || helper.number == BPF_FUNC_tcp_raw_gen_syncookie_ipv6;
  }

  // The answer to the SYN whose cookie r0 is: it has the next number and says the next one after the cookie.
  void Answer(const Helper& helper) {
    const bool old = helper.number == BPF_FUNC_tcp_raw_gen_syncookie_ipv4;
    Put({Add(0, 1), Raw(BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 32), Store(BPF_W, 10, 0, kStructure + 8)});
    Put({StoreImm(BPF_W, 10, kStructure + 4, 1 << 24), Copy(1, 10), Add(1, kIpHeader), Copy(2, 10),
         Add(2, kStructure)});
    Put({Call(old ? BPF_FUNC_tcp_raw_check_syncookie_ipv4 : BPF_FUNC_tcp_raw_check_syncookie_ipv6)});
    Put({StoreImm(BPF_W, 10, kStructure + 8, 0)});
  }

  // What helpers that read a structure find in it.
  void Prepare(const Helper& helper) {
    if (helper.number == BPF_FUNC_trace_printk) {
      constexpr int kWords[] = {0x25206425, 0x000a7875};  // "%d %ux\n"
      Put({StoreImm(BPF_W, 10, kStructure, kWords[0]), StoreImm(BPF_W, 10, kStructure + 4, kWords[1])});
    } else if (helper.number == BPF_FUNC_fib_lookup) {
      Put({StoreImm(BPF_B, 10, kStructure, Below(4) ? 2 : 10),
           StoreImm(BPF_W, 10, kStructure + 32, Below(4) ? 0x0100000a : 7)});
    } else {
      Put({StoreImm(BPF_W, 10, kStructure + 4, 0), StoreImm(BPF_B, 10, kStructure + 12, 0x50)});  // TCP, 20 bytes
    }
  }

  void Simple(const Helper& helper, int map) {
    const bool structured =
        helper.number == BPF_FUNC_trace_printk || helper.number == BPF_FUNC_fib_lookup || IsCookie(helper);
    if (structured) Prepare(helper);
    int size = 0;
    for (int i = 0; i < 5 && helper.arguments[i] != Argument::kNone; ++i) {
      const int reg = i + 1;
      const Argument kind = helper.arguments[i];
      switch (kind) {
        case Argument::kContext:
          Put({Copy(reg, 6)});
          break;
        case Argument::kMap:
          Put({MapOf(reg, map), Half()});
          break;
        case Argument::kKey:
          Key(reg, map);
          break;
        case Argument::kSize:
        case Argument::kSizeOrZero:
          // What nobody knows before it runs, 0 among it.
          if (Below(10) != 0) {
            Put({Mov(reg, size)});
          } else {
            Put({Copy(reg, kNumber), Raw(BPF_ALU64 | BPF_AND | BPF_K, reg, 0, 0, Below(3) ? 3 : 4095)});
          }
          break;
        case Argument::kFunction:
          // The context is the next argument, and which it is decides what the callback does.
          Put({FunctionOf(reg, static_cast<int>(functions_.size()) + 1), Half()});
          if (Below(8) == 0 && !functions_.empty()) {
            const size_t over = Begin(JumpEq(kNumber, Below(4), 0));
            Put({FunctionOf(reg, 1 + Below(static_cast<int>(functions_.size()))), Half()});
            End(over);
          }
          break;
        case Argument::kAnything:
          if (i > 0 && helper.arguments[i - 1] == Argument::kFunction) {
            HandOver(reg, helper.number == BPF_FUNC_for_each_map_elem, map);
          } else {
            Put({Copy(reg, kNumber)});
          }
          break;
        case Argument::kNumber:
          NumberFor(reg, helper, map);
          break;
        default: {
          size = SizeFor(helper);
          const bool fixed = FixedBytes(kind) != 0;
          const bool valued = kind == Argument::kValue || kind == Argument::kValueOut;
          const int bytes = fixed ? static_cast<int>(FixedBytes(kind)) : valued ? 24 : size;
          if (IsCookie(helper) && fixed) {
            Put({Copy(reg, 10), Add(reg, kIpHeader)});
          } else if (structured && !fixed && Below(6) != 0) {
            Put({Copy(reg, 10), Add(reg, kStructure)});
          } else if (kind == Argument::kMemoryOrNull && Below(3) == 0) {
            Put({Mov(reg, size = 0)});
          } else {
            Memory(reg, bytes, IsWritten(kind));
          }
        }
      }
    }
    code_.push_back(Call(static_cast<int>(helper.number)));
    calls_tail_ |= helper.number == BPF_FUNC_tail_call;
    Called('S');
    After(helper, map);
  }

  void After(const Helper& helper, int map) {
    if (helper.result == Result::kValueOrNull) return Found(map);
    if (helper.changes_packet) {
      Put({Load(BPF_W, 7, 6, 0), Load(BPF_W, 8, 6, 4)});
      return;
    }
    switch (helper.number) {
      case BPF_FUNC_ktime_get_ns:
      case BPF_FUNC_ktime_get_boot_ns:
      case BPF_FUNC_ktime_get_coarse_ns:
        return Put({Mov(0, Small())});  // time goes on from run to run
      case BPF_FUNC_tcp_raw_gen_syncookie_ipv4:
      case BPF_FUNC_tcp_raw_gen_syncookie_ipv6:
        return Below(2) ? Answer(helper) : Put({Mov(0, Small())});
      default:
        // What most helpers say is kept where it can be compared.
        if (Below(2) == 0) Put({Store(BPF_DW, 10, 0, -8 * (2 + Below(4)))});
        if (Below(4) == 0) Put({Copy(kNumber, 0)});
    }
  }

  // r0 is what a lookup found.
  void Found(int map) {
    const MapSpec& spec = maps_[static_cast<size_t>(map)];
    if (spec.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || spec.type == BPF_MAP_TYPE_HASH_OF_MAPS) {
      const size_t null = Begin(JumpEq(0, 0, 0));
      Put({Copy(1, 0), StoreImm(BPF_W, 10, -4, Below(4)), Copy(2, 10), Add(2, -4)});
      const bool other = Below(3) == 0;
      if (other) Put({Copy(3, 10), Add(3, -24), Mov(4, 0)});
      code_.push_back(Call(other ? BPF_FUNC_map_update_elem : BPF_FUNC_map_lookup_elem));
      if (!other) {
        const size_t nothing = Begin(JumpEq(0, 0, 0));
        Put({Store(BPF_W, 0, kNumber, 4 * Below(3)), Load(BPF_W, kNumber, 0, 4 * Below(3))});
        End(nothing);
      }
      End(null);
      Put({Mov(0, 1)});
      return Called('S');
    }
    if (IsReadOnly(spec) || spec.lock_offset != MapSpec::kNoLock) {
      // A lock that is written into costs a second.
      const size_t null = Begin(JumpEq(0, 0, 0));
      Put({Load(BPF_W, 0, 0, 0)});
      End(null);
      return Called('S');
    }
    Called('V');
    if (Below(2) == 0) {
      const size_t null = Begin(JumpEq(0, 0, 0));
      Put({Store(BPF_W, 0, kNumber, 4), Load(BPF_W, kNumber, 0, 0)});
      End(null);
    }
  }

  // r`reg` = what a callback gets, and the callback that makes use of it.
  void HandOver(int reg, bool walks, int map) {
    const char kind = "KKKPCS"[Below(6)];
    if (kind == 'K') Put({Copy(reg, 10), Add(reg, -8 * (2 + Below(5)))});
    if (kind == 'P') Put({Copy(reg, 7), Add(reg, Below(8))});
    if (kind == 'C') Put({Copy(reg, 6)});
    if (kind == 'S') Put({Copy(reg, kNumber)});
    Code outer = std::move(code_);
    code_.clear();
    const bool guarded = maps_[static_cast<size_t>(map)].lock_offset != MapSpec::kNoLock;
    Callback(kind, walks, guarded);
    functions_.push_back(std::move(code_));
    code_ = std::move(outer);
  }

  // r6 = the context, r7 = turn or map, r8 = value, r9 = key.
  void Callback(char kind, bool walks, bool guarded) {
    Put({Copy(6, walks ? 4 : 2), Copy(7, 1)});
    if (walks) Put({Copy(8, 3), Copy(9, 2)});
    for (int steps = 1 + Below(4); steps > 0; --steps) {
      const int choice = Below(walks ? 6 : 4);
      if (choice == 0 && kind == 'K') Put({Load(BPF_DW, 3, 6, 0), Add(3, 1 + Below(9)), Store(BPF_DW, 6, 3, 0)});
      if (choice == 0 && kind == 'P') Put({Load(BPF_B, 3, 6, Below(12)), Store(BPF_B, 6, 3, 0)});
      if (choice == 0 && kind == 'C') {
        Put({Load(BPF_W, 2, 6, 0), Load(BPF_W, 3, 6, 4), Copy(4, 2), Add(4, 4), JumpGt(4, 3, 1),
             StoreImm(BPF_W, 2, 0, 9)});
        if (Below(3) == 0) Put({Copy(1, 6), Mov(2, Below(3) - 1), Call(BPF_FUNC_xdp_adjust_tail)});
      }
      if (choice == 1) {
        Put({StoreImm(BPF_W, 10, -4, Below(5)), Copy(2, 10), Add(2, -4), MapOf(1, Below(2)), Half()});
        Put({Call(BPF_FUNC_map_lookup_elem), JumpEq(0, 0, 2), Mov(3, 1)});
        Put({Raw(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 3, 0, BPF_ADD)});
      }
      if (choice == 2) Put({Call(BPF_FUNC_get_prandom_u32), Store(BPF_DW, 10, 0, -16)});
      if (choice == 3) {
        Put({MapOf(1, kTable), Half(), StoreImm(BPF_W, 10, -4, Below(6)), Copy(2, 10), Add(2, -4), Copy(3, 10)});
        Put({Add(3, -16), Mov(4, 0), Call(BPF_FUNC_map_update_elem)});
      }
      if (choice == 4) Put({Copy(1, 7), Copy(2, 9), Call(BPF_FUNC_map_delete_elem)});
      if (choice == 5) Put({Load(BPF_W, 3, 8, 0), Load(BPF_W, 4, 9, 0), AddReg(3, 4)});
      if (choice == 5 && !guarded) Put({Store(BPF_W, 8, 3, 4)});
    }
    Put({Mov(0, Below(4) == 0), Exit()});
  }

  // A value's lock, taken and given back.
  void Locked() {
    const int map = Below(2) ? kGuardedTable : kGuardedNumbers;
    const auto offset = static_cast<int>(maps_[static_cast<size_t>(map)].lock_offset);
    Key(2, map);
    Put({MapOf(1, map), Half(), Call(BPF_FUNC_map_lookup_elem)});
    const size_t null = Begin(JumpEq(0, 0, 0));
    Put({Store(BPF_DW, 10, 0, kKept), Copy(1, 0), Add(1, offset), Call(BPF_FUNC_spin_lock),
         Load(BPF_DW, 1, 10, kKept)});
    Put({Store(BPF_W, 1, kNumber, 12), Load(BPF_W, 2, 1, 0), Add(2, 1), Store(BPF_W, 1, 2, 0)});
    const int wrong = Below(12);
    if (wrong == 0) Put({Mov(0, 2), Exit()});
    if (wrong == 1) Put({Add(1, offset), Call(BPF_FUNC_spin_lock), Load(BPF_DW, 1, 10, kKept)});
    Put({Add(1, offset), Call(BPF_FUNC_spin_unlock)});
    End(null);
    Put({Mov(0, 0)});
    Called('S');
  }

  // A record, filled in and given back by helper `back`.
  void Recorded(int back) {
    const int size = 8 * (1 + Below(5));
    Put({MapOf(1, kRing), Half(), Mov(2, Below(16) == 0 ? 5000 : size), Mov(3, 0), Call(BPF_FUNC_ringbuf_reserve)});
    const size_t null = Begin(JumpEq(0, 0, 0));
    Put({Store(BPF_DW, 10, 0, kKept)});
    for (int at = 0; at < size; at += 8) Put({Store(BPF_DW, 0, kNumber, at)});
    if (Below(3) == 0) Put({MapOf(1, kRing), Half(), Mov(2, Below(5)), Call(BPF_FUNC_ringbuf_query)});
    Put({Load(BPF_DW, 1, 10, kKept)});
    const int wrong = Below(12);
    if (wrong == 0) Put({Mov(0, 2), Exit()});
    if (wrong == 1) Put({Add(1, 8)});
    Put({Mov(2, Below(3)), Call(back)});
    End(null);
    Put({Mov(0, 0)});
    Called('S');
  }

  std::vector<std::pair<const Helper*, int>> calls_;  // that there are, with each map that each takes
};

}  // namespace halfpage::bpf
