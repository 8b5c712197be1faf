#include "plan/syscall_filter.h"

#include <linux/seccomp.h>

#include <algorithm>
#include <cstddef>

#include "plan/syscall_emit.h"

namespace caisson::plan {

std::uint32_t nativeArchitecture() { return kNativeArchitecture; }

std::string_view nativeArchitectureName() { return architectureName(kNative); }

Result<std::vector<sock_filter>> compile(const SyscallFilter& filter) {
  std::vector<sock_filter> code = bpf::emitProgram(filter);
  if (code.size() > bpf::kMaxProgram) {
    return fail(plainError(
        Stage::plan, "compile", "system-call filter",
        std::to_string(code.size()) + " instructions are more than the kernel's " + std::to_string(bpf::kMaxProgram),
        "use fewer argument rules"));
  }
  return code;
}

std::uint32_t evaluate(std::span<const sock_filter> program, std::uint32_t architecture, int number,
                       const std::uint64_t (&arguments)[6]) {
  const auto load = [&](std::uint32_t offset) -> std::uint32_t {
    if (offset == offsetof(seccomp_data, nr)) return static_cast<std::uint32_t>(number);
    if (offset == offsetof(seccomp_data, arch)) return architecture;
    if (offset >= offsetof(seccomp_data, args)) {
      const std::size_t at = offset - offsetof(seccomp_data, args);
      return static_cast<std::uint32_t>(arguments[at / 8] >> (at % 8 == 4 ? 32 : 0));
    }
    return 0;
  };
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& i = program[at];
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS: accumulator = load(i.k); break;
      case BPF_ALU | BPF_AND | BPF_K: accumulator &= i.k; break;
      case BPF_JMP | BPF_JA: at += i.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += accumulator == i.k ? i.jt : i.jf; break;
      case BPF_JMP | BPF_JGE | BPF_K: at += accumulator >= i.k ? i.jt : i.jf; break;
      case BPF_JMP | BPF_JSET | BPF_K: at += (accumulator & i.k) != 0 ? i.jt : i.jf; break;
      case BPF_RET | BPF_K: return i.k;
      default: return SECCOMP_RET_KILL_PROCESS;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

}  // namespace caisson::plan
