// The bytes of an object file, and what it puts into its program arrays and maps of maps.
#pragma once

#include <elf.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace halfpage::bpf {

class ElfImage {
 public:
  // Reads all of `path` and takes the section `.rel.maps` out of it: it fills program arrays and maps of maps, which
  // libbpf would refuse where no kernel takes part. Errors: NotFound, PermissionDenied, InvalidArgument for what is no
  // ELF file for BPF or is damaged, each with what to do.
  static absl::StatusOr<ElfImage> Read(const std::string& path);

  absl::Span<const uint8_t> bytes() const { return absl::MakeConstSpan(bytes_); }

  // The bytes of section `name`, empty where there is none.
  absl::Span<const uint8_t> Section(const std::string& name) const;

  absl::Span<uint8_t> MutableSection(const std::string& name);

  // Where code refers to an undefined symbol.
  struct Reference {
    absl::Span<uint8_t> section;  // of the code, valid while the image is
    uint64_t offset = 0;          // in it, of the instruction
    std::string symbol;
    bool weak = false;  // may stay undefined
  };

  // Takes out of the image what code says of undefined symbols called one of `names`, and these symbols.
  std::vector<Reference> TakeReferences(const std::set<std::string>& names);

  // Names of the objects in section `name`.
  std::vector<std::string> ObjectsIn(const std::string& name);

  // By slot, the map or program that the object puts into map `name`; empty where there are none.
  std::vector<std::string> Targets(const std::string& name) const;

 private:
  struct Place {
    uint64_t index, offset, size;
  };
  absl::Status FindSections(const std::string& path);
  absl::Status TakeInitialSlots(const std::string& path);
  absl::Span<Elf64_Shdr> Headers();

  std::vector<uint8_t> bytes_;
  std::map<std::string, Place> sections_;
  std::map<std::string, std::vector<std::string>> targets_;
};

}  // namespace halfpage::bpf
