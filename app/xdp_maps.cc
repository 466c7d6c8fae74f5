#include "app/xdp_maps.h"

#include <arpa/inet.h>
#include <netinet/ether.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "app/nearest_name.h"

namespace halfpage {
namespace {

bool IsHex(absl::string_view text) {
  return text.size() % 2 == 0 && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

// One field behind what `bytes` holds already; `size` is what key or value have in all. False for what is no field.
bool AppendField(std::string field, bool last, size_t size, std::string* bytes) {
  if (absl::StartsWith(field, "hex:")) {
    if (!IsHex(field.substr(4))) return false;
    bytes->append(absl::HexStringToBytes(field.substr(4)));
    return true;
  }
  uint8_t address[16];
  ether_addr mac;
  if (std::count(field.begin(), field.end(), '.') == 3 && inet_pton(AF_INET, field.c_str(), address) == 1) {
    bytes->append(reinterpret_cast<char*>(address), 4);
    return true;
  }
  if (std::count(field.begin(), field.end(), ':') == 5 && ether_aton_r(field.c_str(), &mac) != nullptr) {
    bytes->append(reinterpret_cast<char*>(mac.ether_addr_octet), 6);
    return true;
  }
  if (std::count(field.begin(), field.end(), ':') >= 2 && inet_pton(AF_INET6, field.c_str(), address) == 1) {
    bytes->append(reinterpret_cast<char*>(address), 16);
    return true;
  }
  size_t width = last && size > bytes->size() ? size - bytes->size() : 4;
  const size_t colon = field.find(':');
  if (colon != std::string::npos) {
    int number = 0;
    if (!absl::SimpleAtoi(field.substr(colon + 1), &number)) return false;
    if (number != 1 && number != 2 && number != 4 && number != 8) return false;
    width = static_cast<size_t>(number);
    field.resize(colon);
  }
  int64_t number = 0;
  uint64_t bits = 0;
  if (absl::SimpleAtoi(field, &number)) {
    bits = static_cast<uint64_t>(number);
  } else if (!absl::SimpleAtoi(field, &bits) && !(absl::StartsWith(field, "0x") && absl::SimpleHexAtoi(field, &bits))) {
    return false;
  }
  const bool fits =
      width >= 8 || bits >> (8 * width) == 0 || (number < 0 && number >= -(int64_t{1} << (8 * width - 1)));
  if (!fits) return false;
  for (size_t i = 0; i < width; ++i)
    bytes->push_back(i < 8 ? static_cast<char>(bits >> (8 * i)) : number < 0 ? '\xff' : '\0');
  return true;
}

bool ParseBytes(absl::string_view text, size_t size, std::string* bytes) {
  const std::vector<std::string> fields = absl::StrSplit(text, ',');
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!AppendField(fields[i], i + 1 == fields.size(), size, bytes)) return false;
  }
  return bytes->size() == size;
}

// "packets=5,addr=hex:0a000001". False for a name that is not there, or what is no field of its size.
bool ParseNamed(absl::string_view text, size_t size, const bpf::ValueLayout& fields, std::string* bytes) {
  bytes->assign(size, '\0');
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> words = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const bpf::ValueField& each) { return each.name == words.first; });
    if (field == fields.end() || field->first_bit % 8 != 0 || field->bits % 8 != 0) return false;
    std::string own;
    if (!AppendField(std::string(words.second), true, field->bits / 8, &own) || own.size() != field->bits / 8)
      return false;
    bytes->replace(field->first_bit / 8, own.size(), own);
  }
  return true;
}

std::string Hex(const uint8_t* bytes, size_t size) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), size));
}

bool IsZero(const uint8_t* bytes, size_t size) {
  return std::all_of(bytes, bytes + size, [](uint8_t byte) { return byte == 0; });
}

void DumpMap(bpf::Map* map, std::string* text) {
  const bpf::MapSpec& spec = map->spec();
  absl::StrAppendFormat(text, "map %s (%s, key %d, value %d, %d entries)\n", spec.name, bpf::MapTypeName(spec.type),
                        spec.key_size, spec.value_size, spec.max_entries);
  const bool array = spec.type == BPF_MAP_TYPE_ARRAY || spec.type == BPF_MAP_TYPE_PERCPU_ARRAY;
  const uint32_t copies = map->per_worker() ? map->workers() : 1;
  std::vector<uint8_t> key(spec.key_size);
  for (bool more = map->NextKey(nullptr, key.data()); more; more = map->NextKey(key.data(), key.data())) {
    std::string values;
    bool zero = true;
    for (uint32_t worker = 0; worker < copies; ++worker) {
      const uint8_t* value = map->Lookup(key.data(), worker);
      if (value == nullptr) continue;
      zero = zero && IsZero(value, spec.value_size);
      absl::StrAppend(&values, values.empty() ? "" : " ", Hex(value, spec.value_size));
    }
    if (array && zero) continue;
    uint32_t index = 0;
    if (array) memcpy(&index, key.data(), sizeof(index));
    absl::StrAppend(text, "  ", array ? absl::StrCat(index) : Hex(key.data(), key.size()), ": ", values, "\n");
  }
}

}  // namespace

std::string BoundText(const bpf::MapSpec& spec) {
  return absl::StrFormat(
      "a map of the configuration stands for map %s (redirect_map) and says where its keys lead; write that one's "
      "entries under maps:, or leave redirect_map out",
      spec.name);
}

absl::StatusOr<std::string> ParseMapBytes(absl::string_view where, absl::string_view which, absl::string_view text,
                                          const bpf::MapSpec& spec) {
  const bool key = which == "key";
  const uint32_t size = key ? spec.key_size : spec.value_size;
  const bpf::ValueLayout& fields = key ? spec.key_fields : spec.value_fields;
  std::string bytes;
  const bool named = text.find('=') != absl::string_view::npos;
  if (named ? ParseNamed(text, size, fields, &bytes) : ParseBytes(text, size, &bytes)) return bytes;
  std::vector<std::string> names;
  for (const bpf::ValueField& field : fields) {
    if (!field.name.empty()) names.push_back(field.name);
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%sthe %s `%s` is not %d bytes, as map %s has them; write numbers (5, or 5:2 for two bytes), addresses or "
      "hex:0a0b, with commas in between%s",
      where, which, text, size, spec.name,
      names.empty() ? "" : absl::StrCat(", or NAME=FIELD for ", ListNames(names))));
}

absl::Status PutIntoMap(absl::string_view where, absl::string_view name, absl::string_view key_text,
                        absl::string_view value_text, const bpf::MapSet& maps) {
  bpf::Map* map = maps.Find(name);
  if (map == nullptr) {
    std::vector<std::string> names;
    for (const auto& each : maps.maps()) names.push_back(each->spec().name);
    return absl::InvalidArgumentError(absl::StrFormat("%sthe object has no map `%s`%s; it has %s", where, name,
                                                      DidYouMean(name, names), ListNames(names)));
  }
  const bpf::MapSpec& spec = map->spec();
  const auto key = ParseMapBytes(where, "key", key_text, spec);
  if (!key.ok()) return key.status();
  const auto value = ParseMapBytes(where, "value", value_text, spec);
  if (!value.ok()) return value.status();
  const int error = map->UpdateAll(reinterpret_cast<const uint8_t*>(key->data()),
                                   reinterpret_cast<const uint8_t*>(value->data()), BPF_ANY);
  if (error == 0) return absl::OkStatus();
  if (error == -EPERM) return absl::FailedPreconditionError(absl::StrCat(where, BoundText(spec)));
  return absl::InvalidArgumentError(absl::StrFormat("%smap %s has %d entries and does not take it: %s", where,
                                                    spec.name, spec.max_entries, strerror(-error)));
}

absl::Status PutIntoMap(absl::string_view text, const bpf::MapSet& maps) {
  const size_t colon = text.find(':');
  const size_t equals = text.find('=');
  if (colon == absl::string_view::npos || equals == absl::string_view::npos || equals < colon) {
    return absl::InvalidArgumentError(
        absl::StrCat("--map ", text, ": write NAME:KEY=VALUE, for example filter_ports:9=1 or filter_ipv4:10.0.0.1=2"));
  }
  return PutIntoMap(absl::StrCat("--map ", text, ": "), text.substr(0, colon),
                    text.substr(colon + 1, equals - colon - 1), text.substr(equals + 1), maps);
}

std::string DumpMaps(const bpf::MapSet& maps) {
  std::string text;
  for (const auto& map : maps.maps()) DumpMap(map.get(), &text);
  return text;
}

}  // namespace halfpage
