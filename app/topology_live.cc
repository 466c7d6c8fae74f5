// Changes of programs and of copies while frames flow, and how workers come to know of any change.
#include <rte_cycles.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/copies.h"
#include "app/topology.h"

namespace halfpage {
namespace {

constexpr double kPatience = 5;         // seconds that a worker may take for a round
constexpr useconds_t kLookAgain = 100;  // microseconds

}  // namespace

absl::Status Topology::HandOver(std::vector<WorkerSettings> settings) {
  if (!running_) {
    for (size_t w = 0; w < workers_.size(); ++w) Adopt(workers_[w], settings[w]);
    published_ = std::move(settings);
    return absl::OkStatus();
  }
  const uint64_t deadline =
      rte_get_timer_cycles() + static_cast<uint64_t>(kPatience * static_cast<double>(rte_get_timer_hz()));
  for (size_t w = 0; w < workers_.size(); ++w) workers_[w].settings.store(&settings[w], std::memory_order_release);
  published_.swap(settings);  // the elements stay where they are
  for (Worker& worker : workers_) {
    while (worker.settings.load(std::memory_order_acquire) != nullptr) {
      if (rte_get_timer_cycles() > deadline) {
        return absl::UnavailableError(
            absl::StrFormat("the worker on lcore %u did not end its round within %.0f s; it will change when it does",
                            worker.lcore, kPatience));
      }
      usleep(kLookAgain);
    }
  }
  return absl::OkStatus();
}

absl::Status Topology::Publish() {
  std::vector<WorkerSettings> settings;
  for (Worker& worker : workers_) {
    auto made = SettingsOf(worker);
    if (!made.ok()) return made.status();
    settings.push_back(*std::move(made));
  }
  absl::Status status = HandOver(std::move(settings));
  if (status.ok()) FoldReplaced();
  return status;
}

absl::Status Topology::CheckAttached() const {
  for (const Attachment& attachment : AttachmentsOf(config_, devices_)) {
    if (attachment.mtu_device == kNoDevice) continue;
    absl::Status status = CheckAttach(attachment.request);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Rings with a new second sender become rings for several; a port has as many queues as it was made with.
absl::Status Topology::AllowSenders() {
  for (DeviceIndex device = 0; device < devices_.size(); ++device) {
    size_t senders = 0;
    uint16_t last_queue = 0;
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (!SendsThrough(config_.lcores.workers[w], device)) continue;
      ++senders;
      last_queue = std::max(last_queue, workers_[w].transmit[device].first_queue);
    }
    if (devices_[device].peer == kNoDevice) {
      const uint16_t queues = ports_[device - 2 * config_.veth.size()].tx_queues();
      if (last_queue < queues) continue;
      return absl::FailedPreconditionError(
          absl::StrFormat("another worker would send through port %s, whose transmit queues (%d) belong to others; let "
                          "the worker that does poll this device, or start with tx_queues: %d (--txq) or more",
                          devices_[device].name, queues, last_queue + 1));
    }
    VethPair& pair = pairs_[device / 2];
    if (senders < 2 || pair.many_senders(device % 2)) continue;
    pair.AllowManySenders(device % 2);
    // Whoever sends now must have come round before a second one may begin.
    absl::Status status = running_ ? HandOver(published_) : absl::OkStatus();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// pass, drop, tx and aborted need no configuration.
absl::Status Topology::AddVerdictProgram(const std::string& name) {
  ProgramConfig config;
  config.name = name;
  const std::pair<const char*, ProgramKind> kinds[] = {{"pass", ProgramKind::kPass},
                                                       {"drop", ProgramKind::kDrop},
                                                       {"tx", ProgramKind::kTx},
                                                       {"aborted", ProgramKind::kAborted}};
  const auto* kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return name == k.first; });
  if (kind == std::end(kinds)) {
    std::vector<std::string> known;
    for (const Program& program : programs_) known.push_back(program.name());
    return absl::NotFoundError(absl::StrFormat("there is no program %s; there are pass, drop, tx, aborted%s%s", name,
                                               known.empty() ? "" : ", ", absl::StrJoin(known, ", ")));
  }
  config.kind = kind->second;
  return AddProgram(config);
}

absl::Status Topology::AddProgram(const ProgramConfig& config) {
  auto program = Program::Create(config, {});
  if (!program.ok()) return program.status();
  config_.programs.push_back(config);
  programs_.push_back(*std::move(program));
  return absl::OkStatus();
}

absl::Status Topology::AttachAll(const std::vector<std::string>& programs) {
  for (const std::string& name : programs) {
    if (name.empty() || FindProgram(name) != nullptr) continue;
    absl::Status status = AddVerdictProgram(name);
    if (!status.ok()) return status;
  }
  const std::vector<Device> before = devices_;
  for (DeviceIndex d = 0; d < devices_.size(); ++d) {
    devices_[d].program = programs[d];
    if (devices_[d].peer == kNoDevice) continue;
    devices_[d].takes_xdp = config_.veth[d / 2].ends[d % 2].gro || !programs[d].empty();
  }
  absl::Status status = CheckAttached();
  if (status.ok()) status = AllowSenders();
  if (status.ok()) status = Publish();
  if (!status.ok() && !absl::IsUnavailable(status)) devices_ = before;
  return status;
}

absl::Status Topology::Attach(DeviceIndex device, const std::string& program) {
  const std::lock_guard<std::mutex> lock(changing_);
  std::vector<std::string> programs;
  for (const Device& each : devices_) programs.push_back(each.program);
  programs[device] = program;
  return AttachAll(programs);
}

// The name of what `device` gets, which is made where it is not there yet.
absl::StatusOr<std::string> Topology::ForwardProgram(DeviceIndex device, const std::string& mode) {
  if (mode == "io") return "";
  if (mode == "rxonly") return "drop";
  const auto* const known = std::find(std::begin(kForwardModeNames), std::end(kForwardModeNames), mode);
  if (known == std::end(kForwardModeNames)) return absl::InvalidArgumentError(absl::StrCat("no mode ", mode));
  ProgramConfig config;
  config.kind = ProgramKind::kForward;
  config.mode = static_cast<ForwardMode>(known - std::begin(kForwardModeNames));
  config.frags = true;
  const size_t sink = FindSink(devices_[device].sink);
  const bool onward = sink < config_.sinks.size() && config_.sinks[sink].kind == SinkConfig::Kind::kPort;
  const bool back = config.mode == ForwardMode::kIcmpecho || (config.mode == ForwardMode::kMacswap && !onward);
  if (back) config.verdict = XdpAction::kTx;
  config.name = absl::StrCat("fwd_", mode, back ? "_back" : "");
  const Program* program = FindProgram(config.name);
  if (program == nullptr) {
    absl::Status status = AddProgram(config);
    if (!status.ok()) return status;
  } else if (program->config().kind != config.kind || program->config().mode != config.mode ||
             program->config().verdict != config.verdict) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the program %s is another one than that of mode %s: attach it by its name (xdp attach)", config.name, mode));
  }
  return config.name;
}

absl::Status Topology::SetForward(const std::string& mode) {
  const std::lock_guard<std::mutex> lock(changing_);
  std::vector<std::string> programs;
  for (DeviceIndex device = 0; device < devices_.size(); ++device) {
    auto program = ForwardProgram(device, mode);
    if (!program.ok()) return program.status();
    programs.push_back(*std::move(program));
  }
  return AttachAll(programs);
}

absl::Status Topology::SetVerdict(const std::string& name, XdpAction verdict) {
  const std::lock_guard<std::mutex> lock(changing_);
  const auto config = std::find_if(config_.programs.begin(), config_.programs.end(),
                                   [&](const ProgramConfig& each) { return each.name == name; });
  if (config == config_.programs.end()) return absl::NotFoundError(absl::StrCat("there is no program ", name));
  if (verdict == XdpAction::kRedirect) {
    return absl::InvalidArgumentError("a redirect needs a target: configure a program of kind redirect and attach it");
  }
  for (const ProgramConfig& chain : config_.programs) {
    if (std::find(chain.programs.begin(), chain.programs.end(), name) == chain.programs.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is a link of the chain %s and stays as it is; attach another program", name, chain.name));
  }
  ProgramConfig changed = *config;
  switch (changed.kind) {
    case ProgramKind::kObject:
    case ProgramKind::kChain:
      return absl::InvalidArgumentError(
          absl::StrFormat("%s is an object's program or a chain, which decide by themselves", name));
    case ProgramKind::kFilter:
      changed.fallback = verdict;
      break;
    case ProgramKind::kTouch:
    case ProgramKind::kAdjust:
    case ProgramKind::kForward:
      changed.verdict = verdict;
      break;
    default:
      changed.kind = verdict == XdpAction::kDrop   ? ProgramKind::kDrop
                     : verdict == XdpAction::kPass ? ProgramKind::kPass
                     : verdict == XdpAction::kTx   ? ProgramKind::kTx
                                                   : ProgramKind::kAborted;
  }
  std::vector<std::string> names;
  for (const Device& device : devices_) names.push_back(device.name);
  auto program = Program::Create(changed, names, {}, static_cast<uint32_t>(workers_.size()), maps_.get());
  if (!program.ok()) return program.status();
  const ProgramConfig before = *config;
  *config = changed;
  programs_.push_front(*std::move(program));
  absl::Status status = CheckAttached();
  if (status.ok()) status = AllowSenders();
  if (status.ok()) status = Publish();
  if (!status.ok() && !absl::IsUnavailable(status)) {
    *config = before;
    programs_.pop_front();
  }
  return status;
}

// A pool for each policy that a device was ever given: buffers of an earlier one may still be on their way.
absl::Status Topology::AddCopyPool(DeviceIndex device, CopyConfig& copy) {
  copy.pools = {absl::StrFormat("copy%d_%d", device, static_cast<int>(copy.policy))};
  if (config_.FindPool(copy.pools.front()) != nullptr) return absl::OkStatus();
  const PktmbufPoolConfig config = CopyPool(copy.pools.front(), copy);
  auto pool = PktmbufPool::Create(config);
  if (!pool.ok()) return pool.status();
  pools_.push_back(*std::move(pool));
  most_in_use_.emplace_back(0);
  config_.pools.push_back(config);
  return absl::OkStatus();
}

absl::Status Topology::SetCopyPolicy(DeviceIndex device, CopyConfig::Policy policy) {
  const std::lock_guard<std::mutex> lock(changing_);
  const CopyConfig before = devices_[device].copy;
  CopyConfig copy = before;
  copy.policy = policy;
  if (CopiesIntoOwnPool(policy)) {
    absl::Status status = AddCopyPool(device, copy);
    if (!status.ok()) return status;
  } else if (CopiesIntoOwnPool(before.policy)) {
    const bool port = devices_[device].peer == kNoDevice;
    copy.pools = {port ? config_.ports[device - 2 * config_.veth.size()].pool : config_.pools.front().name};
  }
  devices_[device].copy = copy;
  absl::Status status = CheckAttached();
  if (status.ok()) status = Publish();
  if (!status.ok() && !absl::IsUnavailable(status)) devices_[device].copy = before;
  return status;
}

}  // namespace halfpage
