// The compiler's module: a program through LLVM's C interface to machine code, with the interpreter's checks.
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <cstdio>

#include "xdp_emul/bpf/llvm/function_compiler.h"

namespace halfpage::bpf {
namespace {

bool Tell(LLVMErrorRef problem, char* error, size_t size) {
  if (problem == nullptr) return true;
  char* text = LLVMGetErrorMessage(problem);
  snprintf(error, size, "%s", text);
  LLVMDisposeErrorMessage(text);
  return false;
}

// The machine's own instructions; code is compiled where it runs.
LLVMTargetMachineRef ThisMachine() {
  char* triple = LLVMGetDefaultTargetTriple();
  char* cpu = LLVMGetHostCPUName();
  char* features = LLVMGetHostCPUFeatures();
  LLVMTargetRef target = nullptr;
  LLVMTargetMachineRef machine = nullptr;
  if (LLVMGetTargetFromTriple(triple, &target, nullptr) == 0) {
    machine = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocDefault,
                                      LLVMCodeModelJITDefault);
  }
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  return machine;
}

void Discard(void* jit) {
  LLVMConsumeError(LLVMOrcDisposeLLJIT(static_cast<LLVMOrcLLJITRef>(jit)));
}

// Makes the program's module, checked and optimised; null after writing a reason.
LLVMOrcThreadSafeModuleRef MakeModule(const Program& program, const CompilerServices& services,
                                      const FrameLayout* layout, LLVMOrcLLJITRef jit, char* error, size_t size) {
  LLVMOrcThreadSafeContextRef shared = LLVMOrcCreateNewThreadSafeContext();
  LLVMContextRef context = LLVMOrcThreadSafeContextGetContext(shared);
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("xdp", context);
  LLVMSetTarget(module, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(module, LLVMOrcLLJITGetDataLayoutStr(jit));
  CompileFunctions(program, services, context, module);
  if (layout != nullptr) CompileBurst(program, *layout, context, module);
  char* broken = nullptr;
  bool good = LLVMVerifyModule(module, LLVMReturnStatusAction, &broken) == 0;
  if (good) {
    LLVMTargetMachineRef machine = ThisMachine();
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    good = Tell(LLVMRunPasses(module, "default<O2>", machine, options), error, size);
    LLVMDisposePassBuilderOptions(options);
    LLVMDisposeTargetMachine(machine);
  } else {
    snprintf(error, size, "the compiler does not take it: %s", broken);
  }
  LLVMDisposeMessage(broken);
  LLVMOrcThreadSafeModuleRef whole = LLVMOrcCreateNewThreadSafeModule(module, shared);
  LLVMOrcDisposeThreadSafeContext(shared);  // the module shares it
  if (good) return whole;
  LLVMOrcDisposeThreadSafeModule(whole);
  return nullptr;
}

// Brings the program to machine code in `jit`; nothing, after writing a reason, where that fails.
CompiledCode CompileIn(LLVMOrcLLJITRef jit, const Program& program, const CompilerServices& services,
                       const FrameLayout* layout, char* error, size_t size) {
  LLVMOrcJITDylibRef main = LLVMOrcLLJITGetMainJITDylib(jit);
  // memset() and the like, which the compiler puts in by itself.
  LLVMOrcDefinitionGeneratorRef process = nullptr;
  const char prefix = LLVMOrcLLJITGetGlobalPrefix(jit);
  if (!Tell(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, prefix, nullptr, nullptr), error, size)) {
    return {};
  }
  LLVMOrcJITDylibAddGenerator(main, process);
  LLVMOrcThreadSafeModuleRef module = MakeModule(program, services, layout, jit, error, size);
  if (module == nullptr || !Tell(LLVMOrcLLJITAddLLVMIRModule(jit, main, module), error, size)) return {};
  LLVMOrcExecutorAddress run = 0;
  LLVMOrcExecutorAddress burst = 0;
  if (!Tell(LLVMOrcLLJITLookup(jit, &run, "run"), error, size)) return {};
  if (layout != nullptr && !Tell(LLVMOrcLLJITLookup(jit, &burst, "run_burst"), error, size)) return {};
  return {reinterpret_cast<CompiledFunction>(run), reinterpret_cast<CompiledBurst>(burst), jit, Discard};
}

}  // namespace
}  // namespace halfpage::bpf

extern "C" halfpage::bpf::CompiledCode halfpage_bpf_compile(const halfpage::bpf::Program& program,
                                                            const halfpage::bpf::CompilerServices& services,
                                                            const halfpage::bpf::FrameLayout* layout, char* error,
                                                            size_t size) {
  using namespace halfpage::bpf;
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  LLVMOrcLLJITRef jit = nullptr;
  if (!Tell(LLVMOrcCreateLLJIT(&jit, nullptr), error, size)) return {};
  const CompiledCode code = CompileIn(jit, program, services, layout, error, size);
  if (code.run == nullptr) Discard(jit);
  return code;
}
