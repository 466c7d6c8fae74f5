// A program as it is run: decoded instructions, one for each slot of the object's code, so that numbers agree with
// llvm-objdump and bpftool.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace halfpage::bpf {

// Instructions that Debian's kernel headers do not name yet (-mcpu=v4).
inline constexpr uint8_t kModeSignExtended = 0x80;  // BPF_MEMSX

// What a memory access is held against before it happens.
enum class Check : uint8_t {
  kNone,     // proven to be inside, or no memory access
  kContext,  // a field of xdp_md: `imm` is its offset
  kPacket,   // data_meta to data_end
  kStack,    // the running function's own 512 bytes
  kValue,    // an element of map `map`
  kAny,      // whatever the pointer turns out to be: packet, stack of a caller, value of any map, context
};

// What an LD_IMM64 loads.
enum class Constant : uint8_t { kNumber, kMap, kMapValue, kFunction };

struct Instruction {
  uint8_t code = 0;  // opcode as in the object
  uint8_t dst = 0;
  uint8_t src = 0;
  Check check = Check::kAny;              // what was not looked at, because no way leads there, is not trusted
  Constant constant = Constant::kNumber;  // of LD_IMM64
  uint8_t unproven = 0;  // of a helper call: bit i is set where argument i must be checked when it happens
  int16_t map = -1;      // index of the map that LD_IMM64 names or that kValue and a helper refer to
  int32_t off = 0;       // offset of a memory access, or the target of a jump or call as an index
  int64_t imm = 0;       // immediate, sign-extended; all 64 bits of LD_IMM64; offset into a map's value
};

// Bytes that a load, store or atomic operation of opcode `code` moves.
inline uint32_t AccessBytes(uint8_t code) {
  switch (BPF_SIZE(code)) {
    case BPF_B:
      return 1;
    case BPF_H:
      return 2;
    case BPF_W:
      return 4;
    default:
      return 8;
  }
}

// Whether it may lead to another instruction than the next one, whose index `off` is then: no call, no exit.
inline bool IsJump(const Instruction& insn) {
  const bool jumps = BPF_CLASS(insn.code) == BPF_JMP || BPF_CLASS(insn.code) == BPF_JMP32;
  return jumps && BPF_OP(insn.code) != BPF_CALL && BPF_OP(insn.code) != BPF_EXIT;
}

// A function: instructions [begin, end).
struct Function {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t stack = 0;           // bytes of stack that it uses, a multiple of 8
  bool stack_escapes = false;   // somebody but itself and the helpers it calls may use its stack
  bool changes_packet = false;  // it or what it calls moves data or data_end
  bool reachable = false;
};

struct Image {
  std::string name;
  std::vector<Instruction> code;
  std::vector<bpf_insn> raw;        // as the object has it, for printing
  std::vector<Function> functions;  // by `begin`; the first is the program itself
  uint32_t height = 0;              // functions that may be running inside one another, callbacks included
  bool writes_packet = false;       // some instruction may write into the packet
  bool behind_devmap = false;       // of section xdp/devmap: has an egress_ifindex

  // The function that holds instruction `index`.
  const Function& FunctionOf(uint32_t index) const;
};

// "3: r1 = *(u32 *)(r2 + 4)": the instruction as the kernel's own tools print it.
std::string Disassemble(const Image& image, uint32_t index);

}  // namespace halfpage::bpf
