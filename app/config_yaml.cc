#include "app/config_yaml.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/config_units.h"

namespace halfpage {
namespace {

// Ends the parse from inside yaml-cpp's callbacks; caught in ParseYaml() and nowhere else.
struct Refused {
  int line;
  std::string message;
};

// Builds the tree from yaml-cpp's events. Events rather than YAML::Node: they keep repeated keys, tell quoted texts
// from plain ones, and let the limits act before memory is spent.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& origin) : origin_(origin) {}

  ConfigNode TakeRoot() { return std::move(root_); }
  // Where the last thing stands that could be read, 1-based.
  int last_line() const { return last_line_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refused{mark.line + 1, "a second document begins here: keep one `---` at most"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Place(NewNode(ConfigNode::Kind::kNull, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end()) throw Refused{mark.line + 1, "an alias may not stand inside its own anchor"};
    Count(Size(target->second), mark);
    Place(target->second, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node = NewNode(ConfigNode::Kind::kScalar, mark);
    node.quoted = tag == "!";
    RefuseTag(tag, mark);
    node.text = value;
    Place(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    RefuseTag(tag, mark);
    Open(NewNode(ConfigNode::Kind::kList, mark), anchor, mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    RefuseTag(tag, mark);
    Open(NewNode(ConfigNode::Kind::kMap, mark), anchor, mark);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    ConfigNode node;
    YAML::anchor_t anchor;
    bool has_key;  // kMap: `node.keys` has one more than `node.items`
  };

  ConfigNode NewNode(ConfigNode::Kind kind, const YAML::Mark& mark) {
    Count(1, mark);
    last_line_ = mark.line + 1;
    ConfigNode node;
    node.kind = kind;
    node.position = {origin_.empty() ? mark.line + 1 : 0, origin_};
    return node;
  }
  void Count(size_t more, const YAML::Mark& mark) {
    values_ += more;
    if (values_ > kMaxConfigValues) {
      throw Refused{mark.line + 1, absl::StrCat("more than ", kMaxConfigValues, " values: split the configuration")};
    }
  }
  static size_t Size(const ConfigNode& node) {
    size_t size = 1 + node.keys.size();
    for (const ConfigNode& item : node.items) size += Size(item);
    return size;
  }
  static void RefuseTag(const std::string& tag, const YAML::Mark& mark) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Refused{mark.line + 1, absl::StrCat("the tag ", Shown(tag), " has no meaning here: remove it")};
  }
  void Open(ConfigNode node, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (levels_.size() >= kMaxConfigDepth) {
      throw Refused{mark.line + 1, absl::StrCat("nested deeper than ", kMaxConfigDepth, " levels, which no key needs")};
    }
    levels_.push_back({std::move(node), anchor, false});
  }
  void Close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    Place(std::move(level.node), level.anchor);
  }
  void Place(ConfigNode node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == ConfigNode::Kind::kMap && !level.has_key) {
      // A null key is refused as well: `~: 5` and `: 5` name nothing.
      if (node.kind != ConfigNode::Kind::kScalar) {
        throw Refused{node.position.line, "a key must be a plain word, as in `ring: 256`"};
      }
      level.node.keys.push_back({std::move(node.text), std::move(node.position)});
      level.has_key = true;
      return;
    }
    level.node.items.push_back(std::move(node));
    level.has_key = false;
  }

  const std::string origin_;
  ConfigNode root_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  size_t values_ = 0;
  int last_line_ = 0;
  int documents_ = 0;
};

// The first byte that no text file has; yaml-cpp would take some of them for UTF-16 or stop at them without a word.
void RefuseBinary(absl::string_view text) {
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (!absl::ascii_iscntrl(c) || absl::ascii_isspace(c)) continue;
    throw Refused{line,
                  absl::StrFormat("byte 0x%02x: this is not a text file in UTF-8", static_cast<unsigned char>(c))};
  }
  if (text.size() >= 2 && (text.substr(0, 2) == "\xff\xfe" || text.substr(0, 2) == "\xfe\xff")) {
    throw Refused{1, "this is UTF-16: save the file as UTF-8"};
  }
}

int LastLine(absl::string_view text) {
  const auto breaks = std::count(text.begin(), text.end(), '\n');
  return static_cast<int>(breaks) + (absl::EndsWith(text, "\n") ? 0 : 1);
}

}  // namespace

ParsedYaml ParseYaml(absl::string_view text, const std::string& origin) {
  ParsedYaml parsed;
  TreeBuilder builder(origin);
  try {
    if (text.size() > kMaxConfigBytes) throw Refused{0, absl::StrCat("more than ", FormatBytes(kMaxConfigBytes))};
    RefuseBinary(text);
    // The end mark makes yaml-cpp see a quote that is never closed; at the bare end of a file it takes that for a text.
    std::istringstream stream(absl::StrCat(text, absl::EndsWith(text, "\n") ? "" : "\n", "...\n"));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    parsed.root = builder.TakeRoot();
    parsed.ok = true;
  } catch (const Refused& refused) {
    parsed.line = refused.line;
    parsed.message = refused.message;
  } catch (const YAML::Exception& error) {
    if (error.msg == YAML::ErrorMsg::DOC_IN_SCALAR || error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
      parsed.line = builder.last_line();
      parsed.message = "not valid YAML: a quote that begins here, or behind, is never closed";
    } else {
      parsed.line = error.mark.is_null() ? 0 : std::min(error.mark.line + 1, LastLine(text));
      parsed.message = absl::StrCat("not valid YAML: ", error.msg,
                                    " (look at the indentation, colons, brackets and quotes here and one line above)");
    }
  } catch (const std::exception& error) {
    parsed.message = absl::StrCat("not readable as YAML: ", error.what());
  }
  if (!origin.empty()) parsed.line = 0;
  return parsed;
}

absl::StatusOr<std::string> ReadConfigText(const std::string& path) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  absl::Cleanup close_file = [fd, standard_input] {
    if (!standard_input) close(fd);
  };
  struct stat kind;
  if (fstat(fd, &kind) == 0 && S_ISDIR(kind.st_mode)) {
    return absl::InvalidArgumentError("is a folder");
  }
  std::string text;
  char block[16384];
  while (text.size() <= kMaxConfigBytes) {
    const ssize_t got = read(fd, block, sizeof(block));
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    text.append(block, got);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("has more than ", FormatBytes(kMaxConfigBytes), ", the limit for a configuration"));
}

}  // namespace halfpage
