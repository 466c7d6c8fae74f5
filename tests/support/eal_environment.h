// EAL for one test binary, without root, hugepages, NIC or traces on the machine.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace halfpage {

struct EalOptions {
  uint32_t memory_mib = 128;
  bool hugepages = false;               // kernel's hugepages by --in-memory in place of --no-huge
  std::vector<std::string> extra_args;  // appended as they are, as in {"-d", "libx.so"} or {"-l", "0,1"}
};

// Starts EAL before the first test and ends it after the last. A process can do so once, so a test binary has one,
// added in its main():
//
//   testing::InitGoogleTest(&argc, argv);
//   testing::AddGlobalTestEnvironment(new halfpage::EalEnvironment({.memory_mib = 256}));
//   return RUN_ALL_TESTS();
//
// The file prefix holds the process id, so that binaries run beside each other; its runtime directory is removed. The
// thread that runs the tests is the main lcore. No fork once it is up, hence no death tests in such a binary.
class EalEnvironment : public testing::Environment {
 public:
  explicit EalEnvironment(EalOptions options = {});

  // Fails the whole run, with rte_errno's words, where EAL does not start.
  void SetUp() override;
  void TearDown() override;

 private:
  EalOptions options_;
  std::string prefix_;
  std::vector<std::string> args_;  // EAL keeps pointers into them
  bool up_ = false;
};

}  // namespace halfpage
