// What an object's types (BTF) say of the keys and values of its maps.
#pragma once

#include <cstdint>
#include <string>

#include "xdp_emul/bpf/object.h"

struct btf;

namespace halfpage::bpf {

// The fields of type `id` in the order of their places; empty for no type, for one whose size is not `bytes`, and for
// one with more than 256 fields, which is easier read as bytes.
ValueLayout ReadLayout(const btf* types, uint32_t id, uint32_t bytes);

// Where values of type `id` have their bpf_spin_lock; MapSpec::kNoLock where they have none.
uint32_t LockOffset(const btf* types, uint32_t id, uint32_t bytes);

// "{packets: 5, addr.port: 0035}", or "5" where there is one field without a name. Empty for an empty layout.
std::string FieldsText(const ValueLayout& layout, const uint8_t* bytes);

}  // namespace halfpage::bpf
