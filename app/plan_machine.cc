#include "app/plan_machine.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "app/config_units.h"

namespace halfpage {
namespace {

// Version 1 writes "no limit" as the largest number of whole pages.
constexpr uint64_t kNoLimit = 1ull << 62;

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

void AddHugepages(const std::string& root, std::vector<MemoryLimit>* limits) {
  const std::string folder = root + "/sys/kernel/mm/hugepages";
  std::vector<MemoryLimit> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view size = name;
    uint64_t kib = 0;
    if (!absl::ConsumePrefix(&size, "hugepages-") || !absl::ConsumeSuffix(&size, "kB") ||
        !absl::SimpleAtoi(size, &kib)) {
      continue;
    }
    const std::string path = entry.path().string();
    if (ReadNumber(path + "/nr_hugepages").value_or(0) == 0) continue;
    const uint64_t free = ReadNumber(path + "/free_hugepages").value_or(0);
    const uint64_t promised = ReadNumber(path + "/resv_hugepages").value_or(0);
    found.push_back({absl::StrCat("free hugepages of ", FormatBytes(kib << 10)), path,
                     (free - std::min(free, promised)) * (kib << 10)});
  }
  if (found.empty()) found.push_back({"free hugepages", folder, 0});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.source < b.source; });
  limits->insert(limits->end(), found.begin(), found.end());
}

// What a group and those above it leave, the tightest; nothing where none has a limit.
std::optional<MemoryLimit> TightestGroup(const std::string& mount, const std::string& group, const char* limit_file,
                                         const char* usage_file) {
  std::optional<MemoryLimit> tightest;
  for (std::filesystem::path path = group;; path = path.parent_path()) {
    const std::string folder = mount + (path == "/" ? "" : path.string());
    const std::optional<uint64_t> limit = ReadNumber(absl::StrCat(folder, "/", limit_file));
    if (limit.has_value() && *limit < kNoLimit) {
      const uint64_t used = ReadNumber(absl::StrCat(folder, "/", usage_file)).value_or(0);
      const uint64_t left = *limit - std::min(*limit, used);
      if (!tightest.has_value() || left < tightest->bytes) {
        tightest = {absl::StrCat("cgroup memory limit ", FormatBytes(*limit), " less what is in use"),
                    absl::StrCat(folder, "/", limit_file), left};
      }
    }
    if (path.empty() || path == "/") return tightest;
  }
}

// Lines of /proc/self/cgroup: "0::/group" is version 2, "4:memory:/group" version 1. In a container the group may be
// named as the host sees it, while the mount begins there: then the mount itself is the group.
void AddGroups(const std::string& root, std::vector<MemoryLimit>* limits) {
  std::ifstream file(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  std::optional<MemoryLimit> tightest;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::vector<std::optional<MemoryLimit>> found;
    if (parts[0] == "0" && parts[1].empty()) {
      for (const char* where : {"", "/unified"}) {
        found.push_back(TightestGroup(mount + where, parts[2], "memory.max", "memory.current"));
      }
    } else {
      const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
      if (std::find(controllers.begin(), controllers.end(), "memory") == controllers.end()) continue;
      found.push_back(TightestGroup(mount + "/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes"));
    }
    for (const std::optional<MemoryLimit>& limit : found) {
      if (limit.has_value() && (!tightest.has_value() || limit->bytes < tightest->bytes)) tightest = limit;
    }
  }
  if (tightest.has_value()) limits->push_back(*std::move(tightest));
}

void AddAvailable(const std::string& root, std::vector<MemoryLimit>* limits) {
  const std::string path = root + "/proc/meminfo";
  std::ifstream file(path);
  std::string key;
  std::string rest;
  while (file >> key && std::getline(file, rest)) {
    uint64_t kib = 0;
    const std::vector<std::string> words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    if (key != "MemAvailable:" || words.empty() || !absl::SimpleAtoi(words[0], &kib)) continue;
    limits->push_back({"MemAvailable", path, kib << 10});
  }
}

}  // namespace

std::vector<MemoryLimit> ReadMemoryLimits(bool hugepages, const std::string& root) {
  std::vector<MemoryLimit> limits;
  if (hugepages) {
    AddHugepages(root, &limits);
    return limits;
  }
  AddGroups(root, &limits);
  AddAvailable(root, &limits);
  return limits;
}

std::vector<int> ReadSockets(const std::string& root) {
  std::vector<int> sockets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    int socket = 0;
    if (absl::ConsumePrefix(&number, "node") && absl::SimpleAtoi(number, &socket)) sockets.push_back(socket);
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

}  // namespace halfpage
