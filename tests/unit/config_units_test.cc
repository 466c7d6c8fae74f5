// Numbers as people write them, and names as they misspell them.
#include "app/config_units.h"

#include <cstdint>
#include <string>
#include <vector>

#include "app/nearest_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halfpage {
namespace {

using ::testing::HasSubstr;

TEST(ConfigUnits, WholeNumbersAreDigitsAndNothingElse) {
  EXPECT_EQ(*ParseWhole("0"), 0u);
  EXPECT_EQ(*ParseWhole("007"), 7u);
  EXPECT_EQ(*ParseWhole("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "-0", "1.0", "1e3", "0x10", "1_000", "1,000", "12abc", "abc",
                           "-", ".", "nan", "inf", "18446744073709551616", "١"}) {
    EXPECT_FALSE(ParseWhole(text).ok()) << text;
  }
}

TEST(ConfigUnits, WrongWholeNumbersAreToldApart) {
  EXPECT_EQ(ParseWhole("-5").status().message(), "`-5` is negative");
  EXPECT_EQ(ParseWhole("1.5").status().message(), "`1.5` is not a whole number");
  EXPECT_EQ(ParseWhole("12abc").status().message(), "`12abc` is not a number");
  EXPECT_EQ(ParseWhole("99999999999999999999").status().message(), "`99999999999999999999` is too large to count");
}

TEST(ConfigUnits, BytesMayHaveBinaryUnits) {
  EXPECT_EQ(*ParseBytes("2176"), 2176u);
  EXPECT_EQ(*ParseBytes("2176B"), 2176u);
  EXPECT_EQ(*ParseBytes("2KiB"), 2048u);
  EXPECT_EQ(*ParseBytes("2 KiB"), 2048u);
  EXPECT_EQ(*ParseBytes("512mib"), 512ull << 20);
  EXPECT_EQ(*ParseBytes("16777215TiB"), 16777215ull << 40);
}

TEST(ConfigUnits, OtherUnitsOfBytesAreRefusedWithTheKnownOnes) {
  for (const char* text : {"2K", "2KB", "2M", "2Mb", "2kB", "2  KiB", "2KiB ", "2KiBs"}) {
    EXPECT_THAT(std::string(ParseBytes(text).status().message()), HasSubstr("(B, KiB, MiB, GiB, TiB)")) << text;
  }
  for (const char* text : {"", "KiB", "-2KiB", "1.5GiB", "16777216TiB", "99999999999999999999KiB", "1.", ".5KiB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(ConfigUnits, BytesPrintedAreReadAsTheSame) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1023}, uint64_t{1024}, uint64_t{2176}, uint64_t{3072},
                               uint64_t{1} << 20, (uint64_t{1} << 20) + 1, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(*ParseBytes(FormatBytes(bytes)), bytes);
  }
  EXPECT_EQ(FormatBytes(512 << 20), "512MiB");
  EXPECT_EQ(DescribeBytes(503316480), "503316480 bytes (480.0 MiB)");
}

TEST(ConfigUnits, DurationsNeedAUnitUnlessZero) {
  EXPECT_EQ(*ParseSeconds("0"), 0.0);
  EXPECT_EQ(*ParseSeconds("2s"), 2.0);
  EXPECT_EQ(*ParseSeconds("500ms"), 0.5);
  EXPECT_EQ(*ParseSeconds("250us"), 0.00025);
  EXPECT_EQ(*ParseSeconds("1.5 min"), 90.0);
  EXPECT_EQ(*ParseSeconds("1h"), 3600.0);
  EXPECT_THAT(std::string(ParseSeconds("5").status().message()), HasSubstr("has no unit"));
  EXPECT_THAT(std::string(ParseSeconds("-5s").status().message()), HasSubstr("is negative"));
  for (const char* text : {"", "s", "5 sec", "5m", "5S", "1e3s", "nan", "inf", "0x1s", ".5s", "5s ", "5s6", "1.2.3s"}) {
    EXPECT_FALSE(ParseSeconds(text).ok()) << text;
  }
}

TEST(ConfigUnits, DurationsPrintedAreReadAsTheSameBitForBit) {
  for (const double seconds : {0.0, 1.0, 0.5, 0.1, 0.3, 1.0 / 3, 0.00025, 1e-9, 123456.789, 31536000.0}) {
    EXPECT_EQ(*ParseSeconds(FormatSeconds(seconds)), seconds) << FormatSeconds(seconds);
  }
  EXPECT_EQ(FormatSeconds(2), "2s");
  EXPECT_EQ(FormatSeconds(0.5), "0.5s");
}

TEST(ConfigUnits, ShownTextIsShortAndPrintable) {
  EXPECT_EQ(Shown("ring"), "`ring`");
  EXPECT_EQ(Shown("a\x1b\n"), "`a\\x1b\\x0a`");
  EXPECT_EQ(Shown(std::string(100, 'a')), "`" + std::string(60, 'a') + "...`");
  EXPECT_EQ(Shown(std::string(59, 'a') + "ä"), "`" + std::string(59, 'a') + "...`");
}

TEST(NearestName, OneSlipIsForgiven) {
  const std::vector<std::string> keys = {"name", "queues", "ring", "ends"};
  for (const char* slip : {"rign", "rin", "rring", "rang", "Ring", "RING"}) EXPECT_EQ(NearestName(slip, keys), "ring");
  EXPECT_EQ(NearestName("data-room", {"data_room"}), "data_room");
}

TEST(NearestName, FewestSlipsWinAndTheFirstOfEqualOnes) {
  EXPECT_EQ(NearestName("veth", {"veth10", "veth1", "veth2"}), "veth1");
  EXPECT_EQ(NearestName("destination_prot", {"destination", "destination_port"}), "destination_port");
}

TEST(NearestName, NothingIsNearAnythingElse) {
  EXPECT_EQ(NearestName("wavelength", {"name", "queues", "ring"}), std::nullopt);
  EXPECT_EQ(NearestName("", {"name"}), std::nullopt);
  EXPECT_EQ(NearestName("x", {}), std::nullopt);
  EXPECT_EQ(NearestName(std::string(1000, 'a'), {"aaa"}), std::nullopt);
}

TEST(NearestName, ListsAreCutBehindTwentyFour) {
  EXPECT_EQ(ListNames({}), "none");
  EXPECT_EQ(ListNames({"a", "b"}), "a, b");
  EXPECT_THAT(ListNames(std::vector<std::string>(30, "a")), HasSubstr("a, a and 6 more"));
}

}  // namespace
}  // namespace halfpage
