// The doctor's questions to this machine.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <rte_mempool.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "app/doctor.h"
#include "app/eal.h"
#include "app/output.h"
#include "app/run.h"
#include "mempool/page_frag.h"

namespace halfpage {
namespace {

uint64_t SoftLimit(int resource) {
  rlimit limit;
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return UINT64_MAX;
  }
  return limit.rlim_cur;
}

// As EAL's eal_create_runtime_dir().
std::string RuntimeFolder() {
  const char* asked = std::getenv("RUNTIME_DIRECTORY");
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (asked != nullptr) return absl::StrCat(asked, "/dpdk");
  if (getuid() == 0) return "/var/run/dpdk";
  return absl::StrCat(xdg != nullptr ? xdg : "/tmp", "/dpdk");
}

int TryBpf() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = attributes.value_size = 4;
  attributes.max_entries = 1;
  const long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes));
  if (fd < 0) return errno;
  close(static_cast<int>(fd));
  return 0;
}

// What `work` gives in a child, 0 to 255.
template <typename Work>
int InChild(const Work& work) {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(work());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int TryNamespace() {
  return InChild([] { return unshare(CLONE_NEWNET) == 0 ? 0 : errno; });
}

int WriteMegabyte(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  const std::string block(64 << 10, 'x');
  int error = 0;
  for (int i = 0; i < 16 && error == 0; ++i) {
    if (write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
      error = errno != 0 ? errno : ENOSPC;
  }
  close(fd);
  unlink(path.c_str());
  return error;
}

int TryFolder(const std::string& folder) {
  errno = 0;
  const bool made = mkdir(folder.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return errno;
  const std::string own = absl::StrCat(folder, "/halfpage-doctor-", getpid());
  if (mkdir(own.c_str(), 0700) != 0) return errno;
  errno = 0;
  const int error = WriteMegabyte(own + "/probe");
  rmdir(own.c_str());
  if (made) rmdir(folder.c_str());
  return error;
}

int LockHolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  const int result = fcntl(fd, F_GETLK, &lock);
  close(fd);
  if (result != 0) return -1;
  return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

// In a child, for EAL starts once in a process. Its log becomes the error.
EalTrial TryEal(bool hugepages) {
  EalTrial trial;
  int log[2];
  if (pipe(log) != 0) return trial;
  const pid_t child = fork();
  if (child == 0) {
    dup2(log[1], STDOUT_FILENO);
    dup2(log[1], STDERR_FILENO);
    close(log[0]);
    EalConfig config;
    config.memory = 64ull << 20;
    config.preset = hugepages ? EalConfig::Preset::kHugepages : EalConfig::Preset::kLab;
    if (hugepages) config.args = {"-m", "2"};
    int handlers = 0;
    {
      const auto eal = Eal::Start(EalArguments(config, 1, AllowedCpus()));
      if (!eal.ok()) _exit(0);
      page_frag_register();
      handlers = static_cast<int>(rte_mempool_ops_table.num_ops);
    }
    _exit(handlers);
  }
  close(log[1]);
  std::string words;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(log[0], buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) words.append(buffer, static_cast<size_t>(n));
  }
  close(log[0]);
  int status = 0;
  waitpid(child, &status, 0);
  trial.starts = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  trial.mempool_handlers = trial.starts ? static_cast<unsigned>(WEXITSTATUS(status)) : 0;
  absl::StripAsciiWhitespace(&words);
  trial.error = words.substr(words.rfind('\n') == std::string::npos ? 0 : words.rfind('\n') + 1);
  return trial;
}

std::string PluginFile() {
  Dl_info info;
  const auto function = reinterpret_cast<void*>(&page_frag_register);
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace

DoctorSource ThisMachine(const std::string& file_prefix) {
  DoctorSource source;
  source.uid = geteuid();
  source.runtime_directory = RuntimeFolder();
  source.file_prefix = file_prefix;
  source.plugin = PluginFile();
  source.address_space = SoftLimit(RLIMIT_AS);
  source.open_files = SoftLimit(RLIMIT_NOFILE);
  source.cpus = AllowedCpus();
  source.bpf = TryBpf;
  source.network_namespace = TryNamespace;
  source.write_folder = TryFolder;
  source.lock_holder = LockHolder;
  source.try_eal = TryEal;
  return source;
}

int RunDoctor(const std::string& file_prefix, bool remove_stale) {
  const Diagnosis diagnosis = Diagnose(ThisMachine(file_prefix));
  std::string text = DiagnosisText(diagnosis);
  bool good = true;
  for (const std::string& path : remove_stale ? diagnosis.stale : std::vector<std::string>()) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    good = good && !error;
    absl::StrAppend(&text, error ? "not removed: " : "removed: ", path, error ? ": " + error.message() : "", "\n");
  }
  if (WriteOut(text) == Written::kFailed || !good) return kExitFailed;
  if (!diagnosis.starts_without_hugepages) return kExitFailed;
  return diagnosis.starts_with_hugepages ? kExitGood : kExitExpectation;
}

}  // namespace halfpage
