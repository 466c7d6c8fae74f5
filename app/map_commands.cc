#include "app/map_commands.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/nearest_name.h"
#include "app/object_maps.h"
#include "app/xdp_maps.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/value_layout.h"

namespace halfpage {
namespace {

bool IsArray(const bpf::MapSpec& spec) {
  return spec.type == BPF_MAP_TYPE_ARRAY || spec.type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

bool HoldsTargets(const bpf::MapSpec& spec) {
  return spec.type == BPF_MAP_TYPE_DEVMAP || spec.type == BPF_MAP_TYPE_DEVMAP_HASH ||
         spec.type == BPF_MAP_TYPE_XSKMAP || spec.type == BPF_MAP_TYPE_CPUMAP;
}

// `number`: of indexes and targets nobody says the type.
std::string BytesText(const bpf::ValueLayout& fields, const uint8_t* bytes, size_t size, bool number) {
  if (!fields.empty()) return bpf::FieldsText(fields, bytes);
  uint32_t word = 0;
  if (!number || size < sizeof(word)) {
    return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), size));
  }
  memcpy(&word, bytes, sizeof(word));
  return absl::StrCat(word);
}

// A value can be read where the map keeps bytes.
bool HoldsValues(const bpf::MapSpec& spec) {
  return spec.type != BPF_MAP_TYPE_PROG_ARRAY && spec.type != BPF_MAP_TYPE_ARRAY_OF_MAPS &&
         spec.type != BPF_MAP_TYPE_HASH_OF_MAPS && spec.type != BPF_MAP_TYPE_PERF_EVENT_ARRAY &&
         spec.type != BPF_MAP_TYPE_RINGBUF && spec.type != BPF_MAP_TYPE_QUEUE && spec.type != BPF_MAP_TYPE_STACK &&
         spec.type != BPF_MAP_TYPE_BLOOM_FILTER;
}

absl::StatusOr<bpf::Map*> MapWithValues(const NamedMap& named) {
  bpf::Map* map = named.set->Find(named.name);
  if (map == nullptr) return absl::NotFoundError(absl::StrCat("there is no map ", named.name));
  if (HoldsValues(map->spec())) return map;
  return absl::InvalidArgumentError(absl::StrFormat("map %s is of type %s, whose entries are not bytes under a key",
                                                    named.name, bpf::MapTypeName(map->spec().type)));
}

// "3", "3,leave": of a map of targets, the number and the program behind it.
std::string TargetText(const bpf::MapSpec& spec, const uint8_t* value, const TargetNames& names) {
  std::string text = BytesText(spec.value_fields, value, spec.value_size, true);
  uint32_t program = 0;
  const bool devices = spec.type == BPF_MAP_TYPE_DEVMAP || spec.type == BPF_MAP_TYPE_DEVMAP_HASH;
  if (devices && spec.value_size == sizeof(bpf_devmap_val)) memcpy(&program, value + sizeof(uint32_t), sizeof(program));
  if (program != 0 && program <= names.egress.size()) absl::StrAppend(&text, ",", names.egress[program - 1]);
  return text;
}

// Under ControlRead. The values that are there under `key`.
MapEntryText TextOf(bpf::Map* map, const uint8_t* key, const TargetNames& names, bool* zero) {
  const bpf::MapSpec& spec = map->spec();
  MapEntryText entry;
  entry.key = BytesText(spec.key_fields, key, spec.key_size, IsArray(spec) || HoldsTargets(spec));
  *zero = true;
  std::vector<uint8_t> copy(spec.value_size);
  for (uint32_t worker = 0; worker < (map->per_worker() ? map->workers() : 1); ++worker) {
    const uint8_t* value = map->Lookup(key, worker);
    if (value == nullptr) continue;
    memcpy(copy.data(), value, copy.size());
    *zero = *zero && std::all_of(copy.begin(), copy.end(), [](uint8_t byte) { return byte == 0; });
    entry.values.push_back(HoldsTargets(spec) ? TargetText(spec, copy.data(), names)
                                              : BytesText(spec.value_fields, copy.data(), copy.size(), false));
  }
  return entry;
}

}  // namespace

std::vector<std::string> MapNames(const ObjectMaps& maps) {
  std::vector<std::string> names;
  for (const auto& [program, set] : maps) {
    for (const auto& map : set->maps()) names.push_back(absl::StrCat(program, "/", map->spec().name));
  }
  return names;
}

absl::StatusOr<NamedMap> FindMap(const ObjectMaps& maps, absl::string_view name) {
  const size_t slash = name.find('/');
  const absl::string_view program = slash == absl::string_view::npos ? "" : name.substr(0, slash);
  const absl::string_view own = slash == absl::string_view::npos ? name : name.substr(slash + 1);
  NamedMap found;
  for (const auto& [brought_by, set] : maps) {
    if (!program.empty() && program != brought_by) continue;
    if (set->Find(own) == nullptr) continue;
    if (found.set != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrFormat("several programs have a map %s; write one of %s", name, ListNames(MapNames(maps))));
    }
    found = {std::string(own), set};
  }
  if (found.set != nullptr) return found;
  return absl::NotFoundError(absl::StrFormat("there is no map %s; there are %s", name,
                                             maps.empty() ? "none: no object is in use" : ListNames(MapNames(maps))));
}

std::string MapsText(const ObjectMaps& maps) {
  std::string text;
  for (const auto& [program, set] : maps) {
    for (const auto& map : set->maps()) {
      const bpf::MapSpec& spec = map->spec();
      absl::StrAppendFormat(&text, "  %s/%s: %s, key %u, value %u, at most %u entries%s\n", program, spec.name,
                            bpf::MapTypeName(spec.type), spec.key_size, spec.value_size, spec.max_entries,
                            map->per_worker() ? ", a value for each worker" : "");
    }
  }
  return text.empty() ? "  no object is in use\n" : text;
}

absl::StatusOr<std::vector<MapEntryText>> ReadMapEntries(const NamedMap& named, size_t from, size_t most,
                                                         const TargetNames& names) {
  const auto found = MapWithValues(named);
  if (!found.ok()) return found.status();
  bpf::Map* map = *found;
  const bpf::MapSpec& spec = map->spec();
  std::vector<MapEntryText> entries;
  std::vector<uint8_t> key(spec.key_size);
  const bpf::ControlRead reading(&named.set->epochs());
  size_t number = 0;
  // Where the entry that a walk stands on goes, the walk begins again: bounded, it ends all the same.
  uint64_t steps = uint64_t{2} * spec.max_entries + 16;
  for (bool more = map->NextKey(nullptr, key.data()); more && entries.size() < most && steps-- > 0;
       more = map->NextKey(key.data(), key.data())) {
    bool zero = false;
    MapEntryText entry = TextOf(map, key.data(), names, &zero);
    if (entry.values.empty() || (IsArray(spec) && zero)) continue;
    if (number++ >= from) entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<MapEntryText> ReadMapEntry(const NamedMap& named, absl::string_view key_text, const TargetNames& names) {
  const auto map = MapWithValues(named);
  if (!map.ok()) return map.status();
  const auto key = ParseMapBytes("", "key", key_text, (*map)->spec());
  if (!key.ok()) return key.status();
  const bpf::ControlRead reading(&named.set->epochs());
  bool zero = false;
  MapEntryText entry = TextOf(*map, reinterpret_cast<const uint8_t*>(key->data()), names, &zero);
  if (!entry.values.empty()) return entry;
  return absl::NotFoundError(absl::StrFormat("map %s has no entry %s", named.name, key_text));
}

absl::Status SetMapEntry(const NamedMap& named, const std::string& key, const std::string& value,
                         const TargetNames& names) {
  const auto map = MapWithValues(named);
  if (!map.ok()) return map.status();
  MapEntryConfig entry;
  entry.map = named.name;
  entry.key = key;
  entry.value = value;
  const size_t comma = std::min(value.find(','), value.size());
  if (HoldsTargets((*map)->spec()) && absl::c_linear_search(names.devices, value.substr(0, comma))) {
    entry.device = value.substr(0, comma);
    if (comma < value.size()) entry.program = value.substr(comma + 1);
  }
  return FillMap(entry, names, *named.set);
}

absl::Status DeleteMapEntry(const NamedMap& named, absl::string_view key_text) {
  const auto map = MapWithValues(named);
  if (!map.ok()) return map.status();
  const bpf::MapSpec& spec = (*map)->spec();
  if (IsArray(spec)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("map %s is an array, whose entries are always there; set it to 0", named.name));
  }
  const auto key = ParseMapBytes("", "key", key_text, spec);
  if (!key.ok()) return key.status();
  const int error = (*map)->Delete(reinterpret_cast<const uint8_t*>(key->data()));
  if (error == 0) return absl::OkStatus();
  if (error == -EPERM) return absl::FailedPreconditionError(BoundText(spec));
  return absl::NotFoundError(absl::StrFormat("map %s has no entry %s: %s", named.name, key_text, strerror(-error)));
}

}  // namespace halfpage
