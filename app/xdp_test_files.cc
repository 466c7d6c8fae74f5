#include "app/xdp_test_files.h"

#include <pcap/pcap.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "app/frame_limits.h"

namespace halfpage {
namespace {

constexpr XdpAction kKept[] = {XdpAction::kPass, XdpAction::kTx, XdpAction::kRedirect};

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

struct FormatCloser {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};
struct DumperCloser {
  void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
};

}  // namespace

struct XdpTestCaptures::File {
  std::string path;
  std::unique_ptr<pcap_t, FormatCloser> format;
  std::unique_ptr<pcap_dumper_t, DumperCloser> dumper;
};

XdpTestCaptures::XdpTestCaptures() : files_(kXdpActions) {}
XdpTestCaptures::XdpTestCaptures(XdpTestCaptures&&) noexcept = default;
XdpTestCaptures& XdpTestCaptures::operator=(XdpTestCaptures&&) noexcept = default;
XdpTestCaptures::~XdpTestCaptures() = default;

absl::StatusOr<XdpTestCaptures> XdpTestCaptures::Create(const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--out %s: %s; give a folder that can be made", folder, strerror(errno)));
  }
  XdpTestCaptures captures;
  for (const XdpAction action : kKept) {
    File& file = captures.files_[static_cast<int>(action)];
    file.path = absl::StrCat(folder, "/", XdpActionName(action), ".pcap");
    file.format.reset(pcap_open_dead(DLT_EN10MB, kLongestFrame));
    file.dumper.reset(pcap_dump_open(file.format.get(), file.path.c_str()));
    if (file.dumper == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat("--out %s: %s", folder, pcap_geterr(file.format.get())));
    }
  }
  return captures;
}

void XdpTestCaptures::Write(XdpAction action, absl::Span<const uint8_t> frame, uint64_t number) {
  const File& file = files_[static_cast<int>(action)];
  if (file.dumper == nullptr) return;
  pcap_pkthdr header = {};
  header.ts.tv_sec = static_cast<time_t>(number / 1000000);
  header.ts.tv_usec = static_cast<suseconds_t>(number % 1000000);
  header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
  pcap_dump(reinterpret_cast<u_char*>(file.dumper.get()), &header, frame.data());
}

absl::Status XdpTestCaptures::Close() {
  absl::Status status;
  for (File& file : files_) {
    if (file.dumper == nullptr) continue;
    const bool good = pcap_dump_flush(file.dumper.get()) == 0 && std::ferror(pcap_dump_file(file.dumper.get())) == 0;
    if (!good && status.ok()) status = absl::InternalError(absl::StrCat(file.path, ": ", strerror(errno)));
    file.dumper.reset();
  }
  return status;
}

std::string JUnitText(const std::string& suite, const std::vector<XdpTestCase>& cases) {
  size_t failures = 0;
  for (const XdpTestCase& test : cases) failures += test.failure.empty() ? 0 : 1;
  std::string text = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"%s\" tests=\"%d\" failures=\"%d\">\n",
      Escaped(suite), cases.size(), failures);
  for (const XdpTestCase& test : cases) {
    absl::StrAppendFormat(&text, "  <testcase classname=\"%s\" name=\"%s\"", Escaped(suite), Escaped(test.name));
    if (test.failure.empty()) {
      absl::StrAppend(&text, "/>\n");
    } else {
      absl::StrAppendFormat(&text, "><failure message=\"%s\"/></testcase>\n", Escaped(test.failure));
    }
  }
  absl::StrAppend(&text, "</testsuite>\n");
  return text;
}

}  // namespace halfpage
