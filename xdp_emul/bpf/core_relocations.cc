#include "xdp_emul/bpf/core_relocations.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cstring>

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
    "xdp_md", "ethhdr",   "iphdr",    "ipv6hdr",        "tcphdr",         "udphdr",         "icmphdr",       "icmp6hdr",
    "arphdr", "in6_addr", "vlan_hdr", "bpf_fib_lookup", "bpf_devmap_val", "bpf_cpumap_val", "bpf_spin_lock",
};

bool IsFixed(absl::string_view type) {
  const size_t flavour = type.find("___");
  if (flavour != absl::string_view::npos) type = type.substr(0, flavour);
  for (const absl::string_view fixed : kFixedTypes) {
    if (type == fixed) return true;
  }
  return false;
}

absl::Status CheckOne(const std::string& path, const btf* types, const bpf_core_relo& relocation) {
  if (relocation.kind == BPF_CORE_TYPE_ID_LOCAL) return absl::OkStatus();
  const btf_type* type = btf__type_by_id(types, relocation.type_id);
  const char* name = type != nullptr ? btf__name_by_offset(types, type->name_off) : nullptr;
  if (name == nullptr) name = "?";
  if (relocation.kind != BPF_CORE_TYPE_ID_TARGET && IsFixed(name)) return absl::OkStatus();
  const char* field = btf__name_by_offset(types, relocation.access_str_off);
  return absl::InvalidArgumentError(absl::StrCat(path, ": asks a running kernel for its type `", name,
                                                 "` (CO-RE, field path ", field != nullptr ? field : "?",
                                                 "), and no kernel takes part; use packet headers and xdp_md only, or "
                                                 "leave out the include of vmlinux.h that makes ",
                                                 "clang record this"));
}

}  // namespace

absl::Status CheckCoreRelocations(const std::string& path, const btf* types, absl::Span<const uint8_t> extension) {
  ExtensionHeader header;
  if (types == nullptr || extension.size() < sizeof(header)) return absl::OkStatus();
  memcpy(&header, extension.data(), sizeof(header));
  if (header.header_size < sizeof(header) || header.header_size > extension.size()) return absl::OkStatus();
  absl::Span<const uint8_t> left = extension.subspan(header.header_size);
  if (header.core_offset > left.size() || header.core_size > left.size() - header.core_offset) return absl::OkStatus();
  left = left.subspan(header.core_offset, header.core_size);
  // The size of a record, then for each section its name, how many records, the records. libbpf has checked the section
  // by now; what does not fit any more ends the walk.
  const auto take = [&left](void* to, size_t size) {
    if (left.size() < size) return false;
    memcpy(to, left.data(), size);
    left.remove_prefix(size);
    return true;
  };
  uint32_t record_size = 0;
  if (!take(&record_size, sizeof(record_size)) || record_size < sizeof(bpf_core_relo)) return absl::OkStatus();
  struct {
    uint32_t name, count;
  } section;
  while (take(&section, sizeof(section))) {
    for (uint32_t i = 0; i < section.count && left.size() >= record_size; ++i) {
      bpf_core_relo relocation;
      memcpy(&relocation, left.data(), sizeof(relocation));
      left.remove_prefix(record_size);
      const absl::Status status = CheckOne(path, types, relocation);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace halfpage::bpf
