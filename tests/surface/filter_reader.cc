#include "surface/filter_reader.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <set>
#include <utility>

#include "base/syscall_names.h"
#include "plan/syscall_filter.h"

namespace caisson::surface {
namespace {

constexpr int kGetFilter = 0x420c;  // PTRACE_SECCOMP_GET_FILTER

/// Follows every path of a program for one call: what is compared with an argument may go either way.
class Explorer {
  using Value = std::optional<std::uint32_t>;

 public:
  /// `second`: the low half of the second argument, if it is known.
  explicit Explorer(const Program& program, int number, std::optional<std::uint32_t> second = {})
      : program_(program), number_(static_cast<std::uint32_t>(number)), second_(second) {}

  bool allows() { return allowsFrom(0, 0U); }

 private:
  bool allowsFrom(std::size_t at, Value accumulator) {
    for (; at < program_.size(); ++at) {
      const sock_filter& one = program_[at];
      switch (BPF_CLASS(one.code)) {
        case BPF_RET: {
          const std::uint32_t action = one.k & SECCOMP_RET_ACTION_FULL;
          return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
        }
        case BPF_LD: accumulator = load(one.k); break;
        case BPF_ALU:
          if (accumulator && BPF_OP(one.code) == BPF_AND) {
            accumulator = *accumulator & one.k;
          } else {
            accumulator.reset();
          }
          break;
        case BPF_JMP: {
          if (BPF_OP(one.code) == BPF_JA) {
            at += one.k;
            break;
          }
          if (!seen_.insert({at, accumulator}).second) return false;  // this way was tried
          if (!accumulator) return allowsFrom(at + 1 + one.jt, accumulator) || allowsFrom(at + 1 + one.jf, accumulator);
          at += holds(one, *accumulator) ? one.jt : one.jf;
          break;
        }
        default: return false;
      }
    }
    return false;
  }

  [[nodiscard]] Value load(std::uint32_t offset) const {
    if (offset == offsetof(seccomp_data, nr)) return number_;
    if (offset == offsetof(seccomp_data, arch)) return plan::nativeArchitecture();
    if (offset == offsetof(seccomp_data, args) + 8) return second_;
    return std::nullopt;
  }

  static bool holds(const sock_filter& jump, std::uint32_t value) {
    switch (BPF_OP(jump.code)) {
      case BPF_JEQ: return value == jump.k;
      case BPF_JGT: return value > jump.k;
      case BPF_JGE: return value >= jump.k;
      default: return (value & jump.k) != 0;
    }
  }

  const Program& program_;
  std::uint32_t number_;
  Value second_;
  std::set<std::pair<std::size_t, Value>> seen_;
};

bool passes(const std::vector<Program>& filters, std::uint32_t request) {
  for (const Program& program : filters) {
    if (!Explorer(program, SYS_ioctl, request).allows()) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<Program>> readFilters(pid_t pid) {
  if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) return std::nullopt;
  std::optional<std::vector<Program>> filters;
  int status = 0;
  if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && waitpid(pid, &status, __WALL) == pid) {
    filters.emplace();
    for (long index = 0;; ++index) {
      const long length = ptrace(static_cast<__ptrace_request>(kGetFilter), pid, index, nullptr);
      const bool none = errno == ENOENT || (errno == EINVAL && index == 0);  // EINVAL: a process without any
      if (length < 0 && !none) filters.reset();
      if (length <= 0) break;
      Program program(static_cast<std::size_t>(length));
      if (ptrace(static_cast<__ptrace_request>(kGetFilter), pid, index, program.data()) != length) break;
      filters->push_back(std::move(program));
    }
  }
  ptrace(PTRACE_DETACH, pid, 0, 0);
  return filters;
}

bool letsThrough(const std::vector<Program>& filters, int number) {
  for (const Program& program : filters) {
    if (!Explorer(program, number).allows()) return false;
  }
  return true;
}

std::size_t countCalls(const std::vector<Program>& filters) {
  constexpr int kNumbers = 512;
  std::size_t count = 0;
  for (int number = 0; number < kNumbers; ++number) {
    if (!syscallName(number).empty() && letsThrough(filters, number)) ++count;
  }
  return count;
}

std::optional<std::size_t> countRequests(const std::vector<Program>& filters) {
  constexpr std::uint32_t kOfNoDriver = 0x7edcba98;
  if (passes(filters, kOfNoDriver)) return std::nullopt;
  // A value passes only where the program compares with it, or with the one before.
  std::set<std::uint32_t> values;
  for (const Program& program : filters) {
    for (const sock_filter& one : program) {
      if (BPF_CLASS(one.code) != BPF_JMP || BPF_OP(one.code) == BPF_JA) continue;
      for (std::uint32_t near = 0; near < 64; ++near) {
        values.insert(one.k + near);
        values.insert(one.k - near);
      }
    }
  }
  std::size_t count = 0;
  for (const std::uint32_t value : values) count += passes(filters, value) ? 1 : 0;
  return count;
}

}  // namespace caisson::surface
