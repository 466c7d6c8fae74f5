// Verdicts that a test expects, as a file says them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "xdp_emul/xdp_action.h"

namespace halfpage {

// Lines of "WHICH: VERDICT", the first that fits a packet decides; `#` begins a comment. WHICH is a packet's number
// from 1
// (`3`), a range (`4-9`), `any`, or a filter as tcpdump takes it (`udp port 9`). Packets that no line fits may get any
// verdict.
class XdpExpectations {
 public:
  XdpExpectations();
  XdpExpectations(XdpExpectations&&) noexcept;
  XdpExpectations& operator=(XdpExpectations&&) noexcept;
  ~XdpExpectations();

  // Errors: InvalidArgument with file, line, what is wrong and how it is written; NotFound for the file.
  static absl::StatusOr<XdpExpectations> Read(const std::string& path);

  struct Expected {
    XdpAction verdict;
    std::string line;  // "expect.txt:3"
  };
  // Null where nothing is said of packet `number` (from 1). `frame`: its bytes before the program ran.
  const Expected* Find(uint64_t number, absl::Span<const uint8_t> frame) const;

 private:
  struct Line;
  std::vector<Line> lines_;
};

}  // namespace halfpage
