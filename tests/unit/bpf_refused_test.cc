// Each refusal says what, where, and how to mend it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/bpf_outcome.h"

namespace halfpage::bpf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Told {
  const char* program;  // of refused.c
  const char* what;
  const char* mend;
};

// The table of README.md.
constexpr Told kNotThere[] = {
    {"timer", "calls bpf_timer_init (169)", "bpf_ktime_get_ns()"},
    {"dynptr", "calls bpf_dynptr_from_mem (197)", "use pointers"},
    {"reserve_dynptr", "calls bpf_ringbuf_reserve_dynptr (198)", "bpf_ringbuf_reserve()"},
    {"drain", "calls bpf_user_ringbuf_drain (209)", "put what users say into an array"},
    {"make_cookie", "calls bpf_tcp_gen_syncookie (110)", "bpf_tcp_raw_gen_syncookie_ipv4()"},
    {"check_cookie", "calls bpf_tcp_check_syncookie (100)", "bpf_tcp_raw_gen_syncookie_ipv4()"},
    {"udp_socket", "calls bpf_sk_lookup_udp (85)", "keep addresses and ports in a hash map"},
    {"tcp_socket", "calls bpf_sk_lookup_tcp (84)", "keep addresses and ports in a hash map"},
    {"kernel_memory", "calls bpf_probe_read_kernel (113)", "read the packet or a map"},
    {"mtu", "calls bpf_check_mtu (163)", "bpf_xdp_get_buff_len()"},
    {"many_values", "calls bpf_trace_vprintk (177)", "at most three values"},
    {"kfunc", "calls `bpf_xdp_metadata_rx_timestamp`, a function of the kernel (kfunc)",
     "declare it __weak and ask `if (bpf_xdp_metadata_rx_timestamp)` before"},
    {"weak_kfunc", "calls `bpf_xdp_metadata_rx_hash`, a function of the kernel (kfunc)",
     "; ask `if (bpf_xdp_metadata_rx_hash)` before"},
    {"ksym", "refers to `bpf_prog_active`, a variable of the kernel (ksym)", "declare it __weak"},
    {"untyped_ksym", "refers to `nobody_has_this`, a variable of the kernel (ksym)", "helpers and maps only"},
};

TEST(Refused, WhatReadmeSaysIsNotThereByNamePlaceAndWayOut) {
  const std::string path = HALFPAGE_BPF_OBJECTS "/refused.bpf.o";
  const auto object = ReadObject(path);
  ASSERT_TRUE(object.ok()) << object.status();
  auto maps = *MapSet::Create(*object, 1);
  for (const Told& told : kNotThere) {
    const auto program = Program::Create(**FindProgram(*object, told.program), *object, maps.get());
    EXPECT_THAT(std::string(program.status().message()),
                AllOf(StartsWith(absl::StrCat(path, ": program ", told.program, ": instruction ")),
                      HasSubstr(told.what), HasSubstr(told.mend)));
  }
  EXPECT_TRUE(Program::Create(**FindProgram(*object, "asks_before"), *object, maps.get()).ok());
  EXPECT_EQ(object->programs.size(), std::size(kNotThere) + 1);
}

TEST(Refused, MapsThatAreNotThereByNameAndWayOut) {
  EXPECT_THAT(std::string(ReadObject(HALFPAGE_BPF_OBJECTS "/old_maps.bpf.o").status().message()),
              AllOf(HasSubstr("old_maps.bpf.o: section `maps` defines counters"), HasSubstr("SEC(\".maps\")")));
  Object object = ObjectWith(kPass);
  object.maps.push_back(Spec("commands", BPF_MAP_TYPE_USER_RINGBUF, 0, 0, 4096));
  EXPECT_THAT(std::string(MapSet::Create(object, 1).status().message()),
              AllOf(HasSubstr("hand.o: map commands is of type user_ringbuf"), HasSubstr("; use array")));
}

struct Wrong {
  const char* what;
  const char* mend;
  Code code;
};

// Nine functions, each of which calls the next.
Code CallsDownwards() {
  Code code;
  for (int i = 0; i < 8; ++i) code = With({code, {CallLocal(1), Exit()}});
  return With({code, kPass});
}

TEST(Refused, CodeThatCannotRunByPlaceAndWayOut) {
  const Wrong wrong[] = {
      {"r10 is the frame pointer", "; copy it into another", With({{Load(BPF_DW, 10, 10, -8)}, kPass})},
      {"opcode 0xe7", "; build the object again with clang", With({{Raw(0xe7, 0, 0, 0, 0)}, kPass})},
      {"shifts 32 bits by 32", "; shift by 0 to 31",
       With({{Mov(1, 5), Raw(BPF_ALU | BPF_LSH | BPF_K, 1, 0, 0, 32)}, kPass})},
      {"a 64-bit constant of kind 1", "; refer to maps by the names",
       With({{Raw(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, 5), Half()}, kPass})},
      {"refers to map 77, and the object has 4", "; build the object again", With({{MapOf(1, 77), Half()}, kPass})},
      {"calls a function at 78, where none begins", "; build the object again", With({{CallLocal(77)}, kPass})},
      {"recursion", "; write a loop", {CallLocal(1), Exit(), CallLocal(-1), Exit()}},
      {"deeper than 8 functions", "; make some of them static __always_inline", CallsDownwards()},
      {"runs over its end", "; return a verdict", {Mov(0, 2)}},
      {"r3 holds nothing", "; give the variable a value", With({{Mov(2, 0), AddReg(2, 3)}, kPass})},
      {"r0 holds nothing where the function ends", "; put the verdict into it", {Exit()}},
      {"where the program ends: a verdict is a number", "; return XDP_PASS", {Copy(0, 10), Exit()}},
      {"takes the address of byte 0 of map table", "; look the value up", With({{ValueOf(1, 1), Half()}, kPass})},
      {"r3 holds the packet's end, which cannot be calculated with", "; calculate with a pointer to the packet",
       With({kPacket, {Add(3, 8)}, kPass})},
      {"r2 holds a packet pointer, of which this leaves no pointer", "; add a number to it",
       With({kPacket, {Raw(BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, 7)}, kPass})},
      {"r2 holds a scalar, no pointer", "; load data from the context",
       With({{Mov(2, 4096), Load(BPF_DW, 0, 2, 0)}, kPass})},
      {"writes 4 bytes at 0 of xdp_md", "; its fields are read only", With({{StoreImm(BPF_W, 1, 0, 0)}, kPass})},
      {"sign-extended", "; read it as __u32", With({{Raw(BPF_LDX | 0x80 | BPF_W, 2, 1, 12, 0)}, kPass})},
      {"egress_ifindex", "; put the program into SEC(\"xdp/devmap\")", With({{Load(BPF_W, 2, 1, 20)}, kPass})},
      {"reads 8 bytes at -520 of the stack", "; stay inside the variable", With({{Load(BPF_DW, 2, 10, -520)}, kPass})},
      {"writes to .rodata, which is read only", "; leave away its const",
       With({{ValueOf(1, 2), Half(), StoreImm(BPF_W, 1, 0, 1)}, kPass})},
      {"at 4 of a value of map .rodata, which has 8", "; stay inside the value",
       With({{ValueOf(1, 2), Half(), Load(BPF_DW, 2, 1, 4)}, kPass})},
      {"r1 holds a map, which points at nothing", "; access the packet",
       With({{MapOf(1, 0), Half(), Load(BPF_DW, 2, 1, 0)}, kPass})},
      {"atomics work on map values and the stack", "; load, change and store",
       With({kPacket, {Mov(4, 1), Raw(BPF_STX | BPF_ATOMIC | BPF_W, 2, 4, 0, BPF_ADD)}, kPass})},
      {"map numbers is of type array, which bpf_redirect_map does not take",
       "; give it one of type devmap, cpumap, xskmap, devmap_hash",
       With({{MapOf(1, 0), Half(), Mov(2, 0), Mov(3, 0), Call(BPF_FUNC_redirect_map)}, kPass})},
      {"r1 holds a scalar as argument 1 of bpf_map_lookup_elem", "; it takes a map",
       With({{Mov(1, 4096), Mov(2, 0), Call(BPF_FUNC_map_lookup_elem)}, kPass})},
      {"r2 holds a scalar as argument 2 of bpf_map_lookup_elem", "; it takes a pointer to a key",
       With({{MapOf(1, 0), Half(), Mov(2, 4096), Call(BPF_FUNC_map_lookup_elem)}, kPass})},
      {"4 bytes at -2 of the stack as argument 2", "; make the variable as long",
       With({{MapOf(1, 0), Half(), Copy(2, 10), Add(2, -2), Call(BPF_FUNC_map_lookup_elem)}, kPass})},
      {"calls helper 9999", "; use one of those that README.md", With({{Call(9999)}, kPass})},
      {"the program never ends", "; let its loops end", {Mov(0, 1), Goto(-1)}},
  };
  for (const Wrong& one : wrong) {
    SCOPED_TRACE(one.what);
    EXPECT_THAT(std::string(RunCode(one.code).status.message()),
                AllOf(StartsWith("hand.o: program hand: instruction "), HasSubstr(one.what), HasSubstr(one.mend)));
  }
  const Code many(kMostInstructions + 1, Mov(0, 2));
  EXPECT_THAT(std::string(RunCode(many).status.message()),
              AllOf(HasSubstr("program hand has"), HasSubstr("; go on in")));
  EXPECT_THAT(std::string(RunCode({}).status.message()), HasSubstr("hand is empty; let its function return"));
}

}  // namespace
}  // namespace halfpage::bpf
