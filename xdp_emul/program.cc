#include "xdp_emul/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "xdp_emul/maps.h"
#include "xdp_emul/object_program.h"
#include "xdp_emul/packet_headers.h"

namespace halfpage {
namespace {

// Puts into the key's terms what the rule asks of single values; ranges of ports remain.
void SetKey(CompiledRule& rule) {
  PacketHeaders wanted;
  rule.mask = 0;
  rule.key_decides = true;
  if (rule.match_ethertype) {
    wanted.ethertype = rule.ethertype;
    rule.mask |= 0xffff;
  }
  if (rule.match_protocol) {
    wanted.protocol = rule.protocol;
    wanted.has_protocol = true;
    rule.mask |= kKeyHasProtocol | uint64_t{0xff} << 16;
  }
  if (rule.match_ports) {
    wanted.has_ports = true;
    rule.mask |= kKeyHasPorts;
    const auto single = [&rule](uint16_t first, uint16_t last, uint64_t mask) {
      if (first == last) rule.mask |= mask;
      rule.key_decides &= first == last || (first == 0 && last == UINT16_MAX);
      return first == last ? first : uint16_t{0};
    };
    wanted.source_port = single(rule.source_first, rule.source_last, uint64_t{0xffff} << 48);
    wanted.destination_port = single(rule.destination_first, rule.destination_last, uint64_t{0xffff} << 32);
  }
  rule.value = KeyOf(wanted);
}

CompiledRule Compile(const FilterRule& rule) {
  CompiledRule compiled = {};
  compiled.match_ethertype = rule.ethertype.has_value();
  compiled.ethertype = rule.ethertype.value_or(0);
  compiled.match_protocol = rule.protocol.has_value();
  compiled.protocol = rule.protocol.value_or(0);
  compiled.match_ports = rule.source_port.has_value() || rule.destination_port.has_value();
  const PortRange source = rule.source_port.value_or(PortRange());
  const PortRange destination = rule.destination_port.value_or(PortRange());
  compiled.source_first = source.first;
  compiled.source_last = source.last;
  compiled.destination_first = destination.first;
  compiled.destination_last = destination.last;
  compiled.action = static_cast<uint8_t>(rule.verdict);
  compiled.target = kNoDevice;
  SetKey(compiled);
  compiled.match_vlan = rule.vlan.has_value();
  compiled.vlan = rule.vlan.value_or(0);
  compiled.match_addresses = rule.source.has_value() || rule.destination.has_value();
  return compiled;
}

CompiledPrefix Compile(const std::optional<AddressPrefix>& prefix) {
  CompiledPrefix compiled;
  if (!prefix.has_value()) return compiled;
  compiled.ip_version = prefix->ipv6 ? 6 : 4;
  for (size_t bit = 0; bit < prefix->length; ++bit) {
    compiled.mask[bit / 8] = static_cast<uint8_t>(compiled.mask[bit / 8] | 0x80u >> bit % 8);
  }
  for (size_t i = 0; i < sizeof(compiled.value); ++i) compiled.value[i] = prefix->bytes[i] & compiled.mask[i];
  return compiled;
}

}  // namespace

void Program::CompileConstant(XdpAction action) {
  run_ = RunConstant;
  action_ = static_cast<uint8_t>(action);
}

absl::StatusOr<DeviceIndex> Program::FindTarget(const std::string& device, const std::string& map, uint32_t key,
                                                const std::vector<std::string>& device_names) const {
  if (!map.empty()) {
    const RedirectMap* found = maps_ == nullptr ? nullptr : maps_->Find(map);
    if (found != nullptr) return found->TargetOf(key);
    return absl::InvalidArgumentError(absl::StrFormat("program %s: there is no map `%s`", config_.name, map));
  }
  const auto found = std::find(device_names.begin(), device_names.end(), device);
  if (found == device_names.end()) {
    return absl::InvalidArgumentError(absl::StrFormat("program %s: redirect target `%s` is no device end; there are %s",
                                                      config_.name, device, absl::StrJoin(device_names, ", ")));
  }
  return static_cast<DeviceIndex>(found - device_names.begin());
}

// The target of a verdict that is the same for all frames.
absl::Status Program::CompileTarget(const std::vector<std::string>& device_names) {
  if (action_ != static_cast<uint8_t>(XdpAction::kRedirect)) return absl::OkStatus();
  const auto target = FindTarget(config_.target, config_.map, config_.key, device_names);
  if (!target.ok()) return target.status();
  target_ = *target;
  return absl::OkStatus();
}

absl::Status Program::CompileFilter(const std::vector<std::string>& device_names) {
  run_ = RunFilter;
  action_ = static_cast<uint8_t>(config_.fallback);
  if (config_.fallback == XdpAction::kRedirect) {
    const auto target = FindTarget(config_.fallback_target, config_.fallback_map, config_.fallback_key, device_names);
    if (!target.ok()) return target.status();
    target_ = *target;
  }
  for (const FilterRule& rule : config_.rules) {
    CompiledRule compiled = Compile(rule);
    if (rule.verdict == XdpAction::kRedirect) {
      const auto target = FindTarget(rule.target, rule.map, rule.key, device_names);
      if (!target.ok()) return target.status();
      compiled.target = *target;
    }
    rules_.push_back(compiled);
    addresses_.push_back({Compile(rule.source), Compile(rule.destination)});
  }
  // What the one-word key of a frame does not hold is looked up frame by frame.
  const bool wide = std::any_of(rules_.begin(), rules_.end(),
                                [](const CompiledRule& rule) { return rule.match_vlan || rule.match_addresses; });
  if (wide) run_ = RunWideFilter;
  hit_counters_ = rules_.size() + 1;
  writes_ = CanTransmit();  // swaps MAC addresses
  return absl::OkStatus();
}

absl::Status Program::CompileChain(const std::vector<const Program*>& programs) {
  run_ = RunChain;
  action_ = static_cast<uint8_t>(XdpAction::kPass);
  frags_ = true;
  for (const std::string& name : config_.programs) {
    const auto found =
        std::find_if(programs.begin(), programs.end(), [&](const Program* each) { return each->name() == name; });
    if (found == programs.end() || (*found)->config_.kind == ProgramKind::kChain) {
      return absl::InvalidArgumentError(
          absl::StrFormat("program %s: its link `%s` is %s; name programs that are no chains", config_.name, name,
                          found == programs.end() ? "no program" : "a chain itself"));
    }
    links_.push_back(*found);
    hit_counters_ += (*found)->hit_counters();
    frags_ = frags_ && (*found)->frags();
    writes_ = writes_ || (*found)->writes();
    reshapes_ = reshapes_ || (*found)->reshapes();
  }
  return absl::OkStatus();
}

absl::Status Program::CompileObject(size_t devices, const std::vector<const Program*>& programs, uint32_t workers) {
  run_ = RunObject;
  const ObjectProgram* shared = nullptr;
  if (!config_.maps_of.empty()) {
    for (const Program* each : programs) {
      if (each->name() == config_.maps_of) shared = each->object();
    }
    if (shared == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "program %s: maps_of: `%s` is no program of an object before it", config_.name, config_.maps_of));
    }
  }
  auto object = ObjectProgram::Create(config_, devices, workers, shared, maps_);
  if (!object.ok()) return object.status();
  object_ = *std::move(object);
  frags_ = object_->frags();
  reshapes_ = object_->reshapes();
  writes_ = object_->writes();
  return absl::OkStatus();
}

absl::StatusOr<Program> Program::Create(const ProgramConfig& config, const std::vector<std::string>& device_names,
                                        const std::vector<const Program*>& programs, uint32_t workers,
                                        const RedirectMaps* maps) {
  Program program;
  program.config_ = config;
  program.maps_ = maps;
  program.frags_ = config.frags;
  absl::Status status;
  switch (config.kind) {
    case ProgramKind::kPass:
      program.CompileConstant(XdpAction::kPass);
      break;
    case ProgramKind::kDrop:
      program.CompileConstant(XdpAction::kDrop);
      break;
    case ProgramKind::kAborted:
      program.CompileConstant(XdpAction::kAborted);
      break;
    case ProgramKind::kTx:
      program.run_ = RunTransmit;
      program.action_ = static_cast<uint8_t>(XdpAction::kTx);
      program.writes_ = true;
      break;
    case ProgramKind::kRedirect:
      program.run_ = RunRedirect;
      program.action_ = static_cast<uint8_t>(XdpAction::kRedirect);
      status = program.CompileTarget(device_names);
      break;
    case ProgramKind::kFilter:
      status = program.CompileFilter(device_names);
      break;
    case ProgramKind::kChain:
      status = program.CompileChain(programs);
      break;
    case ProgramKind::kTouch:
    case ProgramKind::kAdjust:
      program.run_ = config.kind == ProgramKind::kTouch ? RunTouch : RunAdjust;
      program.action_ = static_cast<uint8_t>(config.verdict);
      program.reshapes_ = config.kind == ProgramKind::kAdjust;
      program.writes_ = program.reshapes_ || config.touch == Touch::kRewrite;
      status = program.CompileTarget(device_names);
      break;
    case ProgramKind::kForward:
      program.run_ = RunForward;
      program.action_ = static_cast<uint8_t>(config.verdict);
      program.writes_ = true;
      status = program.CompileTarget(device_names);
      break;
    case ProgramKind::kObject:
      status = program.CompileObject(device_names.size(), programs, workers);
      break;
  }
  if (!status.ok()) return status;
  return program;
}

std::vector<ProgramLink> Program::links() const {
  if (links_.empty()) return {{name(), frags_}};
  std::vector<ProgramLink> links;
  for (const Program* link : links_) links.push_back({link->name(), link->frags()});
  return links;
}

std::vector<std::string> Program::hit_names() const {
  std::vector<std::string> names;
  if (config_.kind == ProgramKind::kChain) {
    for (const Program* link : links_) {
      for (const std::string& hit : link->hit_names()) names.push_back(absl::StrCat(link->name(), " ", hit));
    }
  }
  if (config_.kind != ProgramKind::kFilter) return names;
  for (size_t i = 0; i < config_.rules.size(); ++i) {
    names.push_back(config_.rules[i].name.empty() ? absl::StrCat("rule ", i) : config_.rules[i].name);
  }
  names.push_back("default");
  return names;
}

bool Program::CanTransmit() const {
  constexpr auto kTx = static_cast<uint8_t>(XdpAction::kTx);
  return action_ == kTx || object_ != nullptr ||  // what an object says shows when it runs
         std::any_of(rules_.begin(), rules_.end(), [](const CompiledRule& rule) { return rule.action == kTx; }) ||
         std::any_of(links_.begin(), links_.end(), [](const Program* link) { return link->CanTransmit(); });
}

bool Program::CanRedirectTo(DeviceIndex device) const {
  const auto leads = [this, device](DeviceIndex target) {
    return maps_ != nullptr ? maps_->Leads(target, device) : target == device;
  };
  return leads(target_) || (object_ != nullptr && object_->redirects()) ||
         std::any_of(rules_.begin(), rules_.end(), [&](const CompiledRule& rule) { return leads(rule.target); }) ||
         std::any_of(links_.begin(), links_.end(), [=](const Program* link) { return link->CanRedirectTo(device); });
}

}  // namespace halfpage
