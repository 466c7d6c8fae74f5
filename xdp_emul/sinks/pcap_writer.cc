#include "xdp_emul/sinks/pcap_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_mbuf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace halfpage {
namespace {

constexpr uint32_t kMaxSnaplen = 262144;  // libpcap's limit for Ethernet; readers refuse longer records
constexpr uint64_t kNanosecondsPerSecond = 1000000000;

absl::Status OpenError(const std::string& path, int error) {
  switch (error) {
    case EISDIR:
      return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; name a file in it"));
    case ENXIO:  // a FIFO without a reader, or a socket
      return absl::InvalidArgumentError(absl::StrCat(path, ": is a pipe or socket; name a file"));
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(path, ": its folder does not exist; create it or name another"));
    default:
      return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be written; mend that or name another file"));
  }
}

absl::StatusOr<FILE*> OpenForWriting(const std::string& path) {
  // Not blocking: opening a FIFO would wait for its reader.
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
  if (fd < 0) return OpenError(path, errno);
  struct stat status;
  if (fstat(fd, &status) != 0 || S_ISFIFO(status.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a pipe, whose reader would hold up the packets; name a file"));
  }
  FILE* file = fdopen(fd, "wb");
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    return OpenError(path, error);
  }
  return file;
}

}  // namespace

absl::StatusOr<PcapWriter> PcapWriter::Create(const std::string& path, uint32_t snaplen) {
  if (path.empty() || path == "-") {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", path, "\": a capture is not written to standard output, which carries the statistics; name a file"));
  }
  if (snaplen == 0 || snaplen > kMaxSnaplen) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: snaplen %d is outside 1 to %d; 65535 keeps whole frames", path, snaplen, kMaxSnaplen));
  }
  PcapWriter writer;
  writer.path_ = path;
  writer.snaplen_ = snaplen;
  writer.scratch_.resize(snaplen);
  writer.format_.reset(
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, static_cast<int>(snaplen), PCAP_TSTAMP_PRECISION_NANO));
  if (writer.format_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": memory does not suffice to write a capture"));
  }
  absl::StatusOr<FILE*> file = OpenForWriting(path);
  if (!file.ok()) return file.status();
  writer.file_.reset(pcap_dump_fopen(writer.format_.get(), *file));
  if (writer.file_ == nullptr) {  // the file was closed by libpcap
    return absl::InternalError(absl::StrCat(path, ": no capture file header: ", pcap_geterr(writer.format_.get())));
  }
  if (pcap_dump_flush(writer.file_.get()) != 0) return OpenError(path, errno);
  return writer;
}

void PcapWriter::NoteError(int error) {
  if (!status_.ok()) return;
  status_ = absl::ErrnoToStatus(
      error == 0 ? EIO : error,
      absl::StrFormat("%s: writing failed after %d frames; free some space or lower the sink's limit or snaplen", path_,
                      written_));
}

void PcapWriter::Write(const rte_mbuf* frame, uint64_t time_ns) {
  if (file_ == nullptr || !status_.ok()) return;
  const uint32_t wanted = std::min(snaplen_, frame->pkt_len);
  const uint8_t* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
  uint32_t length = frame->data_len;
  if (length < wanted) {
    length = 0;
    for (const rte_mbuf* segment = frame; segment != nullptr && length < wanted; segment = segment->next) {
      const uint32_t part = std::min<uint32_t>(segment->data_len, wanted - length);
      memcpy(scratch_.data() + length, rte_pktmbuf_mtod(segment, const uint8_t*), part);
      length += part;
    }
    bytes = scratch_.data();
  }
  pcap_pkthdr header = {};
  header.ts.tv_sec = static_cast<time_t>(time_ns / kNanosecondsPerSecond);
  header.ts.tv_usec = static_cast<suseconds_t>(time_ns % kNanosecondsPerSecond);  // nanoseconds in such a file
  header.caplen = std::min(length, wanted);
  header.len = frame->pkt_len;
  errno = 0;
  pcap_dump(reinterpret_cast<u_char*>(file_.get()), &header, bytes);
  if (ferror(pcap_dump_file(file_.get()))) {
    NoteError(errno);
    return;
  }
  ++written_;
}

absl::Status PcapWriter::Close() {
  if (file_ == nullptr) return status_;
  errno = 0;
  if (pcap_dump_flush(file_.get()) != 0 || ferror(pcap_dump_file(file_.get()))) NoteError(errno);
  file_.reset();
  format_.reset();
  return status_;
}

}  // namespace halfpage
