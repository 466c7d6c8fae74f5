#include "xdp_emul/sinks/pcap_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "app/capture.h"
#include "tests/support/eal_environment.h"

namespace halfpage {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class PcapWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "halfpage_writer_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    pool_ = rte_pktmbuf_pool_create("writer", 511, 0, 0, 256 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    ASSERT_NE(pool_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(rte_mempool_in_use_count(pool_), 0u);
    rte_mempool_free(pool_);
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const std::string& name = "out.pcap") const { return (folder_ / name).string(); }

  static std::vector<uint8_t> Pattern(uint32_t length) {
    std::vector<uint8_t> bytes(length);
    for (uint32_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(i * 13 + i / 253 + length);
    return bytes;
  }

  // A chain whose segments hold at most `part` bytes each.
  rte_mbuf* Frame(uint32_t length, uint16_t part = 256) const {
    const std::vector<uint8_t> bytes = Pattern(length);
    rte_mbuf* first = nullptr;
    rte_mbuf* last = nullptr;
    for (uint32_t at = 0; at < length;) {
      rte_mbuf* segment = rte_pktmbuf_alloc(pool_);
      const uint16_t n = static_cast<uint16_t>(std::min<uint32_t>(part, length - at));
      memcpy(rte_pktmbuf_append(segment, n), bytes.data() + at, n);
      at += n;
      if (first == nullptr) {
        first = segment;
      } else {
        last->next = segment;
        first->pkt_len += n;
        ++first->nb_segs;
      }
      last = segment;
    }
    return first;
  }

  void Write(PcapWriter& writer, uint32_t length, uint16_t part, uint64_t time_ns) const {
    rte_mbuf* frame = Frame(length, part);
    writer.Write(frame, time_ns);
    rte_pktmbuf_free(frame);
  }

  static PcapWriter Create(const std::string& path, uint32_t snaplen) {
    absl::StatusOr<PcapWriter> writer = PcapWriter::Create(path, snaplen);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }

  std::filesystem::path folder_;
  rte_mempool* pool_ = nullptr;
};

TEST_F(PcapWriterTest, FramesOfAnySegmentsComeBackByteForByteWithNanoseconds) {
  PcapWriter writer = Create(Path(), 65535);
  const std::vector<std::pair<uint32_t, uint16_t>> frames = {{14, 256},   {64, 256}, {64, 1},     {257, 256},
                                                             {1514, 256}, {1514, 7}, {65535, 256}};
  uint64_t time = 1700000000'123456789;
  for (const auto& [length, part] : frames) Write(writer, length, part, time++);
  EXPECT_EQ(writer.written(), frames.size());
  ASSERT_TRUE(writer.Close().ok());

  const absl::StatusOr<Capture> capture = Capture::Read(Path());
  ASSERT_TRUE(capture.ok()) << capture.status();
  ASSERT_EQ(capture->size(), frames.size());
  EXPECT_THAT(capture->skipped(), IsEmpty());
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(capture->frame(i), absl::MakeConstSpan(Pattern(frames[i].first)));
    EXPECT_EQ(capture->time_ns(i), i);
  }
}

TEST_F(PcapWriterTest, SnaplenCutsSingleAndChainedFrames) {
  for (const uint32_t snaplen : {14u, 96u, 256u, 300u}) {
    PcapWriter writer = Create(Path(), snaplen);
    Write(writer, 200, 256, 0);
    Write(writer, 1514, 256, 1);
    Write(writer, 1514, 10, 2);
    ASSERT_TRUE(writer.Close().ok());
    const absl::StatusOr<Capture> capture = Capture::Read(Path());
    ASSERT_TRUE(capture.ok()) << capture.status();
    ASSERT_EQ(capture->size(), 3u);
    EXPECT_EQ(capture->frame(0).size(), std::min(200u, snaplen));
    for (const size_t i : {1u, 2u}) {
      EXPECT_EQ(capture->frame(i), absl::MakeConstSpan(Pattern(1514)).subspan(0, snaplen));
    }
    EXPECT_EQ(capture->skipped().at("cut_by_snaplen"), snaplen < 200 ? 3u : 2u);
  }
}

TEST_F(PcapWriterTest, FileWithoutFramesIsAnEmptyCapture) {
  PcapWriter writer = Create(Path(), 65535);
  ASSERT_TRUE(writer.Close().ok());
  EXPECT_EQ(std::filesystem::file_size(Path()), 24u);
  EXPECT_THAT(std::string(Capture::Read(Path()).status().message()), HasSubstr("no frames"));
}

TEST_F(PcapWriterTest, FormerFileIsReplaced) {
  std::ofstream(Path()) << std::string(100000, 'x');
  PcapWriter writer = Create(Path(), 65535);
  Write(writer, 60, 256, 0);
  ASSERT_TRUE(writer.Close().ok());
  EXPECT_EQ(std::filesystem::file_size(Path()), 24u + 16 + 60);
}

TEST_F(PcapWriterTest, MovedAndForgottenWriterStillCompletesItsFile) {
  {
    PcapWriter writer = Create(Path(), 65535);
    Write(writer, 60, 256, 0);
    PcapWriter moved = std::move(writer);
    Write(moved, 61, 256, 1);
    EXPECT_EQ(moved.written(), 2u);
  }
  const absl::StatusOr<Capture> capture = Capture::Read(Path());
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), 2u);
}

TEST_F(PcapWriterTest, AssignedWriterCompletesTheFileItHadBefore) {
  PcapWriter writer = Create(Path("first.pcap"), 65535);
  Write(writer, 60, 256, 0);
  writer = Create(Path("second.pcap"), 65535);
  EXPECT_TRUE(Capture::Read(Path("first.pcap")).ok());
  EXPECT_TRUE(writer.Close().ok());
}

TEST_F(PcapWriterTest, WhatCannotBeWrittenIsRefusedAtCreation) {
  const auto refusal = [](const std::string& path, uint32_t snaplen = 65535) {
    const absl::Status status = PcapWriter::Create(path, snaplen).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("-"), HasSubstr("standard output"));
  EXPECT_THAT(refusal(""), HasSubstr("name a file"));
  EXPECT_THAT(refusal(folder_.string()), HasSubstr("is a directory"));
  EXPECT_THAT(refusal(Path("missing/out.pcap")), HasSubstr("folder does not exist"));
  EXPECT_THAT(refusal("/proc/halfpage.pcap"), HasSubstr("folder does not exist"));
  EXPECT_THAT(refusal("/dev/full"), HasSubstr("No space left on device"));
  EXPECT_THAT(refusal(Path(), 0), HasSubstr("outside 1 to 262144"));
  EXPECT_THAT(refusal(Path(), 262145), HasSubstr("outside 1 to 262144"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(refusal(Path("fifo")), HasSubstr("pipe"));
}

TEST_F(PcapWriterTest, DiskThatFillsUpIsToldByCloseWithTheFramesBefore) {
  PcapWriter writer = Create(Path(), 65535);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);  // the write itself is to fail
  const rlimit small = {20000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 1000; ++i) Write(writer, 1514, 256, 0);
  const absl::Status status = writer.Close();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);

  EXPECT_FALSE(status.ok());
  EXPECT_LT(writer.written(), 20u);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("File too large"));
  EXPECT_EQ(writer.Close(), status);
}

TEST_F(PcapWriterTest, ErrorInTheLastBufferIsToldByClose) {
  PcapWriter writer = Create(Path(), 65535);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Write(writer, 60, 256, 0);
  EXPECT_EQ(writer.written(), 1u);
  const absl::Status status = writer.Close();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
}

TEST_F(PcapWriterTest, WritingAfterCloseDoesNothing) {
  PcapWriter writer = Create(Path(), 65535);
  ASSERT_TRUE(writer.Close().ok());
  Write(writer, 60, 256, 0);
  EXPECT_EQ(writer.written(), 0u);
  EXPECT_TRUE(writer.Close().ok());
}

}  // namespace
}  // namespace halfpage
