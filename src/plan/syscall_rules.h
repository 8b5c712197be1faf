// The rules of the built-in filter, as tables and as compile-time code. Shared by syscalls.cc, which adapts them to a
// policy at run time, and builtin_filter.cc, which compiles the unadapted ones at build time.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/never_allowed_calls.h"
#include "base/syscall_table.h"
#include "plan/ioctl_lists.h"
#include "plan/syscall_filter.h"
#include "plan/syscall_lists.h"

namespace caisson::plan::rules {

using Half = ArgumentTest::Half;
using Kind = ArgumentTest::Kind;

constexpr std::uint32_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                          CLONE_NEWPID | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */;
constexpr std::uint32_t kSetIdBits = S_ISUID | S_ISGID;
constexpr std::uint32_t kCreateFlags = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
constexpr std::uint32_t kTiocsti = 0x5412;
constexpr std::uint32_t kTioclinux = 0x541c;
constexpr std::uint32_t kSocketTypeMask = 0xf;
constexpr std::uint32_t kRenameWhiteout = 1U << 2;
constexpr std::uint32_t kSetLease = 1024;         // F_SETLEASE
constexpr std::uint32_t kDirectoryNotify = 1026;  // F_NOTIFY
constexpr std::uint32_t kEthtool = 0x8946;        // SIOCETHTOOL
constexpr std::uint32_t kMptcp = 262;             // IPPROTO_MPTCP
constexpr std::uint32_t kTcpUpperLayer = 31;      // TCP_ULP
constexpr std::uint32_t kPriorityProcess = 0;     // PRIO_PROCESS
constexpr std::uint32_t kIoPriorityProcess = 1;   // IOPRIO_WHO_PROCESS

/// Tests of the low half of an argument: (value & mask) == want; anyBit(): some bit of the mask is set.
constexpr ArgumentTest equals(std::uint8_t argument, std::uint32_t want, std::uint32_t mask = 0xffffffff) {
  return {argument, Half::low, Kind::equal, mask, want};
}
constexpr ArgumentTest anyBit(std::uint8_t argument, std::uint32_t mask) {
  return {argument, Half::low, Kind::any_bit, mask, 0};
}
/// Tests the high half of an argument.
constexpr ArgumentTest highEquals(std::uint8_t argument, std::uint32_t want) {
  return {argument, Half::high, Kind::equal, 0xffffffff, want};
}

/// Collects rules; a later rule for the same call replaces an earlier one.
class Rules {
 public:
  constexpr explicit Rules(Architecture architecture = kNative) : architecture_(architecture) {}
  [[nodiscard]] constexpr Architecture architecture() const { return architecture_; }
  /// Sets the rule of a call, in place of an earlier one. Ignores names that the architecture lacks, as all functions
  /// here do.
  constexpr void set(std::string_view name, Action otherwise, std::vector<Branch> branches = {}) {
    const std::optional<int> number = numberOf(name);
    if (!number) return;
    SyscallRule rule{*number, std::move(branches), otherwise};
    const auto found = std::find_if(rules_.begin(), rules_.end(), [&](auto& r) { return r.number == *number; });
    if (found != rules_.end()) {
      *found = std::move(rule);
    } else {
      rules_.push_back(std::move(rule));
    }
  }
  constexpr void add(std::string_view name, Action action) {  // no look-up: the caller guarantees a new name
    if (const auto number = numberOf(name)) rules_.push_back({*number, {}, action});
  }
  /// Whether a call is allowed, at least in part; `unlisted` applies to calls without a rule.
  constexpr bool allows(std::string_view name, bool unlisted) const {
    const std::optional<int> number = numberOf(name);
    for (const SyscallRule& rule : rules_) {
      if (!number || rule.number != *number) continue;
      return rule.otherwise.kind == ActionKind::allow || rule.otherwise == kAnswer || rule.otherwise == kServe ||
             !rule.branches.empty();
    }
    return number && unlisted;
  }
  /// Allows a call that has no rule yet, or one without branches; a partly allowed call stays as it is.
  constexpr void allowUnlisted(std::string_view name) {
    const std::optional<int> number = numberOf(name);
    if (!number) return;
    for (SyscallRule& rule : rules_) {
      if (rule.number != *number) continue;
      if (rule.branches.empty()) rule.otherwise = kAllow;
      return;
    }
    rules_.push_back({*number, {}, kAllow});
  }
  /// Notifies the supervisor of a call that is denied without notification. A call without a rule gets `unlisted`,
  /// unless that allows it.
  constexpr void report(std::string_view name, Action unlisted) {
    const std::optional<int> number = numberOf(name);
    if (!number) return;
    for (SyscallRule& rule : rules_) {
      if (rule.number != *number) continue;
      if (rule.otherwise.kind == ActionKind::refuse) rule.otherwise.kind = ActionKind::notify;
      return;
    }
    if (unlisted.kind != ActionKind::allow) rules_.push_back({*number, {}, unlisted});
  }
  constexpr void reserve(std::size_t count) { rules_.reserve(count); }
  constexpr std::vector<SyscallRule> take() { return std::move(rules_); }

 private:
  [[nodiscard]] constexpr std::optional<int> numberOf(std::string_view name) const {
    return syscall_table::numberOf(name, architecture_);
  }

  Architecture architecture_;
  std::vector<SyscallRule> rules_;
};

/// Local sockets, TCP and UDP; of netlink only what libc needs to list addresses. Every other protocol is kernel code
/// that no supported program needs, much of it in modules that the first socket would load.
constexpr void addSocketRules(Rules& rules) {
  const auto type = [](std::uint32_t want) { return equals(1, want, kSocketTypeMask); };
  // The two internet families differ in one bit; no other family matches both.
  const ArgumentTest internet = equals(0, AF_INET, ~static_cast<std::uint32_t>(AF_INET ^ AF_INET6));
  static_assert(AF_INET == 2 && AF_INET6 == 10);
  std::vector<Branch> branches = {
      {{type(SOCK_RAW), equals(0, AF_NETLINK), equals(2, 0)}, kAllow},
      {{type(SOCK_RAW)}, notify(EPERM)},
      {{type(SOCK_PACKET)}, notify(EPERM)},
      {{type(SOCK_DGRAM), equals(0, AF_NETLINK), equals(2, 0)}, kAllow},
      {{type(SOCK_DGRAM), equals(0, AF_INET), equals(2, IPPROTO_ICMP)}, notify(EACCES)},
      {{type(SOCK_DGRAM), equals(0, AF_INET6), equals(2, IPPROTO_ICMPV6)}, notify(EACCES)},
      {{type(SOCK_DGRAM), internet, equals(2, 0)}, kAllow},
      {{type(SOCK_DGRAM), internet, equals(2, IPPROTO_UDP)}, kAllow},
      {{type(SOCK_STREAM), internet, equals(2, 0)}, kAllow},
      {{type(SOCK_STREAM), internet, equals(2, IPPROTO_TCP)}, kAllow},
      {{internet, equals(2, kMptcp)}, refuse(EPROTONOSUPPORT)},  // Go tries it before TCP
      {{internet}, notify(EPROTONOSUPPORT)},
  };
  const Action no_family = notify(EAFNOSUPPORT);
  std::vector<Branch> local;
  for (const std::uint32_t kind : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    local.push_back({{equals(0, AF_UNIX), type(kind)}, kAllow});
  }
  local.push_back({{equals(0, AF_UNIX)}, notify(ESOCKTNOSUPPORT)});
  branches.insert(branches.end(), local.begin(), local.end());
  rules.set("socket", no_family, std::move(branches));
  rules.set("socketpair", no_family, std::move(local));
  // SO_PEEK_OFF: caisson counts memory behind descriptors in flight by peeking (src/sys/in_flight.h); a payload could
  // hide them by moving the offset. TCP_ULP: kernel TLS and other modules under a TCP socket.
  rules.set("setsockopt", kAllow,
            {{{equals(1, SOL_SOCKET), equals(2, SO_PEEK_OFF)}, refuse(EOPNOTSUPP)},
             {{equals(1, IPPROTO_TCP), equals(2, kTcpUpperLayer)}, notify(ENOPROTOOPT)}});
}

/// Allows the requests of ioctl_lists.h; input into terminals is reported, others get ENOTTY.
constexpr void addIoctlRules(Rules& rules) {
  std::vector<Branch> branches;
  for (const IoctlClass& each : kIoctlClasses) {
    for (const IoctlRequest& request : each.requests) branches.push_back({{equals(1, request.value)}, kAllow});
  }
  // Injecting input into the caller's terminal (CVE-2017-5226); high bits are ignored as in the kernel.
  branches.push_back({{equals(1, kTiocsti)}, notify(EPERM)});
  branches.push_back({{equals(1, kTioclinux)}, notify(EPERM)});
  branches.push_back({{equals(1, kEthtool)}, refuse(EOPNOTSUPP)});  // as loopback does; psutil handles no other errno
  rules.set("ioctl", refuse(ENOTTY), std::move(branches));
}

/// Calls that are allowed only with some arguments.
constexpr void addArgumentRules(Rules& rules) {
  rules.set("clone", kAllow, {{{anyBit(0, kNamespaceFlags & ~0x80U)}, notify(EPERM)}});
  rules.set("personality", notify(EPERM),
            {{{equals(0, 0)}, kAllow},
             {{equals(0, 0x0008)}, kAllow},
             {{equals(0, 0x20000)}, kAllow},
             {{equals(0, 0x20008)}, kAllow},
             {{equals(0, 0xffffffff)}, kAllow}});
  // A payload has the same uid as pid 1; it must not change the limits or the scheduling of pid 1. "All of a user" and
  // "all of a group" include pid 1.
  for (const std::string_view name :
       {"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}) {
    rules.set(name, kAllow, {{{equals(0, 1)}, notify(EPERM)}});
  }
  rules.set("setpriority", notify(EPERM), {{{equals(1, 1)}, notify(EPERM)}, {{equals(0, kPriorityProcess)}, kAllow}});
  rules.set("ioprio_set", notify(EPERM), {{{equals(1, 1)}, notify(EPERM)}, {{equals(0, kIoPriorityProcess)}, kAllow}});
  // Leases and directory notifications on files that are shared with the host stop or disturb programs there.
  rules.set("fcntl", kAllow,
            {{{equals(1, kSetLease)}, refuse(EINVAL)}, {{equals(1, kDirectoryNotify)}, refuse(EINVAL)}});
  // The overlay's whiteout is a device; a rename could leave one in a directory shared with the host.
  rules.set("renameat2", kAllow, {{{anyBit(4, kRenameWhiteout)}, notify(EPERM)}});
  addSocketRules(rules);
  addIoctlRules(rules);
}

/// Forbids setuid and setgid bits, and devices, in anything that may be shared with the host.
constexpr void addModeRules(Rules& rules) {
  rules.set("chmod", kAllow, {{{anyBit(1, kSetIdBits)}, notify(EPERM)}});
  rules.set("fchmod", kAllow, {{{anyBit(1, kSetIdBits)}, notify(EPERM)}});
  rules.set("fchmodat", kAllow, {{{anyBit(2, kSetIdBits)}, notify(EPERM)}});
  rules.set("fchmodat2", kAllow, {{{anyBit(2, kSetIdBits)}, notify(EPERM)}});
  rules.set("creat", kAllow, {{{anyBit(1, kSetIdBits)}, notify(EPERM)}});
  rules.set("open", kAllow, {{{anyBit(1, kCreateFlags), anyBit(2, kSetIdBits)}, notify(EPERM)}});
  rules.set("openat", kAllow, {{{anyBit(2, kCreateFlags), anyBit(3, kSetIdBits)}, notify(EPERM)}});
  for (const auto& [name, mode] : {std::pair<std::string_view, std::uint8_t>{"mknod", 1}, {"mknodat", 2}}) {
    rules.set(name, kAllow,
              {{{anyBit(mode, kSetIdBits)}, notify(EPERM)},
               {{equals(mode, S_IFCHR, S_IFMT)}, notify(EPERM)},  // also 0:0, the overlay's whiteout
               {{equals(mode, S_IFBLK, S_IFMT)}, notify(EPERM)}});
  }
}

/// Calls in no list: ENOSYS, as on a kernel without the call, so that programs fall back; counted as probes.
constexpr Action kUnlisted = notify(ENOSYS);

/// The built-in allowlist, not adapted to a policy.
constexpr Rules builtinRules(Architecture architecture = kNative) {
  Rules rules(architecture);
  rules.reserve(std::size(kAllowed) + std::size(kForbiddenCalls) + std::size(kAbsentCalls) + 20);
  for (const std::string_view name : kAllowed) rules.add(name, kAllow);
  for (const std::string_view name : kForbiddenCalls) rules.add(name, notify(EPERM));
  for (const std::string_view name : kAbsentCalls)
    rules.add(name, isRecordedAbsence(name) ? notify(ENOSYS) : refuse(ENOSYS));
  addArgumentRules(rules);
  addModeRules(rules);
  rules.set("sysinfo", kAnswer);  // the host's memory and load, which /proc hides
  return rules;
}

}  // namespace caisson::plan::rules
