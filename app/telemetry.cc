#include "app/telemetry.h"

#include <rte_telemetry.h>

#include <cctype>
#include <mutex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "app/ledger.h"
#include "app/snapshot_json.h"

namespace halfpage {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPage = 64;          // items of a list in one reply
constexpr size_t kReplyBytes = 8000;  // of a reply's own text; DPDK cuts at 16 KiB, its numbers and quotes included

// DPDK's handlers have no argument of their own. Held while one answers, so that nothing goes away under it.
struct Source {
  std::mutex mutex;
  const Topology* topology = nullptr;
};
Source& TheSource() {
  static Source source;
  return source;
}

// DPDK takes letters, digits, _ and / in names.
std::string NameFor(const std::string& text) {
  std::string name = text.substr(0, RTE_TEL_MAX_STRING_LEN - 1);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '/') c = '_';
  }
  return name;
}

void Add(rte_tel_data* dict, const std::string& name, const Json& value);

void AddAll(rte_tel_data* dict, const Json& object) {
  for (const auto& [name, value] : object.items()) Add(dict, NameFor(name), value);
}

void Add(rte_tel_data* dict, const std::string& name, const Json& value) {
  if (value.is_number_unsigned() || value.is_boolean()) {
    rte_tel_data_add_dict_u64(dict, name.c_str(), value.is_boolean() ? value.get<bool>() : value.get<uint64_t>());
  } else if (value.is_object() || value.is_array()) {
    rte_tel_data* inner = rte_tel_data_alloc();
    if (inner == nullptr) return;
    if (value.is_object()) {
      rte_tel_data_start_dict(inner);
      AddAll(inner, value);
    } else if (!value.empty() && value.front().is_number_unsigned()) {
      rte_tel_data_start_array(inner, RTE_TEL_U64_VAL);
      for (const Json& each : value) rte_tel_data_add_array_u64(inner, each.get<uint64_t>());
    } else {
      rte_tel_data_start_array(inner, RTE_TEL_STRING_VAL);
      for (const Json& each : value) {
        const std::string text = each.is_string() ? each.get<std::string>() : each.dump();
        rte_tel_data_add_array_string(inner, text.substr(0, RTE_TEL_MAX_STRING_LEN - 1).c_str());
      }
    }
    if (rte_tel_data_add_dict_container(dict, name.c_str(), inner, 0) != 0) rte_tel_data_free(inner);
  } else {
    // Numbers with a fraction, too: telemetry has none.
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    rte_tel_data_add_dict_string(dict, name.c_str(), text.substr(0, RTE_TEL_MAX_SINGLE_STRING_LEN - 1).c_str());
  }
}

// A reply whose text may be too long is given in pages: `{"next": FROM}` says where to go on.
void Paged(rte_tel_data* reply, const Json& object, size_t from) {
  rte_tel_data_start_dict(reply);
  size_t bytes = 0;
  size_t at = 0;
  size_t given = 0;
  for (const auto& [name, value] : object.items()) {
    if (at++ < from) continue;
    const size_t wanted = name.size() + value.dump(-1, ' ', false, Json::error_handler_t::replace).size() + 4;
    if (given == kPage || (given != 0 && bytes + wanted > kReplyBytes)) {
      rte_tel_data_add_dict_u64(reply, "next", at - 1);
      return;
    }
    Add(reply, NameFor(name), value);
    bytes += wanted;
    ++given;
  }
}

// What each family shows of its things, and what of all that is info.
struct Family {
  const char* name;
  const char* list;  // in the snapshot's JSON
  const char* key;   // of a thing's name
  std::vector<const char*> info;
};
const Family& FamilyOf(const std::string& command) {
  static const Family families[] = {
      {"pools", "pools", "name", {"name", "ops", "size", "data_room", "exact", "page_size", "objects_per_page"}},
      {"veth", "devices", "name", {"name", "port", "peer", "program", "sink", "mtu", "up"}},
      {"programs",
       "objects",
       "name",
       {"name", "object", "program", "run_by", "not_compiled", "instructions", "frags", "maps"}},
      {"sinks", "sinks", "name", {"name", "port", "file"}},
      {"traffic", "traffic", "name", {"name", "into"}},
      {"workers", "workers", "lcore", {"lcore"}},
      {"maps", "maps", "name", {"name", "kind"}},
      {"lanes", "lanes", "name", {"name", "worker", "program"}},
      {"egress", "egress", "name", {"name"}},
  };
  for (const Family& family : families) {
    if (command == family.name) return family;
  }
  return families[0];
}

std::string NameOf(const Json& thing, const Family& family) {
  const Json& name = thing[family.key];
  return name.is_string() ? name.get<std::string>() : name.dump();
}

// "NAME,FROM" or "FROM".
bool Number(absl::string_view text, size_t* number) {
  return text.empty() || absl::SimpleAtoi(text, number);
}

int ListThings(const Family& family, const Json& json, const char* parameters, rte_tel_data* reply) {
  size_t from = 0;
  if (!Number(parameters == nullptr ? "" : parameters, &from)) return -EINVAL;
  rte_tel_data_start_array(reply, RTE_TEL_STRING_VAL);
  const Json& list = json[family.list];
  for (size_t i = from; i < list.size() && i < from + kPage; ++i) {
    rte_tel_data_add_array_string(reply, NameOf(list[i], family).c_str());
  }
  return 0;
}

int TellThing(const Family& family, bool info, const Json& json, const char* parameters, rte_tel_data* reply) {
  const std::pair<std::string, std::string> words =
      absl::StrSplit(parameters == nullptr ? "" : parameters, absl::MaxSplits(',', 1));
  size_t from = 0;
  if (words.first.empty() || !Number(words.second, &from)) return -EINVAL;
  for (const Json& thing : json[family.list]) {
    if (NameOf(thing, family) != words.first) continue;
    Json told = Json::object();
    for (const auto& [name, value] : thing.items()) {
      const bool is_info = std::find_if(family.info.begin(), family.info.end(),
                                        [&](const char* each) { return name == each; }) != family.info.end();
      if (is_info == info || name == family.key) told[name] = value;
    }
    Paged(reply, told, from);
    return 0;
  }
  return -ENOENT;
}

int TellLedger(const Snapshot& snapshot, rte_tel_data* reply) {
  const std::vector<std::string> faults = CheckLedger(snapshot);
  Json ledger = {{"balanced", faults.empty()},
                 {"forwarding", snapshot.forwarding},
                 {"pages_in_flight", snapshot.pages_in_flight()},
                 {"buffers_in_use", snapshot.buffers_in_use()},
                 {"faults", faults}};
  Paged(reply, ledger, 0);
  return 0;
}

// "MAP" or "MAP,FROM": entries by key, a value for all or one for each worker.
int TellEntries(const ObjectMaps& maps, const TargetNames& names, const char* parameters, rte_tel_data* reply) {
  const std::pair<std::string, std::string> words =
      absl::StrSplit(parameters == nullptr ? "" : parameters, absl::MaxSplits(',', 1));
  size_t from = 0;
  if (words.first.empty() || !Number(words.second, &from)) return -EINVAL;
  const auto map = FindMap(maps, words.first);
  if (!map.ok()) return absl::IsNotFound(map.status()) ? -ENOENT : -EINVAL;
  const auto entries = ReadMapEntries(*map, from, kPage, names);
  if (!entries.ok()) return -EINVAL;
  rte_tel_data_start_array(reply, RTE_TEL_STRING_VAL);
  size_t bytes = 0;
  for (size_t i = 0; i < entries->size() && bytes < kReplyBytes; ++i) {
    const MapEntryText& entry = (*entries)[i];
    const std::string text = absl::StrCat(entry.key, ": ", absl::StrJoin(entry.values, " "));
    rte_tel_data_add_array_string(reply, text.substr(0, RTE_TEL_MAX_STRING_LEN - 1).c_str());
    bytes += text.size() + 4;
  }
  return 0;
}

int ListMaps(const ObjectMaps& maps, const char* parameters, rte_tel_data* reply) {
  size_t from = 0;
  if (!Number(parameters == nullptr ? "" : parameters, &from)) return -EINVAL;
  rte_tel_data_start_array(reply, RTE_TEL_STRING_VAL);
  const std::vector<std::string> names = MapNames(maps);
  for (size_t i = from; i < names.size() && i < from + kPage; ++i)
    rte_tel_data_add_array_string(reply, names[i].c_str());
  return 0;
}

// "/halfpage/bpf/maps" and "/halfpage/bpf/entries".
int TellMaps(const Topology& topology, bool list, const char* parameters, rte_tel_data* reply) {
  int result = 0;
  const absl::Status status = topology.WithObjectMaps([&](const ObjectMaps& maps) {
    result = list ? ListMaps(maps, parameters, reply) : TellEntries(maps, topology.target_names(), parameters, reply);
    return absl::OkStatus();
  });
  return status.ok() ? result : -EINVAL;
}

// Of all commands: "/halfpage/FAMILY/list|info|stats", "/halfpage/ledger", "/halfpage/info". Called by telemetry's
// threads.
int Answer(const char* command, const char* parameters, rte_tel_data* reply) {
  Source& source = TheSource();
  const std::lock_guard<std::mutex> lock(source.mutex);
  if (source.topology == nullptr) return -ENODEV;
  const std::vector<std::string> path = absl::StrSplit(command, '/', absl::SkipEmpty());
  if (path.size() == 3 && path[1] == "bpf") return TellMaps(*source.topology, path[2] == "maps", parameters, reply);
  // Info of the whole and the ledger take no parameters: one that is ignored would look as if it had been heeded.
  if (path.size() == 2 && parameters != nullptr && *parameters != '\0') return -EINVAL;
  const Snapshot snapshot = source.topology->Read();
  if (path.size() == 2 && path[1] == "ledger") return TellLedger(snapshot, reply);
  const Json json = SnapshotJson(snapshot);
  if (path.size() == 2) {
    Json told = Json::object();
    for (const auto& [name, value] : json.items()) {
      if (!value.is_array()) told[name] = value;
    }
    Paged(reply, told, 0);
    return 0;
  }
  const Family& family = FamilyOf(path[1]);
  if (path[2] == "list") return ListThings(family, json, parameters, reply);
  return TellThing(family, path[2] == "info", json, parameters, reply);
}

}  // namespace

absl::StatusOr<Telemetry> Telemetry::Start(const Topology& topology) {
  struct Entry {
    const char* command;
    const char* help;
  };
  static const Entry commands[] = {
      {"/halfpage/info", "The run as a whole. No parameters"},
      {"/halfpage/ledger", "Whether each frame is accounted for. No parameters"},
      {"/halfpage/pools/list", "Pools of buffers. Parameters: none, or from which on"},
      {"/halfpage/pools/info", "What a pool is. Parameters: NAME"},
      {"/halfpage/pools/stats", "What a pool has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/veth/list", "Devices: ends of pairs, then ports. Parameters: none, or from which on"},
      {"/halfpage/veth/info", "What a device is. Parameters: NAME"},
      {"/halfpage/veth/stats", "What a device has counted; `next` is the FROM of more. Parameters: NAME[,FROM]"},
      {"/halfpage/programs/list", "Programs of objects. Parameters: none, or from which on"},
      {"/halfpage/programs/info", "What a program is. Parameters: NAME"},
      {"/halfpage/programs/stats", "What a program has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/bpf/maps", "Maps of objects, PROGRAM/MAP. Parameters: none, or from which on"},
      {"/halfpage/bpf/entries", "Entries of a map, 64 at a time. Parameters: MAP or PROGRAM/MAP[,FROM]"},
      {"/halfpage/sinks/list", "Sinks. Parameters: none, or from which on"},
      {"/halfpage/sinks/info", "What a sink is. Parameters: NAME"},
      {"/halfpage/sinks/stats", "What a sink has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/traffic/list", "Sources. Parameters: none, or from which on"},
      {"/halfpage/traffic/info", "What a source is. Parameters: NAME"},
      {"/halfpage/traffic/stats", "What a source has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/maps/list", "Maps of the configuration. Parameters: none, or from which on"},
      {"/halfpage/maps/info", "What a map is. Parameters: NAME"},
      {"/halfpage/maps/stats", "What a map has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/lanes/list", "Lanes: what maps of workers run. Parameters: none, or from which on"},
      {"/halfpage/lanes/info", "What a lane is. Parameters: NAME"},
      {"/halfpage/lanes/stats", "What a lane has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/egress/list", "Programs behind devmaps. Parameters: none, or from which on"},
      {"/halfpage/egress/info", "What such a program is. Parameters: NAME"},
      {"/halfpage/egress/stats", "What such a program has counted. Parameters: NAME[,FROM]"},
      {"/halfpage/workers/list", "Workers' lcores. Parameters: none, or from which on"},
      {"/halfpage/workers/info", "What a worker is. Parameters: LCORE"},
      {"/halfpage/workers/stats", "What a worker has counted. Parameters: LCORE[,FROM]"},
  };
  for (const Entry& entry : commands) {
    const int result = rte_telemetry_register_cmd(entry.command, Answer, entry.help);
    if (result != 0) return absl::ErrnoToStatus(-result, absl::StrCat("telemetry command ", entry.command));
  }
  Source& source = TheSource();
  const std::lock_guard<std::mutex> lock(source.mutex);
  source.topology = &topology;
  return Telemetry();
}

Telemetry::Telemetry(Telemetry&& other) noexcept : answers_(other.answers_) {
  other.answers_ = false;
}

Telemetry::~Telemetry() {
  if (!answers_) return;
  Source& source = TheSource();
  const std::lock_guard<std::mutex> lock(source.mutex);
  source.topology = nullptr;
}

}  // namespace halfpage
