// The prompt: commands from a file, from a terminal, or piped.
#pragma once

#include <functional>

#include "app/prompt/prompt_options.h"
#include "app/topology.h"

namespace halfpage {

struct PromptEnd {
  int code = 0;        // exit code of the first command that failed, unless somebody typed it
  bool ended = false;  // nothing is to follow: `quit`, the input's end, a failure, or a signal
};

// Runs the commands of the file, then, where it is interactive, those of standard input until `quit` or its end. Errors
// are told on standard error with file (or "standard input") and line; without a terminal the first one ends the
// prompt. `look` is called every few milliseconds while it waits. The control thread.
PromptEnd RunPrompt(Topology& topology, const PromptOptions& options, const std::function<void()>& look);

}  // namespace halfpage
