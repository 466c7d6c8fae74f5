// The keys of programs and of the maps that they redirect into. See app/config_fields.h.
#include <iterator>

#include "app/config_sections.h"

namespace halfpage {
namespace {

constexpr NumberRule kAdjustment = {.max = 16384};

struct TargetKeys {
  const char* map = "map";
  const char* target = "target";
  const char* key = "key";
};

// Where a redirect goes: a device, or a key of a map.
void DescribeTarget(std::string& target, std::string& map, uint32_t& key, FieldVisitor& v,
                    const TargetKeys& keys = {}) {
  v.Value({keys.map, "in place of the target: the map that the frame goes into"}, OptionalName(map));
  v.Value({keys.target, "end that the frame leaves through", map.empty()},
          map.empty() ? Name(target, kDeviceName) : OptionalName(target, kDeviceName));
  v.Value({keys.key, "with the map: the slot; queue: that of the queue which received the frame"},
          Number(key, {.max = kMostMapSlots - 1, .word = "queue", .word_value = kKeyOfQueue}));
}

}  // namespace

void Describe(FilterRule& rule, FieldVisitor& v) {
  // The name that is filled in has a blank and must load again.
  v.Value({"name", "of the rule's counter; left out: \"rule N\""},
          Text(rule.name, {.letters = TextRule::Letters::kLabel, .max = 31, .may_be_empty = true}));
  v.Value({"ethertype", "behind at most two VLAN tags"}, Ethertype(rule.ethertype));
  v.Value({"protocol", "IPv4 protocol or last IPv6 next header"}, Protocol(rule.protocol));
  v.Value({"vlan", "id of the outermost tag"}, Vlan(rule.vlan));
  v.Value({"source", "IPv4 or IPv6"}, Prefix(rule.source));
  v.Value({"destination", "IPv4 or IPv6"}, Prefix(rule.destination));
  v.Value({"source_port", "TCP, UDP or SCTP"}, Ports(rule.source_port));
  v.Value({"destination_port", "TCP, UDP or SCTP"}, Ports(rule.destination_port));
  v.Value({"verdict", "of a frame that all of the above match", kRequired}, Verdict(rule.verdict));
  v.When(rule.verdict == XdpAction::kRedirect, "verdict", "redirect");
  DescribeTarget(rule.target, rule.map, rule.key, v);
}

void Describe(MapEntryConfig& entry, FieldVisitor& v) {
  v.Value({"map", "its name in the object", kRequired}, Text(entry.map, {.max = 127}));
  v.Value(
      {"key", "numbers (5 as wide as there is room, 5:2 for two bytes), addresses, hex:0a0b; commas between fields"},
      Text(entry.key, {.may_be_empty = true}));
  v.Value({"value", "the same"}, Text(entry.value, {.may_be_empty = true}));
  v.Value({"device", "in place of a value: the device's interface number"}, OptionalName(entry.device, kDeviceName));
  v.Value({"program", "with the device, in a DEVMAP or DEVMAP_HASH: judges frames before they leave (xdp/devmap)"},
          OptionalName(entry.program));
  v.Value({"redirect_map",
           "in place of key and value: a map of the run that stands for the object's DEVMAP, XSKMAP or CPUMAP"},
          OptionalName(entry.redirect_map));
}

void Describe(ProgramConfig& program, FieldVisitor& v) {
  v.Value({"name", "unique among programs", kRequired}, Name(program.name));
  v.Value({"kind", "what it does with a frame"},
          Choice(program.kind, {"pass", "drop", "tx", "aborted", "redirect", "filter", "chain", "touch", "adjust",
                                "object", "forward"}));
  v.When(program.kind != ProgramKind::kObject, "kind", "anything but object, whose section says it");
  v.Value({"frags",
           "may be shown frames in several buffers (kernel: xdp.frags, else xdp); pass, drop, aborted and "
           "redirect never look behind the first bytes"},
          Flag(program.frags));
  v.When(program.kind == ProgramKind::kObject, "kind", "object");
  v.Value({"object", "XDP object built with clang -target bpf; relative to this file's folder", kRequired},
          Text(program.object, {}));
  v.Value({"function", "the program's name in the object, \"\": the only one"},
          Text(program.program, {.max = 127, .may_be_empty = true}));
  v.Value({"jit", "auto: compiled where LLVM was there at the build; llvm: compiled or refused; off: interpreted"},
          Choice(program.jit, {"auto", "llvm", "off"}));
  v.Value({"maps_of", "program of the same object, before this one, whose maps it shares; \"\": maps of its own"},
          OptionalName(program.maps_of));
  v.List({"maps", "entries of its maps before the run"}, Maps(program.maps, 0, kMostEntries));
  v.When(program.kind == ProgramKind::kChain, "kind", "chain");
  v.List({"programs", "run in this order, the next one where one says pass", kRequired, "programs: [first, second]"},
         NameList(program.programs));
  v.When(program.kind == ProgramKind::kTouch, "kind", "touch");
  v.Value({"touch", "how much it looks at before its verdict"},
          Choice(program.touch, {"none", "read", "parse", "rewrite"}));
  v.When(program.kind == ProgramKind::kAdjust, "kind", "adjust");
  v.Value({"pull", "bytes taken away in front"}, Number(program.adjust.pull, kAdjustment));
  v.Value({"push", "zeros put in front"}, Number(program.adjust.push, kAdjustment));
  v.Value({"trim", "bytes cut off at the end"}, Number(program.adjust.trim, kAdjustment));
  v.Value({"grow", "zeros added at the end"}, Number(program.adjust.grow, kAdjustment));
  v.Value({"metadata", "bytes of metadata in front, a multiple of 4"}, Number(program.adjust.metadata, {.max = 252}));
  v.When(program.kind == ProgramKind::kForward, "kind", "forward");
  v.Value({"mode",
           "testpmd's: mac writes the addresses of the device that frames leave through and of its peer, csum "
           "checksums, too; icmpecho answers ARP and echo requests and drops the rest"},
          Choice(program.mode, {std::begin(kForwardModeNames), std::end(kForwardModeNames)}));
  const bool says = program.kind == ProgramKind::kTouch || program.kind == ProgramKind::kAdjust ||
                    program.kind == ProgramKind::kForward;
  v.When(says, "kind", "touch, adjust or forward");
  v.Value({"verdict", "of every frame; mode icmpecho: of answers"}, Verdict(program.verdict));
  v.When(program.kind == ProgramKind::kRedirect || (says && program.verdict == XdpAction::kRedirect), "kind",
         "redirect");
  DescribeTarget(program.target, program.map, program.key, v);
  v.When(program.kind == ProgramKind::kFilter, "kind", "filter");
  v.List({"rules", "the first that matches decides"}, Maps(program.rules, 0, kMostNamed));
  v.Value({"default", "verdict of a frame that no rule matches"}, Verdict(program.fallback));
  v.When(program.kind == ProgramKind::kFilter && program.fallback == XdpAction::kRedirect, "default", "redirect");
  DescribeTarget(program.fallback_target, program.fallback_map, program.fallback_key, v,
                 {"default_map", "default_target", "default_key"});
}

void Describe(MapSlotConfig& entry, FieldVisitor& v) {
  v.Value({"key", "of the slot, below the map's size", kRequired}, Number(entry.key, {.max = kMostMapSlots - 1}));
  v.Value({"device", "kind devmap: end or port that frames leave through"}, OptionalName(entry.device, kDeviceName));
  v.Value({"sink", "kind xskmap: sink of kind user that takes frames"}, OptionalName(entry.sink));
  v.Value({"worker", "kind cpumap: number of the worker in `lcores`, which lets them pass or judges again"},
          Number(entry.worker, {.max = 126}));
  v.Value({"ring", "kind cpumap: frames that may wait for it (kernel: qsize)"},
          Number(entry.ring, {.min = 1, .max = 32768}));
  v.Value({"program",
           "second one: kind devmap: judges before frames leave, kind cpumap: on that worker; \"\": everything passes"},
          OptionalName(entry.program));
}

void Describe(RedirectMapConfig& map, FieldVisitor& v) {
  v.Value({"name", "unique among maps", kRequired}, Name(map.name));
  v.Value({"kind", "slots lead to devices, to users' rings, or to other workers"},
          Choice(map.kind, {"devmap", "xskmap", "cpumap"}));
  v.Value({"size", "slots; keys are below it (kernel: max_entries)"},
          Number(map.size, {.min = 1, .max = kMostMapSlots}));
  v.When(map.kind == MapKind::kDevmap, "kind", "devmap");
  v.Value({"broadcast", "each frame leaves through all slots (kernel: BPF_F_BROADCAST)"}, Flag(map.broadcast));
  v.Value({"exclude_ingress", "with `broadcast`: but not through the device that received it"},
          Flag(map.exclude_ingress));
  v.Always();
  v.List({"entries", "slots that lead somewhere; all others are empty, and what is redirected there bad_target"},
         Maps(map.entries, 0, kMostMapSlots));
}

}  // namespace halfpage
