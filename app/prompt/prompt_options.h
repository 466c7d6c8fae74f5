// What the command line says of the prompt.
#pragma once

#include <string>

namespace halfpage {

struct PromptOptions {
  bool interactive = false;
  bool auto_start = false;   // before the first command
  bool keep_going = false;   // after a command that failed, where nobody sits in front
  std::string metrics;       // address and port for Prometheus; empty: none
  std::string cmdline_file;  // its commands come first; empty: none
};

}  // namespace halfpage
