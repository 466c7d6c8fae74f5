#include "xdp_emul/bpf/value_layout.h"

#include <bpf/btf.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace halfpage::bpf {
namespace {

constexpr size_t kMostFields = 256;
constexpr int kDeepest = 16;

class LayoutReader {
 public:
  explicit LayoutReader(const btf* types) : types_(types) {}

  // False where a field has a type that cannot be told.
  bool Add(uint32_t id, const std::string& name, uint32_t first_bit, uint32_t bits, int depth) {
    bool network = false;
    const btf_type* type = Resolve(id, &network);
    if (type == nullptr || depth > kDeepest || layout_.size() > kMostFields) return false;
    if (bits == 0) bits = 8 * SizeOf(id);
    switch (btf_kind(type)) {
      case BTF_KIND_INT: {
        const bool is_signed = (btf_int_encoding(type) & BTF_INT_SIGNED) != 0;
        layout_.push_back({name, first_bit, bits, is_signed, network || bits > 64});
        return true;
      }
      case BTF_KIND_ENUM:
      case BTF_KIND_ENUM64:
      case BTF_KIND_PTR:
        layout_.push_back({name, first_bit, bits, false, false});
        return true;
      case BTF_KIND_ARRAY:
        return AddArray(*btf_array(type), name, first_bit, depth);
      case BTF_KIND_STRUCT:
      case BTF_KIND_UNION:
        return AddMembers(type, name, first_bit, depth);
      case BTF_KIND_DATASEC:
        return AddVariables(type, depth);
      default:
        return false;
    }
  }

  ValueLayout Take() { return std::move(layout_); }

 private:
  const char* NameAt(uint32_t offset) const {
    const char* name = btf__name_by_offset(types_, offset);
    return name == nullptr ? "" : name;
  }

  uint32_t SizeOf(uint32_t id) const {
    const int64_t size = btf__resolve_size(types_, id);
    return size > 0 && size <= INT32_MAX / 8 ? static_cast<uint32_t>(size) : 0;
  }

  // Behind typedefs, const and the like, of which some say that a number is in network order.
  const btf_type* Resolve(uint32_t id, bool* network) const {
    const btf_type* type = btf__type_by_id(types_, id);
    for (int i = 0; i < kDeepest && type != nullptr && (btf_is_mod(type) || btf_is_typedef(type)); ++i) {
      *network = *network || absl::StartsWith(NameAt(type->name_off), "__be");
      type = btf__type_by_id(types_, type->type);
    }
    return type;
  }

  bool AddBytes(const std::string& name, uint32_t first_bit, uint32_t bytes) {
    if (bytes != 0) layout_.push_back({name, first_bit, 8 * bytes, false, true});
    return true;
  }

  bool AddArray(const struct btf_array& array, const std::string& name, uint32_t first_bit, int depth) {
    const uint32_t each = SizeOf(array.type);
    if (each == 0 || array.nelems > UINT32_MAX / 8 / each) return false;
    if (each == 1) return AddBytes(name, first_bit, array.nelems);
    for (uint32_t i = 0; i < array.nelems; ++i) {
      if (!Add(array.type, absl::StrCat(name, "[", i, "]"), first_bit + 8 * each * i, 0, depth + 1)) return false;
    }
    return true;
  }

  bool AddMembers(const btf_type* type, const std::string& name, uint32_t first_bit, int depth) {
    const absl::string_view own = NameAt(type->name_off);
    if (own == "in6_addr") return AddBytes(name, first_bit, type->size);
    if (own == "bpf_spin_lock" || own == "bpf_timer") return true;
    const btf_member* member = btf_members(type);
    for (uint32_t i = 0; i < btf_vlen(type); ++i, ++member) {
      const std::string part = NameAt(member->name_off);
      const std::string full = name.empty() ? part : part.empty() ? name : absl::StrCat(name, ".", part);
      if (!Add(member->type, full, first_bit + btf_member_bit_offset(type, i), btf_member_bitfield_size(type, i),
               depth + 1)) {
        return false;
      }
    }
    return true;
  }

  bool AddVariables(const btf_type* section, int depth) {
    const btf_var_secinfo* variable = btf_var_secinfos(section);
    for (uint32_t i = 0; i < btf_vlen(section); ++i, ++variable) {
      const btf_type* named = btf__type_by_id(types_, variable->type);
      if (named == nullptr || !btf_is_var(named)) return false;
      if (!Add(named->type, NameAt(named->name_off), 8 * variable->offset, 0, depth + 1)) return false;
    }
    return true;
  }

  const btf* types_;
  ValueLayout layout_;
};

// At most 64 bits from anywhere; little-endian, as BPF is.
uint64_t BitsAt(const uint8_t* bytes, uint32_t first, uint32_t count) {
  uint64_t value = 0;
  for (uint32_t bit = 0; bit < count; ++bit) {
    const uint32_t at = first + bit;
    value |= (uint64_t{bytes[at / 8]} >> (at % 8) & 1) << bit;
  }
  return value;
}

std::string FieldText(const ValueField& field, const uint8_t* bytes) {
  if (field.is_bytes) {
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(bytes) + field.first_bit / 8, field.bits / 8));
  }
  const uint64_t number = BitsAt(bytes, field.first_bit, field.bits);
  if (!field.is_signed || field.bits == 0) return absl::StrCat(number);
  const uint32_t unused = 64 - field.bits;
  return absl::StrCat(static_cast<int64_t>(number << unused) >> unused);
}

}  // namespace

ValueLayout ReadLayout(const btf* types, uint32_t id, uint32_t bytes) {
  if (types == nullptr || id == 0) return {};
  LayoutReader reader(types);
  if (!reader.Add(id, "", 0, 0, 0)) return {};
  ValueLayout layout = reader.Take();
  if (layout.size() > kMostFields) return {};
  for (const ValueField& field : layout) {
    const bool whole = !field.is_bytes || (field.first_bit % 8 == 0 && field.bits % 8 == 0);
    if (!whole || uint64_t{field.first_bit} + field.bits > uint64_t{bytes} * 8) return {};
  }
  return layout;
}

uint32_t LockOffset(const btf* types, uint32_t id, uint32_t bytes) {
  const btf_type* type = types != nullptr && id != 0 ? btf__type_by_id(types, id) : nullptr;
  for (int i = 0; i < kDeepest && type != nullptr && (btf_is_mod(type) || btf_is_typedef(type)); ++i) {
    type = btf__type_by_id(types, type->type);
  }
  if (type == nullptr || !btf_is_struct(type)) return MapSpec::kNoLock;
  const btf_member* member = btf_members(type);
  for (uint32_t i = 0; i < btf_vlen(type); ++i, ++member) {
    const btf_type* inner = btf__type_by_id(types, member->type);
    if (inner == nullptr || !btf_is_struct(inner)) continue;
    const char* name = btf__name_by_offset(types, inner->name_off);
    const uint32_t offset = btf_member_bit_offset(type, i) / 8;
    const bool inside = offset % sizeof(uint32_t) == 0 && uint64_t{offset} + sizeof(uint32_t) <= bytes;
    if (name != nullptr && absl::string_view(name) == "bpf_spin_lock" && inside) return offset;
  }
  return MapSpec::kNoLock;
}

std::string FieldsText(const ValueLayout& layout, const uint8_t* bytes) {
  if (layout.size() == 1 && layout[0].name.empty()) return FieldText(layout[0], bytes);
  std::string text;
  for (const ValueField& field : layout) {
    absl::StrAppend(&text, text.empty() ? "{" : ", ", field.name, ": ", FieldText(field, bytes));
  }
  return text.empty() ? text : text + "}";
}

}  // namespace halfpage::bpf
