// A system-call filter as data, and its compilation to a classic BPF program.
//
// The kernel runs a filter once per system-call number when it is attached (to find calls that are always allowed) and
// again for each call that is not. A chain of 300 comparisons made a launch measurably slower than a balanced tree of
// the same rules, so compile() emits a tree.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/native_architecture.h"

namespace caisson::plan {

enum class ActionKind : std::uint8_t {
  allow,
  refuse,  ///< with an errno, not reported: for calls that ordinary programs try and have a fallback for
  notify,  ///< denied too, but the supervisor answers and so sees the attempt
  pretend  ///< not made, but answered with success
};

struct Action {
  ActionKind kind = ActionKind::refuse;
  std::uint16_t error = 0;  ///< errno of a denial; 0: kill the process

  bool operator==(const Action&) const = default;
};

inline constexpr Action kAllow{ActionKind::allow, 0};
/// For programs that expect to be root: what they want has no meaning in the sandbox.
inline constexpr Action kPretend{ActionKind::pretend, 0};
/// Denies with this errno, not reported; notify() reports it.
constexpr Action refuse(int error) { return Action{ActionKind::refuse, static_cast<std::uint16_t>(error)}; }
constexpr Action notify(int error) { return Action{ActionKind::notify, static_cast<std::uint16_t>(error)}; }
/// Allowed, but the supervisor is notified before the call continues (plan/observation.h). No errno has this number.
inline constexpr Action kObserve{ActionKind::notify, 0x8000};
/// The supervisor gives the result instead of the kernel, with the sandbox's values. No errno has this number.
inline constexpr Action kAnswer{ActionKind::notify, 0x8001};
/// The supervisor makes the call for the process, on files that the plan names (Plan::attribute_trees). Without a
/// listener it is denied with EPERM. No errno has this number.
inline constexpr Action kServe{ActionKind::notify, 0x8002};
/// The exec that starts the payload carries this in an argument that execve does not have: where execs are reported,
/// this one is not, since no listener exists yet. The mark is not secret: execs with and without it are allowed.
inline constexpr std::uint8_t kOwnExecArgument = 5;
inline constexpr std::uint32_t kOwnExecMark = 0xca155011;
/// Calls of another architecture: reported; without a listener the process is killed.
inline constexpr Action kForeign{ActionKind::notify, 0};

/// One comparison on one 32-bit half of a system call's argument. The kernel ignores the high half of `int` arguments,
/// so a filter that compared 64 bits could be bypassed (CVE-2019-10063).
struct ArgumentTest {
  enum class Half : std::uint8_t { low, high };
  enum class Kind : std::uint8_t {
    equal,     ///< (value & mask) == want
    any_bit,   ///< a bit of mask is set
    no_bit,    ///< no bit of mask is set
    unequal,   ///< value != want; from here on without a mask
    at_least,  ///< value >= want
    below,     ///< value < want
  };

  std::uint8_t argument = 0;
  Half half = Half::low;
  Kind kind = Kind::equal;
  std::uint32_t mask = 0xffffffff;
  std::uint32_t want = 0;

  bool operator==(const ArgumentTest&) const = default;
};

/// `action` if every test holds.
struct Branch {
  std::vector<ArgumentTest> tests;
  Action action;

  bool operator==(const Branch&) const = default;
};

struct SyscallRule {
  int number = 0;
  std::vector<Branch> branches;  ///< the first that matches decides
  Action otherwise;

  bool operator==(const SyscallRule&) const = default;
};

struct SyscallFilter {
  std::vector<SyscallRule> rules;  ///< any order, one per number
  Action unlisted = refuse(38);    ///< ENOSYS, as on a kernel without the call, so that programs fall back
  bool check_architecture = true;
  Architecture architecture = kNative;  ///< whose numbers the rules have

  /// How many calls are allowed, at least with some arguments.
  [[nodiscard]] constexpr std::size_t allowed() const {
    std::size_t count = 0;
    for (const SyscallRule& rule : rules) {
      bool allows = rule.otherwise.kind == ActionKind::allow || rule.otherwise == kAnswer ||
                    rule.otherwise == kObserve || rule.otherwise == kServe;
      for (const Branch& branch : rule.branches) allows = allows || branch.action.kind == ActionKind::allow;
      count += allows ? 1 : 0;
    }
    return count;
  }
};

/// The program. An error if it is too long for the kernel.
Result<std::vector<sock_filter>> compile(const SyscallFilter& filter);

/// Evaluates the program for a call like the kernel's interpreter: SECCOMP_RET_* value. The supervisor uses it to find
/// the errno of a notified call, since the kernel does not pass the low half of that value.
std::uint32_t evaluate(std::span<const sock_filter> program, std::uint32_t architecture, int number,
                       const std::uint64_t (&arguments)[6]);

/// AUDIT_ARCH_* of this binary, and its name.
std::uint32_t nativeArchitecture();
std::string_view nativeArchitectureName();

}  // namespace caisson::plan
