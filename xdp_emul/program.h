// Built-in XDP programs: compiled from their configuration once, run over bursts by workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mempool/counter.h"
#include "xdp_emul/program_config.h"
#include "xdp_emul/xdp_action.h"

struct rte_mbuf;

namespace halfpage {

// Frames of one poll at most: NAPI's weight, and the size of every array on the way.
inline constexpr uint16_t kMaxBurst = 64;

// Index of a device end in the topology's order.
using DeviceIndex = uint16_t;
inline constexpr DeviceIndex kNoDevice = UINT16_MAX;

// What a program says of a burst: an XdpAction per frame, and for kRedirect the device that the frame leaves through.
struct Verdicts {
  uint8_t action[kMaxBurst];
  DeviceIndex target[kMaxBurst];
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
};

class Program {
 public:
  // Compiles `config`; `device_index` translates the names of device ends. Errors: InvalidArgument naming the program
  // and the target that does not exist.
  static absl::StatusOr<Program> Create(const ProgramConfig& config, const std::vector<std::string>& device_names);

  const std::string& name() const { return config_.name; }
  const ProgramConfig& config() const { return config_; }
  bool frags() const { return config_.frags; }

  // How many counters Run() wants: one per rule and one for the default, or none.
  size_t hit_counters() const { return rules_.empty() && config_.kind != ProgramKind::kFilter ? 0 : rules_.size() + 1; }
  // Names of these counters in order.
  std::vector<std::string> hit_names() const;

  // Whether a verdict can be kTx, or kRedirect to `device`: what rings must be ready for.
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

  RunFunction run_ = nullptr;
  uint8_t action_ = 0;              // of kPass, kDrop, kAborted; the filter's default
  DeviceIndex target_ = kNoDevice;  // of kRedirect; the filter's default
  std::vector<CompiledRule> rules_;
  ProgramConfig config_;
};

}  // namespace halfpage
