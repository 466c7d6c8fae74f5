#include "app/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace halfpage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A machine in a folder, on which all is well.
class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    Write("/proc/filesystems", "nodev\thugetlbfs\n");
    Write("/proc/mounts", "nodev /dev/hugepages hugetlbfs rw 0 0\n");
    Write("/proc/meminfo", "MemAvailable: 8000000 kB\n");
    SetHugepages(256, 256);
    Write("/dev/net/tun", "");
    std::filesystem::create_directories(root_ + "/dev/hugepages");
    std::filesystem::create_directories(root_ + "/run/dpdk");
    source_.root = root_;
    source_.runtime_directory = root_ + "/run/dpdk";
    source_.address_space = source_.open_files = UINT64_MAX;
    source_.cpus = {0, 1};
    source_.bpf = source_.network_namespace = [] { return 0; };
    source_.write_folder = [](const std::string&) { return 0; };
    source_.lock_holder = [](const std::string&) { return 0; };
    source_.try_eal = [](bool) { return EalTrial{true, "", 15}; };
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void SetHugepages(int all, int free) {
    const std::string folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
    Write(folder + "nr_hugepages", absl::StrCat(all, "\n"));
    Write(folder + "free_hugepages", absl::StrCat(free, "\n"));
    Write(folder + "resv_hugepages", "0\n");
  }
  // What is said of `subject` beyond "good", with its mend.
  std::string Said(const std::string& subject) {
    std::string text;
    for (const Finding& finding : Diagnose(source_).findings) {
      if (finding.subject != subject || finding.level == Finding::Level::kGood) continue;
      EXPECT_FALSE(finding.mend.empty()) << "nothing is said to mend: " << finding.text;
      absl::StrAppend(&text, finding.text, " | ", finding.mend, "\n");
    }
    return text;
  }

  const std::string root_ = absl::StrCat(testing::TempDir(), "doctor-", getpid());
  DoctorSource source_;
};

TEST_F(DoctorTest, AMachineThatHasAllIsGoodAllOver) {
  const Diagnosis diagnosis = Diagnose(source_);
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_EQ(finding.level, Finding::Level::kGood) << finding.subject << ": " << finding.text;
  }
  EXPECT_TRUE(diagnosis.starts_with_hugepages && diagnosis.starts_without_hugepages);
  EXPECT_THAT(DiagnosisText(diagnosis), HasSubstr("a run can start with hugepages: yes\n"));
}

TEST_F(DoctorTest, HugepagesThatAreNotReservedOrAllInUseAreTold) {
  SetHugepages(0, 0);
  EXPECT_THAT(Said("hugepages"), AllOf(HasSubstr("none reserved"), HasSubstr("/proc/sys/vm/nr_hugepages")));
  SetHugepages(256, 0);
  EXPECT_THAT(Said("hugepages"), HasSubstr("all are in use"));
  std::filesystem::remove_all(root_ + "/sys");
  EXPECT_THAT(Said("hugepages"), HasSubstr("preset: lab"));
}

TEST_F(DoctorTest, NoHugetlbfsNamesTheMount) {
  Write("/proc/mounts", "proc /proc proc rw 0 0\n");
  EXPECT_THAT(Said("hugetlbfs"), AllOf(HasSubstr("not mounted"), HasSubstr("mount -t hugetlbfs")));
  Write("/proc/filesystems", "nodev\ttmpfs\n");
  EXPECT_THAT(Said("hugetlbfs"), HasSubstr("this kernel has no hugetlbfs"));
}

TEST_F(DoctorTest, AnUnprivilegedUserIsToldWhatWorksAndAMountThatIsNotHis) {
  source_.uid = 65534;
  source_.write_folder = [](const std::string& folder) {
    return folder.find("hugepages") == std::string::npos ? 0 : EACCES;
  };
  EXPECT_THAT(Said("user"), AllOf(HasSubstr("uid 65534"), HasSubstr("net_af_packet"), HasSubstr("sudo")));
  EXPECT_THAT(Said("hugetlbfs"), HasSubstr("sudo chown 65534 /dev/hugepages"));
}

TEST_F(DoctorTest, NoTunNamesTheCommandsThatMakeIt) {
  std::filesystem::remove(root_ + "/dev/net/tun");
  EXPECT_THAT(Said("tun"), AllOf(HasSubstr("not there"), HasSubstr("mknod /dev/net/tun c 10 200")));
}

TEST_F(DoctorTest, ARuntimeDirectoryThatIsFullOrUnwritableStopsEveryRun) {
  bool tried = false;
  source_.try_eal = [&tried](bool) { return tried = true, EalTrial{true, "", 15}; };
  source_.write_folder = [](const std::string&) { return ENOSPC; };
  EXPECT_THAT(Said("runtime directory"), AllOf(HasSubstr("is full"), HasSubstr("RUNTIME_DIRECTORY=")));
  source_.write_folder = [](const std::string&) { return EROFS; };
  EXPECT_THAT(Said("runtime directory"), HasSubstr("cannot be written: Read-only file system"));
  const Diagnosis diagnosis = Diagnose(source_);
  EXPECT_FALSE(diagnosis.starts_without_hugepages || diagnosis.starts_with_hugepages);
  EXPECT_FALSE(tried) << "EAL dies of a full runtime directory";
}

TEST_F(DoctorTest, AFilePrefixInUseNamesItsProcess) {
  std::filesystem::create_directories(source_.runtime_directory + "/mine");
  source_.lock_holder = [](const std::string& file) { return file.find("/mine/config") == std::string::npos ? 0 : 77; };
  EXPECT_EQ(Said("file prefix"), "") << "another prefix is no fault";
  source_.file_prefix = "mine";
  EXPECT_THAT(Said("file prefix"), AllOf(HasSubstr("mine is in use by process 77"), HasSubstr("file_prefix=auto")));
  EXPECT_FALSE(Diagnose(source_).starts_without_hugepages);
}

TEST_F(DoctorTest, StaleFilesAreThoseOfOurRunsThatAreNoMore) {
  for (const char* name : {"halfpage-11-aa", "halfpage-22-bb", "halfpage-33-cc", "rte"}) {
    std::filesystem::create_directories(absl::StrCat(source_.runtime_directory, "/", name));
  }
  Write("/dev/hugepages/halfpage-11-aamap_0", "");
  Write("/dev/hugepages/rtemap_0", "");
  Write("/proc/22/comm", "halfpage");
  source_.lock_holder = [](const std::string& file) { return file.find("-33-") == std::string::npos ? 0 : 33; };
  EXPECT_THAT(Diagnose(source_).stale,
              ElementsAre(root_ + "/dev/hugepages/halfpage-11-aamap_0", source_.runtime_directory + "/halfpage-11-aa"));
  EXPECT_THAT(Said("stale files"), HasSubstr("--remove-stale"));
  EXPECT_THAT(Said("DPDK processes"), AllOf(HasSubstr("rte"), Not(HasSubstr("halfpage-11"))));
}

TEST_F(DoctorTest, LimitsOfMemoryAddressesAndFilesAreFaults) {
  Write("/proc/meminfo", "MemAvailable: 1000 kB\n");
  source_.address_space = 1 << 20;
  source_.open_files = 8;
  EXPECT_THAT(Said("memory"), AllOf(HasSubstr("a small run takes"), HasSubstr("ulimit -v"), HasSubstr("ulimit -n")));
}

TEST_F(DoctorTest, WhatTheKernelForbidsSaysWhoNeedsIt) {
  source_.bpf = source_.network_namespace = [] { return EPERM; };
  source_.cpus = {0};
  EXPECT_THAT(Said("bpf(2)"), AllOf(HasSubstr("tools/kernel"), HasSubstr("CAP_BPF")));
  EXPECT_THAT(Said("network namespaces"), HasSubstr("CAP_SYS_ADMIN"));
  EXPECT_THAT(Said("cpus"), HasSubstr("one may be used"));
}

TEST_F(DoctorTest, FullTablesOfHandlersAndPluginsThatEalRefusesAreTold) {
  source_.try_eal = [](bool) { return EalTrial{true, "", 16}; };
  EXPECT_THAT(Said("mempool handlers"), HasSubstr("all 16 slots are taken"));
  Write("/open/plugin.so", "");
  std::filesystem::permissions(root_ + "/open", std::filesystem::perms::all);
  source_.plugin = root_ + "/open/plugin.so";
  EXPECT_THAT(Said("plug-in"), AllOf(HasSubstr("everybody may write"), HasSubstr("meson install")));
}

TEST_F(DoctorTest, AnEalThatDoesNotStartIsQuoted) {
  source_.try_eal = [](bool hugepages) { return hugepages ? EalTrial{false, "no pages", 0} : EalTrial{true, "", 15}; };
  const Diagnosis diagnosis = Diagnose(source_);
  EXPECT_TRUE(diagnosis.starts_without_hugepages);
  EXPECT_FALSE(diagnosis.starts_with_hugepages);
  EXPECT_THAT(Said("EAL"), HasSubstr("with hugepages: no pages"));
}

}  // namespace
}  // namespace halfpage
