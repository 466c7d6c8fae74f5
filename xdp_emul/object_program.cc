#include "xdp_emul/object_program.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "xdp_emul/bpf/array_map.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/maps.h"
#include "xdp_emul/object_lane.h"

namespace halfpage {
namespace {

constexpr bpf::FrameLayout kMbuf = {offsetof(rte_mbuf, buf_addr), offsetof(rte_mbuf, data_off),
                                    offsetof(rte_mbuf, data_len)};

}  // namespace

ObjectProgram::~ObjectProgram() = default;

absl::StatusOr<std::unique_ptr<ObjectProgram>> ObjectProgram::Create(const ProgramConfig& config, size_t devices,
                                                                     uint32_t workers, const ObjectProgram* shared,
                                                                     const RedirectMaps* maps) {
  auto made = std::unique_ptr<ObjectProgram>(new ObjectProgram());
  if (shared != nullptr) {
    if (shared->object_->path != config.object) {
      return absl::InvalidArgumentError(absl::StrCat("program ", config.name, ": maps_of ", config.maps_of,
                                                     ": its object is ", shared->object_->path, ", and not ",
                                                     config.object, ": maps are those of one object"));
    }
    made->object_ = shared->object_;
    made->maps_ = shared->maps_;
  } else {
    absl::StatusOr<bpf::Object> object = bpf::ReadObject(config.object);
    if (!object.ok()) return object.status();
    made->object_ = std::make_shared<const bpf::Object>(std::move(*object));
    absl::StatusOr<std::unique_ptr<bpf::MapSet>> set = bpf::MapSet::Create(*made->object_, workers);
    if (!set.ok()) return set.status();
    made->maps_ = std::move(*set);
  }
  if (shared != nullptr) made->bindings_ = shared->bindings_;
  const absl::Status bound = made->Bind(config, maps);
  if (!bound.ok()) return bound;
  const absl::StatusOr<const bpf::ProgramCode*> code = bpf::FindProgram(*made->object_, config.program);
  if (!code.ok()) return code.status();
  auto program = bpf::Program::Create(**code, *made->object_, made->maps_.get());
  if (!program.ok()) return program.status();
  made->program_ = std::move(*program);
  if (config.jit != Jit::kOff) {
    const absl::Status compiled = bpf::Compile(made->program_.get(), &kMbuf);
    if (!compiled.ok() && config.jit == Jit::kLlvm) {
      return absl::UnavailableError(
          absl::StrCat("program ", config.name, ": jit: llvm: ", compiled.message(), "; or write jit: auto"));
    }
    if (!compiled.ok()) made->not_compiled_ = std::string(compiled.message());
  }
  made->name_ = config.name;
  made->devices_ = devices;
  made->frags_ = made->program_->frags();
  made->reshapes_ = made->program_->reshapes();
  made->writes_ = made->reshapes_ || made->program_->writes();
  made->sets_metadata_ = made->program_->Calls(BPF_FUNC_xdp_adjust_meta);
  made->redirects_ = made->program_->redirects();
  const uint32_t lanes = made->maps_->epochs().workers();
  made->lanes_ = std::make_unique<Lane[]>(lanes);
  for (uint32_t worker = 0; worker < lanes; ++worker) {
    bpf::RunState& state = made->lanes_[worker].state;
    state.worker = worker;
    state.random += worker;
  }
  return made;
}

absl::Status ObjectProgram::Bind(const ProgramConfig& config, const RedirectMaps* maps) {
  for (const MapEntryConfig& entry : config.maps) {
    if (entry.redirect_map.empty()) continue;
    bpf::Map* map = maps_->Find(entry.map);
    const RedirectMap* by = maps == nullptr ? nullptr : maps->Find(entry.redirect_map);
    if (by == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("program ", config.name, ": there is no map `", entry.redirect_map, "`"));
    }
    if (map == nullptr || (map->spec().type != BPF_MAP_TYPE_DEVMAP && map->spec().type != BPF_MAP_TYPE_XSKMAP &&
                           map->spec().type != BPF_MAP_TYPE_CPUMAP)) {
      return absl::InvalidArgumentError(absl::StrCat("program ", config.name, ": the object has no devmap, xskmap or ",
                                                     "cpumap `", entry.map, "` for `", entry.redirect_map,
                                                     "` to stand for"));
    }
    const auto leads = [](const void* table, uint32_t key) {
      return static_cast<const RedirectMap*>(table)->Read(key) != kNoDevice;
    };
    static_cast<bpf::TargetArrayMap*>(map)->Bind(leads, by);
    bindings_.push_back({map, by});
  }
  return absl::OkStatus();
}

ObjectReading ObjectProgram::Read() const {
  ObjectReading out;
  out.name = name_;
  out.object = object_->path;
  out.program = program_->name();
  out.run_by = program_->compiled() ? "LLVM" : "interpreter";
  out.not_compiled = not_compiled_;
  out.instructions = program_->image().code.size();
  out.frags = frags_;
  uint64_t runs = 0;
  uint64_t cycles = 0;
  for (uint32_t worker = 0; worker < maps_->epochs().workers(); ++worker) {
    const Lane& lane = lanes_[worker];
    out.runs += lane.runs.Read();
    for (size_t a = 0; a < kXdpActions; ++a) out.verdicts[a] += lane.verdicts[a].Read();
    out.unknown += lane.unknown.Read();
    out.faults += lane.faults.Read();
    runs += lane.timed_runs.Read();
    cycles += lane.timed_cycles.Read();
    const bool faulted = lane.has_fault.load(std::memory_order_acquire);
    if (faulted && out.fault.empty()) out.fault = bpf::FaultText(*program_, lane.fault);
  }
  if (runs != 0) {
    out.ns_per_run =
        static_cast<double>(cycles) * 1e9 / static_cast<double>(rte_get_tsc_hz()) / static_cast<double>(runs);
  }
  for (const auto& map : maps_->maps()) {
    out.maps.push_back(absl::StrCat(map->spec().name, " (", bpf::MapTypeName(map->spec().type), ")"));
  }
  return out;
}

}  // namespace halfpage
