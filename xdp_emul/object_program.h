// An XDP object's program over bursts of mbufs: what bpf/, which knows neither mbufs nor devices, needs from them.
//
// No header of bpf/ here: libpcap's and the kernel's name two things alike.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "xdp_emul/object_reading.h"
#include "xdp_emul/program.h"

namespace halfpage {

namespace bpf {
class Map;
class MapSet;
class Program;
struct Object;
struct RedirectTarget;
struct RunState;
}  // namespace bpf

class RedirectMap;

class ObjectProgram {
 public:
  // Reads the object of `config`, makes its maps, or shares those of `shared`, for `workers` workers, analyses its
  // program and compiles it as config.jit says. `devices`: how many there are; interface n of the program is device
  // n - 1. `maps`: what config.maps may put in place of the object's. Errors: those of bpf::ReadObject() and the like;
  // InvalidArgument where `shared` is of another file; Unavailable where `jit: llvm` and there is no compiler. Set-up
  // code.
  static absl::StatusOr<std::unique_ptr<ObjectProgram>> Create(const ProgramConfig& config, size_t devices,
                                                               uint32_t workers, const ObjectProgram* shared,
                                                               const RedirectMaps* maps);

  ~ObjectProgram();
  ObjectProgram(const ObjectProgram&) = delete;
  ObjectProgram& operator=(const ObjectProgram&) = delete;

  bool frags() const { return frags_; }
  bool writes() const { return writes_; }
  bool reshapes() const { return reshapes_; }
  // Whether it may redirect at all; where to, shows when it runs.
  bool redirects() const { return redirects_; }
  const bpf::MapSet& maps() const { return *maps_; }
  // Any thread, while workers run too.
  ObjectReading Read() const;

  // As Program::Run(), of which it is a part: `owner` is named where frames are aborted by a fault. Hot.
  int Run(const Program& owner, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts) const;

 private:
  struct Lane;  // a worker's, in object_lane.h
  struct Binding {
    const bpf::Map* map;
    const RedirectMap* by;
  };

  ObjectProgram() = default;
  absl::Status Bind(const ProgramConfig& config, const RedirectMaps* maps);
  template <bool kReshapes>
  int RunFrames(const Program& owner, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Lane* lane) const;
  int RunBursts(const Program& owner, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Lane* lane) const;
  int Sum(const uint8_t* said, uint16_t n, Verdicts* verdicts, Lane* lane) const;
  void RecordFault(const Program& owner, Verdicts* verdicts, Lane* lane) const;
  DeviceIndex TargetOf(const bpf::RedirectTarget& redirect, uint32_t worker) const;
  void FindTargets(const bpf::RedirectTarget* redirects, uint16_t n, uint32_t worker, DeviceIndex* targets) const;

  std::string name_;
  std::shared_ptr<const bpf::Object> object_;
  std::shared_ptr<bpf::MapSet> maps_;  // goes after program_
  std::vector<Binding> bindings_;
  std::unique_ptr<bpf::Program> program_;
  std::unique_ptr<Lane[]> lanes_;  // by worker
  size_t devices_ = 0;
  bool frags_ = false;
  bool writes_ = false;
  bool reshapes_ = false;
  bool redirects_ = false;
  bool sets_metadata_ = false;
  std::string not_compiled_;  // the reason
};

}  // namespace halfpage
