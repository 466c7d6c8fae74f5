// --doctor: what this machine has of what runs need, what not, and the command that mends it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halfpage {

// What a started EAL says of itself.
struct EalTrial {
  bool starts = false;
  std::string error;              // last words of one that does not
  unsigned mempool_handlers = 0;  // in its table
};

// Where the doctor looks. A test puts a folder and answers of its own here.
struct DoctorSource {
  std::string root;  // stands in front of /proc, /sys, /dev; empty on a real machine
  unsigned uid = 0;
  std::string runtime_directory;  // EAL's, one folder in it for each file prefix
  std::string file_prefix;        // that a run is to have; empty: one of its own
  std::string plugin;             // file of the mempool handler
  uint64_t address_space = 0;     // RLIMIT_AS in bytes, UINT64_MAX: none
  uint64_t open_files = 0;        // RLIMIT_NOFILE
  std::vector<int> cpus;
  // 0 or an errno:
  std::function<int()> bpf;                             // bpf(2) makes a map
  std::function<int()> network_namespace;               // a child gets one
  std::function<int(const std::string&)> write_folder;  // a folder with a file of 1 MiB can be made in there
  // The process that holds a lock on this file, 0 for none, -1 where it cannot be looked at.
  std::function<int(const std::string&)> lock_holder;
  // Starts EAL in a child, with hugepages or without.
  std::function<EalTrial(bool hugepages)> try_eal;
};

struct Finding {
  enum class Level : uint8_t { kGood, kNote, kFault };
  Level level = Level::kGood;
  std::string subject;  // "hugepages"
  std::string text;     // what there is, or what is wrong
  std::string mend;     // command or setting that changes it; empty: nothing to do
};

struct Diagnosis {
  std::vector<Finding> findings;
  bool starts_without_hugepages = false;
  bool starts_with_hugepages = false;
  std::vector<std::string> stale;  // files and folders of runs of ours that are no more
};

// Looks at everything; changes nothing but for folders that it makes and removes again to see whether that works.
Diagnosis Diagnose(const DoctorSource& source);

std::string DiagnosisText(const Diagnosis& diagnosis);

// This machine and process; `file_prefix` as above. Main thread, before EAL is started.
DoctorSource ThisMachine(const std::string& file_prefix);

// Prints the diagnosis; with `remove_stale` what is stale goes. Gives the exit code: 0 runs can start with and without
// hugepages, 4 only without, 1 not at all.
int RunDoctor(const std::string& file_prefix, bool remove_stale);

}  // namespace halfpage
