// Capture files made by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace halfpage {

// A pcap or pcapng file, byte by byte, so that it can be as wrong as a test wants it. Lengths are in bytes.
class CaptureBytes {
 public:
  enum class Order { kLittle, kBig };

  explicit CaptureBytes(Order order = Order::kLittle) : order_(order) {}

  CaptureBytes& U16(uint32_t value) { return Number(value, 2); }
  CaptureBytes& U32(uint32_t value) { return Number(value, 4); }
  CaptureBytes& Fill(size_t n, uint8_t value = 0xa5) {
    bytes_.insert(bytes_.end(), n, static_cast<char>(value));
    return *this;
  }

  CaptureBytes& PcapHeader(uint32_t magic = 0xa1b2c3d4, uint32_t link_type = 1, uint32_t snaplen = 262144) {
    return U32(magic).U16(2).U16(4).U32(0).U32(0).U32(snaplen).U32(link_type);
  }
  CaptureBytes& PcapRecord(uint32_t captured, uint32_t seconds = 1, uint32_t fraction = 0, uint32_t on_wire = 0) {
    U32(seconds).U32(fraction).U32(captured).U32(on_wire == 0 ? captured : on_wire);
    return Fill(captured, static_cast<uint8_t>(captured));
  }
  CaptureBytes& PcapRecordOf(const std::string& frame, uint64_t microseconds = 0) {
    const uint32_t length = static_cast<uint32_t>(frame.size());
    U32(static_cast<uint32_t>(1 + microseconds / 1000000))
        .U32(static_cast<uint32_t>(microseconds % 1000000))
        .U32(length)
        .U32(length);
    bytes_ += frame;
    return *this;
  }

  CaptureBytes& SectionHeader() {
    return U32(0x0a0d0d0a).U32(28).U32(0x1a2b3c4d).U16(1).U16(0).U32(~0u).U32(~0u).U32(28);
  }
  CaptureBytes& Interface(uint32_t link_type) {
    return U32(1).U32(20).U16(link_type).U16(0).U32(262144).U32(20);  // microseconds, as no option says else
  }
  CaptureBytes& EnhancedPacket(uint32_t interface, uint64_t microseconds, uint32_t captured) {
    const uint32_t padded = (captured + 3) / 4 * 4;
    U32(6).U32(32 + padded).U32(interface);
    U32(static_cast<uint32_t>(microseconds >> 32)).U32(static_cast<uint32_t>(microseconds));
    return U32(captured).U32(captured).Fill(padded, static_cast<uint8_t>(captured)).U32(32 + padded);
  }

  const std::string& str() const { return bytes_; }

 private:
  CaptureBytes& Number(uint32_t value, int width) {
    for (int i = 0; i < width; ++i) {
      const int shift = 8 * (order_ == Order::kLittle ? i : width - 1 - i);
      bytes_.push_back(static_cast<char>(value >> shift));
    }
    return *this;
  }

  Order order_;
  std::string bytes_;
};

}  // namespace halfpage
