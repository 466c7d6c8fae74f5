#include "xdp_emul/bpf/decode.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace halfpage::bpf {
namespace {

constexpr int kDeepestCalls = kMostFrames;
constexpr char kBuildAgain[] = "build the object again with clang -O2 -g -target bpf";
constexpr char kNoKernel[] = "declare it __ksym __weak, build with -g and ask whether it is there, or do without it";

class Decoder {
 public:
  Decoder(const ProgramCode& program, const Object& object) : program_(program), object_(object) {}

  absl::StatusOr<Image> Run() {
    const std::vector<bpf_insn>& code = program_.code;
    if (code.empty())
      return absl::InvalidArgumentError(
          absl::StrFormat("program %s is empty; let its function return a verdict", program_.name));
    if (code.size() > kMostInstructions) {
      return absl::InvalidArgumentError(
          absl::StrFormat("program %s has %d instructions, more than the %d that are analysed; go on in another "
                          "program by bpf_tail_call()",
                          program_.name, code.size(), kMostInstructions));
    }
    image_.name = program_.name;
    image_.behind_devmap = program_.hook == ProgramHook::kDevmap;
    image_.raw = code;
    image_.code.resize(code.size());
    for (at_ = 0; at_ < code.size(); ++at_) {
      const absl::Status status = DecodeOne(code[at_]);
      if (!status.ok()) return status;
    }
    absl::Status status = FindFunctions();
    if (status.ok()) status = CheckJumps();
    if (status.ok()) status = CheckCalls();
    if (!status.ok()) return status;
    return std::move(image_);
  }

 private:
  absl::Status Fault(uint32_t index, absl::string_view what, absl::string_view mend) const {
    return absl::InvalidArgumentError(
        absl::StrFormat("program %s: instruction %d: %s; %s", program_.name, index, what, mend));
  }
  absl::Status WritesFrame() const {
    return Fault(at_, "r10 is the frame pointer and cannot be written", "copy it into another register first");
  }
  absl::Status Unknown(const bpf_insn& raw) const {
    return Fault(at_,
                 absl::StrFormat("opcode 0x%02x (dst r%d, src r%d, off %d, imm %d) does not exist", raw.code,
                                 raw.dst_reg, raw.src_reg, raw.off, raw.imm),
                 kBuildAgain);
  }

  absl::Status DecodeOne(const bpf_insn& raw) {
    Instruction& insn = image_.code[at_];
    insn.code = raw.code;
    insn.dst = raw.dst_reg;
    insn.src = raw.src_reg;
    insn.off = raw.off;
    insn.imm = raw.imm;
    if (raw.dst_reg > BPF_REG_10 || (raw.src_reg > BPF_REG_10 && raw.code != (BPF_LD | BPF_IMM | BPF_DW))) {
      return Fault(
          at_,
          absl::StrFormat("register r%d does not exist; there are r0 to r10", std::max<int>(raw.dst_reg, raw.src_reg)),
          kBuildAgain);
    }
    switch (BPF_CLASS(raw.code)) {
      case BPF_ALU:
      case BPF_ALU64:
        return DecodeArithmetic(raw);
      case BPF_JMP:
      case BPF_JMP32:
        return DecodeJump(raw, insn);
      case BPF_LDX:
        return DecodeLoad(raw);
      case BPF_ST:
        return BPF_MODE(raw.code) == BPF_MEM ? absl::OkStatus() : Unknown(raw);
      case BPF_STX:
        return DecodeStore(raw);
      default:
        return DecodeConstant(raw, insn);
    }
  }

  absl::Status DecodeArithmetic(const bpf_insn& raw) {
    const uint8_t operation = BPF_OP(raw.code);
    if (raw.dst_reg == BPF_REG_10) return WritesFrame();
    const bool wide = BPF_CLASS(raw.code) == BPF_ALU64;
    if (operation > BPF_END || (operation == BPF_NEG && BPF_SRC(raw.code) != BPF_K)) return Unknown(raw);
    if (operation == BPF_END) {
      const bool width = raw.imm == 16 || raw.imm == 32 || raw.imm == 64;
      return width && raw.off == 0 && !(wide && BPF_SRC(raw.code) != 0) ? absl::OkStatus() : Unknown(raw);
    }
    if (raw.off != 0) {
      const bool is_signed = raw.off == 1 && (operation == BPF_DIV || operation == BPF_MOD);
      const bool extends = operation == BPF_MOV && BPF_SRC(raw.code) == BPF_X &&
                           (raw.off == 8 || raw.off == 16 || (raw.off == 32 && wide));
      if (!is_signed && !extends) return Unknown(raw);
    }
    const bool shift = operation == BPF_LSH || operation == BPF_RSH || operation == BPF_ARSH;
    if (BPF_SRC(raw.code) == BPF_K) {
      if (shift && (raw.imm < 0 || raw.imm >= (wide ? 64 : 32))) {
        return Fault(at_, absl::StrFormat("shifts %d bits by %d", wide ? 64 : 32, raw.imm),
                     absl::StrFormat("shift by 0 to %d", wide ? 63 : 31));
      }
      if ((operation == BPF_DIV || operation == BPF_MOD) && raw.imm == 0)
        return Fault(at_, "divides by the constant 0", "divide by another number");
    }
    return absl::OkStatus();
  }

  absl::Status DecodeJump(const bpf_insn& raw, Instruction& insn) {
    const uint8_t operation = BPF_OP(raw.code);
    const bool wide = BPF_CLASS(raw.code) == BPF_JMP;
    if (operation == BPF_EXIT) return wide && raw.code == (BPF_JMP | BPF_EXIT) ? absl::OkStatus() : Unknown(raw);
    if (operation == BPF_CALL) {
      if (raw.code != (BPF_JMP | BPF_CALL)) return Unknown(raw);
      if (raw.src_reg == BPF_PSEUDO_CALL) {
        insn.off = static_cast<int32_t>(at_) + 1 + raw.imm;
        return absl::OkStatus();
      }
      if (raw.src_reg == BPF_PSEUDO_KFUNC_CALL) {
        return Fault(at_, "calls a function of the kernel (kfunc), and no kernel takes part", kNoKernel);
      }
      return raw.src_reg == 0 ? absl::OkStatus() : Unknown(raw);
    }
    if (operation > BPF_JSLE) return Unknown(raw);
    if (operation == BPF_JA) {
      if (BPF_SRC(raw.code) != BPF_K) return Unknown(raw);
      insn.off = static_cast<int32_t>(at_) + 1 + (wide ? raw.off : raw.imm);
      return absl::OkStatus();
    }
    insn.off = static_cast<int32_t>(at_) + 1 + raw.off;
    return absl::OkStatus();
  }

  absl::Status DecodeLoad(const bpf_insn& raw) {
    if (raw.dst_reg == BPF_REG_10) return WritesFrame();
    const uint8_t mode = BPF_MODE(raw.code);
    const bool extends = mode == kModeSignExtended && BPF_SIZE(raw.code) != BPF_DW;
    return mode == BPF_MEM || extends ? absl::OkStatus() : Unknown(raw);
  }

  absl::Status DecodeStore(const bpf_insn& raw) {
    if (BPF_MODE(raw.code) == BPF_MEM) return absl::OkStatus();
    if (BPF_MODE(raw.code) != BPF_ATOMIC) return Unknown(raw);
    if (BPF_SIZE(raw.code) != BPF_W && BPF_SIZE(raw.code) != BPF_DW) return Unknown(raw);
    switch (raw.imm) {
      case BPF_ADD:
      case BPF_OR:
      case BPF_AND:
      case BPF_XOR:
        return absl::OkStatus();
      case BPF_ADD | BPF_FETCH:
      case BPF_OR | BPF_FETCH:
      case BPF_AND | BPF_FETCH:
      case BPF_XOR | BPF_FETCH:
      case BPF_XCHG:
        return raw.src_reg == BPF_REG_10 ? WritesFrame() : absl::OkStatus();
      case BPF_CMPXCHG:
        return absl::OkStatus();
      default:
        return Unknown(raw);
    }
  }

  absl::Status DecodeConstant(const bpf_insn& raw, Instruction& insn) {
    if (raw.code != (BPF_LD | BPF_IMM | BPF_DW)) {
      if (BPF_MODE(raw.code) == BPF_ABS || BPF_MODE(raw.code) == BPF_IND) {
        return Fault(at_, "loads from the packet by LD_ABS or LD_IND, which XDP programs cannot use",
                     "read between xdp_md's data and data_end, or by bpf_xdp_load_bytes()");
      }
      return Unknown(raw);
    }
    if (raw.dst_reg == BPF_REG_10) return WritesFrame();
    if (at_ + 1 >= program_.code.size() || program_.code[at_ + 1].code != 0) {
      return Fault(at_, "a 64-bit constant is cut in two: its second half is missing", kBuildAgain);
    }
    const bpf_insn& second = program_.code[at_ + 1];
    const auto low = static_cast<uint32_t>(raw.imm);
    const auto high = static_cast<uint32_t>(second.imm);
    insn.src = 0;
    switch (raw.src_reg) {
      case 0:
        insn.imm = static_cast<int64_t>(uint64_t{high} << 32 | low);
        break;
      case BPF_PSEUDO_MAP_IDX:
      case BPF_PSEUDO_MAP_IDX_VALUE:
        if (low >= object_.maps.size())
          return Fault(at_, absl::StrFormat("refers to map %d, and the object has %d", low, object_.maps.size()),
                       kBuildAgain);
        insn.constant = raw.src_reg == BPF_PSEUDO_MAP_IDX ? Constant::kMap : Constant::kMapValue;
        insn.map = static_cast<int16_t>(low);
        insn.imm = raw.src_reg == BPF_PSEUDO_MAP_IDX ? 0 : second.imm;
        break;
      case BPF_PSEUDO_FUNC:
        insn.constant = Constant::kFunction;
        insn.off = static_cast<int32_t>(at_) + 1 + raw.imm;
        insn.imm = insn.off;
        break;
      case BPF_PSEUDO_BTF_ID:
        return Fault(at_, "refers to a variable of the kernel (ksym), and no kernel takes part", kNoKernel);
      default:
        return Fault(at_, absl::StrFormat("loads a 64-bit constant of kind %d, which needs a kernel", raw.src_reg),
                     "refer to maps by the names that SEC(\".maps\") gives them");
    }
    ++at_;  // the second half is no instruction
    return absl::OkStatus();
  }

  static bool IsLocalCall(const Instruction& insn) {
    return insn.code == (BPF_JMP | BPF_CALL) && insn.src == BPF_PSEUDO_CALL;
  }

  absl::Status FindFunctions() {
    const auto size = static_cast<int32_t>(image_.code.size());
    std::set<uint32_t> starts = {0};
    for (int32_t i = 0; i < size; ++i) {
      const Instruction& insn = image_.code[i];
      if (!IsLocalCall(insn) && insn.constant != Constant::kFunction) continue;
      if (insn.off < 0 || insn.off >= size || image_.raw[insn.off].code == 0) {
        return Fault(i, absl::StrFormat("calls a function at %d, where none begins", insn.off), kBuildAgain);
      }
      starts.insert(static_cast<uint32_t>(insn.off));
    }
    for (const uint32_t start : starts) {
      if (!image_.functions.empty()) image_.functions.back().end = start;
      Function function;
      function.begin = start;
      image_.functions.push_back(function);
    }
    image_.functions.back().end = static_cast<uint32_t>(size);
    return absl::OkStatus();
  }

  absl::Status CheckJumps() const {
    for (const Function& function : image_.functions) {
      uint32_t last = function.begin;
      for (uint32_t i = function.begin; i < function.end; ++i) {
        const Instruction& insn = image_.code[i];
        last = i;
        const uint8_t type = BPF_CLASS(insn.code);
        if (insn.code == (BPF_LD | BPF_IMM | BPF_DW)) {
          ++i;
          continue;
        }
        if (type != BPF_JMP && type != BPF_JMP32) continue;
        if (BPF_OP(insn.code) == BPF_CALL || BPF_OP(insn.code) == BPF_EXIT) continue;
        if (insn.off < static_cast<int32_t>(function.begin) || insn.off >= static_cast<int32_t>(function.end)) {
          return Fault(i,
                       absl::StrFormat("jumps to %d, out of its function (%d to %d)", insn.off, function.begin,
                                       function.end - 1),
                       kBuildAgain);
        }
        if (image_.raw[insn.off].code == 0) {
          return Fault(i, absl::StrFormat("jumps to %d, the middle of a 64-bit constant", insn.off), kBuildAgain);
        }
      }
      const uint8_t code = image_.code[last].code;
      if (code != (BPF_JMP | BPF_EXIT) && code != (BPF_JMP | BPF_JA) && code != (BPF_JMP32 | BPF_JA)) {
        return Fault(last, "the function runs over its end: its last instruction is neither exit nor a jump",
                     "return a verdict on each of its ways");
      }
    }
    return absl::OkStatus();
  }

  uint32_t IndexOf(uint32_t begin) const {
    uint32_t index = 0;
    while (image_.functions[index].begin != begin) ++index;
    return index;
  }

  // How many functions deep calls go from `function`, itself included; 0 in `heights` is not seen yet, -1 still
  // running.
  absl::StatusOr<int> Height(uint32_t function, std::vector<int>* heights) const {
    if ((*heights)[function] > 0) return (*heights)[function];
    (*heights)[function] = -1;
    int height = 1;
    const Function& at = image_.functions[function];
    for (uint32_t i = at.begin; i < at.end; ++i) {
      const Instruction& insn = image_.code[i];
      if (!IsLocalCall(insn) && insn.constant != Constant::kFunction) continue;
      const uint32_t target = IndexOf(static_cast<uint32_t>(insn.off));
      if ((*heights)[target] < 0) {
        return Fault(i, absl::StrFormat("calls the function at %d, which is still running: recursion", insn.off),
                     "write a loop, or use bpf_loop()");
      }
      const absl::StatusOr<int> below = Height(target, heights);
      if (!below.ok()) return below;
      height = std::max(height, *below + 1);
      if (height > kDeepestCalls) {
        return Fault(i, absl::StrFormat("calls go deeper than %d functions", kDeepestCalls),
                     "make some of them static __always_inline");
      }
    }
    (*heights)[function] = height;
    return height;
  }

  absl::Status CheckCalls() {
    std::vector<int> heights(image_.functions.size(), 0);
    const absl::StatusOr<int> height = Height(0, &heights);
    if (height.ok()) image_.height = static_cast<uint32_t>(*height);
    return height.status();
  }

  const ProgramCode& program_;
  const Object& object_;
  Image image_;
  uint32_t at_ = 0;
};

}  // namespace

const Function& Image::FunctionOf(uint32_t index) const {
  const auto behind = std::upper_bound(functions.begin(), functions.end(), index,
                                       [](uint32_t at, const Function& function) { return at < function.begin; });
  return *(behind - 1);
}

absl::StatusOr<Image> Decode(const ProgramCode& program, const Object& object) {
  return Decoder(program, object).Run();
}

}  // namespace halfpage::bpf
