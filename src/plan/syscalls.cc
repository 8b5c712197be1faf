#include "plan/syscalls.h"

#include <algorithm>

#include "base/never_allowed_calls.h"
#include "base/syscall_names.h"
#include "plan/executables.h"
#include "plan/syscall_rules.h"

namespace caisson::plan {

using namespace rules;  // NOLINT: the tables this file is about

namespace {

void addProcessRules(Rules& rules, const policy::Policy& policy, ExecToken token) {
  // A limit on CPU time kills like a signal, which the Landlock domain of the command keeps inside it.
  if (policy.process.isolate_commands) rules.set("prlimit64", notify(EPERM), {{{equals(0, 0)}, kAllow}});
  const policy::Process& process = policy.process;
  if (!policy.resources.cpu_affinity.empty())
    rules.set("sched_setaffinity", notify(EPERM));  // otherwise the payload could widen it
  if (!process.allow_fork) {
    rules.set("fork", notify(EPERM));
    rules.set("vfork", notify(EPERM));
    rules.set("clone", notify(EPERM),
              {{{anyBit(0, kNamespaceFlags & ~0x80U)}, notify(EPERM)}, {{anyBit(0, CLONE_THREAD)}, kAllow}});
  }
  // A memory file is on no mount that could be noexec. MFD_NOEXEC_SEAL (Linux 6.3) makes one that can never be
  // executable.
  if (hasExecutableRules(policy)) {
    constexpr std::uint32_t kNoexecSeal = 8;
    rules.set("memfd_create", notify(EPERM), {{{anyBit(1, kNoexecSeal)}, kAllow}});
    rules.set("memfd_secret", refuse(EPERM));
  }
  if (!process.allow_exec) {
    rules.set("execve", notify(EPERM));
    rules.set("execveat", notify(EPERM), {{{highEquals(0, token.first), highEquals(4, token.second)}, kAllow}});
  }
}

constexpr std::string_view kIdCalls[] = {"chown",    "fchown",   "lchown",    "fchownat",  "setuid",   "setgid",
                                         "setreuid", "setregid", "setresuid", "setresgid", "setgroups"};

/// Lets programs that expect to be root do their work with a single id and no capabilities, as package managers do:
/// owners and ids cannot change, and are said to. Devices are said to exist. A mode with a setuid or setgid bit is set
/// without it, by the supervisor: a filter cannot change an argument.
void addRootRules(Rules& rules) {
  for (const std::string_view name : kIdCalls) rules.set(name, kPretend);
  const std::pair<std::string_view, std::uint8_t> modes[] = {
      {"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}};
  for (const auto& [name, mode] : modes) rules.set(name, kAllow, {{{anyBit(mode, kSetIdBits)}, kServe}});
  for (const auto& [name, mode] : {std::pair<std::string_view, std::uint8_t>{"mknod", 1}, {"mknodat", 2}}) {
    rules.set(name, kAllow,
              {{{equals(mode, S_IFCHR, S_IFMT)}, kPretend},
               {{equals(mode, S_IFBLK, S_IFMT)}, kPretend},
               {{anyBit(mode, kSetIdBits)}, notify(EPERM)}});
  }
}

/// Answers a socket to the kernel's audit as a kernel without one does: programs that change accounts stop at EPERM.
void denyAuditSockets(SyscallFilter& filter) {
  constexpr std::uint32_t kNetlinkAudit = 9;
  for (SyscallRule& rule : filter.rules) {
    if (rule.number != syscallNumber("socket", filter.architecture) || rule.branches.empty()) continue;
    rule.branches.insert(rule.branches.begin(),
                         {{equals(0, AF_NETLINK), equals(2, kNetlinkAudit)}, refuse(EPROTONOSUPPORT)});
  }
}

/// Only narrows: calls that the policy denied stay denied.
struct NarrowingRules {
  Rules& rules;
  void set(std::string_view name, Action otherwise, std::vector<Branch> branches = {}) {
    if (rules.allows(name, false)) rules.set(name, otherwise, std::move(branches));
  }
};

/// Sockets of a payload in the host's network namespace whose only way out is the proxy: TCP, and the supervisor makes
/// each connection. Nothing may connect or listen in another way, such as TCP Fast Open.
void addProxySocketRules(NarrowingRules& rules) {
  constexpr std::uint32_t kFastOpen = MSG_FASTOPEN;
  const ArgumentTest internet = equals(0, AF_INET, ~static_cast<std::uint32_t>(AF_INET ^ AF_INET6));
  const ArgumentTest stream = equals(1, SOCK_STREAM, kSocketTypeMask);
  rules.set("socket", notify(EACCES),
            {{{internet, stream, equals(2, 0)}, kAllow},
             {{internet, stream, equals(2, IPPROTO_TCP)}, kAllow},
             {{internet, equals(2, kMptcp)}, refuse(EPROTONOSUPPORT)}});
  rules.set("connect", kServe);
  for (const std::string_view name : {"bind", "listen"}) rules.set(name, notify(EACCES));
  rules.set("sendto", kAllow, {{{anyBit(3, kFastOpen)}, notify(EOPNOTSUPP)}});
  rules.set("sendmsg", kAllow, {{{anyBit(2, kFastOpen)}, notify(EOPNOTSUPP)}});
  rules.set("sendmmsg", kAllow, {{{anyBit(3, kFastOpen)}, notify(EOPNOTSUPP)}});
  std::vector<Branch> options = {{{equals(1, SOL_SOCKET), equals(2, SO_PEEK_OFF)}, refuse(EOPNOTSUPP)},
                                 {{equals(1, IPPROTO_TCP), equals(2, kTcpUpperLayer)}, notify(ENOPROTOOPT)}};
  // TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_KEY, TCP_FASTOPEN_NO_COOKIE
  for (const std::uint32_t option : {23, 30, 33, 34}) {
    options.push_back({{equals(1, IPPROTO_TCP), equals(2, option)}, refuse(EOPNOTSUPP)});
  }
  rules.set("setsockopt", kAllow, std::move(options));
}

/// Denies what Landlock does not cover, for a payload that shares the host's processes, files and network.
void addHostRules(Rules& all, bool proxy) {
  NarrowingRules rules{all};
  // The host's message queues, semaphores and shared memory, as if the kernel had none.
  for (const std::string_view name : kIpcCalls) rules.set(name, kUnlisted);
  rules.set("sysinfo", kAllow);  // /proc shows the host's figures too
  // All processes of the user are in reach, those that guard the payload too. A thread other than the caller has a
  // number that no filter can tell from them.
  for (const std::string_view name :
       {"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}) {
    rules.set(name, notify(EPERM), {{{equals(0, 0)}, kAllow}});
  }
  rules.set("setpriority", notify(EPERM), {{{equals(0, kPriorityProcess), equals(1, 0)}, kAllow}});
  rules.set("ioprio_set", notify(EPERM), {{{equals(0, kIoPriorityProcess), equals(1, 0)}, kAllow}});
  // No network, and no path to a service of the host: session bus, container engines, agents.
  if (proxy) {
    addProxySocketRules(rules);
  } else {
    rules.set("socket", notify(EACCES));
  }
  rules.set("socketpair", notify(EACCES),
            {{{equals(0, AF_UNIX), equals(1, SOCK_STREAM, kSocketTypeMask)}, kAllow},
             {{equals(0, AF_UNIX), equals(1, SOCK_SEQPACKET, kSocketTypeMask)}, kAllow}});
  // Landlock covers no attributes of files, and a descriptor opened for reading is enough to change them.
  const std::pair<std::string_view, std::uint8_t> modes[] = {
      {"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}};
  for (const auto& [name, mode] : modes) rules.set(name, kServe, {{{anyBit(mode, kSetIdBits)}, notify(EPERM)}});
  for (const std::string_view name :
       {"chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat"}) {
    rules.set(name, kServe);
  }
  for (const std::string_view name :
       {"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"}) {
    rules.set(name, refuse(EOPNOTSUPP));
  }
  for (const std::string_view name : {"truncate", "inotify_add_watch"}) rules.set(name, refuse(EPERM));
  // Before Landlock ABI 3 a file that may only be read can still be truncated by open.
  rules.set("open", kAllow,
            {{{anyBit(1, O_TRUNC), equals(1, O_RDONLY, O_ACCMODE)}, refuse(EPERM)},
             {{anyBit(1, kCreateFlags), anyBit(2, kSetIdBits)}, notify(EPERM)}});
  rules.set("openat", kAllow,
            {{{anyBit(2, O_TRUNC), equals(2, O_RDONLY, O_ACCMODE)}, refuse(EPERM)},
             {{anyBit(2, kCreateFlags), anyBit(3, kSetIdBits)}, notify(EPERM)}});
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Calls of the payload's process between its filter and its exec, before the supervisor listens: denied without
/// notification, or the process would wait forever.
constexpr std::string_view kOwnCalls[] = {"execve", "execveat", "exit_group", "write"};

/// Denies a call of the policy's denylist.
void takeAway(Rules& rules, std::string_view name) {
  if (contains(kAbsentCalls, name)) return;  // already denied, as if the kernel lacked it
  rules.set(name, contains(kOwnCalls, name) ? refuse(EPERM) : notify(EPERM));
}

/// Makes the filter report calls that the policy gives a severity and that are otherwise denied without notification.
void listenTo(Rules& rules, const policy::Syscalls& wanted, bool unlisted_allowed) {
  for (const auto& names : {wanted.critical, wanted.high}) {
    if (!names) continue;
    for (const std::string& name : *names) {
      if (contains(kOwnCalls, name)) continue;
      rules.report(name, unlisted_allowed ? kAllow : kUnlisted);
    }
  }
}

Error forbidden(std::string_view name, std::string_view key) {
  return plainError(Stage::policy, "plan", key, "system call \"" + std::string(name) + "\" is never allowed in `full`",
                    "remove it; it is one of the calls that sandboxes are left by");
}

/// Allows only the calls of the policy's list instead of the built-in one. An error for a call that is never allowed,
/// or that this build does not know.
Result<void> narrowToList(Rules& rules, const std::vector<std::string>& names) {
  const Architecture architecture = rules.architecture();
  Rules listed(architecture);
  for (const std::string& name : names) {
    if (isNeverAllowed(name)) return fail(forbidden(name, "syscalls.names"));
  }
  std::vector<int> numbers;
  for (const std::string& name : names) {
    if (const auto number = syscallNumber(name, architecture)) numbers.push_back(*number);
  }
  // The exec that starts the payload, and the report and exit of a failed start, are ours.
  for (const std::string_view own : kOwnCalls) numbers.push_back(*syscallNumber(own, architecture));
  std::sort(numbers.begin(), numbers.end());
  std::vector<SyscallRule> all = rules.take();
  for (SyscallRule& rule : all) {
    if (std::binary_search(numbers.begin(), numbers.end(), rule.number)) continue;
    if (rule.otherwise.kind != ActionKind::allow && rule.otherwise != kAnswer && rule.otherwise != kPretend &&
        rule.branches.empty()) {
      continue;
    }
    rule.branches.clear();
    rule.otherwise = notify(EPERM);
  }
  for (SyscallRule& rule : all) {
    const std::string_view name = syscallName(rule.number, architecture);
    listed.set(name, rule.otherwise, std::move(rule.branches));
  }
  for (const std::string& name : names) {
    if (!contains(kAllowed, name) && syscallNumber(name, architecture)) {
      // In neither list nor special: a call unknown to this build is not allowed.
      bool known = false;
      for (const SyscallRule& rule : all) known = known || rule.number == *syscallNumber(name, architecture);
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
  const policy::Syscalls& wanted = policy.syscalls;
  return policy.process.allow_fork && policy.process.allow_exec && !hasExecutableRules(policy) &&
         policy.isolation.user != policy::InsideUser::root && policy.resources.cpu_affinity.empty() &&
         !policy.process.isolate_commands && wanted.allow.empty() && !wanted.names && !wanted.critical &&
         !wanted.high && wanted.oci_profile.empty();
}

std::span<const std::string_view> allowedSyscalls() { return kAllowed; }
std::span<const std::string_view> forbiddenSyscalls() { return kForbiddenCalls; }
std::uint64_t namespaceFlags() { return kNamespaceFlags & ~0x80U; }

Result<SyscallFilter> filterForFull(const policy::Policy& policy, ExecToken token, Architecture architecture) {
  Rules rules = builtinRules(architecture);
  const policy::Syscalls& wanted = policy.syscalls;
  for (const std::string& name : wanted.allow) {
    if (isNeverAllowed(name)) return fail(forbidden(name, "syscalls.allow"));
    rules.allowUnlisted(name);  // a partly allowed call stays so
  }
  if (policy.isolation.user == policy::InsideUser::root) addRootRules(rules);
  addProcessRules(rules, policy, token);  // after syscalls.allow: a policy cannot allow what it also forbids
  if (wanted.names) {
    if (wanted.mode == policy::SyscallMode::denylist) {
      for (const std::string& name : *wanted.names) takeAway(rules, name);
    } else if (auto narrowed = narrowToList(rules, *wanted.names); !narrowed) {
      return fail(narrowed.error());
    }
  }
  listenTo(rules, wanted, false);
  SyscallFilter filter;
  filter.architecture = architecture;
  filter.unlisted = kUnlisted;
  filter.rules = rules.take();
  if (policy.isolation.user == policy::InsideUser::root) denyAuditSockets(filter);
  return filter;
}

void makeIdCalls(SyscallFilter& filter) {
  for (SyscallRule& rule : filter.rules) {
    const bool about_ids =
        std::ranges::find(kIdCalls, syscallName(rule.number, filter.architecture)) != std::end(kIdCalls);
    if (about_ids && rule.otherwise == kPretend) rule.otherwise = kAllow;
  }
}

Result<SyscallFilter> filterForProcess(const policy::Policy& policy, Architecture architecture) {
  const policy::Syscalls& wanted = policy.syscalls;
  if (wanted.names && wanted.mode == policy::SyscallMode::allowlist) return filterForFull(policy, {}, architecture);
  Rules rules(architecture);
  for (const std::string_view name : kForbiddenCalls) rules.add(name, notify(EPERM));
  for (const std::string_view name : kAbsentCalls)
    rules.add(name, isRecordedAbsence(name) ? notify(ENOSYS) : refuse(ENOSYS));
  addArgumentRules(rules);
  addModeRules(rules);
  addProcessRules(rules, policy, {});
  if (wanted.names) {
    for (const std::string& name : *wanted.names) takeAway(rules, name);
  }
  listenTo(rules, wanted, true);
  SyscallFilter filter;
  filter.architecture = architecture;
  filter.unlisted = kAllow;
  filter.rules = rules.take();
  return filter;
}

Result<SyscallFilter> filterForLandlockTier(const policy::Policy& policy, Architecture architecture) {
  auto filter = filterForFull(policy, {}, architecture);
  if (!filter) return filter;
  Rules rules(architecture);
  for (SyscallRule& rule : filter->rules) {
    rules.set(syscallName(rule.number, architecture), rule.otherwise, std::move(rule.branches));
  }
  addHostRules(rules, policy.network.mode == policy::NetworkMode::proxy);
  filter->rules = rules.take();
  return filter;
}

}  // namespace caisson::plan
