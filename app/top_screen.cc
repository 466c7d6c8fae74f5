#include "app/top_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "app/config_units.h"

namespace halfpage {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr size_t kUsualRows = 24;
constexpr size_t kCell = 20;    // of the lines that have several things
constexpr size_t kPerLine = 4;  // lcores

struct Section {
  std::string heading;
  std::vector<std::string> lines;
  size_t shown = 0;  // lines of it that there is room for
};

// Five characters: 123, 12.3k, 1.23M.
std::string Short(double value) {
  const std::pair<double, const char*> units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, letter] : units) {
    if (value < unit * 0.9995) continue;
    const double scaled = value / unit;
    return absl::StrFormat(scaled < 9.995 ? "%.2f%s" : scaled < 99.95 ? "%.1f%s" : "%.0f%s", scaled, letter);
  }
  return absl::StrFormat("%.0f", value);
}

// Rates between two snapshots of the same run.
class Rates {
 public:
  Rates(const Snapshot& now, const Snapshot& before) : seconds_(now.at - before.at) {}
  double Of(uint64_t now, uint64_t before) const {
    return seconds_ > 0 && now > before ? static_cast<double>(now - before) / seconds_ : 0;
  }
  std::string Text(uint64_t now, uint64_t before) const { return Short(Of(now, before)); }

 private:
  const double seconds_;
};

Section Devices(const Snapshot& now, const Snapshot& before, const Rates& rates) {
  Section section;
  section.heading = absl::StrFormat("%-16s %7s %8s %8s %8s %8s %8s %8s", "device, a second", "rx", "tx", "drop",
                                    "aborted", "pass", "XDP_TX", "redirect");
  for (size_t d = 0; d < now.devices.size(); ++d) {
    const DeviceSnapshot& device = now.devices[d];
    const DeviceSnapshot& old = before.devices[d];
    std::string line = absl::StrFormat("%-16s %7s %8s", device.name, rates.Text(device.received, old.received),
                                       rates.Text(device.sent_through, old.sent_through));
    for (const XdpAction action :
         {XdpAction::kDrop, XdpAction::kAborted, XdpAction::kPass, XdpAction::kTx, XdpAction::kRedirect}) {
      const auto verdict = static_cast<size_t>(action);
      absl::StrAppendFormat(&line, " %8s", rates.Text(device.verdicts[verdict], old.verdicts[verdict]));
    }
    section.lines.push_back(line);
  }
  return section;
}

// Frames that were lost, by reason, over all devices and sinks.
std::map<std::string, uint64_t> Losses(const Snapshot& snapshot) {
  std::map<std::string, uint64_t> losses;
  for (const DeviceSnapshot& device : snapshot.devices) {
    for (int reason = 0; reason < kRefusals; ++reason) {
      losses[std::string(RefusalName(static_cast<Refusal>(reason)))] +=
          device.refused[reason] + device.refused_through[reason] + device.faults[reason];
    }
    losses["missed by driver"] += device.driver.missed;
    losses["driver no buffer"] += device.driver.no_buffer;
    losses["driver errors"] += device.driver.receive_errors + device.driver.send_errors;
  }
  for (const SinkSnapshot& sink : snapshot.sinks) {
    for (const auto& [reason, frames] : sink.dropped) losses[absl::StrCat(sink.name, " ", reason)] += frames;
  }
  return losses;
}

Section Lost(const Snapshot& now, const Snapshot& before, const Rates& rates) {
  Section section;
  section.heading = "lost, a second, by reason";
  std::map<std::string, uint64_t> old = Losses(before);
  for (const auto& [reason, frames] : Losses(now)) {
    if (frames == 0) continue;
    std::string cell = absl::StrFormat("%-13s %5s", reason, rates.Text(frames, old[reason]));
    cell.resize((cell.size() / kCell + 1) * kCell, ' ');
    if (section.lines.empty() || section.lines.back().size() + cell.size() > kUsualColumns)
      section.lines.emplace_back();
    section.lines.back() += cell;
  }
  if (section.lines.empty()) section.lines.push_back("nothing yet");
  return section;
}

Section Pools(const Snapshot& now) {
  Section section;
  section.heading = absl::StrFormat("%-26s %9s %9s %15s %9s", "pool", "in use", "of", "pages in flight", "memory");
  for (const PoolSnapshot& pool : now.pools) {
    section.lines.push_back(absl::StrFormat("%-26s %9d %9d %15s %9s", pool.name, pool.buffers_in_use, pool.size,
                                            pool.page_frag ? absl::StrCat(pool.pages_in_flight) : "-",
                                            pool.page_frag ? FormatBytes(pool.bytes_resident) : "-"));
  }
  return section;
}

Section Lcores(const Snapshot& now, const Snapshot& before) {
  Section section;
  section.heading = "lcores, share of rounds in which frames moved";
  for (size_t w = 0; w < now.workers.size(); ++w) {
    const uint64_t rounds = now.workers[w].rounds - before.workers[w].rounds;
    const uint64_t idle = now.workers[w].idle_rounds - before.workers[w].idle_rounds;
    const double busy = rounds == 0 ? 0 : 100 * (1 - static_cast<double>(std::min(idle, rounds)) / rounds);
    if (w % kPerLine == 0) section.lines.emplace_back();
    absl::StrAppendFormat(&section.lines.back(), "lcore %-4d %5.1f %%  ", now.workers[w].lcore, busy);
  }
  return section;
}

// `text` in lines of at most `columns`, broken at spaces where there are any; further ones are indented.
void AppendWrapped(absl::string_view text, size_t columns, std::vector<std::string>& lines) {
  std::string indent;
  while (indent.size() + text.size() > columns && columns > 8) {
    const size_t room = columns - indent.size();
    size_t end = text.rfind(' ', room);
    if (end == absl::string_view::npos || end < room / 2) end = room;
    lines.push_back(absl::StrCat(indent, text.substr(0, end)));
    text = absl::StripLeadingAsciiWhitespace(text.substr(end));
    indent = "  ";
  }
  lines.push_back(absl::StrCat(indent, text));
}

Section Warnings(const std::vector<std::string>& warnings, size_t columns) {
  Section section;
  section.heading = "warnings, the latest first";
  for (auto warning = warnings.rbegin(); warning != warnings.rend(); ++warning) {
    AppendWrapped(*warning, columns, section.lines);
  }
  return section;
}

// Shares `rows` out: whoever has most gives first.
void ShareOut(std::vector<Section>& sections, size_t rows) {
  size_t wanted = 0;
  for (Section& section : sections) wanted += 1 + (section.shown = section.lines.size());
  while (wanted > rows) {
    const auto longest = std::max_element(sections.begin(), sections.end(),
                                          [](const Section& a, const Section& b) { return a.shown < b.shown; });
    if (longest->shown == 0) return;
    --longest->shown;
    --wanted;
  }
}

void AppendLine(absl::string_view line, size_t columns, size_t rows, std::vector<std::string>& out) {
  if (out.size() < rows) out.emplace_back(absl::StripTrailingAsciiWhitespace(line.substr(0, columns)));
}

}  // namespace

std::string TopScreen(const std::string& title, const Snapshot& now, const Snapshot& before,
                      const std::vector<std::string>& warnings, size_t columns, size_t rows) {
  const Rates rates(now, before);
  std::vector<Section> sections = {Devices(now, before, rates), Lost(now, before, rates), Pools(now),
                                   Lcores(now, before)};
  if (!warnings.empty()) sections.insert(sections.begin(), Warnings(warnings, columns));
  ShareOut(sections, rows - std::min<size_t>(rows, 1));
  const uint64_t frames = now.frames_sent() + now.frames_come();
  const uint64_t frames_before = before.frames_sent() + before.frames_come();
  std::vector<std::string> lines;
  AppendLine(absl::StrFormat("halfpage %s: %.0f s, %s frames a second, Ctrl-C ends it", title, now.at,
                             rates.Text(frames, frames_before)),
             columns, rows, lines);
  for (const Section& section : sections) {
    AppendLine(section.heading, columns, rows, lines);
    for (size_t i = 0; i < section.shown; ++i) {
      const bool more = i + 1 == section.shown && section.shown < section.lines.size();
      AppendLine(more ? absl::StrCat("... and ", section.lines.size() - i, " lines more") : section.lines[i], columns,
                 rows, lines);
    }
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : "\n", lines[i]);
  return text;
}

bool CanDraw() {
  const char* kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != 0 && absl::string_view(kind) != "dumb";
}

Written DrawTop(const std::string& title, const Snapshot& now, const Snapshot& before,
                const std::vector<std::string>& warnings) {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  const std::string screen =
      TopScreen(title, now, before, warnings, known ? size.ws_col : kUsualColumns, known ? size.ws_row : kUsualRows);
  // Home, each line cleared behind its end, and what stands below the last.
  std::string drawn = "\033[H";
  for (const char letter : screen) {
    if (letter == '\n') {
      drawn += "\033[K\r\n";
    } else {
      drawn += letter;
    }
  }
  return WriteOut(drawn + "\033[K\033[J");
}

}  // namespace halfpage
