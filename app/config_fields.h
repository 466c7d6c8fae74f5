// The shape of the file: every section says once which keys it has, and reader, printer and tests walk over that.
//
// A key is one line in app/config_sections.cc:
//
//   v.Value({"ring", "usable slots per queue"}, Number(veth.ring, {.min = 2, .max = 32768, .power_of_two = true}));
//
// From it come the parse with its range, the unknown-key check with its suggestion, and the line that PrintConfig()
// writes with default, range and comment.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "app/config.h"

namespace halfpage {

class FieldVisitor;

inline constexpr bool kRequired = true;

struct FieldInfo {
  absl::string_view key;
  absl::string_view comment;       // what the value means, as a noun phrase
  bool required = false;           // a file without the key is refused
  absl::string_view example = "";  // what to add where it is missing; empty: the comment tells enough
};

// How one value is read and written. Refers to the field it stands for, so it lives no longer than that.
struct FieldValue {
  // Stores the value. Errors: InvalidArgument with what is wrong, what is allowed and the way out. `quoted` tells "5"
  // from 5.
  std::function<absl::Status(absl::string_view text, bool quoted)> parse;
  // YAML that parse() takes; empty where a list, or an item that may be a map, cannot be written as one value.
  std::function<std::string()> format;
  std::string rule;  // "1 to 16"; for messages and the printed comment
};

// A list, whose items are values, maps of keys, or either.
struct FieldList {
  size_t min_items = 0;
  size_t max_items = 0;
  std::function<size_t()> size;
  std::function<void(size_t)> resize;                 // to a number within the limits, items at their defaults
  std::function<void(size_t, FieldVisitor&)> fields;  // keys of item i; empty: no item is a map
  std::function<void(FieldVisitor&)> default_fields;  // the same of an item that says nothing
  std::function<FieldValue(size_t)> value;            // item i as one value; empty: every item is a map
  std::optional<FieldValue> word;                     // the whole list as one value ("auto"), where it can be
};

// Called once for each key of a map, in the order in which they are printed.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  virtual void Value(const FieldInfo& info, const FieldValue& value) = 0;
  virtual void List(const FieldInfo& info, const FieldList& list) = 0;
  virtual void Section(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) = 0;

  // The keys from here on have a meaning only if `applies`, which is so where `key` (seen before) says `wanted`. Holds
  // until the next call of When() or Always().
  virtual void When(bool applies, absl::string_view key, absl::string_view wanted) = 0;
  virtual void Always() = 0;
};

// Walks over the whole file's keys with `config`'s values.
void VisitConfig(Config& config, FieldVisitor& v);

}  // namespace halfpage
