// The border to yaml-cpp: bytes in, ConfigNode or one fault out.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "app/config_node.h"

namespace halfpage {

// What a file may be at most. Real files have a few KiB, some hundred values and six levels.
inline constexpr size_t kMaxConfigBytes = 1 << 20;
inline constexpr size_t kMaxConfigValues = 50'000;  // aliases count as often as they are used
inline constexpr size_t kMaxConfigDepth = 16;

struct ParsedYaml {
  bool ok = false;
  ConfigNode root;
  int line = 0;         // where not ok: 1-based, 0 for none
  std::string message;  // where not ok: what is wrong and the way out
};

// Parses one YAML document. Accepts anchors and aliases (values are copied); refuses tags, several documents, keys
// that are not plain texts, and what is past the limits above. `origin` goes into every position; with one, lines stay
// 0. Never throws.
ParsedYaml ParseYaml(absl::string_view text, const std::string& origin);

// The bytes of a file ("-": standard input), at most kMaxConfigBytes. Errors carry the system's words.
absl::StatusOr<std::string> ReadConfigText(const std::string& path);

}  // namespace halfpage
