#include "app/generated_frames.h"

#include <string.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "app/frame_limits.h"

namespace halfpage {
namespace {

using FrameSizes = std::vector<std::pair<uint32_t, uint32_t>>;  // as in TrafficConfig: {bytes, weight}

constexpr uint32_t kEthernetBytes = 14;
constexpr uint32_t kIpv4Bytes = 20;
constexpr uint32_t kUdpBytes = 8;
constexpr uint32_t kTcpBytes = 20;
constexpr uint32_t kMostHeaderBytes = kEthernetBytes + kIpv4Bytes + kTcpBytes;
constexpr uint32_t kMaxFlows = 65536;
constexpr uint64_t kMaxHeadBytes = 64ull << 20;
constexpr uint64_t kMaxPositions = 1ull << 20;
constexpr uint64_t kUsualPositions = 1024;  // a mix this long shows no rhythm, and its list stays in the caches
constexpr uint32_t kFirstSourcePort = 1024;
static_assert(kMostHeaderBytes <= kFrameHeadBytes);

void Put16(uint8_t* to, uint32_t value) {
  to[0] = static_cast<uint8_t>(value >> 8);
  to[1] = static_cast<uint8_t>(value);
}

void Put32(uint8_t* to, uint32_t value) {
  Put16(to, value >> 16);
  Put16(to + 2, value);
}

// Sum of 16-bit big-endian words, not folded; an odd last byte counts as the high half of a word (RFC 1071).
uint64_t WordSum(const uint8_t* bytes, size_t length) {
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < length; i += 2) sum += (uint32_t{bytes[i]} << 8) | bytes[i + 1];
  if (length % 2 != 0) sum += uint32_t{bytes[length - 1]} << 8;
  return sum;
}

uint32_t Checksum(uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~static_cast<uint32_t>(sum) & 0xffff;
}

// FNV-1a: the same on any platform, which std::hash need not be.
uint32_t NameHash(const std::string& name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

// Uniform in [0, bound), spelled out because std::uniform_int_distribution differs between standard libraries.
uint64_t Below(std::mt19937_64& random, uint64_t bound) {
  const uint64_t usable = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value;
  do value = random();
  while (value >= usable);
  return value % bound;
}

// Fisher-Yates from the end, spelled out for the same reason (std::shuffle).
void Shuffle(std::mt19937_64& random, uint32_t* values, size_t n) {
  for (size_t i = n; i > 1; --i) std::swap(values[i - 1], values[Below(random, i)]);
}

uint64_t CommonDivisor(const FrameSizes& sizes) {
  uint64_t divisor = 0;
  for (const auto& [length, weight] : sizes) divisor = std::gcd(divisor, uint64_t{weight});
  return divisor;
}

// Positions of the shortest order with the exact ratio.
uint64_t CycleLength(const FrameSizes& sizes) {
  const uint64_t divisor = CommonDivisor(sizes);
  uint64_t sum = 0;
  for (const auto& [length, weight] : sizes) sum += weight / divisor;
  return sum;
}

// The sizes as often as their weights say, the weights taken down to lowest terms.
std::vector<uint32_t> OneCycle(const FrameSizes& sizes) {
  const uint64_t divisor = CommonDivisor(sizes);
  std::vector<uint32_t> cycle;
  cycle.reserve(CycleLength(sizes));
  for (uint32_t i = 0; i < sizes.size(); ++i) cycle.insert(cycle.end(), sizes[i].second / divisor, i);
  return cycle;
}

uint32_t HeaderBytes(const TrafficConfig& config) {
  return kEthernetBytes + kIpv4Bytes + (config.gso != 0 ? kTcpBytes : kUdpBytes);
}

struct Flow {
  uint32_t index;
  uint32_t source_port;
  uint32_t destination_port;
};

// The UDP header of `bytes` with its payload, whose WordSum() is `payload_sum`; the addresses are before it.
void WriteUdp(uint8_t* udp, uint32_t bytes, const Flow& flow, uint64_t payload_sum) {
  Put16(udp, flow.source_port);
  Put16(udp + 2, flow.destination_port);
  Put16(udp + 4, bytes);
  Put16(udp + 6, 0);
  const uint64_t pseudo_header = WordSum(udp - 8, 8) + 17 + bytes;
  const uint32_t checksum = Checksum(pseudo_header + WordSum(udp, kUdpBytes) + payload_sum);
  Put16(udp + 6, checksum == 0 ? 0xffff : checksum);  // 0 would say that there is none
}

// The TCP header of a segment in mid-flow: sequence and acknowledgement 1, PSH and ACK, the whole window open.
void WriteTcp(uint8_t* tcp, uint32_t bytes, const Flow& flow, uint64_t payload_sum) {
  Put16(tcp, flow.source_port);
  Put16(tcp + 2, flow.destination_port);
  Put32(tcp + 4, 1);
  Put32(tcp + 8, 1);
  Put16(tcp + 12, kTcpBytes / 4 << 12 | 0x18);
  Put16(tcp + 14, 0xffff);
  Put32(tcp + 16, 0);
  const uint64_t pseudo_header = WordSum(tcp - 8, 8) + 6 + bytes;
  Put16(tcp + 16, Checksum(pseudo_header + WordSum(tcp, kTcpBytes) + payload_sum));
}

// Writes the head of one frame. `payload_sum`: WordSum() of all of the frame's payload.
void WriteHead(uint8_t* head, uint32_t length, const Flow& flow, uint32_t name_hash, uint64_t payload_sum,
               const uint8_t* payload, uint32_t header_bytes) {
  const bool tcp = header_bytes == kMostHeaderBytes;
  uint8_t* ethernet = head;
  for (const uint8_t end : {2, 1}) {  // destination first
    ethernet[0] = 0x02;               // locally administered
    ethernet[1] = 0x00;
    ethernet[2] = static_cast<uint8_t>(name_hash >> 16);
    Put16(ethernet + 3, name_hash);
    ethernet[5] = end;
    ethernet += 6;
  }
  Put16(head + 12, 0x0800);

  uint8_t* ip = head + kEthernetBytes;
  const uint32_t ip_bytes = length - kEthernetBytes;
  ip[0] = 0x45;
  ip[1] = 0;
  Put16(ip + 2, ip_bytes);
  Put16(ip + 4, 0);       // an identification means nothing where DF is set (RFC 6864)
  Put16(ip + 6, 0x4000);  // DF
  ip[8] = 64;
  ip[9] = tcp ? 6 : 17;
  Put16(ip + 10, 0);
  Put32(ip + 12, 0x0a000000 + flow.index);
  Put32(ip + 16, 0x0a800001);
  Put16(ip + 10, Checksum(WordSum(ip, kIpv4Bytes)));

  if (tcp) {
    WriteTcp(ip + kIpv4Bytes, ip_bytes - kIpv4Bytes, flow, payload_sum);
  } else {
    WriteUdp(ip + kIpv4Bytes, ip_bytes - kIpv4Bytes, flow, payload_sum);
  }
  memcpy(head + header_bytes, payload + header_bytes, kFrameHeadBytes - header_bytes);
}

}  // namespace

absl::Status GeneratedFrames::Check(const TrafficConfig& config) {
  const auto refuse = [&config](const std::string& text) {
    return absl::InvalidArgumentError(absl::StrFormat("traffic \"%s\": %s", config.name, text));
  };
  if (config.sizes.empty()) return refuse("sizes: none given; give at least one, as in [64]");
  for (const auto& [length, weight] : config.sizes) {
    if (length < HeaderBytes(config) || length > kLongestFrame) {
      return refuse(absl::StrFormat("sizes: %d bytes is outside %d (Ethernet, IPv4 and %s headers) to %d", length,
                                    HeaderBytes(config), config.gso != 0 ? "TCP" : "UDP", kLongestFrame));
    }
    if (weight == 0) return refuse(absl::StrFormat("sizes: %d bytes has weight 0; leave it out or give it 1", length));
  }
  if (config.flows < 1 || config.flows > kMaxFlows) {
    return refuse(absl::StrFormat("flows: %d is outside 1 to %d", config.flows, kMaxFlows));
  }
  if (config.ports < 1) return refuse("ports: 0 leaves no destination port; the least is 1");
  if (config.destination_port + config.ports - 1 > 65535) {
    return refuse(absl::StrFormat("destination_port: %d and %d ports go past 65535; lower one of them",
                                  config.destination_port, config.ports));
  }
  const uint64_t head_bytes = uint64_t{config.flows} * config.sizes.size() * kFrameHeadBytes;
  if (head_bytes > kMaxHeadBytes) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "traffic \"%s\": %d flows of %d sizes need %d bytes of prepared headers, the most is %d; use at most %d flows",
        config.name, config.flows, config.sizes.size(), head_bytes, kMaxHeadBytes,
        kMaxHeadBytes / kFrameHeadBytes / config.sizes.size()));
  }
  if (CycleLength(config.sizes) > kMaxPositions) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "traffic \"%s\": sizes: weights add up to %d in lowest terms, the most is %d; use rounder weights", config.name,
        CycleLength(config.sizes), kMaxPositions));
  }
  return absl::OkStatus();
}

absl::StatusOr<GeneratedFrames> GeneratedFrames::Create(const TrafficConfig& config, uint64_t seed) {
  if (absl::Status status = Check(config); !status.ok()) return status;
  const std::vector<uint32_t> cycle = OneCycle(config.sizes);

  GeneratedFrames frames;
  frames.flows_ = config.flows;
  std::mt19937_64 random(seed);

  const uint64_t cycles = cycle.size() == 1 ? 1 : std::max<uint64_t>(1, kUsualPositions / cycle.size());
  frames.order_.reserve(cycles * cycle.size());
  for (uint64_t i = 0; i < cycles; ++i) {
    frames.order_.insert(frames.order_.end(), cycle.begin(), cycle.end());
    Shuffle(random, frames.order_.data() + i * cycle.size(), cycle.size());
  }
  // Flows advance by one each frame, so a position of the order meets all of them if the order's length and the number
  // of flows share no factor.
  while (std::gcd(frames.order_.size() + frames.skew_, uint64_t{frames.flows_}) != 1) ++frames.skew_;

  uint32_t longest = kFrameHeadBytes;
  for (const auto& [length, weight] : config.sizes) {
    frames.lengths_.push_back(length);
    longest = std::max(longest, length);
  }
  frames.payload_.resize((longest + kFrameHeadBytes - 1) / kFrameHeadBytes);
  uint8_t* const payload = frames.payload_.data()->bytes;
  for (uint32_t i = 0; i < longest; i += 8) {
    const uint64_t word = random();
    for (uint32_t j = i; j < std::min(i + 8, longest); ++j) payload[j] = static_cast<uint8_t>(word >> (8 * (j - i)));
  }

  frames.heads_.resize(frames.lengths_.size() * frames.flows_);
  const uint32_t name_hash = NameHash(config.name);
  const uint32_t header_bytes = HeaderBytes(config);
  Line* head = frames.heads_.data();
  for (const uint32_t length : frames.lengths_) {
    const uint64_t payload_sum = WordSum(payload + header_bytes, length - header_bytes);
    for (uint32_t f = 0; f < frames.flows_; ++f, ++head) {
      const Flow flow = {f, kFirstSourcePort + f % (65536 - kFirstSourcePort),
                         static_cast<uint32_t>(config.destination_port) + f % config.ports};
      WriteHead(head->bytes, length, flow, name_hash, payload_sum, payload, header_bytes);
    }
  }
  return frames;
}

}  // namespace halfpage
