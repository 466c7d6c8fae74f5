// --xdp-test: an unmodified XDP object over a capture, without EAL, NIC, kernel or privileges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfpage {

struct XdpTestOptions {
  std::string object;                // the object file
  std::string program;               // its name; empty: the only one
  std::string pcap_in;               // capture, "-" for standard input
  std::vector<std::string> packets;  // hexadecimal bytes, in place of a capture
  std::string out;                   // folder for what passed, was sent back, was redirected
  std::string expect;                // file of expected verdicts
  std::vector<std::string> maps;     // NAME:KEY=VALUE
  std::string maps_file;             // the same, one a line
  std::vector<std::string> routes;   // for bpf_fib_lookup()
  std::string junit;
  uint32_t ingress_ifindex = 1;
  uint32_t rx_queue = 0;
  uint32_t repeat = 1;  // runs of each packet, as BPF_PROG_TEST_RUN's
  bool trace = false;
  bool dump_maps = false;
  bool interpret = false;  // never compile
};

// Runs the test and prints the table of verdicts on standard output. Gives the process's exit code: 0 good, 1 the run
// failed, 2 something given is wrong, 4 a verdict is not the expected one.
int RunXdpTest(const XdpTestOptions& options);

}  // namespace halfpage
