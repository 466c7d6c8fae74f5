// Built-in XDP programs: compiled from their configuration once, run over bursts by workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mempool/counter.h"
#include "xdp_emul/attach.h"
#include "xdp_emul/program_config.h"
#include "xdp_emul/refusal.h"
#include "xdp_emul/xdp_action.h"

struct rte_mbuf;

namespace halfpage {

// Frames of one poll at most: NAPI's weight, and the size of every array on the way.
inline constexpr uint16_t kMaxBurst = 64;

// Index of a device end in the topology's order.
using DeviceIndex = uint16_t;
inline constexpr DeviceIndex kNoDevice = UINT16_MAX;

class ObjectProgram;
class Program;
class RedirectMaps;

// Where the frames of a burst come from, for programs that ask.
struct Origin {
  uint32_t interface = 0;  // DeviceIndex + 1, so that 0 is none
  uint32_t queue = 0;      // of receiving
  uint32_t worker = 0;     // from 0
  uint32_t egress = 0;     // behind a devmap's entry: the interface that frames leave by
  // Destination and source MAC address of what leaves as the program says; kForward writes them.
  uint8_t leaving[12] = {};
};

// Why a program could not do something: bytes that it asked for, and those that there were. 0 and 0: no such thing.
struct Shortage {
  Refusal cause;
  uint32_t asked;
  uint32_t available;
};

// What programs could not do with frames of one burst. Those frames are aborted.
struct ProgramFaults {
  uint16_t total;  // 0 before a run; the rest is filled in only where this is not 0
  Shortage first;
  const Program* first_program;
  uint16_t by_cause[kRefusals];

  void Add(const Program& program, const Shortage& shortage) {
    if (total++ == 0) {
      first = shortage;
      first_program = &program;
      for (uint16_t& count : by_cause) count = 0;
    }
    ++by_cause[static_cast<int>(shortage.cause)];
  }
};

// What a program is told and says of a burst: where it comes from; an XdpAction per frame, and for kRedirect the device
// that the frame leaves through, or another target (maps.h).
struct Verdicts {
  uint8_t action[kMaxBurst];
  DeviceIndex target[kMaxBurst];
  ProgramFaults faults;
  const Origin* from;  // objects and kForward look at it
  // Bytes of metadata in front of each frame, from one link of a chain to the next; filled in where has_metadata.
  bool has_metadata;
  uint8_t metadata[kMaxBurst];

  // The action of all of the first `n` frames (1 or more), -1 where they differ.
  int Alike(uint16_t n) const {
    uint8_t different = 0;
    for (uint16_t i = 1; i < n; ++i) different |= action[i] ^ action[0];
    return different == 0 ? action[0] : -1;
  }
};

// A filter's rule with names resolved; port ranges are those of a rule that names none. A frame's key (KeyOf() in
// packet_headers.h) must equal `value` under `mask`; where the rule asks for more than that, `key_decides` is off.
struct CompiledRule {
  uint64_t mask;
  uint64_t value;
  bool key_decides;
  uint16_t ethertype;
  uint8_t protocol;
  bool match_ethertype;
  bool match_protocol;
  bool match_ports;
  uint16_t source_first, source_last;
  uint16_t destination_first, destination_last;
  uint8_t action;
  DeviceIndex target;
  uint16_t vlan;
  bool match_vlan;
  bool match_addresses;
};

// The addresses of a rule: those of a packet must agree with `value` where `mask` has ones.
struct CompiledPrefix {
  uint8_t ip_version = 0;  // 0: any, not compared
  uint8_t value[16] = {};
  uint8_t mask[16] = {};
};
struct CompiledAddresses {
  CompiledPrefix source;
  CompiledPrefix destination;
};

class Program {
 public:
  // Compiles `config`; `device_names` by DeviceIndex. `programs` are those that a chain may name, or an object share
  // maps with, `maps` those that redirects may go into: they stay where they are as long as the program. `workers`: how
  // many may run an object's program. Errors: InvalidArgument naming the program and the target, map or link that does
  // not exist; of an object those of ObjectProgram::Create().
  static absl::StatusOr<Program> Create(const ProgramConfig& config, const std::vector<std::string>& device_names,
                                        const std::vector<const Program*>& programs = {}, uint32_t workers = 1,
                                        const RedirectMaps* maps = nullptr);

  const std::string& name() const { return config_.name; }
  const ProgramConfig& config() const { return config_; }
  // Null for built-in programs.
  const ObjectProgram* object() const { return object_.get(); }
  // Of a chain: whether all links take chained frames.
  bool frags() const { return frags_; }
  // The program itself, or a chain's links, as CheckAttach() wants them.
  std::vector<ProgramLink> links() const;
  // Whether it may write into frames, and whether frames may have other lengths or buffers afterwards.
  bool writes() const { return writes_; }
  bool reshapes() const { return reshapes_; }

  // How many counters Run() wants: of a filter one per rule and one for the default; of a chain those of its links.
  size_t hit_counters() const { return hit_counters_; }
  // Names of these counters in order.
  std::vector<std::string> hit_names() const;

  // Whether a verdict can be kTx, or a redirect end at `device` or another direct number (maps.h), as maps stand now:
  // what rings must be ready for.
  bool CanTransmit() const;
  bool CanRedirectTo(DeviceIndex device) const;

  // Judges `n` (at most kMaxBurst) frames. Gives the verdict of all of them as a value of XdpAction where they agree
  // (`verdicts->action` is then not filled in, nor `target` unless it is kRedirect), else -1. `hits` holds
  // hit_counters() counters of the calling worker. Hot; any worker, each with its own `hits`.
  int Run(rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter* hits) const {
    return run_(*this, frames, n, verdicts, hits);
  }

 private:
  using RunFunction = int (*)(const Program&, rte_mbuf* const*, uint16_t, Verdicts*, Counter*);

  static int RunConstant(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunRedirect(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunTransmit(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunFilter(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter* hits);
  int Agree(uint8_t action, DeviceIndex target, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts) const;
  static int RunWideFilter(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts,
                           Counter* hits);
  static int RunTouch(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunAdjust(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunForward(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunObject(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter*);
  static int RunChain(const Program& program, rte_mbuf* const* frames, uint16_t n, Verdicts* verdicts, Counter* hits);

  // One for each kind: what Create() adds to a program of it.
  absl::StatusOr<DeviceIndex> FindTarget(const std::string& device, const std::string& map, uint32_t key,
                                         const std::vector<std::string>& device_names) const;
  absl::Status CompileTarget(const std::vector<std::string>& device_names);
  absl::Status CompileFilter(const std::vector<std::string>& device_names);
  absl::Status CompileChain(const std::vector<const Program*>& programs);
  absl::Status CompileObject(size_t devices, const std::vector<const Program*>& programs, uint32_t workers);
  void CompileConstant(XdpAction action);

  RunFunction run_ = nullptr;
  uint8_t action_ = 0;              // of kPass, kDrop, kAborted, kTouch, kAdjust, kForward; the filter's default
  DeviceIndex target_ = kNoDevice;  // of kRedirect and of such an action; the filter's default
  const RedirectMaps* maps_ = nullptr;
  std::vector<CompiledRule> rules_;
  std::vector<CompiledAddresses> addresses_;  // by rule
  std::vector<const Program*> links_;         // of a chain
  std::shared_ptr<const ObjectProgram> object_;
  size_t hit_counters_ = 0;
  bool frags_ = false;
  bool writes_ = false;
  bool reshapes_ = false;
  ProgramConfig config_;
};

}  // namespace halfpage
