// One packet through one program again and again: interpreted, compiled, and by the kernel's BPF_PROG_TEST_RUN, in
// turn. tools/bench bpf runs it; by itself: bpf_bench FOLDER_OF_OBJECTS [ROUNDS [TEXT]]. A line of JSON for each
// figure.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"

namespace halfpage::bpf {
namespace {

constexpr uint32_t kRuns = 300000;  // of compiled code and the kernel's
constexpr uint32_t kInterpreted = 30000;
constexpr size_t kPage = 4096;
constexpr size_t kHeadroom = 256;
constexpr size_t kTailroom = 320;

// 64 bytes, UDP to port 9.
constexpr char kPacket[] =
    "020000000001020000000002080045000032000000004011b8bcc0a80001c0a800020400000900"
    "1e00000102030405060708090a0b0c0d0e0f101112131415";

struct Row {
  const char* name;
  const char* object;  // "bench.bpf.o", or one of Debian's by its path
  const char* function;
  const char* map;  // gets one entry, in hexadecimal; null: none
  const char* key;
  const char* value;
};

#define DEBIAN "/usr/lib/x86_64-linux-gnu/bpf/"
constexpr Row kRows[] = {
    {"constant", "bench.bpf.o", "constant", nullptr, "", ""},
    {"UDP port drop", "bench.bpf.o", "udp_drop", nullptr, "", ""},
    {"swap MACs + TX", "bench.bpf.o", "swap", nullptr, "", ""},
    {"per-CPU + atomic counters", "bench.bpf.o", "count", nullptr, "", ""},
    {"devmap redirect, bpf2bpf, globals", "bench.bpf.o", "redirect", "outs", "00000000", "01000000"},
    {"hash, checksum, loops", "bench.bpf.o", "heavy", nullptr, "", ""},
    {"xdpfilt_dny_udp.o", DEBIAN "xdpfilt_dny_udp.o", "xdpfilt_dny_udp", "filter_ports", "00090000",
     "0a00000000000000"},
    {"xdpfilt_dny_ip.o", DEBIAN "xdpfilt_dny_ip.o", "xdpfilt_dny_ip", "filter_ipv4", "c0a80001", "0100000000000000"},
    {"xdpfilt_alw_eth.o", DEBIAN "xdpfilt_alw_eth.o", "xdpfilt_alw_eth", "filter_ethernet", "020000000009",
     "0100000000000000"},
    {"xdpfilt_alw_all.o", DEBIAN "xdpfilt_alw_all.o", "xdpfilt_alw_all", "filter_ports", "00350000",
     "0a00000000000000"},
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bpf_bench: %s\n", what.c_str());
  std::exit(1);
}

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The row's program in this process.
class Ours {
 public:
  Ours(const Row& row, const std::string& path, bool compiled) {
    absl::StatusOr<Object> object = ReadObject(path);
    if (!object.ok()) Fail(std::string(object.status().message()));
    auto maps = MapSet::Create(*object, 1);
    if (!maps.ok()) Fail(std::string(maps.status().message()));
    maps_ = std::move(*maps);
    const auto code = FindProgram(*object, row.function);
    if (!code.ok()) Fail(std::string(code.status().message()));
    auto program = Program::Create(**code, *object, maps_.get());
    if (!program.ok()) Fail(std::string(program.status().message()));
    program_ = std::move(*program);
    if (compiled) can_ = Compile(program_.get()).ok();
    instructions_ = program_->image().code.size();
    if (row.map != nullptr) {
      const std::string key = absl::HexStringToBytes(row.key);
      const std::string value = absl::HexStringToBytes(row.value);
      maps_->Find(row.map)->UpdateAll(reinterpret_cast<const uint8_t*>(key.data()),
                                      reinterpret_cast<const uint8_t*>(value.data()), 0);
    }
    const std::string packet = absl::HexStringToBytes(kPacket);
    bytes_ = packet.size();
    memcpy(buffer_ + kHeadroom, packet.data(), bytes_);
    state_.ingress_ifindex = 1;
    state_.hard_start = buffer_ + kKernelFrameBytes;
    state_.hard_end = buffer_ + kPage - kTailroom;
  }

  bool can() const { return can_; }
  size_t instructions() const { return instructions_; }

  double Measure(uint32_t runs) {
    maps_->epochs().Enter(0);
    program_->Begin(&state_);
    uint32_t verdicts = 0;
    const double begin = Now();
    for (uint32_t i = 0; i < runs; ++i) {
      state_.data = state_.data_meta = buffer_ + kHeadroom;
      state_.data_end = state_.data + bytes_;
      verdicts |= program_->RunNext(&state_);
    }
    const double ns = (Now() - begin) / runs;
    maps_->epochs().Leave(0);
    if (state_.Failed()) Fail(FaultText(*program_, state_.fault));
    verdict_ = verdicts;
    return ns;
  }
  uint32_t verdict() const { return verdict_; }

 private:
  std::unique_ptr<MapSet> maps_;
  std::unique_ptr<Program> program_;
  bool can_ = true;
  size_t instructions_ = 0;
  size_t bytes_ = 0;
  uint32_t verdict_ = 0;
  RunState state_;
  alignas(64) uint8_t buffer_[kPage] = {};
};

// The same in the kernel. Where it may not be loaded, `can()` is false.
class Kernel {
 public:
  Kernel(const Row& row, const std::string& path) {
    object_ = bpf_object__open(path.c_str());
    if (object_ == nullptr) return;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object_) {
      const bool wanted = strcmp(row.function, bpf_program__name(program)) == 0;
      bpf_program__set_autoload(program, wanted);
      if (wanted) program_ = program;
    }
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_) bpf_map__set_pin_path(map, nullptr);
    if (program_ != nullptr) bpf_program__set_type(program_, BPF_PROG_TYPE_XDP);
    can_ = program_ != nullptr && bpf_object__load(object_) == 0;
    if (can_ && row.map != nullptr) Put(row);
  }
  ~Kernel() { bpf_object__close(object_); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  bool can() const { return can_; }

  double Measure(uint32_t runs) {
    const std::string packet = absl::HexStringToBytes(kPacket);
    bpf_test_run_opts options = {};
    options.sz = sizeof(options);
    options.data_in = packet.data();
    options.data_size_in = static_cast<uint32_t>(packet.size());
    options.repeat = static_cast<int>(runs);
    const double begin = Now();
    if (bpf_prog_test_run_opts(bpf_program__fd(program_), &options) != 0) Fail("BPF_PROG_TEST_RUN is refused");
    verdict_ = options.retval;
    return (Now() - begin) / runs;
  }
  uint32_t verdict() const { return verdict_; }

 private:
  void Put(const Row& row) {
    bpf_map* map = bpf_object__find_map_by_name(object_, row.map);
    const std::string key = absl::HexStringToBytes(row.key);
    std::string value = absl::HexStringToBytes(row.value);
    const bpf_map_type type = bpf_map__type(map);
    if (type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH) {
      value.resize((value.size() + 7) / 8 * 8);
      std::string all;
      for (int cpu = 0; cpu < libbpf_num_possible_cpus(); ++cpu) all += value;
      value = all;
    }
    if (bpf_map_update_elem(bpf_map__fd(map), key.data(), value.data(), 0) != 0)
      Fail(absl::StrCat("map ", row.map, ": ", strerror(errno)));
  }

  bpf_object* object_ = nullptr;
  bpf_program* program_ = nullptr;
  bool can_ = false;
  uint32_t verdict_ = 0;
};

int Quiet(libbpf_print_level, const char*, va_list) {
  return 0;
}

void Print(const char* row, const char* who, int round, double ns, size_t instructions, uint32_t verdict) {
  std::printf(R"({"row": "%s", "who": "%s", "round": %d, "ns": %.3f, "instructions": %zu, "verdict": %u})"
              "\n",
              row, who, round, ns, instructions, verdict);
  std::fflush(stdout);
}

// The best of three short runs: what the machine takes away meanwhile is not the program's.
template <typename Who>
void Measure(const char* row, const char* name, int round, Who* who, uint32_t runs, size_t instructions) {
  double best = who->Measure(runs);
  for (int i = 0; i < 2; ++i) best = std::min(best, who->Measure(runs));
  Print(row, name, round, best, instructions, who->verdict());
}

struct Measured {
  Measured(const Row& row, const std::string& path)
      : interpreter(row, path, false), llvm(row, path, true), kernel(row, path) {}
  Ours interpreter, llvm;
  Kernel kernel;
};

int Run(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fputs("usage: bpf_bench FOLDER_OF_OBJECTS [ROUNDS [TEXT]]\n", stderr);
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  libbpf_set_print(Quiet);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof(one), &one);
  std::vector<std::unique_ptr<Measured>> measured;
  std::vector<const Row*> rows;
  for (const Row& row : kRows) {
    if (argc > 3 && &row != kRows && strstr(row.name, argv[3]) == nullptr) continue;
    const std::string path = row.object[0] == '/' ? row.object : absl::StrCat(argv[1], "/", row.object);
    measured.push_back(std::make_unique<Measured>(row, path));
    rows.push_back(&row);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < rows.size(); ++i) {
      Measured& row = *measured[i];
      const size_t size = row.llvm.instructions();
      const char* name = rows[i]->name;
      const auto compiled = [&] {
        if (row.llvm.can()) Measure(name, "llvm", round, &row.llvm, kRuns, size);
      };
      if (round % 2 == 0) compiled();
      if (row.kernel.can()) Measure(name, "kernel", round, &row.kernel, kRuns, size);
      if (round % 2 != 0) compiled();
      Measure(name, "interpreter", round, &row.interpreter, kInterpreted, size);
    }
  }
  return 0;
}

}  // namespace
}  // namespace halfpage::bpf

int main(int argc, char** argv) {
  return halfpage::bpf::Run(argc, argv);
}
