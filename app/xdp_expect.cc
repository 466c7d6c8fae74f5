#include "app/xdp_expect.h"

#include <pcap/pcap.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "app/frame_limits.h"

namespace halfpage {
namespace {}  // namespace

struct XdpExpectations::Line {
  Expected expected;
  uint64_t first = 0, last = 0;  // of packet numbers; both 0 for a filter
  bpf_program filter = {};

  Line() = default;
  Line(Line&& other) noexcept
      : expected(std::move(other.expected)), first(other.first), last(other.last), filter(other.filter) {
    other.filter = {};
  }
  Line& operator=(Line&&) = delete;
  ~Line() { pcap_freecode(&filter); }

  bool Fits(uint64_t number, absl::Span<const uint8_t> frame) const {
    if (filter.bf_insns == nullptr) return number >= first && number <= last;
    pcap_pkthdr header = {};
    header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
    return pcap_offline_filter(&filter, &header, frame.data()) != 0;
  }
};

XdpExpectations::XdpExpectations() = default;
XdpExpectations::XdpExpectations(XdpExpectations&&) noexcept = default;
XdpExpectations& XdpExpectations::operator=(XdpExpectations&&) noexcept = default;
XdpExpectations::~XdpExpectations() = default;

absl::StatusOr<XdpExpectations> XdpExpectations::Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrFormat("--expect %s: %s", path, strerror(errno)));
  XdpExpectations expectations;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    text = text.substr(0, text.find('#'));
    const absl::string_view line = absl::StripAsciiWhitespace(text);
    if (line.empty()) continue;
    const std::string where = absl::StrFormat("%s:%d", path, number);
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: %s; write WHICH: VERDICT, for example `3: drop`, `4-9: pass`, `udp port 9: drop` or `any: pass`", where,
          what));
    };
    const size_t colon = line.rfind(':');
    if (colon == absl::string_view::npos) return wrong("there is no colon");
    const absl::string_view which = absl::StripAsciiWhitespace(line.substr(0, colon));
    const absl::string_view verdict = absl::StripAsciiWhitespace(line.substr(colon + 1));
    const absl::optional<XdpAction> action = ParseXdpAction(verdict);
    if (!action.has_value())
      return wrong(absl::StrFormat("`%s` is no verdict (aborted, drop, pass, tx, redirect)", verdict));
    Line entry;
    entry.expected = {*action, where};
    const std::pair<std::string, std::string> range = absl::StrSplit(which, absl::MaxSplits('-', 1));
    if (which == "any") {
      entry.first = 1;
      entry.last = UINT64_MAX;
    } else if (absl::SimpleAtoi(which, &entry.first)) {
      entry.last = entry.first;
    } else if (absl::SimpleAtoi(range.first, &entry.first) && absl::SimpleAtoi(range.second, &entry.last)) {
      if (entry.first == 0 || entry.last < entry.first) return wrong(absl::StrFormat("range %s is empty", which));
    } else {
      pcap_t* format = pcap_open_dead(DLT_EN10MB, kLongestFrame);
      if (format == nullptr) return absl::ResourceExhaustedError("libpcap has no memory");
      const bool good = pcap_compile(format, &entry.filter, std::string(which).c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0;
      const std::string why = good ? "" : pcap_geterr(format);
      pcap_close(format);
      if (!good) return wrong(absl::StrFormat("`%s` is neither packet number nor filter (%s)", which, why));
    }
    expectations.lines_.push_back(std::move(entry));
  }
  if (expectations.lines_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--expect %s: it expects nothing; write for example `any: pass`", path));
  }
  return expectations;
}

const XdpExpectations::Expected* XdpExpectations::Find(uint64_t number, absl::Span<const uint8_t> frame) const {
  for (const Line& line : lines_) {
    if (line.Fits(number, frame)) return &line.expected;
  }
  return nullptr;
}

}  // namespace halfpage
