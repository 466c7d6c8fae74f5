#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xdp_emul/bpf/core_relocations.h"
#include "xdp_emul/bpf/instruction.h"

namespace halfpage::bpf {
namespace {

const char* SizeName(uint8_t code) {
  switch (BPF_SIZE(code)) {
    case BPF_B:
      return "u8";
    case BPF_H:
      return "u16";
    case BPF_W:
      return "u32";
    default:
      return "u64";
  }
}

const char* Operator(uint8_t code) {
  static constexpr const char* kArithmetic[] = {
      "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "neg", "%=", "^=", "=", "s>>=", "end"};
  static constexpr const char* kJumps[] = {"goto", "==",   ">",    ">=", "&",  "!=", "s>",
                                           "s>=",  "call", "exit", "<",  "<=", "s<", "s<="};
  const uint8_t operation = BPF_OP(code) >> 4;
  if (operation > 13) return "?";
  const bool jump = BPF_CLASS(code) == BPF_JMP || BPF_CLASS(code) == BPF_JMP32;
  return jump ? kJumps[operation] : kArithmetic[operation];
}

std::string Arithmetic(const bpf_insn& insn) {
  const char letter = BPF_CLASS(insn.code) == BPF_ALU64 ? 'r' : 'w';
  if (BPF_OP(insn.code) == BPF_NEG) return absl::StrFormat("%c%d = -%c%d", letter, insn.dst_reg, letter, insn.dst_reg);
  if (BPF_OP(insn.code) == BPF_END) {
    const char* name = letter == 'r' ? "bswap" : BPF_SRC(insn.code) == BPF_TO_BE ? "be" : "le";
    return absl::StrFormat("r%d = %s%d r%d", insn.dst_reg, name, insn.imm, insn.dst_reg);
  }
  if (BPF_SRC(insn.code) == BPF_K)
    return absl::StrFormat("%c%d %s %d", letter, insn.dst_reg, Operator(insn.code), insn.imm);
  return absl::StrFormat("%c%d %s %c%d", letter, insn.dst_reg, Operator(insn.code), letter, insn.src_reg);
}

std::string Jump(const bpf_insn& insn, uint32_t index) {
  if (BPF_OP(insn.code) == BPF_EXIT) return "exit";
  if (BPF_OP(insn.code) == BPF_CALL) {
    if (insn.src_reg == BPF_PSEUDO_CALL) return absl::StrCat("call ", index + 1 + insn.imm);
    if (static_cast<uint32_t>(insn.imm) >= kFirstMissing) return "what a kernel would fill in";
    return absl::StrCat("call helper#", insn.imm);
  }
  const bool wide = BPF_CLASS(insn.code) == BPF_JMP;
  if (BPF_OP(insn.code) == BPF_JA) return absl::StrCat("goto ", index + 1 + (wide ? insn.off : insn.imm));
  const char letter = wide ? 'r' : 'w';
  const std::string right =
      BPF_SRC(insn.code) == BPF_X ? absl::StrFormat("%c%d", letter, insn.src_reg) : absl::StrCat(insn.imm);
  return absl::StrFormat("if %c%d %s %s goto %d", letter, insn.dst_reg, Operator(insn.code), right,
                         index + 1 + insn.off);
}

std::string Store(const bpf_insn& insn) {
  const std::string place = absl::StrFormat("*(%s *)(r%d %+d)", SizeName(insn.code), insn.dst_reg, insn.off);
  if (BPF_CLASS(insn.code) == BPF_ST) return absl::StrFormat("%s = %d", place, insn.imm);
  if (BPF_MODE(insn.code) != BPF_ATOMIC) return absl::StrFormat("%s = r%d", place, insn.src_reg);
  if (insn.imm == BPF_XCHG) return absl::StrFormat("r%d = xchg %s, r%d", insn.src_reg, place, insn.src_reg);
  if (insn.imm == BPF_CMPXCHG) return absl::StrFormat("r0 = cmpxchg %s, r0, r%d", place, insn.src_reg);
  const auto operation = static_cast<uint8_t>(BPF_ALU64 | (insn.imm & 0xf0));
  return absl::StrFormat("lock %s %s r%d%s", place, Operator(operation), insn.src_reg,
                         insn.imm & BPF_FETCH ? " (fetch)" : "");
}

std::string Text(const Image& image, uint32_t index) {
  const bpf_insn& insn = image.raw[index];
  switch (BPF_CLASS(insn.code)) {
    case BPF_ALU:
    case BPF_ALU64:
      return Arithmetic(insn);
    case BPF_JMP:
    case BPF_JMP32:
      return Jump(insn, index);
    case BPF_LDX:
      return absl::StrFormat("r%d = *(%s *)(r%d %+d)", insn.dst_reg, SizeName(insn.code), insn.src_reg, insn.off);
    case BPF_ST:
    case BPF_STX:
      return Store(insn);
    default:
      break;
  }
  const Instruction& decoded = image.code[index];
  switch (decoded.constant) {
    case Constant::kMap:
      return absl::StrFormat("r%d = map[%d]", insn.dst_reg, decoded.map);
    case Constant::kMapValue:
      return absl::StrFormat("r%d = map[%d][0]%+d", insn.dst_reg, decoded.map, decoded.imm);
    case Constant::kFunction:
      return absl::StrFormat("r%d = function at %d", insn.dst_reg, decoded.off);
    default:
      return absl::StrFormat("r%d = 0x%x ll", insn.dst_reg, static_cast<uint64_t>(decoded.imm));
  }
}

}  // namespace

std::string Disassemble(const Image& image, uint32_t index) {
  if (index >= image.raw.size()) return absl::StrCat(index, ": ?");
  return absl::StrCat(index, ": ", Text(image, index));
}

}  // namespace halfpage::bpf
