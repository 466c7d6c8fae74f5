// A sink that keeps what passes in a capture file.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "xdp_emul/sinks/pcap_writer.h"

namespace halfpage {

// One capture file, written by all workers whose devices pass frames to it.
class PcapSink {
 public:
  // Creates `path`. `snaplen` bytes are kept of each frame; after `limit` frames (0: no limit) no more are written.
  // Errors: those of PcapWriter::Create.
  static absl::StatusOr<std::unique_ptr<PcapSink>> Create(const std::string& path, uint32_t snaplen, uint64_t limit);

  // Writes a burst, stamped with the time of the call; the frames stay the caller's. Takes a lock and writes to a file:
  // a sink to look at frames with, not to measure with. Any worker.
  void Record(rte_mbuf* const* frames, uint16_t n);

  // Completes the file. Errors: what the file system said, at any write before. Workers must have stopped.
  absl::Status Close() { return writer_.Close(); }
  uint64_t written() const { return writer_.written(); }

 private:
  PcapSink(PcapWriter writer, uint64_t limit) : writer_(std::move(writer)), limit_(limit) {}

  std::mutex mutex_;
  PcapWriter writer_;
  uint64_t limit_;
};

}  // namespace halfpage
