#include "xdp_emul/bpf/elf_image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace halfpage::bpf {
namespace {

constexpr off_t kLargestObject = 64 << 20;
constexpr uint64_t kPointer = 8;  // members of a map's definition are pointers
constexpr uint64_t kMostSlots = 65536;

absl::Status OpenFault(const std::string& path) {
  const std::string what =
      absl::StrFormat("%s: %s; give an object made by clang -O2 -g -target bpf", path, strerror(errno));
  return errno == EACCES ? absl::PermissionDeniedError(what) : absl::NotFoundError(what);
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", what, "; give an object made by clang -O2 -g -target bpf"));
}

// `count` objects of T at `offset`, or null where they are not all inside.
template <typename T>
T* At(std::vector<uint8_t>& bytes, uint64_t offset, uint64_t count = 1) {
  if (offset > bytes.size() || offset % alignof(T) != 0 || count > (bytes.size() - offset) / sizeof(T)) return nullptr;
  return reinterpret_cast<T*>(bytes.data() + offset);
}

// Where symbols and names of a relocation section are.
struct Symbols {
  Elf64_Sym* first = nullptr;
  uint64_t count = 0;
  const char* names = nullptr;
  uint64_t names_size = 0;

  std::string Name(const Elf64_Sym& symbol) const {
    return symbol.st_name < names_size ? std::string(names + symbol.st_name) : std::string();
  }
};

bool FindSymbols(std::vector<uint8_t>& bytes, const Elf64_Shdr* sections, uint64_t count, const Elf64_Shdr& relocations,
                 Symbols* symbols) {
  if (relocations.sh_link >= count) return false;
  const Elf64_Shdr& table = sections[relocations.sh_link];
  if (table.sh_link >= count) return false;
  const Elf64_Shdr& names = sections[table.sh_link];
  symbols->count = table.sh_size / sizeof(Elf64_Sym);
  symbols->first = At<Elf64_Sym>(bytes, table.sh_offset, symbols->count);
  symbols->names_size = names.sh_size;
  symbols->names = At<char>(bytes, names.sh_offset, names.sh_size);
  return symbols->first != nullptr && symbols->names != nullptr && names.sh_size > 0 &&
         symbols->names[names.sh_size - 1] == '\0';
}

}  // namespace

absl::StatusOr<ElfImage> ElfImage::Read(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return OpenFault(path);
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat status;
  if (fstat(file, &status) != 0) return OpenFault(path);
  if (!S_ISREG(status.st_mode) || status.st_size > kLargestObject) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no regular file of at most 64 MiB; give an object made by clang -O2 -g -target bpf"));
  }
  ElfImage image;
  image.bytes_.resize(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < image.bytes_.size()) {
    const ssize_t n = read(file, image.bytes_.data() + done, image.bytes_.size() - done);
    if (n <= 0) return OpenFault(path);
    done += static_cast<size_t>(n);
  }
  absl::Status status_of = image.FindSections(path);
  if (status_of.ok()) status_of = image.TakeInitialSlots(path);
  if (!status_of.ok()) return status_of;
  return image;
}

absl::Status ElfImage::FindSections(const std::string& path) {
  const auto* header = At<Elf64_Ehdr>(bytes_, 0);
  if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return Damaged(path, "is no ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_BPF) {
    return Damaged(path, absl::StrFormat("is an ELF file for machine %d, not for little-endian BPF (%d)",
                                         header->e_machine, EM_BPF));
  }
  const uint64_t count = header->e_shnum;
  const auto* sections = At<Elf64_Shdr>(bytes_, header->e_shoff, count);
  if (sections == nullptr || header->e_shstrndx >= count) {
    return Damaged(path, "is cut off: its section table is not all there");
  }
  const Elf64_Shdr& names = sections[header->e_shstrndx];
  const char* name_bytes = At<char>(bytes_, names.sh_offset, names.sh_size);
  if (name_bytes == nullptr || names.sh_size == 0 || name_bytes[names.sh_size - 1] != '\0') {
    return Damaged(path, "is cut off: its section names are not all there");
  }
  for (uint64_t i = 0; i < count; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_name >= names.sh_size) return Damaged(path, "is damaged: a section's name lies outside the file");
    if (section.sh_type != SHT_NOBITS && At<uint8_t>(bytes_, section.sh_offset, section.sh_size) == nullptr) {
      return Damaged(path, absl::StrFormat("is cut off: section %s is not all there", name_bytes + section.sh_name));
    }
    sections_[name_bytes + section.sh_name] = {i, section.sh_offset, section.sh_size};
  }
  return absl::OkStatus();
}

absl::Status ElfImage::TakeInitialSlots(const std::string& path) {
  const auto maps = sections_.find(".maps");
  const auto found = sections_.find(".rel.maps");
  if (maps == sections_.end() || found == sections_.end()) return absl::OkStatus();
  const auto* header = At<Elf64_Ehdr>(bytes_, 0);
  auto* sections = At<Elf64_Shdr>(bytes_, header->e_shoff, header->e_shnum);
  Elf64_Shdr& relocations = sections[found->second.index];

  Symbols symbols;
  const uint64_t entries = relocations.sh_size / sizeof(Elf64_Rel);
  const auto* entry = At<Elf64_Rel>(bytes_, relocations.sh_offset, entries);
  if (entry == nullptr || !FindSymbols(bytes_, sections, header->e_shnum, relocations, &symbols)) {
    return Damaged(path, "is cut off: relocations of its maps are not all there");
  }
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t offset = entry[i].r_offset;
    const uint64_t target = ELF64_R_SYM(entry[i].r_info);
    if (target >= symbols.count) return Damaged(path, "is damaged: a relocation of its maps names no symbol");
    for (uint64_t s = 0; s < symbols.count; ++s) {
      const Elf64_Sym& map = symbols.first[s];
      if (map.st_shndx != maps->second.index || ELF64_ST_TYPE(map.st_info) != STT_OBJECT || offset < map.st_value ||
          offset - map.st_value >= map.st_size) {
        continue;
      }
      // The slots are the last member: counted from the end, since the members before them differ.
      const uint64_t from_end = (map.st_value + map.st_size - offset) / kPointer;
      if (from_end == 0 || from_end > kMostSlots) break;
      std::vector<std::string>& slots = targets_[symbols.Name(map)];
      if (slots.size() < from_end) slots.insert(slots.begin(), from_end - slots.size(), "");
      slots[slots.size() - from_end] = symbols.Name(symbols.first[target]);
      break;
    }
  }
  relocations.sh_size = 0;
  return absl::OkStatus();
}

absl::Span<const uint8_t> ElfImage::Section(const std::string& name) const {
  const auto found = sections_.find(name);
  if (found == sections_.end()) return {};
  return absl::MakeConstSpan(bytes_).subspan(found->second.offset, found->second.size);
}

absl::Span<uint8_t> ElfImage::MutableSection(const std::string& name) {
  const auto found = sections_.find(name);
  if (found == sections_.end()) return {};
  return absl::MakeSpan(bytes_).subspan(found->second.offset, found->second.size);
}

absl::Span<Elf64_Shdr> ElfImage::Headers() {
  const auto* header = At<Elf64_Ehdr>(bytes_, 0);
  return {At<Elf64_Shdr>(bytes_, header->e_shoff, header->e_shnum), header->e_shnum};
}

std::vector<ElfImage::Reference> ElfImage::TakeReferences(const std::set<std::string>& names) {
  std::vector<Reference> taken;
  const absl::Span<Elf64_Shdr> sections = Headers();
  std::vector<Elf64_Sym*> gone;
  for (Elf64_Shdr& relocations : sections) {
    if (relocations.sh_type != SHT_REL || relocations.sh_info >= sections.size()) continue;
    const Elf64_Shdr& code = sections[relocations.sh_info];
    auto* bytes = At<uint8_t>(bytes_, code.sh_offset, code.sh_size);
    const uint64_t entries = relocations.sh_size / sizeof(Elf64_Rel);
    auto* entry = At<Elf64_Rel>(bytes_, relocations.sh_offset, entries);
    Symbols symbols;
    if ((code.sh_flags & SHF_EXECINSTR) == 0 || code.sh_type == SHT_NOBITS || bytes == nullptr || entry == nullptr ||
        !FindSymbols(bytes_, sections.data(), sections.size(), relocations, &symbols)) {
      continue;
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < entries; ++i) {
      const uint64_t target = ELF64_R_SYM(entry[i].r_info);
      Elf64_Sym* symbol = target < symbols.count ? &symbols.first[target] : nullptr;
      if (symbol == nullptr || symbol->st_shndx != SHN_UNDEF || names.count(symbols.Name(*symbol)) == 0) {
        entry[kept++] = entry[i];
        continue;
      }
      taken.push_back({absl::MakeSpan(bytes, code.sh_size), entry[i].r_offset, symbols.Name(*symbol),
                       ELF64_ST_BIND(symbol->st_info) == STB_WEAK});
      gone.push_back(symbol);
    }
    relocations.sh_size = kept * sizeof(Elf64_Rel);
  }
  // A local one is nothing that libbpf would look for.
  for (Elf64_Sym* symbol : gone) symbol->st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
  return taken;
}

std::vector<std::string> ElfImage::ObjectsIn(const std::string& name) {
  std::vector<std::string> names;
  const auto found = sections_.find(name);
  const absl::Span<Elf64_Shdr> sections = Headers();
  for (uint32_t i = 0; found != sections_.end() && i < sections.size(); ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    Elf64_Shdr relocations = {};
    relocations.sh_link = i;
    Symbols symbols;
    if (!FindSymbols(bytes_, sections.data(), sections.size(), relocations, &symbols)) continue;
    for (uint64_t s = 0; s < symbols.count; ++s) {
      const Elf64_Sym& symbol = symbols.first[s];
      if (symbol.st_shndx == found->second.index && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) {
        names.push_back(symbols.Name(symbol));
      }
    }
  }
  return names;
}

std::vector<std::string> ElfImage::Targets(const std::string& name) const {
  const auto found = targets_.find(name);
  return found == targets_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace halfpage::bpf
