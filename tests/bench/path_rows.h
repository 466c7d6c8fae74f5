// What tests/bench/path_bench measures: rows, and each as halfpage's configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfpage::bench {

enum class Way : uint8_t { kDrop, kPass, kTx, kRedirect, kFilter, kMix, kUser };

// "drop", "pass", "tx", "redirect", "filter", "mix", "user" (redirected into a user's rings, whose reader drops).
const char* WayName(Way way);

struct Row {
  Way way;
  uint32_t size;    // frame bytes without FCS
  unsigned lcores;  // 1: one does everything; 2: the second judges what the first sends
};

std::vector<Row> AllRows();

// The YAML of a row on a pool of `ops`. Frames of kMix come from the capture `mix_file`, in random order of the four
// verdicts; those of the others are 64 flows.
std::string ConfigText(const Row& row, const std::string& ops, const std::string& mix_file);

// Room of the pool's buffers for a row: a frame fits into one.
uint32_t RoomFor(uint32_t size);

inline constexpr uint32_t kPoolSize = 8192;
inline constexpr uint32_t kPoolCache = 256;
inline constexpr uint16_t kBurst = 32;  // of the source
inline constexpr uint16_t kFirstPort = 9;
inline constexpr uint32_t kFlows = 64;

// How many frames the random mix repeats after: as many as no branch predictor knows by heart, within 256 KiB.
uint32_t MixFrames(uint32_t size);

// UDP/IPv4 frames of `size` bytes: of `flows` flows, to kFirstPort, or to one of four ports at random.
std::vector<std::vector<uint8_t>> MakeFrames(uint32_t size, uint32_t count, bool random_ports);

// Writes frames as a capture file; gives false when it cannot.
bool WriteCapture(const std::string& path, const std::vector<std::vector<uint8_t>>& frames);

}  // namespace halfpage::bench
