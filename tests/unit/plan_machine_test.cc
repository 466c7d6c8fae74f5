// What a machine says of its memory, on trees of files in the shape of /proc and /sys.
#include "app/plan_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/config_text.h"

namespace halfpage {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Machine {
 public:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, text);
  }
  std::vector<MemoryLimit> Limits(bool hugepages) const { return ReadMemoryLimits(hugepages, folder_.File("")); }
  std::vector<int> Sockets() const { return ReadSockets(folder_.File("")); }

 private:
  ScratchFolder folder_;
};

TEST(PlanMachine, FreeHugepagesAreThoseThatNobodyWasPromised) {
  Machine machine;
  machine.Write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
  machine.Write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "100\n");
  machine.Write("sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "40\n");
  machine.Write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
  const auto limits = machine.Limits(true);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].name, "free hugepages of 2MiB");
  EXPECT_EQ(limits[0].bytes, 60u * (2u << 20));
}

TEST(PlanMachine, SocketsAreTheNodesOfTheKernel) {
  Machine machine;
  EXPECT_THAT(machine.Sockets(), IsEmpty());
  machine.Write("sys/devices/system/node/node1/meminfo", "\n");
  machine.Write("sys/devices/system/node/node0/meminfo", "\n");
  machine.Write("sys/devices/system/node/online", "0-1\n");
  EXPECT_THAT(machine.Sockets(), testing::ElementsAre(0, 1));
}

TEST(PlanMachine, NoHugepagesAtAllIsALimitOfNothing) {
  Machine machine;
  machine.Write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
  const auto limits = machine.Limits(true);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].bytes, 0u);
}

TEST(PlanMachine, TightestGroupOfVersion2OnTheWayUpCounts) {
  Machine machine;
  machine.Write("proc/self/cgroup", "0::/slice/job\n");
  machine.Write("sys/fs/cgroup/slice/memory.max", "268435456\n");
  machine.Write("sys/fs/cgroup/slice/memory.current", "68435456\n");
  machine.Write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  const auto limits = machine.Limits(false);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].bytes, 200'000'000u);
  EXPECT_THAT(limits[0].name, HasSubstr("256MiB"));
  EXPECT_THAT(limits[0].source, HasSubstr("/slice/memory.max"));
}

TEST(PlanMachine, GroupOfVersion1IsRead) {
  Machine machine;
  machine.Write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n");
  machine.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "100000000\n");
  machine.Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000000\n");
  machine.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto limits = machine.Limits(false);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].bytes, 99'000'000u);
}

// A container sees its own group at the mount, under the name that the host gave it.
TEST(PlanMachine, GroupWhoseFolderIsNotThereIsTheMountItself) {
  Machine machine;
  machine.Write("proc/self/cgroup", "0::/docker/0123456789ab\n");
  machine.Write("sys/fs/cgroup/memory.max", "5000000\n");
  const auto limits = machine.Limits(false);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].bytes, 5'000'000u);
}

TEST(PlanMachine, GroupThatUsesMoreThanItsLimitLeavesNothing) {
  Machine machine;
  machine.Write("proc/self/cgroup", "0::/\n");
  machine.Write("sys/fs/cgroup/memory.max", "1000\n");
  machine.Write("sys/fs/cgroup/memory.current", "2000\n");
  ASSERT_EQ(machine.Limits(false).size(), 1u);
  EXPECT_EQ(machine.Limits(false)[0].bytes, 0u);
}

TEST(PlanMachine, AvailableMemoryIsTheKernelsOwnFigure) {
  Machine machine;
  machine.Write("proc/meminfo", "MemTotal:  16384 kB\nMemFree:  100 kB\nMemAvailable:   8192 kB\nBuffers: 1 kB\n");
  const auto limits = machine.Limits(false);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].name, "MemAvailable");
  EXPECT_EQ(limits[0].bytes, 8192u * 1024);
}

TEST(PlanMachine, WhatCannotBeReadIsNoLimit) {
  Machine machine;
  machine.Write("proc/self/cgroup", "nonsense\n0::/\n4:memory\n");
  machine.Write("sys/fs/cgroup/memory.max", "lots\n");
  machine.Write("proc/meminfo", "MemAvailable:\n");
  EXPECT_THAT(machine.Limits(false), IsEmpty());
}

}  // namespace
}  // namespace halfpage
