#include "xdp_emul/bpf/core_relocations.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cstring>
#include <set>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace halfpage::bpf {
namespace {

// Head of the section .BTF.ext, whose layout is part of the file format.
struct ExtensionHeader {
  uint16_t magic;
  uint8_t version;
  uint8_t flags;
  uint32_t header_size;
  uint32_t function_offset, function_size;
  uint32_t line_offset, line_size;
  uint32_t core_offset, core_size;
};

// Structures whose layout no kernel may change.
constexpr absl::string_view kFixedTypes[] = {
    "xdp_md",         "ethhdr",         "iphdr",         "ipv6hdr",    "tcphdr",      "udphdr",
    "icmphdr",        "icmp6hdr",       "arphdr",        "in6_addr",   "vlan_hdr",    "bpf_fib_lookup",
    "bpf_devmap_val", "bpf_cpumap_val", "bpf_spin_lock", "in_addr",    "vlan_ethhdr", "ipv6_opt_hdr",
    "frag_hdr",       "gre_base_hdr",   "vxlanhdr",      "mpls_label", "sctphdr",
};

bool IsFixed(absl::string_view type) {
  const size_t flavour = type.find("___");
  if (flavour != absl::string_view::npos) type = type.substr(0, flavour);
  for (const absl::string_view fixed : kFixedTypes) {
    if (type == fixed) return true;
  }
  return false;
}

// One instruction of a section that a relocation names, both halves of a 64-bit constant where it is one.
class Place {
 public:
  Place(absl::Span<uint8_t> section, uint32_t offset) {
    if (offset % sizeof(bpf_insn) != 0 || offset > section.size() || section.size() - offset < sizeof(bpf_insn)) return;
    first_ = reinterpret_cast<bpf_insn*>(section.data() + offset);
    const bool two = first_->code == (BPF_LD | BPF_IMM | BPF_DW);
    if (two && section.size() - offset < 2 * sizeof(bpf_insn)) first_ = nullptr;
    count_ = two ? 2 : 1;
  }
  bool good() const { return first_ != nullptr; }
  bool IsCall() const { return first_->code == (BPF_JMP | BPF_CALL); }
  void SetNumber(int number) {
    for (int i = 0; i < count_; ++i) first_[i].imm = i == 0 ? number : 0;
  }
  void SetCall(uint32_t number) {
    for (int i = 0; i < count_; ++i) first_[i] = {BPF_JMP | BPF_CALL, 0, 0, 0, static_cast<int>(number)};
  }

 private:
  bpf_insn* first_ = nullptr;
  int count_ = 0;
};

constexpr uint32_t kTypeMatches = 12;  // BPF_CORE_TYPE_MATCHES, which Debian's headers do not name yet

bool AsksWhether(uint32_t kind) {
  return kind == BPF_CORE_FIELD_EXISTS || kind == BPF_CORE_TYPE_EXISTS || kind == BPF_CORE_ENUMVAL_EXISTS ||
         kind == kTypeMatches;
}

void ResolveOne(const btf* types, const bpf_core_relo& relocation, Place place, std::vector<Missing>* missing) {
  if (relocation.kind == BPF_CORE_TYPE_ID_LOCAL || !place.good()) return;
  const btf_type* type = btf__type_by_id(types, relocation.type_id);
  const char* name = type != nullptr ? btf__name_by_offset(types, type->name_off) : nullptr;
  if (name == nullptr) name = "?";
  if (relocation.kind != BPF_CORE_TYPE_ID_TARGET && IsFixed(name)) return;
  if (AsksWhether(relocation.kind)) return place.SetNumber(0);
  const char* field = btf__name_by_offset(types, relocation.access_str_off);
  place.SetCall(kFirstMissing + static_cast<uint32_t>(missing->size()));
  missing->push_back({absl::StrCat("asks a running kernel for its type `", name, "` (CO-RE, field path ",
                                   field != nullptr ? field : "?", "), and no kernel takes part"),
                      "use packet headers and xdp_md only, ask bpf_core_type_exists() before, or leave out the include "
                      "of vmlinux.h that makes clang record this"});
}

// The object's own types, null where it has none. The caller frees them.
btf* TypesOf(const ElfImage& image) {
  const absl::Span<const uint8_t> bytes = image.Section(".BTF");
  return bytes.empty() ? nullptr : btf__new(bytes.data(), static_cast<uint32_t>(bytes.size()));
}

}  // namespace

void ResolveCoreRelocations(ElfImage* image, std::vector<Missing>* missing) {
  const absl::Span<const uint8_t> extension = image->Section(".BTF.ext");
  ExtensionHeader header;
  if (extension.size() < sizeof(header)) return;
  memcpy(&header, extension.data(), sizeof(header));
  if (header.header_size < sizeof(header) || header.header_size > extension.size()) return;
  absl::Span<const uint8_t> left = extension.subspan(header.header_size);
  if (header.core_offset > left.size() || header.core_size > left.size() - header.core_offset) return;
  left = left.subspan(header.core_offset, header.core_size);
  btf* types = TypesOf(*image);
  if (types == nullptr) return;
  const absl::Cleanup free_types = [types] { btf__free(types); };
  // The size of a record, then for each section its name, how many records, the records. What does not fit ends the
  // walk.
  const auto take = [&left](void* to, size_t size) {
    if (left.size() < size) return false;
    memcpy(to, left.data(), size);
    left.remove_prefix(size);
    return true;
  };
  uint32_t record_size = 0;
  if (!take(&record_size, sizeof(record_size)) || record_size < sizeof(bpf_core_relo)) return;
  struct {
    uint32_t name, count;
  } section;
  while (take(&section, sizeof(section))) {
    const char* name = btf__name_by_offset(types, section.name);
    const absl::Span<uint8_t> code = image->MutableSection(name != nullptr ? name : "");
    for (uint32_t i = 0; i < section.count && left.size() >= record_size; ++i) {
      bpf_core_relo relocation;
      memcpy(&relocation, left.data(), sizeof(relocation));
      left.remove_prefix(record_size);
      ResolveOne(types, relocation, Place(code, relocation.insn_off), missing);
    }
  }
}

void ResolveKernelSymbols(ElfImage* image, std::vector<Missing>* missing) {
  btf* types = TypesOf(*image);
  if (types == nullptr) return;
  const absl::Cleanup free_types = [types] { btf__free(types); };
  const int section = btf__find_by_name_kind(types, ".ksyms", BTF_KIND_DATASEC);
  if (section <= 0) return;
  const btf_type* declared = btf__type_by_id(types, static_cast<uint32_t>(section));
  std::set<std::string> names;
  for (uint32_t i = 0; i < btf_vlen(declared); ++i) {
    const btf_type* type = btf__type_by_id(types, btf_var_secinfos(declared)[i].type);
    const char* name = type != nullptr ? btf__name_by_offset(types, type->name_off) : nullptr;
    if (name != nullptr) names.insert(name);
  }
  for (const ElfImage::Reference& reference : image->TakeReferences(names)) {
    Place place(reference.section, reference.offset);
    if (!place.good()) continue;
    const bool call = place.IsCall();
    if (!call && reference.weak) {
      place.SetNumber(0);
      continue;
    }
    place.SetCall(kFirstMissing + static_cast<uint32_t>(missing->size()));
    missing->push_back(
        {absl::StrCat(call ? "calls `" : "refers to `", reference.symbol,
                      call ? "`, a function of the kernel (kfunc)" : "`, a variable of the kernel (ksym)",
                      ", and no kernel takes part"),
         absl::StrCat(reference.weak ? "" : "declare it __weak and ", "ask `if (", call ? "" : "&", reference.symbol,
                      ")` before, or use helpers and maps only")});
  }
}

}  // namespace halfpage::bpf
