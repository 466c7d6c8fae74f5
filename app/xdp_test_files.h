// Files that --xdp-test writes: captures by verdict and a JUnit report.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage {

// pass.pcap, tx.pcap and redirect.pcap: the frames as the program left them, the packet's number as microseconds.
class XdpTestCaptures {
 public:
  // Makes the folder where it is not there. Errors: the system's, naming the file.
  static absl::StatusOr<XdpTestCaptures> Create(const std::string& folder);

  // Frames of other verdicts are left out.
  void Write(XdpAction action, absl::Span<const uint8_t> frame, uint64_t number);
  // Gives the first error that writing met.
  absl::Status Close();

  XdpTestCaptures(XdpTestCaptures&&) noexcept;
  XdpTestCaptures& operator=(XdpTestCaptures&&) noexcept;
  ~XdpTestCaptures();

 private:
  // Hidden, because libpcap's header and the kernel's for BPF name two things alike.
  struct File;
  XdpTestCaptures();
  std::vector<File> files_;  // by verdict
};

struct XdpTestCase {
  std::string name;
  std::string failure;  // empty where it went well
};

// The report as JUnit XML.
std::string JUnitText(const std::string& suite, const std::vector<XdpTestCase>& cases);

}  // namespace halfpage
