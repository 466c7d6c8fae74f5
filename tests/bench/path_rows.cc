#include "tests/bench/path_rows.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"

namespace halfpage::bench {
namespace {

constexpr const char* kPrograms[] = {
    "{name: judge, kind: drop}",
    "{name: judge, kind: pass}",
    "{name: judge, kind: tx}",
    "{name: judge, kind: redirect, target: veth2}",
    "{name: judge, kind: filter, default: pass, rules: ["
    "{name: other, protocol: tcp, verdict: pass}, {name: discard, protocol: udp, destination_port: 9, verdict: drop}]}",
    "{name: judge, kind: filter, default: aborted, rules: ["
    "{name: discard, protocol: udp, destination_port: 9, verdict: drop}, "
    "{name: keep, protocol: udp, destination_port: 10, verdict: pass}, "
    "{name: echo, protocol: udp, destination_port: 11, verdict: tx}, "
    "{name: relay, protocol: udp, destination_port: 12, verdict: redirect, target: veth2}]}",
    "{name: judge, kind: redirect, map: sockets, key: queue}",
};

void Put16(std::vector<uint8_t>& frame, size_t at, uint32_t value) {
  frame[at] = static_cast<uint8_t>(value >> 8);
  frame[at + 1] = static_cast<uint8_t>(value);
}

}  // namespace

const char* WayName(Way way) {
  constexpr const char* kNames[] = {"drop", "pass", "tx", "redirect", "filter", "mix", "user"};
  return kNames[static_cast<int>(way)];
}

std::vector<Row> AllRows() {
  std::vector<Row> rows;
  for (const uint32_t size : {64u, 1500u, 8000u}) {
    for (const Way way : {Way::kDrop, Way::kPass, Way::kTx, Way::kRedirect, Way::kFilter, Way::kMix, Way::kUser}) {
      rows.push_back({way, size, 1});
    }
  }
  for (const Way way : {Way::kDrop, Way::kTx, Way::kUser}) rows.push_back({way, 64, 2});
  return rows;
}

uint32_t RoomFor(uint32_t size) {
  return std::max(2176u, size + 128);
}

uint32_t MixFrames(uint32_t size) {
  return std::max(256u, 262144 / size);
}

std::string ConfigText(const Row& row, const std::string& ops, const std::string& mix_file) {
  const uint32_t mtu = std::max(1500u, row.size - 14);
  const bool two_pairs = row.way == Way::kRedirect || row.way == Way::kMix;
  std::string text =
      absl::StrCat("version: 1\neal: {memory: 1GiB}\npools:\n  - {name: packets, ops: ", ops, ", size: ", kPoolSize,
                   ", data_room: ", RoomFor(row.size), ", cache: ", kPoolCache, "}\nprograms:\n  - ",
                   kPrograms[static_cast<int>(row.way)],
                   "\nveth:\n  - {name: front, ends: [{name: veth0, program: judge, sink: stack, mtu: ", mtu,
                   "}, {name: veth1, sink: returned, mtu: ", mtu, "}]}\n");
  if (two_pairs) {
    absl::StrAppend(&text, "  - {name: back, ends: [{name: veth2, mtu: ", mtu,
                    "}, {name: veth3, sink: relayed, mtu: ", mtu, "}]}\n");
  }
  if (row.way == Way::kUser) {
    absl::StrAppend(&text, "maps: [{name: sockets, kind: xskmap, size: 1, entries: [{key: 0, sink: rings}]}]\n");
  }
  absl::StrAppend(&text, "sinks: [{name: stack}, {name: returned}, {name: relayed}",
                  row.way == Way::kUser ? ", {name: rings, kind: user}" : "", "]\ntraffic:\n",
                  "  - {name: source, into: veth1, burst: ", kBurst);
  if (row.way == Way::kMix) {
    absl::StrAppend(&text, ", source: capture, loop: true, file: ", mix_file, "}\n");
  } else {
    absl::StrAppend(&text, ", sizes: ", row.size, ", flows: ", kFlows, ", destination_port: ", kFirstPort, "}\n");
  }
  if (row.lcores == 2) {
    absl::StrAppend(&text, "lcores:\n  workers:\n    - {generate: [source], poll: [veth1]}\n    - {poll: [veth0]",
                    row.way == Way::kUser ? ", read: [rings]" : "", "}\n");
  }
  return text;
}

std::vector<std::vector<uint8_t>> MakeFrames(uint32_t size, uint32_t count, bool random_ports) {
  constexpr uint8_t kStart[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45};
  std::mt19937_64 draw(1);
  std::vector<std::vector<uint8_t>> frames(count, std::vector<uint8_t>(size, 0x68));
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint8_t>& frame = frames[i];
    std::fill_n(frame.begin(), 42, uint8_t{0});
    std::copy(std::begin(kStart), std::end(kStart), frame.begin());
    Put16(frame, 16, size - 14);
    frame[22] = 64;
    frame[23] = 17;
    Put16(frame, 26, 0x0a00);
    Put16(frame, 28, i);
    Put16(frame, 30, 0x0a80);
    Put16(frame, 32, 1);
    Put16(frame, 34, 1024 + i);
    Put16(frame, 36, kFirstPort + (random_ports ? draw() % 4 : 0));
    Put16(frame, 38, size - 34);
  }
  return frames;
}

bool WriteCapture(const std::string& path, const std::vector<std::vector<uint8_t>>& frames) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const uint32_t header[] = {0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, 1};  // version 2.4, Ethernet
  bool good = std::fwrite(header, sizeof(header), 1, file) == 1;
  for (const std::vector<uint8_t>& frame : frames) {
    const auto length = static_cast<uint32_t>(frame.size());
    const uint32_t record[] = {0, 0, length, length};
    good = std::fwrite(record, sizeof(record), 1, file) == 1 && std::fwrite(frame.data(), length, 1, file) == 1 && good;
  }
  return std::fclose(file) == 0 && good;
}

}  // namespace halfpage::bench
