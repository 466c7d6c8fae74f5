// The keys of each part of the file, for the parts that hold them: lists of maps, lists of texts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/config_fields.h"
#include "app/config_values.h"

namespace halfpage {

inline constexpr size_t kMostNamed = 1024;  // programs, rules, sinks, sources, arguments: room for any sane file
inline constexpr size_t kMostEntries = 65536;
inline constexpr size_t kDeviceName = 15;  // IFNAMSIZ less its zero

// One line for each key.
void Describe(EalConfig& eal, FieldVisitor& v);
void Describe(ArenaConfig& arena, FieldVisitor& v);
void Describe(PktmbufPoolConfig& pool, FieldVisitor& v);
void Describe(PortConfig& port, FieldVisitor& v);
void Describe(CopyConfig& copy, FieldVisitor& v);
void Describe(VethEndConfig& end, FieldVisitor& v);
void Describe(VethConfig& veth, FieldVisitor& v);
void Describe(FilterRule& rule, FieldVisitor& v);
void Describe(MapEntryConfig& entry, FieldVisitor& v);
void Describe(ProgramConfig& program, FieldVisitor& v);
void Describe(MapSlotConfig& entry, FieldVisitor& v);
void Describe(RedirectMapConfig& map, FieldVisitor& v);
void Describe(TrafficConfig& traffic, FieldVisitor& v);
void Describe(SinkConfig& sink, FieldVisitor& v);
void Describe(WorkerConfig& worker, FieldVisitor& v);

// A list of maps, each with the keys that Describe() gives a T.
template <typename T>
FieldList Maps(std::vector<T>& items, size_t min, size_t max) {
  FieldList list;
  list.min_items = min;
  list.max_items = max;
  list.size = [&items] { return items.size(); };
  list.resize = [&items](size_t n) { items.assign(n, T()); };
  list.fields = [&items](size_t i, FieldVisitor& v) { Describe(items[i], v); };
  list.default_fields = [](FieldVisitor& v) {
    T item;
    Describe(item, v);
  };
  return list;
}

// A list of texts.
inline FieldList Texts(std::vector<std::string>& items, const TextRule& rule, size_t max) {
  FieldList list;
  list.max_items = max;
  list.size = [&items] { return items.size(); };
  list.resize = [&items](size_t n) { items.assign(n, ""); };
  list.value = [&items, rule](size_t i) { return Text(items[i], rule); };
  return list;
}

// A list of names.
inline FieldList NameList(std::vector<std::string>& items) {
  return Texts(items, {.letters = TextRule::Letters::kName, .max = 31}, kMostNamed);
}

}  // namespace halfpage
