// SYN cookies of TCP: a number that says of a SYN when it came and which segment size it asked for, and that nobody can
// make who does not know the secret.
#include <sys/random.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "xdp_emul/bpf/functions.h"

namespace halfpage::bpf {
namespace {

constexpr uint32_t kTcpHeader = 20;
constexpr uint32_t kLongestAge = 2;  // minutes, as the kernel's
constexpr uint32_t kLow24 = 0xffffff;

// Segment sizes that a cookie can say, as the kernel's: for IPv4, and for IPv6.
using Sizes = std::array<uint16_t, 4>;
constexpr Sizes kSizes4 = {536, 1300, 1440, 1460};
constexpr Sizes kSizes6 = {1220, 1420, 1440, 8940};

uint32_t BigWord(const uint8_t* bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof(word));
  return __builtin_bswap32(word);
}

// SipHash-2-4 of a few words, with a key that this process drew.
class Secret {
 public:
  Secret() {
    if (getrandom(key_, sizeof(key_), 0) == sizeof(key_)) return;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    key_[0] ^= reinterpret_cast<uint64_t>(this) ^ static_cast<uint64_t>(now.tv_nsec) << 32;
  }

  uint32_t Hash(const uint64_t* words, int count) const {
    uint64_t v[4] = {key_[0] ^ 0x736f6d6570736575, key_[1] ^ 0x646f72616e646f6d, key_[0] ^ 0x6c7967656e657261,
                     key_[1] ^ 0x7465646279746573};
    for (int i = 0; i < count; ++i) Take(v, words[i]);
    Take(v, static_cast<uint64_t>(count) << 59);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) Round(v);
    const uint64_t hash = v[0] ^ v[1] ^ v[2] ^ v[3];
    return static_cast<uint32_t>(hash ^ hash >> 32);
  }

 private:
  static uint64_t Turned(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }
  static void Round(uint64_t* v) {
    v[0] += v[1];
    v[1] = Turned(v[1], 13) ^ v[0];
    v[0] = Turned(v[0], 32);
    v[2] += v[3];
    v[3] = Turned(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = Turned(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = Turned(v[1], 17) ^ v[2];
    v[2] = Turned(v[2], 32);
  }
  static void Take(uint64_t* v, uint64_t word) {
    v[3] ^= word;
    Round(v);
    Round(v);
    v[0] ^= word;
  }

  uint64_t key_[2] = {};
};

// Who sends to whom: addresses, ports and the sequence number of the SYN.
struct Flow {
  const uint8_t* addresses;
  int address_bytes;  // of both
  const uint8_t* tcp;
  uint32_t sequence;

  // `minute` is 0 for the part that does not age.
  uint32_t Hash(uint32_t minute, uint32_t part) const {
    static const Secret secret;
    uint64_t words[6] = {};
    memcpy(words, addresses, static_cast<size_t>(address_bytes));
    const int used = address_bytes / 8;
    uint32_t ports;
    memcpy(&ports, tcp, sizeof(ports));
    words[used] = uint64_t{ports} << 32 | minute;
    words[used + 1] = part;
    return secret.Hash(words, used + 2);
  }
};

uint32_t Minute() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint32_t>(now.tv_sec / 60);
}

// What the SYN's options ask for, 0 where they do not.
uint16_t SegmentSize(const uint8_t* tcp, uint64_t bytes) {
  for (uint64_t at = kTcpHeader; at < bytes && tcp[at] != 0;) {
    if (tcp[at] == 1) {
      ++at;
      continue;
    }
    if (at + 2 > bytes || tcp[at + 1] < 2 || at + tcp[at + 1] > bytes) return 0;
    if (tcp[at] == 2 && tcp[at + 1] == 4) return static_cast<uint16_t>(tcp[at + 2] << 8 | tcp[at + 3]);
    at += tcp[at + 1];
  }
  return 0;
}

uint64_t MakeFor(const Flow& flow, const uint8_t* tcp, uint64_t bytes, const Sizes& sizes, uint16_t otherwise) {
  if (bytes < kTcpHeader || bytes != uint64_t{tcp[12]} / 16 * 4) return Errno(-EINVAL);
  uint16_t size = SegmentSize(tcp, bytes);
  if (size == 0) size = otherwise;
  uint32_t index = static_cast<uint32_t>(sizes.size()) - 1;
  while (index != 0 && size < sizes[index]) --index;
  const uint32_t minute = Minute();
  const uint32_t cookie = flow.Hash(0, 0) + flow.sequence + (minute << 24) + ((flow.Hash(minute, 1) + index) & kLow24);
  return cookie | uint64_t{sizes[index]} << 32;
}

uint64_t CheckAnswer(const Flow& flow, const uint8_t* tcp, const Sizes& sizes) {
  const uint32_t cookie = BigWord(tcp + 8) - 1 - flow.Hash(0, 0) - flow.sequence;
  const uint32_t minute = Minute();
  const uint32_t age = (minute - (cookie >> 24)) & 0xff;
  if (age >= kLongestAge) return Errno(-EACCES);
  const uint32_t index = (cookie - flow.Hash(minute - age, 1)) & kLow24;
  return index < sizes.size() ? 0 : Errno(-EACCES);
}

const uint8_t* HeaderAt(uint64_t address) {
  return reinterpret_cast<const uint8_t*>(address);
}
Flow FlowOf(uint64_t addresses, int address_bytes, uint64_t tcp, uint32_t after) {
  return {HeaderAt(addresses), address_bytes, HeaderAt(tcp), BigWord(HeaderAt(tcp) + 4) - after};
}
// Source and destination lie one behind the other.
Flow Flow4(uint64_t ip, uint64_t tcp, uint32_t after) {
  return FlowOf(ip + 12, 8, tcp, after);
}
Flow Flow6(uint64_t ip, uint64_t tcp, uint32_t after) {
  return FlowOf(ip + 8, 32, tcp, after);
}

}  // namespace

uint64_t MakeCookie4(RunState*, uint64_t ip, uint64_t tcp, uint64_t bytes, uint64_t, uint64_t) {
  if (bytes < kTcpHeader) return Errno(-EINVAL);
  return MakeFor(Flow4(ip, tcp, 0), HeaderAt(tcp), bytes, kSizes4, 536);
}

uint64_t MakeCookie6(RunState*, uint64_t ip, uint64_t tcp, uint64_t bytes, uint64_t, uint64_t) {
  if (bytes < kTcpHeader) return Errno(-EINVAL);
  return MakeFor(Flow6(ip, tcp, 0), HeaderAt(tcp), bytes, kSizes6, 1220);
}

// The ACK's own number is one behind the SYN's.
uint64_t CheckCookie4(RunState*, uint64_t ip, uint64_t tcp, uint64_t, uint64_t, uint64_t) {
  return CheckAnswer(Flow4(ip, tcp, 1), HeaderAt(tcp), kSizes4);
}

uint64_t CheckCookie6(RunState*, uint64_t ip, uint64_t tcp, uint64_t, uint64_t, uint64_t) {
  return CheckAnswer(Flow6(ip, tcp, 1), HeaderAt(tcp), kSizes6);
}

}  // namespace halfpage::bpf
