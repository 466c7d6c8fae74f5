#include "xdp_emul/bpf/compile.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "xdp_emul/bpf/interpreter.h"

namespace halfpage::bpf {
namespace {

constexpr char kModule[] = "libhalfpage_bpf_llvm.so";

void Fail(RunState* state, uint32_t kind, uint32_t instruction, uint64_t address, uint64_t size) {
  if (state->Failed()) {
    // By a helper, which does not know where it was called.
    if (state->fault.instruction == Fault::kNowhere) state->fault.instruction = instruction;
    return;
  }
  state->Fail(static_cast<FaultKind>(kind), address, size);
  state->fault.instruction = instruction;
}

uint64_t LoadAny(RunState* state, const Instruction* insn, uint32_t instruction, uint64_t address) {
  uint64_t value = 0;
  if (!LoadThroughAny(state, *insn, address, &value)) state->fault.instruction = instruction;
  return value;
}

bool MayWriteAny(RunState* state, const Instruction* insn, uint32_t instruction, uint64_t address) {
  if (CheckAccess(state, *insn, address, AccessBytes(insn->code), true)) return true;
  state->fault.instruction = instruction;
  return false;
}

bool Arguments(RunState* state, const Instruction* insn, uint32_t instruction, const uint64_t* registers) {
  if (CheckArguments(state, insn, registers)) return true;
  state->fault.instruction = instruction;
  return false;
}

uint64_t RunTail(const Program* target, RunState* state) {
  return target->RunTail(state);
}

constexpr CompilerServices kServices = {FindHelper, Fail, LoadAny, MayWriteAny, TailTarget, RunTail, Arguments};

// Beside the program in a build, under its library folder once installed.
void* OpenModule(std::string* reason) {
  char exe[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe));
  const std::string path(exe, length > 0 ? static_cast<size_t>(length) : 0);
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const std::string& place :
       {absl::StrCat(folder, "/../xdp_emul/bpf/"), absl::StrCat(folder, "/../../xdp_emul/bpf/"),
        std::string(HALFPAGE_MODULE_FOLDER "/")}) {
    void* module = dlopen(absl::StrCat(place, kModule).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) return module;
    *reason = dlerror();
  }
  return nullptr;
}

}  // namespace

absl::Status Compile(Program* program, const FrameLayout* layout) {
  std::string reason;
  void* module = OpenModule(&reason);
  if (module == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no compiler: ", reason, "; build with -Dbpf_jit=enabled and llvm-14-dev"));
  }
  const auto compile = reinterpret_cast<CompilerFunction>(dlsym(module, "halfpage_bpf_compile"));
  if (compile == nullptr)
    return absl::UnavailableError(absl::StrCat(kModule, " is not of this build; install both together"));
  char error[256] = "";
  if (program->reshapes() || program->holds()) layout = nullptr;
  const CompiledCode code = compile(*program, kServices, layout, error, sizeof(error));
  if (code.run == nullptr) return absl::UnavailableError(absl::StrCat("program ", program->name(), ": ", error));
  program->SetCompiled(code);
  for (const std::unique_ptr<Program>& target : program->maps().programs()) {
    if (target->compiled()) continue;
    const CompiledCode target_code = compile(*target, kServices, nullptr, error, sizeof(error));
    if (target_code.run != nullptr) target->SetCompiled(target_code);
  }
  return absl::OkStatus();
}

}  // namespace halfpage::bpf
