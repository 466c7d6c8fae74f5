// `--plan`: from a configuration to its memory plan on standard output.
#pragma once

#include <string>

#include "app/config.h"

namespace halfpage {

// Prints the plan of a loaded configuration whose only fault may be that it does not fit, as text and, where `json`
// names a file, as JSON; in place of the text where that is "-". Gives the exit code: 0 it fits into EAL's memory and
// into the machine's, 2 it does not (the machine's reason is told on standard error), 1 the plan could not be written.
int RunPlan(const LoadedConfig& loaded, const std::string& json);

}  // namespace halfpage
