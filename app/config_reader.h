// Fills a Config from a tree of texts.
#pragma once

#include "app/config.h"
#include "app/config_faults.h"
#include "app/config_node.h"

namespace halfpage {

// Reads every key that `root` has into `config` and notes where each stands. Every key that is unknown, repeated,
// missing, without a value, of the wrong kind, out of its range or without a meaning becomes a fault; what it would
// have set keeps its default.
void ReadConfig(const ConfigNode& root, Config& config, FaultList& faults);

}  // namespace halfpage
