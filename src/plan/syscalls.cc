#include "plan/syscalls.h"

#include <algorithm>

#include "base/syscall_names.h"
#include "plan/syscall_rules.h"

namespace caisson::plan {

using namespace rules;  // NOLINT: the tables this file is about

namespace {

void addProcessRules(Rules& rules, const policy::Process& process, ExecToken token) {
  if (!process.allow_fork) {
    rules.set("fork", refuse(EPERM));
    rules.set("vfork", refuse(EPERM));
    rules.set("clone", refuse(EPERM),
              {{{anyBit(0, kNamespaceFlags & ~0x80U)}, refuse(EPERM)}, {{anyBit(0, CLONE_THREAD)}, kAllow}});
  }
  if (!process.allow_exec) {
    rules.set("execve", refuse(EPERM));
    rules.set("execveat", refuse(EPERM), {{{highEquals(0, token.first), highEquals(4, token.second)}, kAllow}});
  }
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Error forbidden(std::string_view name, std::string_view key) {
  return plainError(Stage::policy, "plan", key, "system call \"" + std::string(name) + "\" is never allowed in `full`",
                    "remove it; it is one of the calls that sandboxes are left by");
}

/// The policy's own list instead of the built-in one: only these, and of those only what is not forbidden.
Result<void> narrowToList(Rules& rules, const std::vector<std::string>& names) {
  Rules listed;
  for (const std::string& name : names) {
    if (contains(kForbidden, name) || contains(kAbsent, name)) return fail(forbidden(name, "syscalls.names"));
  }
  std::vector<int> numbers;
  for (const std::string& name : names) {
    if (const auto number = syscallNumber(name)) numbers.push_back(*number);
  }
  // The one exec that starts the payload, and the exit that ends a failed start, are ours.
  for (const std::string_view own : {"execve", "execveat", "exit_group"}) numbers.push_back(*syscallNumber(own));
  std::sort(numbers.begin(), numbers.end());
  std::vector<SyscallRule> all = rules.take();
  for (SyscallRule& rule : all) {
    if (std::binary_search(numbers.begin(), numbers.end(), rule.number)) continue;
    if (rule.otherwise.kind == ActionKind::refuse && rule.branches.empty()) continue;
    rule.branches.clear();
    rule.otherwise = refuse(EPERM);
  }
  for (SyscallRule& rule : all) {
    const std::string_view name = syscallName(rule.number);
    listed.set(name, rule.otherwise, std::move(rule.branches));
  }
  for (const std::string& name : names) {
    if (!contains(kAllowed, name) && syscallNumber(name)) {
      // In neither list nor special: a call this build does not know the meaning of is not let through.
      bool known = false;
      for (const SyscallRule& rule : all) known = known || rule.number == *syscallNumber(name);
      if (!known) {
        return fail(plainError(Stage::policy, "plan", "syscalls.names",
                               "system call \"" + name + "\" is in no list of this build", "remove it"));
      }
    }
  }
  rules = std::move(listed);
  return {};
}

}  // namespace

bool usesBuiltinFilter(const policy::Policy& policy) {
  const policy::Syscalls& wish = policy.syscalls;
  return policy.process.allow_fork && policy.process.allow_exec && wish.allow.empty() && !wish.names &&
         wish.oci_profile.empty();
}

std::span<const std::string_view> allowedSyscalls() { return kAllowed; }
std::span<const std::string_view> forbiddenSyscalls() { return kForbidden; }

Result<SyscallFilter> filterForFull(const policy::Policy& policy, ExecToken token) {
  Rules rules = builtinRules();
  addProcessRules(rules, policy.process, token);

  const policy::Syscalls& wish = policy.syscalls;
  for (const std::string& name : wish.allow) {
    if (contains(kForbidden, name)) return fail(forbidden(name, "syscalls.allow"));
    rules.set(name, kAllow);
  }
  if (wish.names) {
    if (wish.mode == policy::SyscallMode::denylist) {
      for (const std::string& name : *wish.names) rules.set(name, refuse(EPERM));
    } else if (auto narrowed = narrowToList(rules, *wish.names); !narrowed) {
      return fail(narrowed.error());
    }
  }
  SyscallFilter filter;
  filter.rules = rules.take();
  return filter;
}

SyscallFilter filterForProcess(bool without_namespaces) {
  Rules rules;
  for (const std::string_view name : kForbidden) rules.add(name, refuse(EPERM));
  for (const std::string_view name : kAbsent) rules.add(name, refuse(ENOSYS));
  addArgumentRules(rules);
  addModeRules(rules);
  // Without a pid namespace the payload can name the processes that guard it, and shares their user.
  if (without_namespaces) rules.set("prlimit64", refuse(EPERM), {{{equals(0, 0)}, kAllow}});
  if (without_namespaces) rules.set("socket", refuse(EACCES), {{{equals(0, AF_UNIX)}, kAllow}});
  SyscallFilter filter;
  filter.rules = rules.take();
  filter.unlisted = kAllow;
  return filter;
}

}  // namespace caisson::plan
