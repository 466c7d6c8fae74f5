#include "app/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/capture_bytes.h"

namespace halfpage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

using Bytes = CaptureBytes;
using Order = CaptureBytes::Order;

class CaptureFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "halfpage_capture_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Save(const std::string& content, const std::string& name = "in.pcap") const {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }
  absl::StatusOr<Capture> Read(const Bytes& bytes) const { return Capture::Read(Save(bytes.str())); }
  // Text of the error, which must name the file.
  std::string Refusal(const std::string& path, absl::StatusCode code) const {
    const absl::StatusOr<Capture> capture = Capture::Read(path);
    EXPECT_EQ(capture.status().code(), code) << capture.status();
    const std::string text(capture.status().message());
    EXPECT_THAT(text, HasSubstr(path));
    return text;
  }
  std::string Refusal(const Bytes& bytes, absl::StatusCode code) const { return Refusal(Save(bytes.str()), code); }

  std::filesystem::path folder_;
};

TEST_F(CaptureFile, BothByteOrdersAndBothResolutionsOfPcapGiveSameFrames) {
  for (const Order order : {Order::kLittle, Order::kBig}) {
    for (const bool nano : {false, true}) {
      SCOPED_TRACE(absl::StrCat(order == Order::kLittle ? "little" : "big", nano ? " nano" : " micro"));
      const uint32_t unit = nano ? 1000 : 1;
      Bytes bytes(order);
      bytes.PcapHeader(nano ? 0xa1b23c4d : 0xa1b2c3d4);
      bytes.PcapRecord(60, 100, 999999 * unit).PcapRecord(1514, 101, 1 * unit).PcapRecord(14, 103, 0);
      const absl::StatusOr<Capture> capture = Read(bytes);
      ASSERT_TRUE(capture.ok()) << capture.status();
      ASSERT_EQ(capture->size(), 3u);
      EXPECT_EQ(capture->frame(0).size(), 60u);
      EXPECT_EQ(capture->frame(1).size(), 1514u);
      EXPECT_EQ(capture->frame(2).size(), 14u);
      EXPECT_THAT(capture->frame(1), testing::Each(static_cast<uint8_t>(1514 & 0xff)));
      EXPECT_EQ(capture->time_ns(0), 0u);
      EXPECT_EQ(capture->time_ns(1), 2000u);
      EXPECT_EQ(capture->time_ns(2), 2000001000u);
      EXPECT_EQ(capture->longest(), 1514u);
      EXPECT_EQ(capture->total_bytes(), 60u + 1514u + 14u);
      EXPECT_THAT(capture->skipped(), IsEmpty());
      EXPECT_THAT(capture->damage(), IsEmpty());
    }
  }
}

TEST_F(CaptureFile, NanosecondsOfTimeStampsAreKept) {
  const absl::StatusOr<Capture> capture =
      Read(Bytes().PcapHeader(0xa1b23c4d).PcapRecord(60, 5, 17).PcapRecord(60, 5, 40));
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->time_ns(1), 23u);
}

TEST_F(CaptureFile, PcapngOfBothByteOrdersGivesItsFrames) {
  for (const Order order : {Order::kLittle, Order::kBig}) {
    const absl::StatusOr<Capture> capture =
        Read(Bytes(order).SectionHeader().Interface(1).EnhancedPacket(0, 1000, 61).EnhancedPacket(0, 1007, 90));
    ASSERT_TRUE(capture.ok()) << capture.status();
    ASSERT_EQ(capture->size(), 2u);
    EXPECT_EQ(capture->frame(0).size(), 61u);
    EXPECT_EQ(capture->time_ns(1), 7000u);
  }
}

TEST_F(CaptureFile, PcapngWithTwoEthernetInterfacesGivesFramesOfBoth) {
  const absl::StatusOr<Capture> capture =
      Read(Bytes().SectionHeader().Interface(1).Interface(1).EnhancedPacket(0, 1, 60).EnhancedPacket(1, 2, 64));
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), 2u);
}

TEST_F(CaptureFile, PcapngInterfaceOfOtherLinkTypeBehindFramesEndsReadingWithReason) {
  const absl::StatusOr<Capture> capture =
      Read(Bytes().SectionHeader().Interface(1).EnhancedPacket(0, 1, 60).Interface(113).EnhancedPacket(1, 2, 64));
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), 1u);
  EXPECT_THAT(capture->skipped(), ElementsAre(Pair("damaged", 1)));
  EXPECT_THAT(capture->damage(), HasSubstr("interface"));
}

TEST_F(CaptureFile, PcapngInterfaceOfOtherLinkTypeBeforeAnyFrameIsAnError) {
  EXPECT_THAT(Refusal(Bytes().SectionHeader().Interface(1).Interface(113).EnhancedPacket(0, 1, 60),
                      absl::StatusCode::kFailedPrecondition),
              HasSubstr("interface"));
}

TEST_F(CaptureFile, TimeStampsThatGoBackwardsAreHeld) {
  const absl::StatusOr<Capture> capture = Read(Bytes()
                                                   .PcapHeader()
                                                   .PcapRecord(60, 10, 0)
                                                   .PcapRecord(60, 9, 0)
                                                   .PcapRecord(60, 10, 5)
                                                   .PcapRecord(60, 0, 0)
                                                   .PcapRecord(60, 10, 6));
  ASSERT_TRUE(capture.ok()) << capture.status();
  std::vector<uint64_t> times;
  for (size_t i = 0; i < capture->size(); ++i) times.push_back(capture->time_ns(i));
  EXPECT_THAT(times, ElementsAre(0, 0, 5000, 5000, 6000));
}

TEST_F(CaptureFile, AbsurdTimeStampsNeverDecrease) {
  Bytes bytes;
  bytes.SectionHeader().U32(1).U32(32).U16(1).U16(0).U32(262144);
  bytes.U16(9).U16(1).U32(0).U32(0).U32(32);  // if_tsresol 0: whole seconds in 64 bits
  bytes.EnhancedPacket(0, 0, 60).EnhancedPacket(0, UINT64_MAX, 60).EnhancedPacket(0, INT64_MAX, 60);
  const absl::StatusOr<Capture> capture = Read(bytes);
  ASSERT_TRUE(capture.ok()) << capture.status();
  ASSERT_EQ(capture->size(), 3u);
  EXPECT_LE(capture->time_ns(0), capture->time_ns(1));
  EXPECT_LE(capture->time_ns(1), capture->time_ns(2));
}

TEST_F(CaptureFile, FramesOutside14To65535BytesAreCountedByReason) {
  const absl::StatusOr<Capture> capture = Read(
      Bytes().PcapHeader().PcapRecord(13).PcapRecord(14).PcapRecord(0).PcapRecord(65535).PcapRecord(65536).PcapRecord(
          262144));
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), 2u);
  EXPECT_EQ(capture->longest(), 65535u);
  EXPECT_EQ(capture->frame(1).size(), 65535u);
  EXPECT_THAT(capture->skipped(), ElementsAre(Pair("too_long", 2), Pair("too_short", 2)));
}

TEST_F(CaptureFile, FrameCutBySnaplenIsUsedAndCounted) {
  const absl::StatusOr<Capture> capture = Read(Bytes().PcapHeader().PcapRecord(96, 1, 0, 1514).PcapRecord(60));
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), 2u);
  EXPECT_EQ(capture->frame(0).size(), 96u);
  EXPECT_THAT(capture->skipped(), ElementsAre(Pair("cut_by_snaplen", 1)));
}

TEST_F(CaptureFile, RecordLongerThanSnaplenOfItsFileIsCutThereAndTheNextOneRead) {
  const absl::StatusOr<Capture> capture = Read(Bytes().PcapHeader(0xa1b2c3d4, 1, 68).PcapRecord(200).PcapRecord(60));
  ASSERT_TRUE(capture.ok()) << capture.status();
  ASSERT_EQ(capture->size(), 2u);
  EXPECT_EQ(capture->frame(0).size(), 68u);
  EXPECT_EQ(capture->frame(1).size(), 60u);
}

TEST_F(CaptureFile, AbsurdRecordLengthBehindFramesEndsReadingWithReason) {
  for (const uint32_t length : {262145u, 0x7fffffffu, 0xffffffffu}) {
    const absl::StatusOr<Capture> capture =
        Read(Bytes().PcapHeader().PcapRecord(60).U32(1).U32(0).U32(length).U32(length).Fill(100).PcapRecord(60));
    ASSERT_TRUE(capture.ok()) << capture.status();
    EXPECT_EQ(capture->size(), 1u);
    EXPECT_THAT(capture->skipped(), ElementsAre(Pair("damaged", 1)));
    EXPECT_THAT(capture->damage(), Not(IsEmpty()));
  }
}

TEST_F(CaptureFile, AbsurdFirstRecordIsAnError) {
  EXPECT_THAT(
      Refusal(Bytes().PcapHeader().U32(1).U32(0).U32(~0u).U32(~0u).Fill(100), absl::StatusCode::kFailedPrecondition),
      HasSubstr("damaged before its first usable frame"));
}

TEST_F(CaptureFile, AbsurdPcapngBlockLengthIsAnErrorOrDamage) {
  for (const uint32_t length : {0u, 3u, 12u, 0x7ffffffcu, 0xffffffffu}) {
    SCOPED_TRACE(length);
    EXPECT_FALSE(Read(Bytes().SectionHeader().Interface(1).U32(6).U32(length).Fill(64)).ok());
    const absl::StatusOr<Capture> capture =
        Read(Bytes().SectionHeader().Interface(1).EnhancedPacket(0, 1, 60).U32(6).U32(length).Fill(64));
    ASSERT_TRUE(capture.ok()) << capture.status();
    EXPECT_EQ(capture->size(), 1u);
    EXPECT_THAT(capture->damage(), Not(IsEmpty()));
  }
}

TEST_F(CaptureFile, TruncationAnywhereKeepsWholeFramesOrIsAnError) {
  const std::string whole = Bytes().PcapHeader().PcapRecord(60).PcapRecord(70).str();
  const size_t second = 24 + 16 + 60;
  for (size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    const absl::StatusOr<Capture> capture = Capture::Read(Save(whole.substr(0, length)));
    ASSERT_EQ(capture.ok(), length >= second);
    if (!capture.ok()) {
      EXPECT_THAT(std::string(capture.status().message()), Not(IsEmpty()));
      continue;
    }
    EXPECT_EQ(capture->size(), 1u);
    EXPECT_EQ(capture->skipped().count("damaged"), length > second ? 1u : 0u);
  }
}

TEST_F(CaptureFile, TruncatedPcapngKeepsWholeFramesOrIsAnError) {
  const std::string whole =
      Bytes().SectionHeader().Interface(1).EnhancedPacket(0, 1, 60).EnhancedPacket(0, 2, 70).str();
  const size_t second = 28 + 20 + 32 + 60;
  for (size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    const absl::StatusOr<Capture> capture = Capture::Read(Save(whole.substr(0, length)));
    ASSERT_EQ(capture.ok(), length >= second);
  }
}

TEST_F(CaptureFile, AnyByteDamagedNeverCrashes) {
  for (const std::string& whole :
       {Bytes().PcapHeader().PcapRecord(60).PcapRecord(70).str(),
        Bytes(Order::kBig).SectionHeader().Interface(1).EnhancedPacket(0, 1, 60).EnhancedPacket(0, 2, 70).str()}) {
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const int value : {0x00, 0x7f, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(value);
        const absl::StatusOr<Capture> capture = Capture::Read(Save(damaged));
        if (!capture.ok()) {
          EXPECT_THAT(std::string(capture.status().message()), HasSubstr("in.pcap"));
        } else {
          EXPECT_GE(capture->size(), 1u);
        }
      }
    }
  }
}

TEST_F(CaptureFile, EmptyFileSaysThatItIsEmpty) {
  EXPECT_THAT(Refusal(Bytes(), absl::StatusCode::kInvalidArgument), HasSubstr("is empty"));
}

TEST_F(CaptureFile, HeaderWithoutFramesIsAnError) {
  EXPECT_THAT(Refusal(Bytes().PcapHeader(), absl::StatusCode::kFailedPrecondition), HasSubstr("no frames"));
  EXPECT_THAT(Refusal(Bytes().SectionHeader().Interface(1), absl::StatusCode::kFailedPrecondition),
              HasSubstr("no frames"));
}

TEST_F(CaptureFile, OnlyUnusableFramesIsAnErrorWithTheirCount) {
  EXPECT_THAT(Refusal(Bytes().PcapHeader().PcapRecord(5).PcapRecord(6), absl::StatusCode::kFailedPrecondition),
              HasSubstr("too_short 2"));
}

TEST_F(CaptureFile, OtherLinkTypeIsNamedWithTheWayToConvert) {
  const std::string cooked =
      Refusal(Bytes().PcapHeader(0xa1b2c3d4, 113).PcapRecord(60), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(cooked, HasSubstr("LINUX_SLL (Linux cooked v1)"));
  EXPECT_THAT(cooked, HasSubstr("tcprewrite --dlt=enet"));
  EXPECT_THAT(Refusal(Bytes().PcapHeader(0xa1b2c3d4, 101).PcapRecord(60), absl::StatusCode::kInvalidArgument),
              HasSubstr("RAW (Raw IP)"));
  EXPECT_THAT(Refusal(Bytes().PcapHeader(0xa1b2c3d4, 0xfff0).PcapRecord(60), absl::StatusCode::kInvalidArgument),
              HasSubstr("DLT 65520"));
}

TEST_F(CaptureFile, CompressedFileSaysHowToUnpackIt) {
  EXPECT_THAT(Refusal(Save("\x1f\x8b\x08 and so on", "in.pcap.gz"), absl::StatusCode::kInvalidArgument),
              HasSubstr("`gunzip "));
  EXPECT_THAT(Refusal(Save("\x28\xb5\x2f\xfd and so on"), absl::StatusCode::kInvalidArgument), HasSubstr("`unzstd "));
  EXPECT_THAT(Refusal(Save(std::string("\xfd"
                                       "7zXZ\0 and so on",
                                       15)),
                      absl::StatusCode::kInvalidArgument),
              HasSubstr("`unxz "));
  EXPECT_THAT(Refusal(Save("BZh91AY"), absl::StatusCode::kInvalidArgument), HasSubstr("`bunzip2 "));
}

TEST_F(CaptureFile, WhatIsNoCaptureSaysHowToMakeOne) {
  for (const std::string content : {"x", "version: 1\n", "<!DOCTYPE html><html><body>404</body></html>"}) {
    EXPECT_THAT(Refusal(Save(content), absl::StatusCode::kInvalidArgument), HasSubstr("editcap"));
  }
}

TEST_F(CaptureFile, MissingFileDirectoryAndFifoAreRefusedByWhatTheyAre) {
  EXPECT_THAT(Refusal(Path("missing.pcap"), absl::StatusCode::kNotFound), HasSubstr("no such file"));
  EXPECT_THAT(Refusal(Save("x") + "/in.pcap", absl::StatusCode::kNotFound), HasSubstr("no such file"));
  EXPECT_THAT(Refusal(folder_.string(), absl::StatusCode::kInvalidArgument), HasSubstr("is a directory"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(Refusal(Path("fifo"), absl::StatusCode::kInvalidArgument), HasSubstr("not a regular file"));
  EXPECT_THAT(Refusal("/dev/zero", absl::StatusCode::kInvalidArgument), HasSubstr("not a regular file"));
}

TEST_F(CaptureFile, UnreadableFileNamesTheRight) {
  const std::string path = Save(Bytes().PcapHeader().PcapRecord(60).str());
  ASSERT_EQ(chmod(path.c_str(), 0200), 0);
  const bool root = geteuid() == 0;  // for whom rights do not count
  ASSERT_EQ(seteuid(root ? 65534 : geteuid()), 0);
  EXPECT_THAT(Refusal(path, absl::StatusCode::kPermissionDenied), HasSubstr("chmod a+r"));
  ASSERT_EQ(seteuid(root ? 0 : geteuid()), 0);
}

TEST_F(CaptureFile, MoreThanTheBytesAllowedIsRefused) {
  const std::string path = Save(Bytes().PcapHeader().PcapRecord(60).PcapRecord(60).str());
  EXPECT_TRUE(Capture::Read(path, 120).ok());
  const absl::StatusOr<Capture> capture = Capture::Read(path, 119);
  EXPECT_EQ(capture.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(capture.status().message()), HasSubstr("editcap -r"));
}

TEST_F(CaptureFile, HoleOfManyGigabytesEndsReadingSoon) {
  const std::string path = Save(Bytes().PcapHeader().PcapRecord(60).str());
  std::error_code error;
  std::filesystem::resize_file(path, 64ull << 30, error);  // zeros: records of length 0
  if (error) GTEST_SKIP() << "no room for a sparse file: " << error.message();
  const absl::StatusOr<Capture> capture = Capture::Read(path);
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), 1u);
  EXPECT_THAT(capture->damage(), HasSubstr("65536 records in a row"));
  EXPECT_THAT(capture->skipped(), ElementsAre(Pair("damaged", 1), Pair("too_short", 65536)));
}

TEST_F(CaptureFile, MovedCaptureKeepsItsFrames) {
  absl::StatusOr<Capture> capture = Read(Bytes().PcapHeader().PcapRecord(60).PcapRecord(61));
  ASSERT_TRUE(capture.ok());
  const Capture moved = *std::move(capture);
  EXPECT_EQ(moved.frame(1).size(), 61u);
  EXPECT_EQ(moved.frame(1)[0], 61);
}

// Counts as `capinfos -c -d` gives them.
struct KnownCapture {
  const char* path;
  size_t frames;
  uint64_t bytes;
  uint32_t longest;
  uint64_t last_time_ns;
};

class InstalledCapture : public testing::TestWithParam<KnownCapture> {};

TEST_P(InstalledCapture, HasTheFramesThatCapinfosCounts) {
  const KnownCapture& known = GetParam();
  if (!std::filesystem::exists(known.path)) GTEST_SKIP() << known.path << " is not installed";
  const absl::StatusOr<Capture> capture = Capture::Read(known.path);
  ASSERT_TRUE(capture.ok()) << capture.status();
  EXPECT_EQ(capture->size(), known.frames);
  EXPECT_EQ(capture->total_bytes(), known.bytes);
  EXPECT_EQ(capture->longest(), known.longest);
  EXPECT_EQ(capture->time_ns(capture->size() - 1), known.last_time_ns);
  EXPECT_THAT(capture->skipped(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Debian, InstalledCapture,
    testing::Values(KnownCapture{"/usr/share/gocode/src/github.com/google/gopacket/pcap/test_dns.pcap", 10, 817, 89,
                                 20345000},
                    KnownCapture{"/usr/share/sip-tester/g711a.pcap", 236, 69384, 294, 7049628000},
                    KnownCapture{"/usr/share/sip-tester/dtmf_2833_0.pcap", 10, 580, 58, 139929000}),
    [](const auto& known) { return std::filesystem::path(known.param.path).stem().string(); });

TEST(InstalledCaptures, EachReadsOrGivesAnErrorWithText) {
  int read = 0;
  int refused = 0;
  for (const char* folder : {"/usr/share/gocode/src/github.com/google/gopacket", "/usr/share/sip-tester"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".pcap" && extension != ".pcapng") continue;
      const absl::StatusOr<Capture> capture = Capture::Read(entry.path().string());
      if (capture.ok()) {
        ++read;
        EXPECT_GE(capture->size(), 1u) << entry.path();
      } else {
        ++refused;
        EXPECT_GT(capture.status().message().size(), entry.path().string().size() + 10) << capture.status();
      }
    }
  }
  if (read + refused == 0) GTEST_SKIP() << "neither gopacket's nor sip-tester's captures are installed";
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace halfpage
