#include "app/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/frame_limits.h"

namespace halfpage {
namespace {

constexpr uint32_t kShortestFrame = 14;         // an Ethernet header
constexpr uint32_t kMaxUnusableInARow = 65536;  // a hole of zeros, gigabytes long, is made of such records
constexpr __int128 kNanosecondsPerSecond = 1000000000;

struct FileCloser {
  void operator()(FILE* file) const { fclose(file); }
};
struct PcapCloser {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }
};
using FilePtr = std::unique_ptr<FILE, FileCloser>;
using PcapPtr = std::unique_ptr<pcap_t, PcapCloser>;

struct Compression {
  const char* name;
  const char* command;
  size_t length;
  uint8_t magic[6];
};
constexpr Compression kCompressions[] = {
    {"gzip", "gunzip", 2, {0x1f, 0x8b}},
    {"xz", "unxz", 6, {0xfd, '7', 'z', 'X', 'Z', 0x00}},
    {"zstd", "unzstd", 4, {0x28, 0xb5, 0x2f, 0xfd}},
    {"bzip2", "bunzip2", 3, {'B', 'Z', 'h'}},
};

absl::Status OpenError(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(path, ": no such file; check the name"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(path, ": not readable for this user; allow it with `chmod a+r ",
                                                      path, "` (and a+x on its folders)"));
    default:
      return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be opened"));
  }
}

// Opens what is a regular file and nothing else. Not blocking: opening a FIFO would wait for somebody to write into it.
absl::StatusOr<FilePtr> OpenRegular(const std::string& path, uint64_t* bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return OpenError(path, errno);
  FilePtr file(fdopen(fd, "rb"));
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    return OpenError(path, error);
  }
  struct stat status;
  if (fstat(fd, &status) != 0) return OpenError(path, errno);
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; name a capture file in it"));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is not a regular file (a capture is read whole before the run); save it first, as in `cat ", path,
        " > capture.pcap`"));
  }
  if (status.st_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is empty, without even a file header; record it again, as in `tcpdump -i eth0 -w ", path, "`"));
  }
  *bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

absl::Status RefuseCompressed(const std::string& path, FILE* file) {
  uint8_t start[sizeof(Compression::magic)] = {};
  const size_t got = fread(start, 1, sizeof(start), file);
  if (ferror(file)) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  rewind(file);
  for (const Compression& compression : kCompressions) {
    if (got >= compression.length && memcmp(start, compression.magic, compression.length) == 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: is compressed (%s); unpack it with `%s %s` and name the result", path, compression.name,
                          compression.command, path));
    }
  }
  return absl::OkStatus();
}

std::string LinkTypeText(int link_type) {
  const char* name = pcap_datalink_val_to_name(link_type);
  const char* description = pcap_datalink_val_to_description(link_type);
  if (name == nullptr) return absl::StrCat("DLT ", link_type);
  return description == nullptr ? std::string(name) : absl::StrCat(name, " (", description, ")");
}

absl::StatusOr<PcapPtr> OpenCapture(const std::string& path, FilePtr file) {
  char error[PCAP_ERRBUF_SIZE] = "";
  PcapPtr pcap(pcap_fopen_offline_with_tstamp_precision(file.get(), PCAP_TSTAMP_PRECISION_NANO, error));
  if (pcap == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path,
                                                   ": is not a pcap or pcapng capture that libpcap reads: ", error,
                                                   "; convert it with `editcap -F pcap ", path, " capture.pcap`"));
  }
  file.release();  // closed by pcap_close() from here on
  const int link_type = pcap_datalink(pcap.get());
  if (link_type != DLT_EN10MB) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": link type is ", LinkTypeText(link_type),
                     ", only Ethernet (EN10MB) can be sent; record on one Ethernet device (`tcpdump -i eth0`, not `-i "
                     "any`) or convert it "
                     "with `tcprewrite --dlt=enet --enet-smac=02:00:00:00:00:01 --enet-dmac=02:00:00:00:00:02 -i ",
                     path, " -o ethernet.pcap`"));
  }
  return pcap;
}

}  // namespace

absl::StatusOr<Capture> Capture::Read(const std::string& path, uint64_t max_bytes) try {
  uint64_t file_bytes = 0;
  absl::StatusOr<FilePtr> file = OpenRegular(path, &file_bytes);
  if (!file.ok()) return file.status();
  if (absl::Status status = RefuseCompressed(path, file->get()); !status.ok()) return status;
  absl::StatusOr<PcapPtr> opened = OpenCapture(path, *std::move(file));
  if (!opened.ok()) return opened.status();
  pcap_t* pcap = opened->get();

  Capture capture;
  capture.bytes_.reserve(std::min(file_bytes, max_bytes));
  __int128 first_time = 0;  // wide, as damaged pcapng stamps reach past 64 bits of nanoseconds
  uint64_t last_time = 0;
  uint32_t unusable_in_a_row = 0;
  pcap_pkthdr* header = nullptr;
  const uint8_t* bytes = nullptr;
  int result;
  while ((result = pcap_next_ex(pcap, &header, &bytes)) == 1) {
    if (header->caplen < kShortestFrame || header->caplen > kLongestFrame) {
      ++capture.skipped_[header->caplen < kShortestFrame ? "too_short" : "too_long"];
      if (++unusable_in_a_row < kMaxUnusableInARow) continue;
      capture.damage_ = absl::StrCat(kMaxUnusableInARow, " records in a row are outside 14 to 65535 bytes");
      break;
    }
    unusable_in_a_row = 0;
    if (header->caplen > max_bytes - capture.bytes_.size()) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("%s: holds more than %d bytes of frames, the most that is kept in memory; cut it with "
                          "`editcap -r %s part.pcap 1-%d`",
                          path, max_bytes, path, std::max<size_t>(1, capture.frames_.size())));
    }
    if (header->caplen < header->len) ++capture.skipped_["cut_by_snaplen"];
    const __int128 time = kNanosecondsPerSecond * header->ts.tv_sec + header->ts.tv_usec;  // tv_usec: nanoseconds here
    if (capture.frames_.empty()) first_time = time;
    const __int128 since_first = std::min<__int128>(time - first_time, UINT64_MAX);
    if (since_first > last_time) last_time = static_cast<uint64_t>(since_first);
    capture.frames_.push_back({capture.bytes_.size(), last_time, header->caplen});
    capture.bytes_.insert(capture.bytes_.end(), bytes, bytes + header->caplen);
    capture.longest_ = std::max(capture.longest_, header->caplen);
  }
  if (result == PCAP_ERROR) capture.damage_ = pcap_geterr(pcap);
  if (!capture.damage_.empty()) ++capture.skipped_["damaged"];
  if (!capture.frames_.empty()) return capture;

  if (!capture.damage_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": is damaged before its first usable frame: ", capture.damage_, "; record or copy it again"));
  }
  if (capture.skipped_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": has a file header but no frames; record it again with traffic on the device"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": has no usable frame, all of its records are outside 14 to 65535 bytes (",
      absl::StrJoin(capture.skipped_, ", ", absl::PairFormatter(" ")), "); record it again with `tcpdump -s 65535`"));
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError(absl::StrCat(
      path, ": memory does not suffice to hold its frames; cut it with `editcap -r ", path, " part.pcap 1-1000`"));
}

}  // namespace halfpage
