// An XDP object file (ELF), read without a system call: what its programs and maps are. Nothing runs here.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xdp_emul/program_hook.h"

namespace halfpage::bpf {

// A number or a run of bytes inside a key or value, as the object's types (BTF) name it.
struct ValueField {
  std::string name;  // "addr.port", "slots[2]"; empty where key or value is nothing but this
  uint32_t first_bit = 0;
  uint32_t bits = 0;
  bool is_signed = false;
  bool is_bytes = false;  // told in hexadecimal: byte arrays, addresses, numbers in network order
};
using ValueLayout = std::vector<ValueField>;

// A map as its object defines it.
struct MapSpec {
  std::string name;
  bpf_map_type type = BPF_MAP_TYPE_UNSPEC;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  uint32_t max_entries = 0;
  uint32_t flags = 0;  // BPF_F_*
  uint64_t extra = 0;  // of a bloom filter: how many hashes
  static constexpr uint32_t kNoLock = UINT32_MAX;
  uint32_t lock_offset = kNoLock;        // of the bpf_spin_lock in its values, kNoLock where there is none
  bool internal = false;                 // holds global variables: one entry, .data, .rodata, .bss
  std::string initial;                   // bytes of the global variables; empty for other maps
  std::shared_ptr<MapSpec> inner;        // what a map of maps holds
  ValueLayout key_fields, value_fields;  // empty where the object does not say
  std::vector<std::string> targets;      // by slot: the map or program that the object puts there, "" for none
};

// One program of the object with the functions it calls behind it, calls and map references resolved: an LD_IMM64 with
// source register BPF_PSEUDO_MAP_IDX or BPF_PSEUDO_MAP_IDX_VALUE holds the index of the map in Object::maps.
struct ProgramCode {
  std::string name;
  std::string section;
  ProgramHook hook = ProgramHook::kDevice;
  bool frags = false;  // section xdp.frags: may be shown frames of several pieces
  std::vector<bpf_insn> code;
};

// What a program asks a running kernel for: where a way leads there, the program is refused.
struct Missing {
  std::string what;
  std::string mend;
};

struct Object {
  std::string path;
  std::vector<MapSpec> maps;
  std::vector<ProgramCode> programs;
  // What programs ask a running kernel for, by the number of the call that stands in the instruction's place
  // (core_relocations.h).
  std::vector<Missing> missing;
};

// Reads `path`. Programs of other kinds than XDP are left out.
//
// Errors, each with the file's name and what to do: NotFound and PermissionDenied for the file; InvalidArgument for
// what is no BPF object, holds no XDP program, or needs what only a kernel has (kernel functions, types of a running
// kernel). Set-up code, one thread at a time (libbpf's log is redirected meanwhile).
absl::StatusOr<Object> ReadObject(const std::string& path);

// The program called `name`, or the only one where `name` is empty. Errors: InvalidArgument that lists what there is.
absl::StatusOr<const ProgramCode*> FindProgram(const Object& object, absl::string_view name);

}  // namespace halfpage::bpf
