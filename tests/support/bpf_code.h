// BPF instructions by hand, for programs that no compiler would write.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halfpage::bpf {

using Code = std::vector<bpf_insn>;

inline bpf_insn Raw(int code, int dst, int src, int off, int imm) {
  bpf_insn insn = {};
  insn.code = static_cast<uint8_t>(code);
  insn.dst_reg = dst & 15;
  insn.src_reg = src & 15;
  insn.off = static_cast<int16_t>(off);
  insn.imm = imm;
  return insn;
}
inline bpf_insn Mov(int dst, int imm) {
  return Raw(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}
inline bpf_insn Copy(int dst, int src) {
  return Raw(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}
inline bpf_insn Add(int dst, int imm) {
  return Raw(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm);
}
inline bpf_insn AddReg(int dst, int src) {
  return Raw(BPF_ALU64 | BPF_ADD | BPF_X, dst, src, 0, 0);
}
inline bpf_insn Load(int size, int dst, int src, int off) {
  return Raw(BPF_LDX | BPF_MEM | size, dst, src, off, 0);
}
inline bpf_insn Store(int size, int dst, int src, int off) {
  return Raw(BPF_STX | BPF_MEM | size, dst, src, off, 0);
}
inline bpf_insn StoreImm(int size, int dst, int off, int imm) {
  return Raw(BPF_ST | BPF_MEM | size, dst, 0, off, imm);
}
inline bpf_insn Goto(int off) {
  return Raw(BPF_JMP | BPF_JA, 0, 0, off, 0);
}
inline bpf_insn JumpEq(int dst, int imm, int off) {
  return Raw(BPF_JMP | BPF_JEQ | BPF_K, dst, 0, off, imm);
}
inline bpf_insn JumpGt(int dst, int src, int off) {
  return Raw(BPF_JMP | BPF_JGT | BPF_X, dst, src, off, 0);
}
inline bpf_insn Call(int helper) {
  return Raw(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}
inline bpf_insn CallLocal(int off) {
  return Raw(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, off);
}
inline bpf_insn Exit() {
  return Raw(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}
// r`dst` = map `index` of the object; the second half follows.
inline bpf_insn MapOf(int dst, int index) {
  return Raw(BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_IDX, 0, index);
}
inline bpf_insn ValueOf(int dst, int index) {
  return Raw(BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_IDX_VALUE, 0, index);
}
inline bpf_insn Half(int imm = 0) {
  return Raw(0, 0, 0, 0, imm);
}
// r`dst` = the address of function `function`, for Linked(); the second half follows.
inline bpf_insn FunctionOf(int dst, int function) {
  return Raw(BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_FUNC, 0, function);
}

// Functions one behind the other, the program itself first. Where CallLocal() and FunctionOf() have a place in
// `functions`, the distance is put.
inline Code Linked(const std::vector<Code>& functions) {
  std::vector<int> begins;
  Code code;
  for (const Code& function : functions) {
    begins.push_back(static_cast<int>(code.size()));
    code.insert(code.end(), function.begin(), function.end());
  }
  for (std::size_t i = 0; i < code.size(); ++i) {
    bpf_insn& insn = code[i];
    const bool constant = insn.code == (BPF_LD | BPF_IMM | BPF_DW);
    const bool refers = (insn.code == (BPF_JMP | BPF_CALL) && insn.src_reg == BPF_PSEUDO_CALL) ||
                        (constant && insn.src_reg == BPF_PSEUDO_FUNC);
    if (refers && static_cast<std::size_t>(insn.imm) < begins.size()) {
      insn.imm = begins[static_cast<std::size_t>(insn.imm)] - static_cast<int>(i) - 1;
    }
    if (constant) ++i;
  }
  return code;
}

}  // namespace halfpage::bpf
