#include "app/doctor.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/config_units.h"
#include "app/nearest_name.h"
#include "app/plan_machine.h"

namespace halfpage {
namespace {

using Level = Finding::Level;
namespace fs = std::filesystem;

constexpr uint64_t kLeastMemory = 128ull << 20;  // that EAL, 64 MiB of buffers and the program take
constexpr uint64_t kLeastAddresses = 1ull << 30;
constexpr uint64_t kLeastFiles = 64;
constexpr unsigned kMempoolHandlers = 16;  // RTE_MEMPOOL_MAX_OPS_IDX
constexpr char kOurPrefix[] = "halfpage-";

class Doctor {
 public:
  explicit Doctor(const DoctorSource& source) : source_(source) {}

  Diagnosis Examine() {
    User();
    Memory();
    Hugepages();
    HugetlbfsMounts();
    Cpus();
    RuntimeDirectory();
    Prefixes();
    Plugin();
    Bpf();
    Namespaces();
    Tun();
    Starts();
    return std::move(diagnosis_);
  }

 private:
  void Say(Level level, absl::string_view subject, std::string text, std::string mend = "") {
    diagnosis_.findings.push_back({level, std::string(subject), std::move(text), std::move(mend)});
  }

  std::string Read(const std::string& path) const {
    std::ifstream file(source_.root + path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void User() {
    if (source_.uid == 0) return Say(Level::kGood, "user", "root");
    Say(Level::kNote, "user",
        absl::StrCat("uid ", source_.uid,
                     ", not root: veth pairs, captures and XDP objects work; ports on kernel interfaces "
                     "(net_af_packet, net_tap, net_af_xdp) and NICs need privileges"),
        "run it with sudo where such ports are wanted");
  }

  void Memory() {
    for (const MemoryLimit& limit : ReadMemoryLimits(false, source_.root)) {
      const std::string text = absl::StrCat(limit.name, ": ", limit.bytes >> 20, " MiB left");
      if (limit.bytes >= kLeastMemory) {
        Say(Level::kGood, "memory", text);
      } else {
        Say(Level::kFault, "memory", absl::StrCat(text, ", a small run takes ", FormatBytes(kLeastMemory)),
            absl::StrCat("raise the limit in ", limit.source, " or end other programs"));
      }
    }
    if (source_.address_space < kLeastAddresses) {
      Say(Level::kFault, "memory",
          absl::StrCat("the limit of addresses is ", FormatBytes(source_.address_space), ", EAL sets aside more"),
          "ulimit -v unlimited");
    }
    if (source_.open_files < kLeastFiles) {
      Say(Level::kFault, "memory", absl::StrCat(source_.open_files, " files may be open at once"), "ulimit -n 1024");
    }
  }

  void Hugepages() {
    const std::string mend = "echo 256 | sudo tee /proc/sys/vm/nr_hugepages";
    if (!fs::exists(source_.root + "/sys/kernel/mm/hugepages")) {
      return Say(Level::kNote, "hugepages", "this kernel shows none", "use eal: {preset: lab}, which needs none");
    }
    for (const MemoryLimit& limit : ReadMemoryLimits(true, source_.root)) {
      if (limit.bytes > 0) {
        Say(Level::kGood, "hugepages", absl::StrCat(limit.name, ": ", FormatBytes(limit.bytes)));
      } else {
        Say(Level::kNote, "hugepages",
            absl::StrCat(limit.name, ": none", limit.name == "free hugepages" ? " reserved" : "; all are in use"),
            absl::StrCat(mend, "   (or eal: {preset: lab}, which needs none)"));
      }
    }
  }

  void HugetlbfsMounts() {
    if (!absl::StrContains(Read("/proc/filesystems"), "hugetlbfs")) {
      return Say(Level::kNote, "hugetlbfs", "this kernel has no hugetlbfs, so there are no hugepages for EAL",
                 "use eal: {preset: lab}");
    }
    std::istringstream mounts(Read("/proc/mounts"));
    std::string line;
    bool found = false;
    while (std::getline(mounts, line)) {
      std::istringstream words(line);
      std::string device;
      std::string folder;
      std::string type;
      if (!(words >> device >> folder >> type) || type != "hugetlbfs") continue;
      found = true;
      hugetlbfs_.push_back(folder);
      const bool writable = source_.uid == 0 || source_.write_folder(source_.root + folder) == 0;
      if (writable) {
        Say(Level::kGood, "hugetlbfs", absl::StrCat("mounted on ", folder));
      } else {
        Say(Level::kNote, "hugetlbfs",
            absl::StrCat(folder, " is not writable for uid ", source_.uid, "; preset hugepages does not need it"),
            absl::StrCat("sudo chown ", source_.uid, " ", folder, "   (for EAL without --in-memory)"));
      }
    }
    if (found) return;
    Say(Level::kNote, "hugetlbfs",
        "not mounted: eal: {preset: hugepages} works all the same (--in-memory), other DPDK programs do not",
        "sudo mkdir -p /dev/hugepages && sudo mount -t hugetlbfs nodev /dev/hugepages");
  }

  void Cpus() {
    const size_t count = source_.cpus.size();
    if (count > 1)
      return Say(Level::kGood, "cpus", absl::StrCat(count, " may be used: ", absl::StrJoin(source_.cpus, ",")));
    Say(Level::kNote, "cpus", "one may be used: all lcores share it, so rates say little",
        "taskset, or a cpuset with more");
  }

  void RuntimeDirectory() {
    const std::string& folder = source_.runtime_directory;
    const int error = source_.write_folder(folder);
    if (error == 0) return Say(Level::kGood, "runtime directory", absl::StrCat(folder, " can be written"));
    runtime_ok_ = false;
    const std::string mend = "RUNTIME_DIRECTORY=$(mktemp -d) halfpage ...   (for this process alone)";
    if (error == ENOSPC || error == EDQUOT) {
      return Say(Level::kFault, "runtime directory", absl::StrCat(folder, " is full: EAL keeps some files there"),
                 absl::StrCat("df ", folder, "; remove what is not needed, or ", mend));
    }
    Say(Level::kFault, "runtime directory", absl::StrCat(folder, " cannot be written: ", std::strerror(error)),
        absl::StrCat(source_.uid == 0 ? "mount it writable, or " : "set XDG_RUNTIME_DIR to a folder of yours, or ",
                     mend));
  }

  // The process whose number is in a prefix of ours ("halfpage-123-4567").
  bool Lives(absl::string_view name) const {
    name.remove_prefix(sizeof(kOurPrefix) - 1);
    uint32_t pid = 0;
    return absl::SimpleAtoi(name.substr(0, name.find('-')), &pid) &&
           fs::exists(absl::StrCat(source_.root, "/proc/", pid));
  }

  void Prefixes() {
    std::error_code error;
    std::vector<std::string> running;
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(source_.runtime_directory, error)) {
      const std::string name = entry.path().filename().string();
      const int holder = source_.lock_holder((entry.path() / "config").string());
      const bool ours = absl::StartsWith(name, kOurPrefix);
      if (holder > 0 || (ours && Lives(name))) {
        running.push_back(holder > 0 ? absl::StrCat(name, " (process ", holder, ")") : name);
      } else if (ours) {
        diagnosis_.stale.push_back(entry.path().string());
      } else {
        left.push_back(name);
      }
      if (holder > 0 && name == source_.file_prefix) PrefixInUse(name, holder);
    }
    for (const std::string& mount : hugetlbfs_) {
      for (const auto& entry : fs::directory_iterator(source_.root + mount, error)) {
        const std::string name = entry.path().filename().string();
        if (absl::StartsWith(name, kOurPrefix) && !Lives(name)) diagnosis_.stale.push_back(entry.path().string());
      }
    }
    std::sort(diagnosis_.stale.begin(), diagnosis_.stale.end());
    if (!running.empty()) Say(Level::kGood, "DPDK processes", absl::StrCat("running: ", absl::StrJoin(running, ", ")));
    if (running.empty()) Say(Level::kGood, "DPDK processes", "none");
    if (!left.empty()) {
      Say(Level::kNote, "DPDK processes", absl::StrCat("left by others, not ours to judge: ", ListNames(left)),
          absl::StrCat("look at ", source_.runtime_directory));
    }
    if (diagnosis_.stale.empty()) return Say(Level::kGood, "stale files", "none of ours");
    Say(Level::kNote, "stale files", absl::StrJoin(diagnosis_.stale, ", "), "halfpage --doctor --remove-stale");
  }

  void PrefixInUse(const std::string& name, int holder) {
    prefix_ok_ = false;
    Say(Level::kFault, "file prefix", absl::StrCat(name, " is in use by process ", holder),
        "leave eal.file_prefix at auto (--set eal.file_prefix=auto), which is unique to each run, or end that process");
  }

  void Plugin() {
    if (source_.plugin.empty()) return Say(Level::kGood, "plug-in", "page_frag is part of this program");
    std::error_code error;
    for (fs::path path = fs::canonical(source_.plugin, error).parent_path(); !error && path.has_relative_path();
         path = path.parent_path()) {
      struct stat status;
      if (stat(path.c_str(), &status) != 0 || (status.st_mode & S_IWOTH) == 0) continue;
      return Say(Level::kNote, "plug-in",
                 absl::StrCat(source_.plugin, " is below ", path.string(),
                              ", which everybody may write: other DPDK programs refuse it with -d"),
                 "meson install, or copy it below /usr/local/lib");
    }
    Say(Level::kGood, "plug-in", absl::StrCat(source_.plugin, " is loaded here, and can be by other programs with -d"));
  }

  void Bpf() {
    const int error = source_.bpf();
    if (error == 0) return Say(Level::kGood, "bpf(2)", "works");
    Say(Level::kNote, "bpf(2)",
        absl::StrCat(std::strerror(error), ": only comparisons with the kernel (tools/kernel, some tests) need it"),
        error == EPERM ? "run them as root with CAP_BPF" : "a kernel with CONFIG_BPF_SYSCALL");
  }

  void Namespaces() {
    const int error = source_.network_namespace();
    if (error == 0) return Say(Level::kGood, "network namespaces", "can be made");
    Say(Level::kNote, "network namespaces",
        absl::StrCat(std::strerror(error), ": only tests and benchmarks on kernel interfaces need them"),
        error == EPERM ? "run them as root with CAP_SYS_ADMIN" : "a kernel with CONFIG_NET_NS");
  }

  void Tun() {
    const std::string path = source_.root + "/dev/net/tun";
    if (!fs::exists(path)) {
      return Say(Level::kNote, "tun", "/dev/net/tun is not there: net_tap ports cannot be made",
                 "sudo modprobe tun; sudo mkdir -p /dev/net && sudo mknod /dev/net/tun c 10 200");
    }
    std::fstream file(path, std::ios::in | std::ios::out);
    if (file.is_open()) return Say(Level::kGood, "tun", "/dev/net/tun can be opened");
    Say(Level::kNote, "tun", "/dev/net/tun cannot be opened by this user: net_tap ports cannot be made",
        "sudo chmod 666 /dev/net/tun, or run it with sudo");
  }

  void Starts() {
    const EalTrial lab = runtime_ok_ && prefix_ok_ ? source_.try_eal(false) : EalTrial();
    const EalTrial huge = runtime_ok_ && prefix_ok_ ? source_.try_eal(true) : EalTrial();
    diagnosis_.starts_without_hugepages = lab.starts;
    diagnosis_.starts_with_hugepages = huge.starts;
    if (!runtime_ok_ || !prefix_ok_) return;
    if (!lab.starts) Say(Level::kFault, "EAL", absl::StrCat("does not start without hugepages: ", lab.error));
    if (!huge.starts) {
      Say(Level::kNote, "EAL", absl::StrCat("does not start with hugepages: ", huge.error),
          "see hugepages above, or use eal: {preset: lab}");
    }
    const unsigned handlers = std::max(lab.mempool_handlers, huge.mempool_handlers);
    if (handlers == 0) return;
    if (handlers < kMempoolHandlers) {
      return Say(Level::kGood, "mempool handlers",
                 absl::StrCat(handlers, " of ", kMempoolHandlers, " slots taken, page_frag among them"));
    }
    Say(Level::kNote, "mempool handlers",
        absl::StrCat("all ", kMempoolHandlers,
                     " slots are taken: a further plug-in's handler is dropped without a word"),
        "load fewer drivers: EAL's -d FOLDER with those that are needed");
  }

  const DoctorSource& source_;
  Diagnosis diagnosis_;
  std::vector<std::string> hugetlbfs_;
  bool runtime_ok_ = true;
  bool prefix_ok_ = true;
};

}  // namespace

Diagnosis Diagnose(const DoctorSource& source) {
  return Doctor(source).Examine();
}

std::string DiagnosisText(const Diagnosis& diagnosis) {
  constexpr const char* kLevels[] = {"good", "note", "FAULT"};
  std::string text;
  for (const Finding& finding : diagnosis.findings) {
    absl::StrAppendFormat(&text, "%-5s  %s: %s\n", kLevels[static_cast<size_t>(finding.level)], finding.subject,
                          finding.text);
    if (!finding.mend.empty()) absl::StrAppend(&text, "       mend: ", finding.mend, "\n");
  }
  absl::StrAppend(&text, "a run can start without hugepages: ", diagnosis.starts_without_hugepages ? "yes" : "no",
                  "\na run can start with hugepages: ", diagnosis.starts_with_hugepages ? "yes" : "no", "\n");
  return text;
}

}  // namespace halfpage
