// A configuration file as a tree of texts that know where they stand. No types yet, and no yaml-cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfpage {

// Where a text stands: a line of the file, or the command-line option it came from.
struct ConfigPosition {
  int line = 0;        // 1-based; 0: none
  std::string origin;  // "--set"; empty: the file
};

struct ConfigNode {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

  struct Key {
    std::string text;
    ConfigPosition position;
  };

  Kind kind = Kind::kNull;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: in quotes or a block, so that "5" is a text and 5 a number
  ConfigPosition position;
  std::vector<ConfigNode> items;  // kList: its items; kMap: the values of `keys`
  std::vector<Key> keys;          // kMap: in the file's order, repeated ones included
};

}  // namespace halfpage
