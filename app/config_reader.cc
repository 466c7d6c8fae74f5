#include "app/config_reader.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "app/config_fields.h"
#include "app/config_units.h"
#include "app/nearest_name.h"

namespace halfpage {
namespace {

using Kind = ConfigNode::Kind;

absl::string_view KindText(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return "one value";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      break;
  }
  return "a map of keys";
}

// Reads one map: looks up each key that the section says it has, and at the end reports those that nobody asked for.
class MapReader : public FieldVisitor {
 public:
  MapReader(const ConfigNode& map, std::string path, FaultList& faults)
      : map_(map), path_(std::move(path)), faults_(faults) {
    for (size_t i = 0; i < map.keys.size(); ++i) {
      const ConfigNode::Key& key = map.keys[i];
      const auto [first, fresh] = keys_.emplace(key.text, i);
      if (fresh) continue;
      const int line = map.keys[first->second].position.line;
      faults_.FaultAt(
          key.position, PathOfUnchecked(key.text),
          absl::StrCat("this key is here twice", line > 0 ? absl::StrCat(", first in line ", line) : "", ": keep one"));
    }
  }

  void Value(const FieldInfo& info, const FieldValue& value) override {
    const ConfigNode* node = Find(info);
    if (node != nullptr) Parse(PathOf(info.key), *node, value, info);
    texts_[std::string(info.key)] = value.format();
  }

  void List(const FieldInfo& info, const FieldList& list) override {
    const ConfigNode* node = Find(info);
    if (node == nullptr) return;
    const std::string path = PathOf(info.key);
    if (node->kind == Kind::kScalar && list.word.has_value()) {
      Parse(path, *node, *list.word, info);
      return;
    }
    if (node->kind != Kind::kList) {
      faults_.Fault(path, absl::StrCat("must be a list, not ", KindText(node->kind),
                                       list.word.has_value() ? absl::StrCat(": give ", list.word->rule)
                                                             : ": begin each item with `- `"));
      return;
    }
    ReadItems(path, *node, list, info);
  }

  void Section(const FieldInfo& info, const std::function<void(FieldVisitor&)>& fields) override {
    const ConfigNode* node = Find(info);
    if (node != nullptr) ReadMap(*node, PathOf(info.key), fields, faults_);
  }

  void When(bool applies, absl::string_view key, absl::string_view wanted) override {
    // Where the deciding key is faulty, or there and misspelt, nobody knows what was meant.
    unsure_ = faults_.Touches(PathOf(key)) || Misspelt(key);
    applies_ = applies || unsure_;
    decides_ = key;
    wanted_ = wanted;
  }
  void Always() override {
    applies_ = true;
    unsure_ = false;
  }

  // Reads the map `node` at `path` with the keys that `fields` names.
  static void ReadMap(const ConfigNode& node, const std::string& path, const std::function<void(FieldVisitor&)>& fields,
                      FaultList& faults) {
    if (node.kind != Kind::kMap) {
      faults.Fault(path, absl::StrCat("must be a map of keys, as in `key: value`, not ", KindText(node.kind)));
      return;
    }
    MapReader reader(node, path, faults);
    fields(reader);
    reader.ReportUnknown();
  }

 private:
  std::string PathOf(absl::string_view key) const {
    return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
  }
  bool Misspelt(absl::string_view key) const {
    const std::vector<std::string> wanted = {std::string(key)};
    return !keys_.contains(wanted[0]) && std::any_of(keys_.begin(), keys_.end(), [&wanted](const auto& there) {
      return NearestName(there.first, wanted).has_value();
    });
  }
  // Of a key that may be anything: what is long or unprintable stays out of the path.
  std::string PathOfUnchecked(const std::string& key) const {
    return PathOf(Shown(key) == absl::StrCat("`", key, "`") ? key : "?");
  }
  static std::string Example(const FieldInfo& info) {
    return info.example.empty() ? absl::StrCat(": give ", info.comment) : absl::StrCat(": write `", info.example, "`");
  }

  // The value of a key that has one and may have it; the key's absence, where that is a fault, is reported.
  const ConfigNode* Find(const FieldInfo& info) {
    if (applies_) valid_.emplace_back(info.key);
    known_.emplace_back(info.key);
    const std::string path = PathOf(info.key);
    const auto found = keys_.find(std::string(info.key));
    if (found == keys_.end()) {
      if (info.required && applies_ && !unsure_) {
        faults_.Fault(path, absl::StrCat("missing (", info.comment, ")",
                                         info.example.empty() ? absl::StrCat(": add `", info.key, ":`")
                                                              : absl::StrCat(": add `", info.example, "`")));
      }
      return nullptr;
    }
    const ConfigNode& node = map_.items[found->second];
    faults_.SetPosition(path, map_.keys[found->second].position);
    if (!applies_) {
      const std::string belongs = absl::StrCat("belongs to `", decides_, ": ", wanted_, "`, and here `", decides_,
                                               "` is `", texts_[std::string(decides_)], "`");
      // A slip of a key that is wanted here may be another one's name.
      const std::optional<std::string> meant = NearestName(info.key, valid_);
      faults_.Fault(
          path,
          meant.has_value() && !keys_.contains(*meant)
              ? absl::StrCat("unknown key `", info.key, "`, did you mean `", *meant, "`? `", info.key, "` ", belongs)
              : absl::StrCat(belongs, ": remove `", info.key, "`, or write `", decides_, ": ", wanted_, "`"));
      return nullptr;
    }
    if (node.kind == Kind::kNull) {
      faults_.Fault(path, absl::StrCat("has no value", info.required ? Example(info) : "",
                                       info.required ? "" : ": give one, or remove the key for its default"));
      return nullptr;
    }
    return &node;
  }

  void Parse(const std::string& path, const ConfigNode& node, const FieldValue& value, const FieldInfo& info) {
    if (node.kind != Kind::kScalar) {
      faults_.Fault(path, absl::StrCat("must be one value, not ", KindText(node.kind), ": give ",
                                       value.rule.empty() ? absl::StrCat("a text (", info.comment, ")") : value.rule));
      return;
    }
    const absl::Status status = value.parse(node.text, node.quoted);
    if (!status.ok()) faults_.Fault(path, std::string(status.message()));
  }

  void ReadItems(const std::string& path, const ConfigNode& node, const FieldList& list, const FieldInfo& info) {
    const size_t items = node.items.size();
    if (items < list.min_items || items > list.max_items) {
      const std::string limits = list.min_items == list.max_items
                                     ? absl::StrCat("it must have exactly ", list.min_items)
                                 : items < list.min_items ? absl::StrCat("it must have at least ", list.min_items)
                                                          : absl::StrCat("it may have at most ", list.max_items);
      faults_.Fault(path,
                    absl::StrCat(items == 0 ? "empty" : absl::StrCat("has ", items, items == 1 ? " item" : " items"),
                                 ", and ", limits, Example(info)));
    }
    const size_t read = std::min(items, list.max_items);
    list.resize(read);
    for (size_t i = 0; i < read; ++i) {
      const ConfigNode& item = node.items[i];
      const std::string item_path = absl::StrCat(path, "[", i, "]");
      faults_.SetPosition(item_path, item.position);
      if (list.fields && (item.kind == Kind::kMap || !list.value)) {
        ReadMap(
            item, item_path, [&list, i](FieldVisitor& v) { list.fields(i, v); }, faults_);
      } else {
        Parse(item_path, item, list.value(i), info);
      }
    }
  }

  void ReportUnknown() {
    for (const auto& [key, index] : keys_) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      std::string near = DidYouMean(key, valid_);
      if (near.empty()) near = DidYouMean(key, known_);
      faults_.FaultAt(map_.keys[index].position, PathOfUnchecked(key),
                      absl::StrCat("unknown key ", Shown(key), near,
                                   near.empty() ? absl::StrCat("; keys here: ", ListNames(valid_)) : ""));
    }
  }

  const ConfigNode& map_;
  const std::string path_;
  FaultList& faults_;
  std::map<std::string, size_t> keys_;        // of `map_`, to the first of that name
  std::map<std::string, std::string> texts_;  // values read, for messages about keys that depend on them
  std::vector<std::string> known_;            // keys that the section has
  std::vector<std::string> valid_;            // those of them that apply here
  bool applies_ = true;
  bool unsure_ = false;
  absl::string_view decides_;
  absl::string_view wanted_;
};

}  // namespace

void ReadConfig(const ConfigNode& root, Config& config, FaultList& faults) {
  faults.SetPosition("", root.position);
  if (root.kind == Kind::kNull) {
    faults.Fault("", "the file is empty: begin with `version: 1`, and see conf/quickstart.yaml for a whole one");
    return;
  }
  MapReader::ReadMap(
      root, "", [&config](FieldVisitor& v) { VisitConfig(config, v); }, faults);
}

}  // namespace halfpage
