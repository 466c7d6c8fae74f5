// Programs written by hand, run on a packet whose memory ends where it ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/bpf_code.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"

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
  Fault fault;
  std::string text;   // of the fault
  std::string bytes;  // of the packet afterwards
  std::string maps;   // values of the array and the hash afterwards
  bool compiler = true;
};

// How `code` is run.
struct Conditions {
  size_t bytes = 20;  // of the packet
  bool compile = false;
  bool at_start = false;  // the packet begins where its memory begins, instead of ending where that ends
};

inline std::string MapBytes(const MapSet& maps) {
  std::string text;
  for (const auto& map : maps.maps()) {
    if (map->spec().type == BPF_MAP_TYPE_DEVMAP) continue;
    std::vector<uint8_t> key(map->spec().key_size);
    for (bool more = map->NextKey(nullptr, key.data()); more; more = map->NextKey(key.data(), key.data())) {
      text.append(reinterpret_cast<const char*>(key.data()), key.size());
      text.append(reinterpret_cast<const char*>(map->Lookup(key.data(), 0)), map->spec().value_size);
    }
  }
  return text;
}

// Loads and runs `code`. Memory of packet and maps lies between pages that nobody may touch.
inline Outcome RunCode(const Code& code, const Conditions& conditions = {}) {
  Outcome outcome;
  const Object object = ObjectWith(code);
  auto maps = MapSet::Create(object, 1);
  EXPECT_TRUE(maps.ok()) << maps.status();
  auto program = Program::Create(object.programs[0], object, maps->get());
  outcome.status = program.status();
  if (!program.ok()) return outcome;
  if (conditions.compile && !Compile(program->get()).ok()) outcome.compiler = false;
  auto memory = MapMemory::Create("packet", 4096);
  auto state = std::make_unique<RunState>();
  state->hard_start = memory->data();
  state->hard_end = memory->data() + 4096;
  state->data = state->data_meta = conditions.at_start ? state->hard_start : state->hard_end - conditions.bytes;
  state->data_end = state->data + conditions.bytes;
  for (size_t i = 0; i < conditions.bytes; ++i) state->data[i] = static_cast<uint8_t>(i * 37);
  (*maps)->epochs().Enter(0);
  outcome.verdict = (*program)->Run(state.get());
  (*maps)->epochs().Leave(0);
  outcome.fault = state->fault;
  outcome.bytes.assign(state->data, state->data_end);
  outcome.maps = MapBytes(**maps);
  if (state->Failed()) outcome.text = FaultText(**program, state->fault);
  return outcome;
}

// Same verdict, fault, instruction, bytes and maps, whoever runs it. False where there is no compiler to ask.
inline bool ExpectCompiledTheSame(const Code& code, Conditions conditions) {
  conditions.compile = false;
  const Outcome interpreted = RunCode(code, conditions);
  if (!interpreted.status.ok()) return true;
  conditions.compile = true;
  const Outcome compiled = RunCode(code, conditions);
  if (!compiled.compiler) return false;
  EXPECT_EQ(compiled.fault.kind, interpreted.fault.kind) << interpreted.text << "; " << compiled.text;
  if (interpreted.fault.kind != FaultKind::kNone) {
    EXPECT_EQ(compiled.fault.instruction, interpreted.fault.instruction);
    // Far from the packet it was no address of it, and the two runs' packets lie in different places.
    if (interpreted.fault.kind == FaultKind::kPacket && std::abs(interpreted.fault.from_data) < 1 << 20) {
      EXPECT_EQ(compiled.fault.from_data, interpreted.fault.from_data);
    }
  }
  EXPECT_EQ(compiled.verdict, interpreted.verdict);
  EXPECT_EQ(compiled.bytes, interpreted.bytes);
  EXPECT_EQ(compiled.maps, interpreted.maps);
  return true;
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
