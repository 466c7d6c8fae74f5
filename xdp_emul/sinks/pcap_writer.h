// Frames into a capture file.
#pragma once

#include <pcap/pcap.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct rte_mbuf;

namespace halfpage {

// Writes an Ethernet pcap with nanosecond time stamps.
//
// Slow by nature: each frame goes through stdio, and the disk holds up whoever writes. It is for looking at results and
// for tests; what is to be measured counts its frames instead. One thread at a time.
class PcapWriter {
 public:
  // Begins the file at `path`, in place of what was there, and writes its header, so that a full disk or missing rights
  // show before the run. `snaplen`: bytes kept of each frame, 1 to 262144. Errors: InvalidArgument for "-", a directory
  // or a pipe (its reader would hold up the worker) and for the snaplen; the system's own for all else.
  static absl::StatusOr<PcapWriter> Create(const std::string& path, uint32_t snaplen);

  PcapWriter(PcapWriter&&) = default;
  PcapWriter& operator=(PcapWriter&&) = default;
  // Completes the file where Close() was not called; errors are lost then.
  ~PcapWriter() = default;

  // Appends one frame, all of its segments up to the snaplen; `time_ns` counts from 1970. The frame stays the caller's.
  // After a write error the rest is dropped uncounted, and Close() tells.
  void Write(const rte_mbuf* frame, uint64_t time_ns);

  // Completes the file. Gives the first write error, with its file and how many frames had been handed to it. Further
  // calls give the same answer.
  absl::Status Close();

  // Frames handed to the file without an error so far. Some may still be in its buffer before Close().
  uint64_t written() const { return written_; }

 private:
  struct PcapCloser {
    void operator()(pcap_t* pcap) const { pcap_close(pcap); }
  };
  struct DumperCloser {
    void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
  };
  PcapWriter() = default;
  void NoteError(int error);

  std::string path_;
  uint32_t snaplen_ = 0;
  uint64_t written_ = 0;
  absl::Status status_;
  std::vector<uint8_t> scratch_;  // a chained frame's bytes, `snaplen_` of them
  std::unique_ptr<pcap_t, PcapCloser> format_;
  std::unique_ptr<pcap_dumper_t, DumperCloser> file_;  // null once closed
};

}  // namespace halfpage
