// What an object asks of a running kernel: of its types (CO-RE), and of its functions and variables (ksyms).
#pragma once

#include <vector>

#include "xdp_emul/bpf/elf_image.h"
#include "xdp_emul/bpf/object.h"

namespace halfpage::bpf {

// The number of a call that no helper has: it stands where an instruction needs what only a kernel knows, as libbpf
// puts one where a kernel lacks what is asked for. Behind a question whether it is there, no way leads to it.
inline constexpr uint32_t kFirstMissing = 0x0bad0000;

// Answers in the image what is asked, as libbpf would where no kernel's type is known: whether a type, field or value
// exists (no), and calls kFirstMissing + i where its place, size or number matters; text i is what to tell who gets
// there. Packet headers, xdp_md and the types of helpers are what they were when clang saw them. What is damaged is
// left to libbpf.
void ResolveCoreRelocations(ElfImage* image, std::vector<Missing>* missing);

// Does the same for what SEC(".ksyms") declares: the address of what is __weak is 0, as where a kernel lacks it, and
// other uses are calls kFirstMissing + i. libbpf would leave calls without a name, and look variables up in
// /proc/kallsyms.
void ResolveKernelSymbols(ElfImage* image, std::vector<Missing>* missing);

}  // namespace halfpage::bpf
