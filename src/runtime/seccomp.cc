#include "runtime/seccomp.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>

#include "base/syscall_names.h"
#include "plan/syscalls.h"

namespace caisson::runtime {
namespace {

using plan::Action;
using plan::ActionKind;
using plan::ArgumentTest;
using plan::Branch;
using plan::SyscallRule;

/// Calls between the runtime's filter and that of the payload: of the runtime's own first process, and of pid 1.
constexpr std::string_view kSetupCalls[] = {
    "brk",
    "capget",
    "capset",
    "chdir",
    "clock_nanosleep",
    "clone",
    "close",
    "close_range",
    "connect",
    "dup",
    "dup2",
    "dup3",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "eventfd2",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fcntl",
    "fork",
    "fstat",
    "fstatfs",
    "futex",
    "getdents64",
    "getpid",
    "getppid",
    "getrandom",
    "getrusage",
    "gettid",
    "ioctl",
    "kill",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "lseek",
    "lstat",
    "madvise",
    "mmap",
    "mprotect",
    "msgctl",
    "munmap",
    "nanosleep",
    "newfstatat",
    "open",
    "openat",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "prlimit64",
    "read",
    "readlink",
    "readlinkat",
    "recvfrom",
    "recvmsg",
    "restart_syscall",
    "rmdir",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_yield",
    "seccomp",
    "semctl",
    "sendmsg",
    "sendto",
    "setrlimit",
    "setsid",
    "shmctl",
    "shutdown",
    "sigaltstack",
    "signalfd4",
    "socket",
    "stat",
    "statx",
    "tgkill",
    "umask",
    "unlink",
    "unlinkat",
    "vfork",
    "wait4",
    "write",
    "writev",
};

bool isSetupCall(std::string_view name) { return std::ranges::find(kSetupCalls, name) != std::end(kSetupCalls); }

bool permits(Action action) {
  return action.kind == ActionKind::allow || action == plan::kObserve || action == plan::kAnswer ||
         action == plan::kServe || action.kind == ActionKind::pretend;
}

/// Whether (value & mask) == want on the low half says the same; libseccomp compares 64 bits under a mask.
bool isMasked(const ArgumentTest& test) {
  return test.half == ArgumentTest::Half::low &&
         (test.kind == ArgumentTest::Kind::equal || test.kind == ArgumentTest::Kind::no_bit);
}

/// libseccomp takes one comparison per argument; runtimes turn more into alternatives.
bool onePerArgument(const std::vector<ArgumentTest>& tests) {
  std::uint32_t seen = 0;
  for (const ArgumentTest& test : tests) {
    if ((seen >> test.argument & 1U) != 0) return false;
    seen |= 1U << test.argument;
  }
  return true;
}

/// A condition under which a call is allowed: all tests hold.
using Condition = std::vector<ArgumentTest>;

/// The conditions under which the rule allows its call, if they can be expressed exactly.
std::optional<std::vector<Condition>> conditionsOf(const SyscallRule& rule) {
  std::vector<Condition> conditions;
  if (!permits(rule.otherwise)) {
    for (const Branch& branch : rule.branches) {
      if (!permits(branch.action) || !std::ranges::all_of(branch.tests, isMasked) || !onePerArgument(branch.tests))
        return std::nullopt;
      conditions.push_back(branch.tests);
    }
    return conditions;
  }
  // Denied if a bit of some mask is set: allowed if none is, for all masks of the same argument together.
  ArgumentTest none{.kind = ArgumentTest::Kind::no_bit, .mask = 0};
  for (const Branch& branch : rule.branches) {
    const bool simple = !permits(branch.action) && branch.tests.size() == 1 &&
                        branch.tests[0].kind == ArgumentTest::Kind::any_bit &&
                        branch.tests[0].half == ArgumentTest::Half::low &&
                        (none.mask == 0 || none.argument == branch.tests[0].argument);
    if (!simple) return std::nullopt;
    none.argument = branch.tests[0].argument;
    none.mask |= branch.tests[0].mask;
  }
  return std::vector<Condition>{{none}};
}

void writeCondition(JsonWriter& json, const Condition& condition) {
  json.key("args").beginArray();
  for (const ArgumentTest& test : condition) {
    json.beginObject().key("index").number(static_cast<int>(test.argument));
    json.key("value").number(test.mask).key("valueTwo");
    json.number(test.kind == ArgumentTest::Kind::no_bit ? 0U : test.want & test.mask);
    json.key("op").string("SCMP_CMP_MASKED_EQ").end();
  }
  json.end();
}

struct Lists {
  std::vector<std::string_view> allowed;
  std::vector<std::pair<std::string_view, Condition>> conditional;
  std::map<int, std::vector<std::string_view>> denied;  ///< by errno
};

int errnoOf(Action action) { return action.error > 0 && action.error < 4096 ? action.error : EPERM; }

void addRule(const SyscallRule& rule, Architecture architecture, ArgumentRules arguments, Lists& lists) {
  const std::string_view name = syscallName(rule.number, architecture);
  if (name.empty()) return;
  const bool allowed_somehow = permits(rule.otherwise) || std::ranges::any_of(rule.branches, [](const Branch& one) {
                                 return permits(one.action);
                               });
  if (isSetupCall(name)) return;  // allowed by name below
  if (!allowed_somehow) {
    lists.denied[errnoOf(rule.otherwise)].push_back(name);
    return;
  }
  const bool by_name = rule.branches.empty() || arguments == ArgumentRules::by_init;
  const auto conditions = by_name ? std::nullopt : conditionsOf(rule);
  if (!conditions) return lists.allowed.push_back(name);
  for (const Condition& condition : *conditions) lists.conditional.emplace_back(name, condition);
}

}  // namespace

std::optional<plan::SyscallFilter> filterOf(const plan::Plan& plan) {
  if (!plan.builtin_syscalls) return plan.syscalls;
  auto filter = plan::filterForFull(policy::Policy{}, {});
  return filter ? std::optional<plan::SyscallFilter>(std::move(*filter)) : std::nullopt;
}

void writeSeccomp(JsonWriter& json, const plan::SyscallFilter& filter, ArgumentRules arguments) {
  Lists lists;
  for (const SyscallRule& rule : filter.rules) {
    addRule(rule, filter.architecture, arguments, lists);
  }
  for (const std::string_view name : kSetupCalls) {
    if (syscallNumber(name, filter.architecture)) lists.allowed.push_back(name);
  }
  if (arguments == ArgumentRules::in_profile) {
    std::erase(lists.allowed, "clone");
    const auto flags = static_cast<std::uint32_t>(plan::namespaceFlags());
    lists.conditional.push_back({"clone", {{.kind = ArgumentTest::Kind::no_bit, .mask = flags}}});
  }
  json.beginObject().key("defaultAction").string("SCMP_ACT_ERRNO");
  json.key("defaultErrnoRet").number(errnoOf(filter.unlisted));
  json.key("architectures").beginArray();
  json.string(filter.architecture == Architecture::x86_64 ? "SCMP_ARCH_X86_64" : "SCMP_ARCH_AARCH64").end();
  json.key("syscalls").beginArray();
  json.beginObject().key("names").strings(lists.allowed).key("action").string("SCMP_ACT_ALLOW").end();
  for (const auto& [name, condition] : lists.conditional) {
    json.beginObject().key("names").beginArray().string(name).end().key("action").string("SCMP_ACT_ALLOW");
    writeCondition(json, condition);
    json.end();
  }
  for (const auto& [error, names] : lists.denied) {
    if (error == errnoOf(filter.unlisted)) continue;
    json.beginObject().key("names").strings(names).key("action").string("SCMP_ACT_ERRNO");
    json.key("errnoRet").number(error).end();
  }
  json.end().end();
}

}  // namespace caisson::runtime
