// Lines to commands: the table of commands.h as rte_cmdline wants it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "app/prompt/commands.h"

struct cmdline;

namespace halfpage {

class Parser {
 public:
  // Makes DPDK's parser from the table. `session` outlives it. ResourceExhausted without memory.
  static absl::StatusOr<std::unique_ptr<Parser>> Create(Session& session);
  ~Parser();

  // Runs the command in `line`; nothing for a blank line or a comment (#). Errors: InvalidArgument for what is no
  // command, with those that are nearest; the command's own.
  absl::Status Run(const std::string& line);

  // As rte_cmdline's completion.
  int Complete(const char* line, int* state, char* to, unsigned size);

 private:
  struct Instructions;
  explicit Parser(Session& session);
  absl::Status Unknown(const std::string& line, const Words& words, int result) const;

  Session& session_;
  std::unique_ptr<Instructions> instructions_;
  cmdline* cmdline_ = nullptr;
  const Command* found_ = nullptr;  // by the last parse
};

}  // namespace halfpage
