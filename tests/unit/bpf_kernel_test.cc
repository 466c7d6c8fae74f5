// The kernel as the judge: the same program, packets and maps give the same verdict, bytes and map contents. Skipped
// where bpf(2) is not allowed.
#include <filesystem>
#include <fstream>

#include "tests/unit/bpf_kernel.h"

namespace halfpage::bpf {
namespace {

// The kernel takes no packet without a whole Ethernet header.
TEST(CompiledAndInterpreted, AgreeOnPacketsShorterThanTheKernelTakes) {
  for (const auto& file : std::filesystem::directory_iterator(kDebian)) {
    const auto object = ReadObject(file.path());
    if (!object.ok()) continue;  // xdpdump_bpf.o is for kernel functions
    for (const ProgramCode& code : object->programs) {
      SCOPED_TRACE(absl::StrCat(file.path().string(), " ", code.name));
      OurProgram interpreted(file.path(), code.name, false);
      OurProgram compiled(file.path(), code.name, true);
      if (absl::IsUnavailable(compiled.compiled())) GTEST_SKIP() << "built without bpf_jit";
      for (size_t size = 0; size < 14; ++size) {
        Bytes one, other;
        const Bytes packet(size, 0x45);
        EXPECT_EQ(interpreted.Run(packet, &one), compiled.Run(packet, &other));
        EXPECT_EQ(Hex(one), Hex(other));
      }
    }
  }
}

constexpr char kOwn[] = HALFPAGE_BPF_OBJECTS "/";

Case BasicCase() {
  return {absl::StrCat(kOwn, "basic.bpf.o"),
          {"pass", "udp_drop", "swap", "add_tag", "head_far", "trim", "meta", "sum", "division", "calls", "checksum",
           "bytes"},
          {}};
}

Case MapsCase() {
  return {absl::StrCat(kOwn, "maps.bpf.o"),
          {"count", "learn", "errors", "sums", "globals", "targets", "atomics", "loops"},
          {{"outs", "01000000", "01000000"}, {"outs", "05000000", "01000000"}}};
}

Case SecondCase() {
  return {absl::StrCat(kOwn, "second.bpf.o"), {"routes", "queues", "nested", "report", "tail"}, {}};
}

Case ThirdCase() {
  return {absl::StrCat(kOwn, "third.bpf.o"),
          {"walk", "locked", "sieve", "records", "nested", "cookie", "cookie6", "kernel_types"},
          {}};
}

Case FragsCase() {
  return {absl::StrCat(kOwn, "frags.bpf.o"),
          {"first", "moves", "shrinks", "grows", "both", "events_of_all_lengths"},
          {},
          true};
}

// Flags of xdp-filter: 1 source, 2 destination, 4 TCP, 8 UDP.
std::vector<Case> FilterCases() {
  const std::vector<Entry> entries = {{"filter_ports", "00090000", "0f00000000000000"},
                                      {"filter_ports", "00350000", "0f00000000000000"},
                                      {"filter_ipv4", "c0a80001", "0300000000000000"},
                                      {"filter_ipv4", "0a000002", "0200000000000000"},
                                      {"filter_ipv6", "fe800000000000000000000000000001", "0300000000000000"},
                                      {"filter_ethernet", "020000000003", "0300000000000000"}};
  std::vector<Case> cases;
  for (const char* name :
       {"xdpfilt_alw_all", "xdpfilt_alw_eth", "xdpfilt_alw_ip", "xdpfilt_alw_tcp", "xdpfilt_alw_udp", "xdpfilt_dny_all",
        "xdpfilt_dny_eth", "xdpfilt_dny_ip", "xdpfilt_dny_tcp", "xdpfilt_dny_udp"}) {
    cases.push_back({absl::StrCat(kDebian, name, ".o"), {name}, entries});
  }
  return cases;
}

std::vector<Case> OtherCases() {
  return {{absl::StrCat(kDebian, "xsk_def_xdp_prog.o"), {"xsk_def_prog"}, {}},
          {absl::StrCat(kDebian, "xsk_def_xdp_prog_5.3.o"), {"xsk_def_prog"}, {}},
          {absl::StrCat(kDebian, "xdp-dispatcher.o"), {"xdp_pass", "xdp_dispatcher"}, {}},
          {absl::StrCat(kDebian, "xdpdump_xdp.o"), {"xdpdump"}, {}}};
}

TEST_F(Oracle, OwnProgramsWithoutMapsAgree) {
  ExpectCase(BasicCase());
}

TEST_F(Oracle, OwnProgramsWithMapsLeaveTheSameMaps) {
  ExpectCase(MapsCase());
}

TEST_F(Oracle, TailCallsPrefixesQueuesAndMapsOfMapsAgree) {
  ExpectCase(SecondCase());
}

TEST_F(Oracle, WalksLocksFiltersRingsAndTypesThatNobodyHasAgree) {
  ExpectCase(ThirdCase());
}

TEST_F(Oracle, FramesInSeveralBuffersAgree) {
  ExpectCase(FragsCase());
}

TEST_F(Oracle, FiltersOfXdpToolsAgree) {
  for (const Case& each : FilterCases()) ExpectCase(each);
}

TEST_F(Oracle, SocketDispatcherAndDumpProgramsOfXdpToolsAgree) {
  for (const Case& each : OtherCases()) ExpectCase(each);
}

// What the kernel's agreement was recorded as: a number for verdicts, bytes and maps after all packets.
std::string Digest(const Case& each, const char* name) {
  OurProgram ours(each.path, name, false);
  if (!ours.loaded()) return "not loaded";
  for (const Entry& entry : each.entries) {
    Map* map = ours.maps().Find(entry.map);
    if (map == nullptr) continue;
    const std::string key = absl::HexStringToBytes(entry.key);
    const std::string value = absl::HexStringToBytes(entry.value);
    map->UpdateAll(reinterpret_cast<const uint8_t*>(key.data()), reinterpret_cast<const uint8_t*>(value.data()), 0);
  }
  uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&hash](absl::string_view bytes) {
    for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  };
  for (const Bytes& packet : each.frags ? LongPackets(100) : Packets(300)) {
    Bytes out;
    take(absl::StrCat(ours.Run(packet, &out), Hex(out)));
  }
  for (const auto& map : ours.maps().maps()) {
    std::vector<std::string> entries;
    Bytes key(map->spec().key_size);
    for (bool more = map->NextKey(nullptr, key.data()); more; more = map->NextKey(key.data(), key.data())) {
      const uint8_t* value = map->Lookup(key.data(), 0);
      entries.push_back(absl::StrCat(Hex(key), Hex(Bytes(value, value + map->spec().value_size))));
    }
    std::sort(entries.begin(), entries.end());
    for (const std::string& entry : entries) take(entry);
  }
  return absl::StrCat(absl::Hex(hash));
}

// HALFPAGE_RECORD_GOLDENS=tests/bpf/goldens.txt writes the file, where the tests above have passed.
TEST(Goldens, ProgramsEndAsTheKernelSaidWhenItWasAsked) {
  std::vector<Case> cases = FilterCases();
  for (const Case& each : OtherCases()) cases.push_back(each);
  for (const Case& each : {BasicCase(), MapsCase(), SecondCase(), ThirdCase(), FragsCase()}) cases.push_back(each);
  std::string text;
  for (const Case& each : cases) {
    for (const char* name : each.programs) {
      absl::StrAppend(&text, std::filesystem::path(each.path).filename().string(), " ", name, " ", Digest(each, name),
                      "\n");
    }
  }
  if (const char* file = std::getenv("HALFPAGE_RECORD_GOLDENS"); file != nullptr) std::ofstream(file) << text;
  std::ifstream recorded(HALFPAGE_GOLDENS);
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(recorded), {}));
}

}  // namespace
}  // namespace halfpage::bpf
