// Checks that need more than one key: references, sizes against each other, files.
//
// Each looks at a Config in which every value is in its own range, and adds faults and warnings. What the reader
// already found fault with is left alone, so that one mistake makes one message.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "app/config.h"
#include "app/config_faults.h"

namespace halfpage {

// Fills in what a file may leave to us: the only pool as a source's pool, names of rules, absolute paths of captures
// and objects (from `folder`), for `workers: auto` the one worker that does everything, no cache for an exact pool
// whose file says nothing of it, and the sizes that `auto` stands for.
void FillIn(const std::string& folder, const FaultList& faults, Config& config);

// All of the checks below but CheckMemory().
void CheckConfig(const Config& config, FaultList& faults);

// Names that are twice, references that lead nowhere, things that nobody uses.
void CheckNames(const Config& config, FaultList& faults);
// Every end polled by one worker, every source driven by one.
void CheckWorkers(const Config& config, FaultList& faults);
// Rules and ports that can never match.
void CheckRules(const Config& config, FaultList& faults);
// Redirect maps, and what leads into them.
void CheckMaps(const Config& config, FaultList& faults);
// Of programs of objects, whether they take chained frames: their section says it.
void FillInObjects(Config& config);
// Objects, their programs and the contents of their maps. Reads every object, and makes its maps for as long as it
// looks.
void CheckObjects(const Config& config, FaultList& faults);
// What each source takes its buffers from: pools or classes, whole rooms or exact ones.
void CheckBuffers(const Config& config, FaultList& faults);
// Caches, pages and sizes of each pool.
void CheckPools(const Config& config, FaultList& faults);
// All pools together against EAL's memory. After the others: it stays silent where a pool has a fault of its own.
void CheckMemory(const Config& config, FaultList& faults);
// Real ports: what their drivers will want of pools, MTUs and queues, as far as the device string tells.
void CheckPorts(const Config& config, FaultList& faults);
// Frames against MTUs, captures against what libpcap can read. Reads every capture.
void CheckFrames(const Config& config, FaultList& faults);
// EAL arguments that contradict the preset.
void CheckEal(const Config& config, FaultList& faults);
// Files that would be written.
void CheckOutputs(const Config& config, FaultList& faults);

// Where an end is in `Config::veth`.
struct EndPlace {
  size_t pair = 0;
  size_t end = 0;  // 0 or 1
};

// Every end by its name; of two with one name, the first.
std::map<std::string, EndPlace> EndsByName(const Config& config);

}  // namespace halfpage
