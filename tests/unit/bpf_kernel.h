// The same program in the kernel and in this process, and packets for both.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "xdp_emul/attach.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/ring_map.h"
#include "xdp_emul/kernel_frame.h"

namespace halfpage::bpf {

inline constexpr char kDebian[] = "/usr/lib/x86_64-linux-gnu/bpf/";
inline constexpr size_t kLongest = 65535;    // of a frame
inline constexpr uint32_t kMostKeys = 2048;  // of an array that are compared

using Bytes = std::vector<uint8_t>;

inline int Quiet(libbpf_print_level, const char*, va_list) {
  return 0;
}

inline bool KernelAllows() {
  bpf_insn code[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 2}, {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  const int file = bpf_prog_load(BPF_PROG_TYPE_XDP, "probe", "GPL", code, 2, nullptr);
  if (file >= 0) close(file);
  return file >= 0;
}

// An object loaded into the kernel, with one of its programs.
class KernelProgram {
 public:
  KernelProgram(const std::string& path, const std::string& name) {
    libbpf_set_print(Quiet);
    object_ = bpf_object__open(path.c_str());
    if (object_ == nullptr) return;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object_) {
      const bool wanted = name == bpf_program__name(program);
      // What tail calls lead to is loaded as well.
      const bool target =
          strcmp(bpf_program__name(program), "last") == 0 || strcmp(bpf_program__name(program), "again") == 0;
      bpf_program__set_autoload(program, wanted || target);
      if (wanted) program_ = program;
    }
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_) bpf_map__set_pin_path(map, nullptr);
    if (program_ != nullptr) bpf_program__set_type(program_, BPF_PROG_TYPE_XDP);
    loaded_ = program_ != nullptr && bpf_object__load(object_) == 0;
  }
  ~KernelProgram() { bpf_object__close(object_); }

  bool loaded() const { return loaded_; }

  int MapFile(const std::string& name) const {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_) {
      const std::string own = bpf_map__name(map);
      if (own == name || (name[0] == '.' && own.size() > name.size() && own.ends_with(name))) return bpf_map__fd(map);
    }
    return -1;
  }

  // The verdict; `out` gets what lies between data_meta and data_end.
  uint32_t Run(const Bytes& packet, Bytes* out) const {
    out->assign(2 * kLongest, 0);
    bpf_test_run_opts options = {};
    options.sz = sizeof(options);
    options.data_in = packet.data();
    options.data_size_in = static_cast<uint32_t>(packet.size());
    options.data_out = out->data();
    options.data_size_out = static_cast<uint32_t>(out->size());
    options.repeat = 1;
    const int error = bpf_prog_test_run_opts(bpf_program__fd(program_), &options);
    EXPECT_EQ(error, 0);
    out->resize(options.data_size_out);
    return options.retval;
  }

 private:
  bpf_object* object_ = nullptr;
  bpf_program* program_ = nullptr;
  bool loaded_ = false;
};

// The same object in this process.
class OurProgram {
 public:
  OurProgram(const std::string& path, const std::string& name, bool compile) {
    absl::StatusOr<Object> object = ReadObject(path);
    EXPECT_TRUE(object.ok()) << object.status();
    if (!object.ok()) return;
    const auto code = FindProgram(*object, name);
    EXPECT_TRUE(code.ok()) << code.status();
    auto maps = MapSet::Create(*object, 1);
    EXPECT_TRUE(maps.ok()) << maps.status();
    if (!code.ok() || !maps.ok()) return;
    maps_ = std::move(*maps);
    auto program = Program::Create(**code, *object, maps_.get());
    EXPECT_TRUE(program.ok()) << program.status();
    if (program.ok()) program_ = std::move(*program);
    if (compile && loaded()) compiled_ = Compile(program_.get());
    state_.ingress_ifindex = 1;
  }

  bool loaded() const { return program_ != nullptr; }
  const absl::Status& compiled() const { return compiled_; }
  const MapSet& maps() const { return *maps_; }

  uint32_t Run(const Bytes& packet, Bytes* out) {
    frame_.Place(packet, program_->frags());
    frame_.PointAt(&state_);
    maps_->epochs().Enter(0);
    const uint32_t verdict = program_->Run(&state_);
    maps_->epochs().Leave(0);
    EXPECT_FALSE(state_.Failed()) << FaultText(*program_, state_.fault);
    *out = frame_.Bytes(state_);
    return verdict;
  }

 private:
  std::unique_ptr<MapSet> maps_;
  std::unique_ptr<Program> program_;
  absl::Status compiled_;
  RunState state_;
  KernelFrame frame_;
};

// Ethernet frames of the kinds that programs tell apart, then the same with bytes changed and cut.
inline std::vector<Bytes> Packets(int mutations) {
  const char* const frames[] = {
      "ffffffffffff02000000000108004500002c000000004011b8c2c0a80001c0a8000200350009001800000102030405060708091011121314"
      "1516",
      "02000000000202000000000108004500002800000000400600000a0000010a000002c0000050000000000000000050022000000000000000"
      "0000",
      "0200000000020200000000018100002a08004500001c000000004011000001020304050607080009003500080000",
      "020000000002020000000001"
      "86dd6000000000141140fe800000000000000000000000000001fe8000000000000000000000000000020009000900140000010203040506"
      "0708090a0b0c",
      "ffffffffffff0200000000010806000108000604000102000000000a0a000001000000000000"
      "0a0000020000",
      "0200000000020200000000030800",
      // SYNs with options: 1460 and 8960 bytes.
      "02000000000202000000000108004500002c000000004006b8c2c0a80001c0a80002c3500050000000070000000060022000000000000204"
      "05b400000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "0000000000000000000000",
      "02000000000302000000000186dd6000000000180640fe800000000000000000000000000001fe800000000000000000000000000002c350"
      "00500000000700000000600220000000000002042300",
  };
  std::vector<Bytes> packets;
  for (const char* frame : frames) {
    const std::string bytes = absl::HexStringToBytes(frame);
    packets.emplace_back(bytes.begin(), bytes.end());
  }
  const size_t kinds = packets.size();
  std::mt19937 random(7);
  for (int i = 0; i < mutations; ++i) {
    Bytes packet = packets[random() % kinds];
    const auto filler = static_cast<uint8_t>(random());
    packet.resize(14 + random() % 120, filler);
    for (uint32_t changes = random() % 4; changes > 0; --changes) {
      packet[random() % std::min<size_t>(packet.size(), 48)] = static_cast<uint8_t>(random());
    }
    packets.push_back(packet);
  }
  return packets;
}

// Frames of 14 to 65535 bytes of anything, around each length that fills one more of the kernel's buffers.
inline std::vector<Bytes> LongPackets(int more) {
  std::vector<size_t> lengths = {14, 15, 60, 1514, kLongest - 1, kLongest};
  for (size_t full = kKernelFirst; full < kLongest; full += kKernelPage) {
    for (const size_t length : {full - 8, full - 1, full, full + 1, full + 8}) lengths.push_back(length);
  }
  std::mt19937 random(11);
  const size_t fixed = lengths.size();
  while (lengths.size() < 2 * fixed) {
    const size_t most = random() % 2 ? 8200 : kLongest;  // in a statement of its own: the order of calls is the seed's
    lengths.push_back(14 + random() % (most - 14));
  }
  std::vector<Bytes> packets;
  for (size_t i = 0; i < lengths.size() + static_cast<size_t>(more); ++i) {
    Bytes packet(i < lengths.size() ? lengths[i] : lengths[random() % lengths.size()]);
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random());
    packets.push_back(packet);
  }
  return packets;
}

// How many packets each program sees besides the fixed ones; HALFPAGE_ORACLE_PACKETS=10000 is the long form.
inline int Mutations() {
  const char* text = std::getenv("HALFPAGE_ORACLE_PACKETS");
  return text == nullptr ? 300 : std::atoi(text);
}

inline std::string Hex(const Bytes& bytes) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// A packet's bytes as far as one wants to read them.
inline std::string Start(const Bytes& packet) {
  const Bytes start(packet.begin(), packet.begin() + static_cast<ptrdiff_t>(std::min<size_t>(packet.size(), 200)));
  return absl::StrCat("of ", packet.size(), " bytes ", Hex(start));
}

inline bool IsArray(bpf_map_type type) {
  return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

// Reads both empty.
inline void ExpectSameRecords(int file, RingMap* ring) {
  std::string theirs;
  std::string ours;
  const auto take = [](void* to, void* data, size_t size) {
    absl::StrAppend(static_cast<std::string*>(to),
                    Hex(Bytes(static_cast<uint8_t*>(data), static_cast<uint8_t*>(data) + size)), " ");
    return 0;
  };
  ring_buffer* reader = ring_buffer__new(file, take, &theirs, nullptr);
  ASSERT_NE(reader, nullptr);
  EXPECT_GE(ring_buffer__consume(reader), 0);
  ring_buffer__free(reader);
  const auto note = [](void* to, const RingMap&, const uint8_t* data, uint64_t size) {
    absl::StrAppend(static_cast<std::string*>(to), Hex(Bytes(data, data + size)), " ");
  };
  ring->Read(note, &ours);
  EXPECT_EQ(ours, theirs);
}

// The kernel keeps a value for each possible CPU; programs ran on CPU 0.
inline void ExpectSameMap(const KernelProgram& kernel, Map* map) {
  const MapSpec& spec = map->spec();
  // Their slots hold things of the kernel's; of a queue, programs say what it holds.
  const bool targets = spec.type == BPF_MAP_TYPE_XSKMAP || spec.type == BPF_MAP_TYPE_DEVMAP ||
                       spec.type == BPF_MAP_TYPE_CPUMAP || spec.type == BPF_MAP_TYPE_PROG_ARRAY ||
                       spec.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || spec.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY ||
                       spec.type == BPF_MAP_TYPE_QUEUE || spec.type == BPF_MAP_TYPE_STACK ||
                       spec.type == BPF_MAP_TYPE_BLOOM_FILTER || spec.type == BPF_MAP_TYPE_HASH_OF_MAPS;
  const int file = kernel.MapFile(spec.name);
  ASSERT_GE(file, 0) << spec.name;
  if (targets) return;
  if (spec.type == BPF_MAP_TYPE_RINGBUF) return ExpectSameRecords(file, static_cast<RingMap*>(map));
  Bytes theirs(size_t{RoundUp8(spec.value_size)} * static_cast<size_t>(libbpf_num_possible_cpus()));
  Bytes key(spec.key_size);
  uint32_t ours = 0;
  for (bool more = map->NextKey(nullptr, key.data()); more; more = map->NextKey(key.data(), key.data())) {
    if (++ours > kMostKeys && IsArray(spec.type)) return;
    ASSERT_EQ(bpf_map_lookup_elem(file, key.data(), theirs.data()), 0) << spec.name << " has no key " << Hex(key);
    const uint8_t* value = map->Lookup(key.data(), 0);
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(Hex(Bytes(value, value + spec.value_size)), Hex(Bytes(theirs.begin(), theirs.begin() + spec.value_size)))
        << spec.name << " at key " << Hex(key);
  }
  uint32_t kernels = 0;
  Bytes next(spec.key_size);
  for (int error = bpf_map_get_next_key(file, nullptr, next.data()); error == 0;
       error = bpf_map_get_next_key(file, key.data(), next.data())) {
    ++kernels;
    key = next;
  }
  EXPECT_EQ(ours, kernels) << "entries of " << spec.name;
}

struct Entry {
  const char* map;
  const char* key;    // hexadecimal
  const char* value;  // hexadecimal
};

class AgainstTheKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!KernelAllows()) GTEST_SKIP() << "bpf(2) is not allowed here";
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }

  static void Put(const KernelProgram& kernel, const OurProgram& ours, const Entry& entry) {
    Map* map = ours.maps().Find(entry.map);
    if (map == nullptr) return;
    const std::string key = absl::HexStringToBytes(entry.key);
    const std::string value = absl::HexStringToBytes(entry.value);
    ASSERT_EQ(key.size(), map->spec().key_size);
    ASSERT_EQ(value.size(), map->spec().value_size);
    EXPECT_EQ(
        map->UpdateAll(reinterpret_cast<const uint8_t*>(key.data()), reinterpret_cast<const uint8_t*>(value.data()), 0),
        0);
    std::string all;
    const int copies = map->per_worker() ? libbpf_num_possible_cpus() : 1;
    for (int i = 0; i < copies; ++i) {
      std::string padded = value;
      padded.resize(map->per_worker() ? RoundUp8(map->spec().value_size) : map->spec().value_size);
      all += padded;
    }
    EXPECT_EQ(bpf_map_update_elem(kernel.MapFile(entry.map), key.data(), all.data(), 0), 0)
        << entry.map << strerror(errno);
  }

  static void ExpectSame(const std::string& path, const std::string& name, const std::vector<Entry>& entries,
                         const std::vector<Bytes>& packets, bool compile) {
    SCOPED_TRACE(absl::StrCat(path, " ", name, compile ? " compiled" : " interpreted"));
    const KernelProgram kernel(path, name);
    ASSERT_TRUE(kernel.loaded()) << "the kernel refuses it";
    OurProgram ours(path, name, compile);
    ASSERT_TRUE(ours.loaded());
    if (absl::IsUnavailable(ours.compiled())) return;
    for (const Entry& entry : entries) Put(kernel, ours, entry);
    int number = 0;
    for (const Bytes& packet : packets) {
      Bytes their_bytes;
      Bytes our_bytes;
      const uint32_t theirs = kernel.Run(packet, &their_bytes);
      const uint32_t verdict = ours.Run(packet, &our_bytes);
      ASSERT_EQ(verdict, theirs) << "packet " << number << " " << Start(packet);
      ASSERT_EQ(our_bytes.size(), their_bytes.size()) << "packet " << number << " " << Start(packet);
      const auto at = std::mismatch(our_bytes.begin(), our_bytes.end(), their_bytes.begin()).first - our_bytes.begin();
      ASSERT_EQ(static_cast<size_t>(at), our_bytes.size())
          << "packet " << number << " " << Start(packet) << ": the byte there differs";
      ++number;
    }
    for (const auto& map : ours.maps().maps()) ExpectSameMap(kernel, map.get());
  }
};

// A file, its programs, and what its maps hold before.
struct Case {
  std::string path;
  std::vector<const char*> programs;
  std::vector<Entry> entries;
  bool frags = false;
};

class Oracle : public AgainstTheKernel {
 protected:
  static void ExpectCase(const Case& each) {
    const std::vector<Bytes> packets = each.frags ? LongPackets(Mutations()) : Packets(Mutations());
    for (const char* name : each.programs) {
      // Interpreted, and compiled where the compiler was built.
      ExpectSame(each.path, name, each.entries, packets, false);
      ExpectSame(each.path, name, each.entries, packets, true);
    }
  }
};

}  // namespace halfpage::bpf
