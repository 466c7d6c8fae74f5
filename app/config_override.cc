#include "app/config_override.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "app/config_units.h"
#include "app/config_yaml.h"

namespace halfpage {
namespace {

using Kind = ConfigNode::Kind;

struct Step {
  std::string key;                // a map's key, or
  std::optional<uint32_t> index;  // a list's item
  std::string path;               // up to and with this step
};

// "veth[0].ends[1].mtu" in steps; nothing where it is not such a path.
std::optional<std::vector<Step>> ParsePath(absl::string_view path) {
  std::vector<Step> steps;
  size_t at = 0;
  while (at < path.size()) {
    Step step;
    if (path[at] == '[') {
      const size_t end = path.find(']', at);
      uint32_t index = 0;
      if (steps.empty() || end == absl::string_view::npos || !absl::ascii_isdigit(path[at + 1]) ||
          !absl::SimpleAtoi(path.substr(at + 1, end - at - 1), &index)) {
        return std::nullopt;
      }
      step.index = index;
      at = end + 1;
    } else {
      if (!steps.empty() && path[at++] != '.') return std::nullopt;
      const size_t begin = at;
      while (at < path.size() && path[at] != '.' && path[at] != '[') ++at;
      if (at == begin) return std::nullopt;
      step.key = std::string(path.substr(begin, at - begin));
    }
    step.path = std::string(path.substr(0, at));
    steps.push_back(std::move(step));
  }
  if (steps.empty() || steps.size() > kMaxConfigDepth) return std::nullopt;
  return steps;
}

// The value of `key`, made if it is not there, with `position` as the key's where this override is what sets it.
ConfigNode& MapItem(ConfigNode& map, const std::string& key, const ConfigPosition& position, bool last) {
  std::optional<size_t> found;
  for (size_t i = 0; i < map.keys.size();) {
    if (map.keys[i].text != key) {
      ++i;
    } else if (!found.has_value()) {
      found = i++;
    } else if (last) {
      map.keys.erase(map.keys.begin() + i);
      map.items.erase(map.items.begin() + i);
    } else {
      ++i;
    }
  }
  if (!found.has_value()) {
    found = map.keys.size();
    map.keys.push_back({key, position});
    map.items.emplace_back().position = position;
  }
  if (last) map.keys[*found].position = position;
  return map.items[*found];
}

// `pools[*].size`: the same for every item of a list of the file.
void ApplyToAll(const ConfigOverride& setting, size_t star, ConfigNode& root, FaultList& faults) {
  const std::string list = setting.path.substr(0, star);
  for (size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text != list) continue;
    const size_t items = root.items[i].items.size();
    for (size_t item = 0; item < items; ++item) {
      ConfigOverride one = setting;
      one.path.replace(star, 3, absl::StrCat("[", item, "]"));
      ApplyOverride(one, root, faults);
    }
    return;
  }
  faults.FaultAt({0, setting.origin}, setting.path, absl::StrCat("`", list, "` is no list in this configuration"));
}

}  // namespace

void ApplyOverride(const ConfigOverride& setting, ConfigNode& root, FaultList& faults) {
  const size_t star = setting.path.find("[*]");
  if (star != std::string::npos) return ApplyToAll(setting, star, root, faults);
  const std::string origin = setting.origin.empty() ? "--set" : setting.origin;
  const ConfigPosition position{0, origin};
  const auto refuse = [&](absl::string_view message) { faults.FaultAt(position, setting.path, std::string(message)); };
  ParsedYaml value = ParseYaml(setting.value, origin);
  if (!value.ok) return refuse(absl::StrCat("the value ", Shown(setting.value), ": ", value.message));
  const std::optional<std::vector<Step>> steps = ParsePath(setting.path);
  if (!steps.has_value()) {
    return refuse("this is not a path into a configuration; write it as in measure.duration or veth[0].ends[1].mtu");
  }
  ConfigNode* node = &root;
  std::string above = "the file";
  for (size_t i = 0; i < steps->size(); ++i) {
    const Step& step = (*steps)[i];
    const bool last = i + 1 == steps->size();
    if (step.index.has_value()) {
      if (node->kind != Kind::kList) return refuse(absl::StrCat("`", above, "` is not a list in this configuration"));
      if (*step.index >= node->items.size()) {
        return refuse(absl::StrCat("`", above, "` has ", node->items.size(), " items, counted from 0: item ",
                                   *step.index, " does not exist, and only the file can add it"));
      }
      node = &node->items[*step.index];
    } else {
      if (node->kind == Kind::kNull) node->kind = Kind::kMap;
      if (node->kind != Kind::kMap)
        return refuse(absl::StrCat("`", above, "` is not a map of keys, so it has no `", step.key, "`"));
      const bool into_list = !last && (*steps)[i + 1].index.has_value();
      if (into_list && std::none_of(node->keys.begin(), node->keys.end(),
                                    [&step](const ConfigNode::Key& key) { return key.text == step.key; })) {
        return refuse(absl::StrCat("`", step.path, "` is not in the file, and only the file can add items to it"));
      }
      node = &MapItem(*node, step.key, position, last);
    }
    above = step.path;
  }
  *node = std::move(value.root);
  node->position = position;
}

}  // namespace halfpage
