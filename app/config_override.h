// Values from the command line, put into the tree before anything is read from it.
#pragma once

#include "app/config.h"
#include "app/config_faults.h"
#include "app/config_node.h"

namespace halfpage {

// `[*]` in a path stands for every item of one of the file's lists, as in pools[*].size.
// Puts `setting.value` at `setting.path` of the tree, in place of what is there (a repeated key included). Maps on
// the way that the file leaves out are made, list items are not. What cannot be placed is a fault with the option's
// name; whether the key exists and the value suits it shows when the tree is read.
void ApplyOverride(const ConfigOverride& setting, ConfigNode& root, FaultList& faults);

}  // namespace halfpage
