#include "tests/support/eal_environment.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace halfpage {

EalEnvironment::EalEnvironment(EalOptions options)
    : options_(std::move(options)), prefix_(absl::StrCat("halfpage_test_", getpid())) {}

void EalEnvironment::SetUp() {
  args_ = {"halfpage_test", "--no-pci", "--no-telemetry", absl::StrCat("--file-prefix=", prefix_)};
  if (options_.hugepages) {
    args_.push_back("--in-memory");
  } else {
    args_.insert(args_.end(), {"--no-huge", "--no-shconf"});
  }
  args_.insert(args_.end(), {"-m", absl::StrCat(options_.memory_mib)});
  args_.insert(args_.end(), options_.extra_args.begin(), options_.extra_args.end());

  std::vector<char*> argv;  // EAL permutes them
  for (std::string& arg : args_) argv.push_back(arg.data());
  argv.push_back(nullptr);
  up_ = rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data()) >= 0;
  ASSERT_TRUE(up_) << "EAL did not start: " << rte_strerror(rte_errno) << "; arguments: " << absl::StrJoin(args_, " ");
}

void EalEnvironment::TearDown() {
  if (!up_) return;
  const std::filesystem::path directory = rte_eal_get_runtime_dir();
  EXPECT_EQ(rte_eal_cleanup(), 0);
  // EAL leaves `config` and `fbarray_*` behind.
  std::error_code error;
  if (directory.filename() == prefix_) std::filesystem::remove_all(directory, error);
  EXPECT_FALSE(error) << directory << ": " << error.message();
}

}  // namespace halfpage
