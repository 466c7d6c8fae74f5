// What `show bpf` and `bpf map` do.
#include "app/map_commands.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "app/prompt/commands.h"
#include "app/report.h"

namespace halfpage {
namespace {

std::string EntryLine(const MapEntryText& entry) {
  return absl::StrCat("  ", entry.key, ": ", absl::StrJoin(entry.values, " "), "\n");
}

}  // namespace

absl::Status ShowBpf(Session& session, const Words& words) {
  if (words[2] == "programs") {
    const std::string text = ObjectText(session.topology.Read());
    absl::StrAppend(&session.out, text.empty() ? "  no object is in use\n" : text);
    return absl::OkStatus();
  }
  return session.topology.WithObjectMaps([&](const ObjectMaps& maps) {
    session.out += MapsText(maps);
    return absl::OkStatus();
  });
}

absl::Status MapEdit(Session& session, const Words& words) {
  const TargetNames names = session.topology.target_names();
  return session.topology.WithObjectMaps([&](const ObjectMaps& maps) {
    const auto map = FindMap(maps, words[3]);
    if (!map.ok()) return map.status();
    if (words[2] == "set") return SetMapEntry(*map, words[4], words[5], names);
    if (words[2] == "delete") return DeleteMapEntry(*map, words[4]);
    if (words[2] == "get") {
      const auto entry = ReadMapEntry(*map, words[4], names);
      if (entry.ok()) session.out += EntryLine(*entry);
      return entry.status();
    }
    const auto entries = ReadMapEntries(*map, 0, SIZE_MAX, names);
    if (!entries.ok()) return entries.status();
    for (const MapEntryText& entry : *entries) session.out += EntryLine(entry);
    absl::StrAppend(&session.out, "  ", entries->size(), entries->size() == 1 ? " entry" : " entries", "\n");
    return absl::OkStatus();
  });
}

}  // namespace halfpage
