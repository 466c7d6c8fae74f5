#include "xdp_emul/bpf/object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "xdp_emul/bpf/core_relocations.h"
#include "xdp_emul/bpf/elf_image.h"
#include "xdp_emul/bpf/value_layout.h"

namespace halfpage::bpf {
namespace {

// libbpf tells reasons to a log function only, which gets no argument of ours.
thread_local std::string* libbpf_log = nullptr;

int KeepLog(libbpf_print_level level, const char* format, va_list arguments) {
  if (libbpf_log == nullptr || level != LIBBPF_WARN) return 0;
  char line[512];
  vsnprintf(line, sizeof(line), format, arguments);
  absl::StrAppend(libbpf_log, line);
  return 0;
}

// The first line that libbpf said, without its prefix: later ones tell what failed because of it.
std::string Reason(const std::string& log) {
  absl::string_view text = absl::StripAsciiWhitespace(log);
  text = absl::StripPrefix(text.substr(0, text.find('\n')), "libbpf: ");
  return text.empty() ? "" : absl::StrCat(" (", text, ")");
}

absl::Status Refused(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

bool IsXdp(absl::string_view section) {
  return section == "xdp" || absl::StartsWith(section, "xdp/") || absl::StartsWith(section, "xdp.") ||
         absl::StartsWith(section, "xdp_");
}

// Makes the object one that libbpf prepares without asking a kernel for anything.
absl::Status Prepare(const std::string& path, bpf_object* object) {
  std::vector<std::string> others;
  int xdp_programs = 0;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    const bool xdp = IsXdp(bpf_program__section_name(program));
    bpf_program__set_autoload(program, xdp);
    if (!xdp) {
      others.push_back(bpf_program__section_name(program));
      continue;
    }
    ++xdp_programs;
    if (bpf_program__type(program) == BPF_PROG_TYPE_UNSPEC) bpf_program__set_type(program, BPF_PROG_TYPE_XDP);
  }
  if (xdp_programs == 0) {
    return Refused(path, absl::StrCat("holds no XDP program: its sections are ",
                                      others.empty() ? "none" : absl::StrJoin(others, ", "),
                                      "; put the program into SEC(\"xdp\")"));
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    bpf_map__set_pin_path(map, nullptr);
    if (bpf_map__max_entries(map) == 0) bpf_map__set_max_entries(map, 1);
  }
  return absl::OkStatus();
}

MapSpec SpecOf(const bpf_map* map) {
  MapSpec spec;
  spec.name = bpf_map__name(map);
  spec.type = bpf_map__type(map);
  spec.key_size = bpf_map__key_size(map);
  spec.value_size = bpf_map__value_size(map);
  spec.max_entries = bpf_map__max_entries(map);
  spec.flags = bpf_map__map_flags(map);
  spec.extra = bpf_map__map_extra(map);
  spec.internal = bpf_map__is_internal(map);
  return spec;
}

// The types of globals are those of their section.
void ReadTypes(const bpf_map* map, const btf* types, MapSpec* spec) {
  if (types == nullptr) return;
  uint32_t value = bpf_map__btf_value_type_id(map);
  if (value == 0 && spec->internal) {
    const int section = btf__find_by_name_kind(types, spec->name.c_str(), BTF_KIND_DATASEC);
    value = section > 0 ? static_cast<uint32_t>(section) : 0;
  }
  spec->key_fields = ReadLayout(types, spec->internal ? 0 : bpf_map__btf_key_type_id(map), spec->key_size);
  spec->value_fields = ReadLayout(types, value, spec->value_size);
  spec->lock_offset = LockOffset(types, value, spec->value_size);
}

MapSpec ReadMap(bpf_map* map, const btf* types) {
  MapSpec spec = SpecOf(map);
  if (spec.internal) {
    // "prefix.rodata", the prefix being the file's name: the section is the name that people know.
    const size_t dot = spec.name.rfind('.');
    if (dot != std::string::npos) spec.name = spec.name.substr(dot);
    size_t size = 0;
    const void* bytes = bpf_map__initial_value(map, &size);
    if (bytes != nullptr) spec.initial.assign(static_cast<const char*>(bytes), size);
    spec.initial.resize(spec.value_size);
  }
  ReadTypes(map, types, &spec);
  const bpf_map* inner = bpf_map__inner_map(map);
  if (inner != nullptr) spec.inner = std::make_shared<MapSpec>(SpecOf(inner));
  return spec;
}

ProgramCode ReadProgram(const bpf_program* program) {
  ProgramCode code;
  code.name = bpf_program__name(program);
  code.section = bpf_program__section_name(program);
  code.frags = absl::StartsWith(code.section, "xdp.frags");
  const absl::string_view rest = absl::StripPrefix(absl::string_view(code.section), code.frags ? "xdp.frags" : "xdp");
  if (absl::StartsWith(rest, "/devmap")) code.hook = ProgramHook::kDevmap;
  if (absl::StartsWith(rest, "/cpumap")) code.hook = ProgramHook::kCpumap;
  const bpf_insn* first = bpf_program__insns(program);
  code.code.assign(first, first + bpf_program__insn_cnt(program));
  return code;
}

}  // namespace

absl::StatusOr<Object> ReadObject(const std::string& path) {
  absl::StatusOr<ElfImage> image = ElfImage::Read(path);
  if (!image.ok()) return image.status();

  std::string log;
  libbpf_log = &log;
  const libbpf_print_fn_t previous = libbpf_set_print(KeepLog);
  const absl::Cleanup restore = [previous] {
    libbpf_set_print(previous);
    libbpf_log = nullptr;
  };

  Object object;
  object.path = path;
  ResolveCoreRelocations(&*image, &object.missing);
  ResolveKernelSymbols(&*image, &object.missing);
  const std::vector<std::string> old_maps = image->ObjectsIn("maps");
  if (!old_maps.empty()) {
    return Refused(path, absl::StrCat("section `maps` defines ", absl::StrJoin(old_maps, ", "),
                                      " in a way that libbpf 1.0 took out; define each as a struct with __uint() and "
                                      "__type() members in SEC(\".maps\")"));
  }
  bpf_object_open_opts open_options = {};
  open_options.sz = sizeof(open_options);
  open_options.object_name = "halfpage";
  bpf_object* raw = bpf_object__open_mem(image->bytes().data(), image->bytes().size(), &open_options);
  if (raw == nullptr) {
    return Refused(path,
                   absl::StrFormat("is no BPF object that can be read: %s%s; build it with clang -O2 -g -target bpf",
                                   strerror(errno), Reason(log)));
  }
  const absl::Cleanup close = [raw] { bpf_object__close(raw); };

  const absl::Status status = Prepare(path, raw);
  if (!status.ok()) return status;

  // With a loader being generated, load() resolves everything inside the file and makes no system call. What it
  // generates is not looked at.
  gen_loader_opts loader = {};
  loader.sz = sizeof(loader);
  int error = bpf_object__gen_loader(raw, &loader);
  if (error == 0) error = bpf_object__load(raw);
  if (error != 0) {
    return Refused(path,
                   absl::StrFormat("its references cannot be resolved without a kernel: %s%s; build it with clang "
                                   "-O2 -g -target bpf, and give __kconfig variables a __weak",
                                   strerror(-error), Reason(log)));
  }

  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, raw) object.maps.push_back(ReadMap(map, bpf_object__btf(raw)));
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, raw) {
    if (bpf_program__autoload(program)) object.programs.push_back(ReadProgram(program));
  }
  for (MapSpec& spec : object.maps) spec.targets = image->Targets(spec.name);
  return object;
}

absl::StatusOr<const ProgramCode*> FindProgram(const Object& object, absl::string_view name) {
  std::vector<std::string> names;
  for (const ProgramCode& program : object.programs) {
    if (program.name == name || (name.empty() && object.programs.size() == 1)) return &program;
    names.push_back(program.name);
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s holds %d programs: choose one of %s", object.path,
                                                      names.size(), absl::StrJoin(names, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s holds no program `%s`; there is %s", object.path, name, absl::StrJoin(names, ", ")));
}

}  // namespace halfpage::bpf
