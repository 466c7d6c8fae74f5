#include "xdp_emul/sinks/pcap_sink.h"

#include <ctime>
#include <utility>

namespace halfpage {

absl::StatusOr<std::unique_ptr<PcapSink>> PcapSink::Create(const std::string& path, uint32_t snaplen, uint64_t limit) {
  auto writer = PcapWriter::Create(path, snaplen);
  if (!writer.ok()) return writer.status();
  return std::unique_ptr<PcapSink>(new PcapSink(*std::move(writer), limit == 0 ? UINT64_MAX : limit));
}

void PcapSink::Record(rte_mbuf* const* frames, uint16_t n) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t time_ns = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint16_t i = 0; i < n && writer_.written() < limit_; ++i) writer_.Write(frames[i], time_ns);
}

}  // namespace halfpage
