// What an object asks of a running kernel's types (CO-RE).
#pragma once

#include <string>
#include <vector>

#include "xdp_emul/bpf/elf_image.h"

namespace halfpage::bpf {

// The number of a call that no helper has: it stands where an instruction needs what only a kernel knows, as libbpf
// puts one where a kernel lacks what is asked for. Behind a question whether it is there, no way leads to it.
inline constexpr uint32_t kFirstMissing = 0x0bad0000;

// Answers in the image what is asked, as libbpf would where no kernel's type is known: whether a type, field or value
// exists (no), and calls kFirstMissing + i where its place, size or number matters; text i is what to tell who gets
// there. Packet headers, xdp_md and the types of helpers are what they were when clang saw them. What is damaged is
// left to libbpf.
std::vector<std::string> ResolveCoreRelocations(ElfImage* image);

}  // namespace halfpage::bpf
