#include "app/xdp_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "app/capture.h"
#include "app/frame_limits.h"
#include "app/output.h"
#include "app/run.h"
#include "app/text_table.h"
#include "app/xdp_expect.h"
#include "app/xdp_maps.h"
#include "app/xdp_test_files.h"
#include "xdp_emul/attach.h"
#include "xdp_emul/bpf/compile.h"
#include "xdp_emul/bpf/interpreter.h"
#include "xdp_emul/bpf/object.h"
#include "xdp_emul/bpf/program.h"
#include "xdp_emul/bpf/ring_map.h"
#include "xdp_emul/bpf/surroundings.h"
#include "xdp_emul/kernel_frame.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage {
namespace {

constexpr int kOtherVerdict = kXdpActions;  // a number that is no verdict
constexpr size_t kMostLines = 20;           // faults and differences that are printed

int Wrong(const absl::Status& status) {
  std::fprintf(stderr, "halfpage: %s\n", std::string(status.message()).c_str());
  return kExitUsage;
}

uint64_t Nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

void PrintLine(void*, const char* line) {
  std::fprintf(stderr, "bpf_trace_printk: %s\n", line);
}

void PrintEvent(void*, const bpf::Map& map, const uint8_t* data, uint64_t size, const uint8_t*, uint64_t packet_bytes) {
  const std::string hex = absl::BytesToHexString({reinterpret_cast<const char*>(data), size});
  std::fprintf(stderr, "event of %s: %s and %llu bytes of the packet\n", map.spec().name.c_str(), hex.c_str(),
               static_cast<unsigned long long>(packet_bytes));
}

void PrintRecord(void*, const bpf::RingMap& map, const uint8_t* data, uint64_t size) {
  PrintEvent(nullptr, map, data, size, nullptr, 0);
}

void PrintStep(void*, const bpf::Image& image, uint32_t index, const uint64_t* registers) {
  std::string text;
  for (int i = 0; i <= 10; ++i) absl::StrAppendFormat(&text, " r%d=%x", i, registers[i]);
  std::fprintf(stderr, "%-48s%s\n", bpf::Disassemble(image, index).c_str(), text.c_str());
}

// All that a test run needs and counts.
class XdpTest {
 public:
  explicit XdpTest(const XdpTestOptions& options) : options_(options) {}

  int Run() {
    absl::Status status = SetUp();
    if (!status.ok()) return Wrong(status);
    for (size_t i = 0; i < frames_.size(); ++i) RunPacket(i + 1, frames_[i]);
    return Finish();
  }

 private:
  absl::Status SetUp() {
    absl::StatusOr<bpf::Object> object = bpf::ReadObject(options_.object);
    if (!object.ok()) return object.status();
    const absl::StatusOr<const bpf::ProgramCode*> code = bpf::FindProgram(*object, options_.program);
    if (!code.ok()) return code.status();
    absl::StatusOr<std::unique_ptr<bpf::MapSet>> maps = bpf::MapSet::Create(*object, 1);
    if (!maps.ok()) return maps.status();
    maps_ = std::move(*maps);
    absl::StatusOr<std::unique_ptr<bpf::Program>> program = bpf::Program::Create(**code, *object, maps_.get());
    if (!program.ok()) return program.status();
    program_ = std::move(*program);
    if (!options_.interpret && !options_.trace) {
      const absl::Status compiled = bpf::Compile(program_.get());
      if (!compiled.ok()) not_compiled_ = std::string(compiled.message());
    }
    absl::Status status = FillMaps();
    if (!status.ok()) return status;
    for (const std::string& route : options_.routes) {
      status = surroundings_.AddRoute(route);
      if (!status.ok()) return status;
    }
    if (!options_.expect.empty()) {
      absl::StatusOr<XdpExpectations> expectations = XdpExpectations::Read(options_.expect);
      if (!expectations.ok()) return expectations.status();
      expectations_ = std::make_unique<XdpExpectations>(std::move(*expectations));
    }
    status = ReadFrames();
    if (!status.ok()) return status;
    WarnOfLongFrames();
    if (!options_.out.empty()) {
      absl::StatusOr<XdpTestCaptures> captures = XdpTestCaptures::Create(options_.out);
      if (!captures.ok()) return captures.status();
      captures_ = std::make_unique<XdpTestCaptures>(std::move(*captures));
    }
    state_ = std::make_unique<bpf::RunState>();
    state_->ingress_ifindex = options_.ingress_ifindex;
    state_->rx_queue_index = options_.rx_queue;
    state_->surroundings = &surroundings_;
    state_->print = PrintLine;
    state_->event = PrintEvent;
    return absl::OkStatus();
  }

  absl::Status FillMaps() {
    for (const std::string& text : options_.maps) {
      const absl::Status status = PutIntoMap(text, *maps_);
      if (!status.ok()) return status;
    }
    if (options_.maps_file.empty()) return absl::OkStatus();
    std::ifstream file(options_.maps_file);
    if (!file) return absl::NotFoundError(absl::StrFormat("--maps %s: %s", options_.maps_file, strerror(errno)));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      line = line.substr(0, line.find('#'));
      const absl::string_view text = absl::StripAsciiWhitespace(line);
      if (text.empty()) continue;
      const absl::Status status = PutIntoMap(text, *maps_);
      if (!status.ok())
        return absl::InvalidArgumentError(absl::StrCat(options_.maps_file, ":", number, ": ", status.message()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadFrames() {
    for (const std::string& text : options_.packets) {
      const std::string hex = absl::StrReplaceAll(text, {{":", ""}, {" ", ""}});
      const bool good = hex.size() % 2 == 0 && hex.size() / 2 <= kLongestFrame &&
                        std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit);
      if (!good) {
        return absl::InvalidArgumentError(
            absl::StrFormat("--packet %s: give 0 to %d bytes as pairs of hexadecimal digits", text, kLongestFrame));
      }
      const std::string bytes = absl::HexStringToBytes(hex);
      frames_.emplace_back(bytes.begin(), bytes.end());
    }
    if (options_.pcap_in.empty()) {
      if (!frames_.empty()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          "--xdp-test needs packets: --pcap-in FILE (- reads standard input) or --packet HEX");
    }
    const std::string path = options_.pcap_in == "-" ? "/dev/stdin" : options_.pcap_in;
    const absl::StatusOr<Capture> capture = Capture::Read(path);
    if (!capture.ok()) return absl::InvalidArgumentError(absl::StrCat("--pcap-in ", capture.status().message()));
    for (size_t i = 0; i < capture->size(); ++i) {
      const absl::Span<const uint8_t> frame = capture->frame(i);
      frames_.emplace_back(frame.begin(), frame.end());
    }
    for (const auto& [reason, count] : capture->skipped()) {
      std::fprintf(stderr, "warning: %s: %llu records %s\n", options_.pcap_in.c_str(),
                   static_cast<unsigned long long>(count), reason.c_str());
    }
    return absl::OkStatus();
  }

  void WarnOfLongFrames() const {
    if (program_->frags()) return;
    const auto is_long = [](const std::vector<uint8_t>& frame) { return frame.size() > kKernelFirst; };
    const auto count = std::count_if(frames_.begin(), frames_.end(), is_long);
    if (count == 0) return;
    std::fprintf(
        stderr,
        "warning: %lld of %zu packets have more than %u bytes: no kernel hands such a one to a program of section xdp; "
        "here it is shown them in one buffer. Compiled into section xdp.frags it sees them as a kernel shows them\n",
        static_cast<long long>(count), frames_.size(), kKernelFirst);
  }

  // Records of ring buffers are read as they come, so that there is always room.
  void ReadRings() {
    for (const std::unique_ptr<bpf::Map>& map : maps_->maps()) {
      if (map->spec().type == BPF_MAP_TYPE_RINGBUF) static_cast<bpf::RingMap*>(map.get())->Read(PrintRecord, nullptr);
    }
  }

  uint32_t Judge() {
    if (!options_.trace) return program_->Run(state_.get());
    return program_->RunTraced(state_.get(), PrintStep, nullptr);
  }

  void RunPacket(uint64_t number, const std::vector<uint8_t>& frame) {
    placed_.Place(frame, program_->frags());
    if (options_.trace) std::fprintf(stderr, "packet %llu\n", static_cast<unsigned long long>(number));
    uint32_t verdict = 0;
    maps_->epochs().Enter(0);
    const uint64_t begin = Nanoseconds();
    for (uint32_t i = 0; i < options_.repeat; ++i) {
      placed_.PointAt(state_.get());
      verdict = Judge();
    }
    nanoseconds_ += Nanoseconds() - begin;
    maps_->epochs().Leave(0);
    ReadRings();
    const int action = verdict < kXdpActions ? static_cast<int>(verdict) : kOtherVerdict;
    ++counts_[action];
    if (verdict >= kXdpActions && ++strange_ == 1) strange_verdict_ = verdict;
    if (state_->Failed()) {
      ++faults_;
      if (faults_ <= kMostLines) {
        std::fprintf(stderr, "packet %llu: program fault: %s\n", static_cast<unsigned long long>(number),
                     bpf::FaultText(*program_, state_->fault).c_str());
      }
    }
    Compare(number, frame, action);
    if (captures_ != nullptr && action != kOtherVerdict) {
      const std::vector<uint8_t> left = placed_.Bytes(*state_);
      const auto metadata = static_cast<size_t>(state_->data - state_->data_meta);
      captures_->Write(static_cast<XdpAction>(action), absl::MakeConstSpan(left).subspan(metadata), number);
    }
  }

  static std::string VerdictName(int action) {
    return action < kXdpActions ? std::string(XdpActionName(static_cast<XdpAction>(action))) : "no verdict";
  }

  void Compare(uint64_t number, const std::vector<uint8_t>& frame, int action) {
    const XdpExpectations::Expected* expected = expectations_ == nullptr ? nullptr : expectations_->Find(number, frame);
    const bool good = expected == nullptr || static_cast<int>(expected->verdict) == action;
    std::string what;
    if (!good) {
      what = absl::StrFormat("packet %d: expected %s (%s), got %s%s", number, XdpActionName(expected->verdict),
                             expected->line, VerdictName(action), state_->Failed() ? " by a program fault" : "");
      if (++differences_ <= kMostLines) std::fprintf(stderr, "%s\n", what.c_str());
    }
    if (!options_.junit.empty()) cases_.push_back({absl::StrCat("packet ", number, " ", VerdictName(action)), what});
  }

  int Finish() {
    std::string text;
    absl::StrAppendFormat(&text, "%s: program %s, %d packets%s, %s\n", options_.object, program_->name(),
                          frames_.size(), options_.repeat > 1 ? absl::StrFormat(" %d times", options_.repeat) : "",
                          program_->compiled() && !options_.trace ? "compiled" : "interpreted");
    if (!not_compiled_.empty()) absl::StrAppendFormat(&text, "not compiled: %s\n", not_compiled_);
    std::vector<TableRow> rows = {{"verdict", "packets"}};
    for (int action = 0; action < kXdpActions; ++action)
      rows.push_back({VerdictName(action), absl::StrCat(counts_[action])});
    if (strange_ != 0) rows.push_back({absl::StrFormat("none (%d)", strange_verdict_), absl::StrCat(strange_)});
    absl::StrAppend(&text, TextTable(rows));
    absl::StrAppendFormat(&text, "program_fault: %d\n", faults_);
    const double runs = static_cast<double>(frames_.size()) * options_.repeat;
    absl::StrAppendFormat(&text, "ns per packet: %.1f\n", static_cast<double>(nanoseconds_) / runs);
    if (expectations_ != nullptr) absl::StrAppendFormat(&text, "not as expected: %d\n", differences_);
    if (options_.dump_maps) absl::StrAppend(&text, DumpMaps(*maps_));
    bool written = WriteOut(text) != Written::kFailed;
    if (captures_ != nullptr) {
      const absl::Status status = captures_->Close();
      if (!status.ok()) std::fprintf(stderr, "halfpage: %s\n", std::string(status.message()).c_str());
      written = written && status.ok();
    }
    if (!options_.junit.empty()) {
      written = WriteFile(options_.junit, JUnitText(options_.object, cases_), "the JUnit report") && written;
    }
    if (!written) return kExitFailed;
    return differences_ == 0 ? kExitGood : kExitExpectation;
  }

  const XdpTestOptions& options_;
  std::string not_compiled_;  // the reason
  std::unique_ptr<bpf::MapSet> maps_;
  std::unique_ptr<bpf::Program> program_;
  bpf::Surroundings surroundings_;
  std::unique_ptr<XdpExpectations> expectations_;
  std::unique_ptr<XdpTestCaptures> captures_;
  std::unique_ptr<bpf::RunState> state_;
  std::vector<std::vector<uint8_t>> frames_;
  KernelFrame placed_;
  std::vector<XdpTestCase> cases_;
  std::array<uint64_t, kXdpActions + 1> counts_ = {};
  uint64_t faults_ = 0;
  uint64_t strange_ = 0;
  uint32_t strange_verdict_ = 0;
  uint64_t differences_ = 0;
  uint64_t nanoseconds_ = 0;
};

}  // namespace

int RunXdpTest(const XdpTestOptions& options) {
  return XdpTest(options).Run();
}

}  // namespace halfpage
