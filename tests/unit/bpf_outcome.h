// Programs written by hand, run on a packet whose memory ends where it ends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/support/bpf_code.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/queue_map.h"
#include "xdp_emul/bpf/ring_map.h"
#include "xdp_emul/bpf/surroundings.h"
#include "xdp_emul/mbuf_chain.h"

namespace halfpage::bpf {

inline MapSpec Spec(const char* name, bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries) {
  MapSpec spec;
  spec.name = name;
  spec.type = type;
  spec.key_size = key;
  spec.value_size = value;
  spec.max_entries = entries;
  return spec;
}

// Maps that hand-written programs refer to by index.
inline Object ObjectWith(const Code& code) {
  Object object;
  object.path = "hand.o";
  object.maps = {Spec("numbers", BPF_MAP_TYPE_ARRAY, 4, 16, 4), Spec("table", BPF_MAP_TYPE_HASH, 4, 8, 4),
                 Spec(".rodata", BPF_MAP_TYPE_ARRAY, 4, 8, 1), Spec("outs", BPF_MAP_TYPE_DEVMAP, 4, 4, 4)};
  object.maps[2].flags = BPF_F_RDONLY_PROG;
  ProgramCode program;
  program.name = "hand";
  program.section = "xdp";
  program.code = code;
  object.programs = {program};
  return object;
}

struct Outcome {
  absl::Status status;  // of loading
  uint32_t verdict = 99;
  Fault fault;        // of the last packet that has one
  std::string text;   // of the fault
  std::string bytes;  // of the packets afterwards
  std::string maps;   // what maps hold afterwards, records of rings among it
  std::string sent;   // events and lines of bpf_trace_printk()
  std::string said;   // verdict, fault, and target where the verdict is redirect, of each packet
  bool compiler = true;
};

// How `code` is run.
struct Conditions {
  size_t bytes = 20;  // of the packet
  bool compile = false;
  bool at_start = false;  // the packet begins where its memory begins, instead of ending where that ends
  int packets = 1;
  bool burst = false;             // all in one call of compiled code
  size_t buffers = 1;             // of each packet: the first has 14 bytes and more, the others share the rest
  int place = 0;                  // maps, packets and state lie elsewhere for each number
  bool filled = false;            // keys 0 and 1 are in all maps that have any, and there is a route
  TraceFunction trace = nullptr;  // of an interpreted run
  void* trace_to = nullptr;
};

// A frame's description, for code over bursts.
struct Described {
  uint64_t before;
  uint8_t* buffer;
  uint16_t length;
  uint16_t offset;
};
inline constexpr FrameLayout kDescribed = {offsetof(Described, buffer), offsetof(Described, offset),
                                           offsetof(Described, length)};

// A packet in mbufs of nobody's pool, each buffer between pages that nobody may touch.
class Chained {
 public:
  Chained(const std::vector<uint8_t>& packet, const Conditions& conditions) : mbufs_(conditions.buffers, rte_mbuf{}) {
    size_t done = 0;
    for (size_t i = 0; i < mbufs_.size(); ++i) {
      const size_t left = packet.size() - done;
      const size_t after = mbufs_.size() - i - 1;
      const size_t bytes = after == 0 ? left : i == 0 ? 14 + (left - 14 - after) / 3 : 1 + (left - after) / 2;
      memories_.push_back(*MapMemory::Create("packet", kBuffer));
      rte_mbuf& mbuf = mbufs_[i];
      mbuf.buf_addr = memories_.back().data();
      mbuf.buf_len = kBuffer;
      mbuf.data_off = static_cast<uint16_t>(conditions.at_start ? 0 : kBuffer - bytes);
      mbuf.data_len = static_cast<uint16_t>(bytes);
      mbuf.refcnt = 2;  // freed, it is still held here and asks for no pool
      mbuf.next = after == 0 ? nullptr : &mbufs_[i + 1];
      memcpy(rte_pktmbuf_mtod(&mbuf, void*), &packet[done], bytes);
      done += bytes;
    }
    mbufs_[0].nb_segs = static_cast<uint16_t>(mbufs_.size());
    mbufs_[0].pkt_len = static_cast<uint32_t>(packet.size());
  }

  void PointAt(RunState* state) {
    halfpage::PointAt(state, &mbufs_[0]);
    state->hard_start = static_cast<uint8_t*>(mbufs_[0].buf_addr);
    state->hard_end = state->hard_start + kBuffer;
    state->frame = &mbufs_[0];
    state->chain = &kMbufChain;
  }

  std::string Bytes(const RunState& state) {
    StoreEnds(state, &mbufs_[0]);
    std::string bytes;
    for (const rte_mbuf* part = &mbufs_[0]; part != nullptr; part = part->next) {
      bytes.append(rte_pktmbuf_mtod(part, const char*), part->data_len);
      bytes.push_back('|');
    }
    return bytes;
  }

 private:
  static constexpr uint16_t kBuffer = 4096;
  std::vector<rte_mbuf> mbufs_;
  std::vector<MapMemory> memories_;
};

// What is in a map, and what is read from it and gone.
inline std::string MapBytes(Map* map) {
  std::string text;
  const MapSpec& spec = map->spec();
  const auto append = [&text](const uint8_t* bytes, uint64_t size) {
    text.append(reinterpret_cast<const char*>(bytes), size);
  };
  std::vector<uint8_t> key(spec.key_size);
  std::vector<uint8_t> value(spec.value_size);
  switch (spec.type) {
    case BPF_MAP_TYPE_DEVMAP:
    case BPF_MAP_TYPE_PROG_ARRAY:
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
      break;
    case BPF_MAP_TYPE_RINGBUF: {
      auto* const ring = static_cast<RingMap*>(map);
      text = absl::StrCat(ring->Query(BPF_RB_PROD_POS), ":");
      const auto take = [](void* to, const RingMap&, const uint8_t* data, uint64_t size) {
        static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), size);
      };
      ring->Read(take, &text);
      absl::StrAppend(&text, ":", ring->Query(BPF_RB_AVAIL_DATA));
      break;
    }
    case BPF_MAP_TYPE_QUEUE:
    case BPF_MAP_TYPE_STACK:
      while (static_cast<KeylessMap*>(map)->Next(value.data(), true) == 0) append(value.data(), value.size());
      break;
    case BPF_MAP_TYPE_BLOOM_FILTER:
      for (value[0] = 0; value[0] < 80; ++value[0]) {
        text += static_cast<KeylessMap*>(map)->Next(value.data(), false) == 0 ? '1' : '0';
      }
      break;
    default:
      for (bool more = map->NextKey(nullptr, key.data()); more; more = map->NextKey(key.data(), key.data())) {
        append(key.data(), key.size());
        append(map->Lookup(key.data(), 0), value.size());
      }
  }
  return text;
}

inline std::string MapBytes(const MapSet& maps) {
  std::string text;
  for (const auto& map : maps.maps()) text += MapBytes(map.get());
  return text;
}

// Puts something under the keys 0 and 1, or prefixes as long, of maps that take values, and into those without keys.
inline void FillMaps(const MapSet& maps) {
  for (const auto& map : maps.maps()) {
    const MapSpec& spec = map->spec();
    if (spec.type == BPF_MAP_TYPE_PROG_ARRAY || spec.type == BPF_MAP_TYPE_RINGBUF) continue;
    if (spec.key_size == 0) {
      for (const uint8_t byte : {3, 0}) {
        const std::vector<uint8_t> value(spec.value_size, byte);
        static_cast<KeylessMap*>(map.get())->Push(value.data(), BPF_ANY);
      }
      continue;
    }
    std::vector<uint8_t> key(spec.key_size);
    const std::vector<uint8_t> value(spec.value_size, 3);
    for (key[0] = 0; key[0] < 2; ++key[0]) map->UpdateAll(key.data(), value.data(), BPF_ANY);
  }
}

// What programs send, as text.
inline void TakeLine(void* to, const char* line) {
  absl::StrAppend(static_cast<std::string*>(to), line, "\n");
}
inline void TakeEvent(void* to, const Map& map, const uint8_t* data, uint64_t size, const uint8_t* packet,
                      uint64_t packet_bytes) {
  auto* const text = static_cast<std::string*>(to);
  absl::StrAppend(text, map.spec().name, " ");
  text->append(reinterpret_cast<const char*>(data), size);
  text->append(reinterpret_cast<const char*>(packet), packet_bytes);
}

// What became of a packet.
inline void Note(const RunState& state, uint32_t verdict, const RedirectTarget& target, Outcome* outcome) {
  absl::StrAppend(&outcome->said, std::min<uint32_t>(verdict, kUnknownVerdict), " ",
                  static_cast<int>(state.fault.kind));
  if (verdict == 4 && !state.Failed()) {
    absl::StrAppend(&outcome->said, " to ", target.key, " ", target.flags, target.map != nullptr ? " of a map" : "");
  }
  outcome->said += "; ";
  if (state.Failed()) outcome->fault = state.fault;
}

inline void RunOne(const Program& program, RunState* state, const Conditions& conditions, Outcome* outcome) {
  outcome->verdict = conditions.trace == nullptr ? program.Run(state)
                                                 : program.RunTraced(state, conditions.trace, conditions.trace_to);
  Note(*state, outcome->verdict, state->redirect, outcome);
}

inline void RunEach(const Program& program, RunState* state, const std::vector<Described>& frames,
                    const Conditions& conditions, Outcome* outcome) {
  for (const Described& frame : frames) {
    if (conditions.buffers > 1) {
      const uint8_t* const data = frame.buffer + frame.offset;
      Chained chained({data, data + frame.length}, conditions);
      chained.PointAt(state);
      RunOne(program, state, conditions, outcome);
      outcome->bytes += chained.Bytes(*state);
      continue;
    }
    state->hard_start = frame.buffer;
    state->hard_end = frame.buffer + 4096;
    state->data = state->data_meta = frame.buffer + frame.offset;
    state->data_end = state->data + frame.length;
    RunOne(program, state, conditions, outcome);
    outcome->bytes.append(state->data, state->data_end);
  }
}

inline void RunAtOnce(const Program& program, RunState* state, std::vector<Described>& frames, Outcome* outcome) {
  std::vector<void*> pointers;
  for (Described& frame : frames) pointers.push_back(&frame);
  std::vector<uint8_t> verdicts(frames.size(), 99);
  std::vector<RedirectTarget> targets(frames.size(), {nullptr, 0, RedirectTarget::kNone});
  program.Begin(state);
  for (size_t done = 0; done < frames.size();) {
    const size_t before = done;
    done += program.RunBurst(state, &pointers[done], frames.size() - done, &verdicts[done], &targets[done]);
    ASSERT_GT(done, before);
    RunState good;
    for (size_t i = before; i < done; ++i) {
      Note(i + 1 == done ? *state : good, verdicts[i], targets[i], outcome);
    }
  }
  for (const Described& frame : frames) {
    outcome->bytes.append(frame.buffer + frame.offset, frame.buffer + frame.offset + frame.length);
  }
}

// Loads and runs the first program of `object`. Memory of packets and maps lies between pages that nobody may touch.
inline Outcome RunObject(const Object& object, const Conditions& conditions = {}) {
  Outcome outcome;
  const auto beside = MapMemory::Create("beside", uint64_t{4096} * static_cast<uint64_t>(1 + 37 * conditions.place));
  auto maps = MapSet::Create(object, 1);
  outcome.status = maps.status();
  if (!maps.ok()) return outcome;
  auto program = Program::Create(object.programs[0], object, maps->get());
  outcome.status = program.status();
  if (!program.ok()) return outcome;
  const FrameLayout* layout = conditions.burst ? &kDescribed : nullptr;
  if (conditions.compile && !Compile(program->get(), layout).ok()) outcome.compiler = false;
  std::vector<MapMemory> memories;
  std::vector<Described> frames;
  for (int number = 0; number < conditions.packets; ++number) {
    memories.push_back(*MapMemory::Create("packet", 4096));
    const size_t offset = conditions.at_start ? 0 : 4096 - conditions.bytes;
    uint8_t* const buffer = memories.back().data();
    for (size_t i = 0; i < conditions.bytes; ++i) buffer[offset + i] = static_cast<uint8_t>(i * 37 + number * 11);
    frames.push_back({0, buffer, static_cast<uint16_t>(conditions.bytes), static_cast<uint16_t>(offset)});
  }
  // One of several in a row: stacks lie elsewhere too.
  const auto states = std::make_unique<RunState[]>(static_cast<size_t>(1 + conditions.place));
  RunState* const state = &states[static_cast<size_t>(conditions.place)];
  state->print = TakeLine;
  state->event = TakeEvent;
  state->print_to = &outcome.sent;
  Surroundings surroundings;
  if (conditions.filled) {
    EXPECT_TRUE(surroundings.AddRoute("10.0.0.0/8 dev 3 src 02:00:00:00:00:01 dst 02:00:00:00:00:02").ok());
    FillMaps(**maps);
    state->surroundings = &surroundings;
  }
  (*maps)->epochs().Enter(0);
  if (conditions.burst && conditions.buffers == 1 && (*program)->runs_bursts()) {
    RunAtOnce(**program, state, frames, &outcome);
  } else {
    RunEach(**program, state, frames, conditions, &outcome);
  }
  (*maps)->epochs().Leave(0);
  outcome.maps = MapBytes(**maps);
  state->fault = outcome.fault;
  if (state->Failed()) outcome.text = FaultText(**program, state->fault);
  return outcome;
}

inline Outcome RunCode(const Code& code, const Conditions& conditions = {}) {
  return RunObject(ObjectWith(code), conditions);
}

// What differs between two runs, "" for nothing.
inline std::string Difference(const Outcome& a, const Outcome& b) {
  std::string text;
  const auto hold = [&text](const char* what, const auto& one, const auto& other) {
    if (one != other) absl::StrAppend(&text, what, " ", one, " and ", other, "; ");
  };
  const auto hold_bytes = [&text](const char* what, const std::string& one, const std::string& other) {
    if (one == other) return;
    absl::StrAppend(&text, what, " ", absl::BytesToHexString(one), " and ", absl::BytesToHexString(other), "; ");
  };
  hold("fault", static_cast<int>(a.fault.kind), static_cast<int>(b.fault.kind));
  if (b.fault.kind != FaultKind::kNone) {
    hold("instruction", a.fault.instruction, b.fault.instruction);
    // Far from the packet it was no address of it, and the two runs' packets lie in different places.
    if (b.fault.kind == FaultKind::kPacket && std::abs(b.fault.from_data) < 1 << 20) {
      hold("byte", a.fault.from_data, b.fault.from_data);
      hold("packet of", a.fault.packet_bytes, b.fault.packet_bytes);
    }
  }
  hold("said", a.said, b.said);
  hold_bytes("bytes", a.bytes, b.bytes);
  hold_bytes("maps", a.maps, b.maps);
  hold_bytes("sent", a.sent, b.sent);
  return text;
}

// Whether what the program leaves behind follows from where things lie in memory: programs may keep addresses, as in a
// kernel that trusts who loads them, and two runs of the interpreter differ then.
inline bool DependsOnAddresses(const Object& object, Conditions conditions) {
  conditions.compile = conditions.burst = false;
  conditions.place = 0;
  const Outcome first = RunObject(object, conditions);
  for (conditions.place = 1; conditions.place < 8; ++conditions.place) {
    if (!Difference(RunObject(object, conditions), first).empty()) return true;
  }
  return false;
}

// Same verdict, fault, instruction, bytes and maps, whoever runs it: a packet, and several in one burst. False where
// there is no compiler to ask. `by_address` counts programs that differ because of where things lie; null: none may.
inline bool ExpectCompiledTheSame(const Object& object, Conditions conditions, int* by_address = nullptr) {
  const int packets = std::max(5, conditions.packets);
  for (const bool burst : {false, true}) {
    conditions.packets = burst ? packets : 1;
    conditions.compile = conditions.burst = false;
    const Outcome interpreted = RunObject(object, conditions);
    if (!interpreted.status.ok()) return true;
    conditions.compile = true;
    conditions.burst = burst;
    const Outcome compiled = RunObject(object, conditions);
    if (!compiled.compiler) return false;
    const std::string difference = Difference(compiled, interpreted);
    if (difference.empty()) continue;
    if (by_address == nullptr || !DependsOnAddresses(object, conditions)) {
      ADD_FAILURE() << "compiled and interpreted differ: " << difference << interpreted.text << "; " << compiled.text;
      return true;
    }
    ++*by_address;
    return true;
  }
  return true;
}

inline bool ExpectCompiledTheSame(const Code& code, const Conditions& conditions) {
  return ExpectCompiledTheSame(ObjectWith(code), conditions);
}

// r2 = data, r3 = data_end
inline const Code kPacket = {Load(BPF_W, 2, 1, 0), Load(BPF_W, 3, 1, 4)};

inline Code With(std::vector<Code> parts) {
  Code code;
  for (const Code& part : parts) code.insert(code.end(), part.begin(), part.end());
  return code;
}
inline const Code kPass = {Mov(0, 2), Exit()};

// r0 = lookup of key 0 in map `index`.
inline Code Lookup(int index) {
  return {StoreImm(BPF_W, 10, -4, 0), Copy(2, 10), Add(2, -4), MapOf(1, index), Half(), Call(BPF_FUNC_map_lookup_elem)};
}

}  // namespace halfpage::bpf
