#include "xdp_emul/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "xdp_emul/packet_headers.h"

namespace halfpage {
namespace {

absl::StatusOr<DeviceIndex> FindDevice(const ProgramConfig& config, const std::string& target,
                                       const std::vector<std::string>& device_names) {
  const auto found = std::find(device_names.begin(), device_names.end(), target);
  if (found == device_names.end()) {
    return absl::InvalidArgumentError(absl::StrFormat("program %s: redirect target `%s` is no device end; there are %s",
                                                      config.name, target, absl::StrJoin(device_names, ", ")));
  }
  return static_cast<DeviceIndex>(found - device_names.begin());
}

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
  return compiled;
}

}  // namespace

absl::StatusOr<Program> Program::Create(const ProgramConfig& config, const std::vector<std::string>& device_names) {
  Program program;
  program.config_ = config;
  switch (config.kind) {
    case ProgramKind::kPass:
      program.run_ = RunConstant;
      program.action_ = static_cast<uint8_t>(XdpAction::kPass);
      break;
    case ProgramKind::kDrop:
      program.run_ = RunConstant;
      program.action_ = static_cast<uint8_t>(XdpAction::kDrop);
      break;
    case ProgramKind::kAborted:
      program.run_ = RunConstant;
      program.action_ = static_cast<uint8_t>(XdpAction::kAborted);
      break;
    case ProgramKind::kTx:
      program.run_ = RunTransmit;
      program.action_ = static_cast<uint8_t>(XdpAction::kTx);
      break;
    case ProgramKind::kRedirect: {
      const auto target = FindDevice(config, config.target, device_names);
      if (!target.ok()) return target.status();
      program.run_ = RunRedirect;
      program.action_ = static_cast<uint8_t>(XdpAction::kRedirect);
      program.target_ = *target;
      break;
    }
    case ProgramKind::kFilter:
      program.run_ = RunFilter;
      program.action_ = static_cast<uint8_t>(config.fallback);
      if (config.fallback == XdpAction::kRedirect) {
        const auto target = FindDevice(config, config.fallback_target, device_names);
        if (!target.ok()) return target.status();
        program.target_ = *target;
      }
      for (const FilterRule& rule : config.rules) {
        CompiledRule compiled = Compile(rule);
        if (rule.verdict == XdpAction::kRedirect) {
          const auto target = FindDevice(config, rule.target, device_names);
          if (!target.ok()) return target.status();
          compiled.target = *target;
        }
        program.rules_.push_back(compiled);
      }
      break;
  }
  return program;
}

std::vector<std::string> Program::hit_names() const {
  std::vector<std::string> names;
  if (hit_counters() == 0) return names;
  for (size_t i = 0; i < config_.rules.size(); ++i) {
    names.push_back(config_.rules[i].name.empty() ? absl::StrCat("rule ", i) : config_.rules[i].name);
  }
  names.push_back("default");
  return names;
}

bool Program::CanTransmit() const {
  constexpr auto kTx = static_cast<uint8_t>(XdpAction::kTx);
  return action_ == kTx ||
         std::any_of(rules_.begin(), rules_.end(), [](const CompiledRule& rule) { return rule.action == kTx; });
}

bool Program::CanRedirectTo(DeviceIndex device) const {
  return target_ == device ||
         std::any_of(rules_.begin(), rules_.end(), [=](const CompiledRule& rule) { return rule.target == device; });
}

}  // namespace halfpage
