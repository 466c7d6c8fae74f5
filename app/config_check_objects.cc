// Objects of programs: that they can be read, that their programs can be run, that their maps take what the file puts
// in.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/behind_maps.h"
#include "app/config_check.h"
#include "app/config_units.h"
#include "app/device.h"
#include "app/object_maps.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage {
namespace {

// Objects by file, each read once.
class Objects {
 public:
  const absl::StatusOr<bpf::Object>& Read(const std::string& file) {
    const auto found = objects_.find(file);
    return found != objects_.end() ? found->second : objects_.emplace(file, bpf::ReadObject(file)).first->second;
  }

 private:
  std::map<std::string, absl::StatusOr<bpf::Object>> objects_;
};

// "gate" for an object that the list has before place `before`; null where it has none.
const ProgramConfig* Sharer(const Config& config, size_t before) {
  for (size_t i = 0; i < before; ++i) {
    const ProgramConfig& other = config.programs[i];
    if (other.kind == ProgramKind::kObject && other.name == config.programs[before].maps_of) return &other;
  }
  return nullptr;
}

void CheckMaps(const Config& config, const ProgramConfig& program, const std::string& path, const bpf::MapSet& maps,
               FaultList& faults) {
  TargetNames names;
  for (const Device& device : ListDevices(config)) names.devices.push_back(device.name);
  names.egress = EgressPrograms(config);
  for (size_t m = 0; m < program.maps.size(); ++m) {
    const std::string item = absl::StrCat(path, ".maps[", m, "]");
    if (faults.Touches(item)) continue;
    absl::Status status = FillMap(program.maps[m], names, maps);
    const ProgramConfig* behind = FindProgramConfig(config, program.maps[m].program);
    if (status.ok() && behind != nullptr) status = CheckBehind(config, *behind, MapKind::kDevmap);
    const auto owner = [](const ProgramConfig& each) { return each.maps_of.empty() ? each.name : each.maps_of; };
    for (const ProgramConfig& sharer : config.programs) {
      const bool shares = sharer.kind == ProgramKind::kObject && owner(sharer) == owner(program);
      if (status.ok() && behind != nullptr && shares) status = CheckFragsBehind(*behind, sharer, MapKind::kDevmap);
    }
    if (!status.ok()) faults.Fault(item, std::string(status.message()));
  }
}

void CheckObject(const Config& config, size_t number, Objects& objects, FaultList& faults) {
  const ProgramConfig& program = config.programs[number];
  const std::string path = absl::StrCat("programs[", number, "]");
  if (faults.Touches(path + ".object") || program.object.empty()) return;
  const absl::StatusOr<bpf::Object>& object = objects.Read(program.object);
  if (!object.ok()) {
    faults.Fault(path + ".object", std::string(object.status().message()));
    return;
  }
  if (!program.maps_of.empty()) {
    const ProgramConfig* sharer = Sharer(config, number);
    if (sharer == nullptr || sharer->object != program.object || !sharer->maps_of.empty()) {
      faults.Fault(path + ".maps_of", absl::StrCat(Shown(program.maps_of),
                                                   " is no program before this one with the same object and maps of "
                                                   "its own: name such a program, or remove this key"));
    }
  }
  const auto code = bpf::FindProgram(*object, program.program);
  if (!code.ok()) {
    faults.Fault(path + ".function", std::string(code.status().message()));
    return;
  }
  auto maps = bpf::MapSet::Create(*object, static_cast<uint32_t>(config.lcores.workers.size()));
  if (!maps.ok()) {
    faults.Fault(path + ".object", std::string(maps.status().message()));
    return;
  }
  const auto made = bpf::Program::Create(**code, *object, maps->get());
  if (!made.ok()) faults.Fault(path + ".object", std::string(made.status().message()));
  CheckMaps(config, program, path, **maps, faults);
}

// A chain runs at a device, and so do its links (kernel: xdp-dispatcher).
void CheckLinkSections(const Config& config, size_t number, FaultList& faults) {
  const std::vector<std::string>& links = config.programs[number].programs;
  for (size_t i = 0; i < links.size(); ++i) {
    const std::string path = absl::StrCat("programs[", number, "].programs[", i, "]");
    const ProgramConfig* link = FindProgramConfig(config, links[i]);
    if (link == nullptr || faults.Touches(path)) continue;
    if (link->hook == ProgramHook::kAny || link->hook == ProgramHook::kDevice) continue;
    faults.Fault(path,
                 absl::StrCat(Shown(link->name), " is of section ", SectionOf(link->hook, link->frags),
                              ", which runs behind a map's entry and in no chain: name it as `program` of an ",
                              "entry, or compile it into section ", SectionOf(ProgramHook::kDevice, link->frags)));
  }
}

}  // namespace

void FillInObjects(Config& config) {
  Objects objects;
  for (ProgramConfig& program : config.programs) {
    if (program.kind != ProgramKind::kObject) continue;
    const absl::StatusOr<bpf::Object>& object = objects.Read(program.object);
    if (!object.ok()) continue;
    const auto code = bpf::FindProgram(*object, program.program);
    if (!code.ok()) continue;
    program.frags = (*code)->frags;
    program.hook = (*code)->hook;
  }
}

void CheckObjects(const Config& config, FaultList& faults) {
  Objects objects;
  for (size_t i = 0; i < config.programs.size(); ++i) {
    if (config.programs[i].kind == ProgramKind::kObject) CheckObject(config, i, objects, faults);
    if (config.programs[i].kind == ProgramKind::kChain) CheckLinkSections(config, i, faults);
  }
}

}  // namespace halfpage
