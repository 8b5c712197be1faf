#include "supervise/syscalls/denials.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/never_allowed_calls.h"
#include "base/syscall_arguments.h"
#include "base/syscall_names.h"
#include "plan/filesystem.h"
#include "plan/syscalls.h"
#include "policy/rules/severity.h"

namespace caisson::supervise {
namespace {

constexpr std::string_view kNeverAllowed = "syscalls: no policy allows it";

struct Family {
  std::string_view operation;
  std::string_view remedy;
  std::span<const std::string_view> calls;
};

constexpr std::string_view kWatching[] = {
    "kcmp", "perf_event_open", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace"};
constexpr std::string_view kRebuilding[] = {"chroot",         "clone",      "fsconfig",      "fsmount",    "fsopen",
                                            "fspick",         "mount",      "mount_setattr", "move_mount", "open_tree",
                                            "open_tree_attr", "pivot_root", "setns",         "umount2",    "unshare"};
constexpr std::string_view kKeys[] = {"add_key", "keyctl", "request_key"};
constexpr std::string_view kClock[] = {"adjtimex", "clock_adjtime", "clock_settime", "settimeofday"};
constexpr std::string_view kHandles[] = {"name_to_handle_at", "open_by_handle_at"};
constexpr std::string_view kKernel[] = {"bpf",         "create_module",   "delete_module", "finit_module",
                                        "init_module", "kexec_file_load", "kexec_load",    "reboot"};

constexpr Family kFamilies[] = {
    {"watch another process", "debuggers and profilers do not work inside; run them outside the sandbox", kWatching},
    {"change namespaces or mounts",
     "a sandbox cannot be built inside this one; switch the program's own off (often --no-sandbox)", kRebuilding},
    {"use the kernel's key store", "there is none inside; let the program keep its credentials in a file", kKeys},
    {"set the clock", "the clock belongs to the host; the program must do without", kClock},
    {"open a file past its path", "files are opened by their path inside", kHandles},
    {"load code into the kernel", "no program inside has business in the kernel", kKernel},
};

Denial never(const Violation& call, std::string_view operation, std::string_view remedy) {
  return {.rule = std::string(kNeverAllowed),
          .object = call.syscall,
          .operation = std::string(operation),
          .remedy = std::string(remedy)};
}

std::uint32_t low(const Violation& call, int argument) { return static_cast<std::uint32_t>(call.arguments[argument]); }

std::string socketName(const Violation& call) {
  struct Name {
    std::uint32_t family;
    std::string_view name;
  };
  constexpr Name kNames[] = {{AF_UNIX, "AF_UNIX"},       {AF_INET, "AF_INET"},     {AF_INET6, "AF_INET6"},
                             {AF_NETLINK, "AF_NETLINK"}, {AF_PACKET, "AF_PACKET"}, {AF_ALG, "AF_ALG"},
                             {AF_VSOCK, "AF_VSOCK"}};
  const std::uint32_t family = low(call, 0);
  const auto* const known = std::ranges::find(kNames, family, &Name::family);
  const std::string name = known != std::end(kNames) ? std::string(known->name) : "family " + std::to_string(family);
  return format("{}({}, type {}, protocol {})", call.syscall, name, low(call, 1) & 0xfU, low(call, 2));
}

/// Explains the denial of a call that is allowed, but not with these arguments.
Denial explainArguments(const plan::Plan& plan, const Violation& call) {
  const std::string_view name = call.syscall;
  if (name == "socket" || name == "socketpair") {
    Denial denial = never(call, "open a socket",
                          plan.tier == policy::Tier::landlock
                              ? "the landlock tier has at most TCP, through the proxy; use the tier `namespaces`"
                              : "local, TCP and UDP sockets work; raw, packet and kernel sockets do not");
    denial.object = socketName(call);
    return denial;
  }
  if (name == "memfd_create") {
    return {.rule = "process.allowed_executables",
            .object = call.syscall,
            .operation = "make a file in memory that could be executed",
            .remedy = "pass MFD_NOEXEC_SEAL, or drop the executable lists from the policy"};
  }
  if (name == "ioctl") return never(call, "type into a terminal", "the program must read its own input");
  if (name == "setsockopt")
    return never(call, "put a kernel protocol under a TCP socket (TCP_ULP)", "encrypt in the program itself");
  if ((name == "setpriority" && low(call, 0) != 0) || (name == "ioprio_set" && low(call, 0) != 1))
    return never(call, "change the priority of a whole user or process group", "name single processes");
  if (name == "personality") return never(call, "change the execution domain", "address randomisation stays on");
  if (name == "renameat2") return never(call, "leave an overlay's mark of deletion", "rename without RENAME_WHITEOUT");
  if (name == "mknod" || name == "mknodat")
    return never(call, "make a device or a setuid file",
                 "leave devices and setuid bits out, for instance of an archive");
  if (name.find("chmod") != std::string_view::npos || name == "creat" || name.starts_with("open"))
    return never(call, "set a setuid or setgid bit", "leave these bits out, for instance `install -m 755`");
  return never(call, "reach the process that guards this sandbox", "name a process of the program's own");
}

/// Whether the call is allowed with other arguments.
bool isPartlyAllowed(const plan::Plan& plan, int number) {
  if (plan.builtin_syscalls) return true;  // it denies a listed call only for its arguments
  if (!plan.syscalls) return false;
  const auto rule = std::ranges::find(plan.syscalls->rules, number, &plan::SyscallRule::number);
  return rule != plan.syscalls->rules.end() && !rule->branches.empty();
}

/// No list has this call, so the filter's default action denied it. The plan holds no rules of the built-in filter, so
/// its lists are searched by name.
bool isUnlisted(const plan::Plan& plan, int number) {
  if (plan.builtin_syscalls) {
    const auto allowed = plan::allowedSyscalls();
    const std::string_view name = syscallName(number);
    return !isNeverAllowed(name) && std::ranges::find(allowed, name) == allowed.end();
  }
  return plan.syscalls &&
         std::ranges::find(plan.syscalls->rules, number, &plan::SyscallRule::number) == plan.syscalls->rules.end();
}

Denial explainCall(const plan::Plan& plan, const Violation& call) {
  const std::string_view name = call.syscall;
  if (plan.tier == policy::Tier::landlock && name == "socket") return explainArguments(plan, call);
  if (call.architecture != plan::nativeArchitectureName()) {
    return {.rule = "seccomp: own architecture only",
            .object = call.syscall,
            .operation = "system call of a foreign architecture",
            .remedy = "run programs built for this machine's own architecture"};
  }
  const bool starts = name == "fork" || name == "vfork" || name == "clone";
  if (starts && plan.no_fork && (name != "clone" || (call.arguments[0] & plan::namespaceFlags()) == 0)) {
    return {.rule = "process.allow_fork",
            .object = call.syscall,
            .operation = "start a process",
            .remedy = "set process.allow_fork = true in the policy"};
  }
  if (plan.single_exec && (name == "execve" || name == "execveat")) {
    return {.rule = "process.allow_exec",
            .object = call.syscall,
            .operation = "start another program",
            .remedy = "set process.allow_exec = true in the policy"};
  }
  for (const Family& family : kFamilies) {
    if (std::ranges::find(family.calls, name) != family.calls.end())
      return never(call, family.operation, family.remedy);
  }
  const auto forbidden = plan::forbiddenSyscalls();
  if (std::ranges::find(forbidden, name) != forbidden.end())
    return never(call, "system call", "the program must do without");
  if (isUnlisted(plan, call.number)) {
    return {.rule = "syscalls.allow",
            .object = call.syscall,
            .operation = "system call that no list of this build knows",
            .remedy = syscallName(call.number).empty() ? "the program must do without"
                                                       : format("add \"{}\" to syscalls.allow in the policy", name)};
  }
  if (isPartlyAllowed(plan, call.number)) return explainArguments(plan, call);
  return {.rule = "syscalls.names",
          .object = call.syscall,
          .operation = "system call",
          .remedy = format("let the policy's list of system calls allow \"{}\"", name)};
}

/// A large file in a directory that is in memory is the likely cause: say where else it could be.
std::string memoryRemedy(const plan::Plan& plan, const FilesInMemory& files) {
  constexpr std::string_view kRaise = "raise the limit with --memory";
  if (files.bytes < plan.memory_bytes / 2) return std::string(kRaise);
  const std::string advice = files.directory == plan::kWorkspace || plan.host_view
                                 ? "with --disk SIZE (filesystem.overlay_store = \"disk\") they are on disk"
                                 : "with --profile dev, or store = \"disk\" in the policy, they are on disk";
  return format("{}; {} MiB of it are files in {}, which is in memory: {}", kRaise, files.bytes >> 20U, files.directory,
                advice);
}

/// Advice with a line for a policy file, which changes this entry and keeps the others.
std::string directoryRemedy(const plan::Plan& plan, const std::string& path) {
  for (const plan::Step& step : plan.steps) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&step);
    if (directory == nullptr || directory->target != path || path.starts_with("/dev")) continue;
    const std::string line = format("filesystem.tmpfs.\"{}\".size = \"{}M\"", path, directory->bytes >> 19U);
    return directory->on_disk ? "raise it with --disk, or with " + line + " in a policy"
                              : "raise it with " + line + " in a policy, or use --profile dev";
  }
  return "its size is fixed";
}

}  // namespace

Denial explainRefusedCall(const plan::Plan& plan, const Violation& call) {
  Denial denial = explainCall(plan, call);
  denial.probe = call.severity == name(policy::Severity::low);
  return denial;
}

void addForeignArchitectureDenial(RunResult& result) {
  Violation violation;
  violation.rule = "seccomp: own architecture only";
  violation.object = "a system call of a foreign architecture";
  violation.operation = "system call";
  violation.remedy = "run programs built for this machine's own architecture";
  violation.severity = name(policy::Severity::critical);
  violation.indicator = name(policy::Indicator::syscall);
  violation.count = 1;
  result.denials.push_back(violation);
  result.violations.push_back(std::move(violation));
}

std::string describeEscape(const plan::Plan& plan, const Violation& call, bool many) {
  std::string text = many ? format("{} grave attempts in this sandbox within {} s, the last one ",
                                   plan.severities.high_limit, plan.severities.high_window_seconds)
                          : "an attempt at ";
  text += call.syscall + "(";
  const bool native = call.architecture == plan::nativeArchitectureName();
  const std::size_t count = native ? syscallArgumentCount(call.number) : std::size(call.arguments);
  for (std::size_t i = 0; i < count; ++i) text += format("{}{}", i == 0 ? "" : ", ", hex(call.arguments[i]));
  text += format(") by {} (pid {})", call.program.empty() ? "a program" : call.program, call.pid);
  return text;
}

void explainLimits(const plan::Plan& plan, const std::string& full, const FilesInMemory& files_in_memory,
                   RunResult& result) {
  const auto add = [&](std::string_view rule, std::string object, std::string_view operation, std::string_view remedy) {
    result.denials.push_back({.rule = std::string(rule),
                              .object = std::move(object),
                              .operation = std::string(operation),
                              .remedy = std::string(remedy),
                              .count = 1});
  };
  if (result.outcome == OutcomeKind::limit) {
    switch (result.limit) {
      case Limit::time:
        add("resources.wall_seconds", format("{} s", plan.wall_seconds.value_or(0)), "run on",
            "raise the limit with --timeout");
        break;
      case Limit::cpu:
        add("resources.cpu_seconds", format("{} s", plan.cpu_seconds.value_or(0)), "use the processor",
            "raise resources.cpu_seconds in the policy");
        break;
      case Limit::memory:
        add("resources.memory", format("{} bytes", plan.memory_bytes), "use memory",
            memoryRemedy(plan, files_in_memory));
        break;
      case Limit::file_size:
        add("filesystem.max_file_size", "a file", "write", "raise filesystem.max_file_size in the policy");
        break;
      case Limit::disk:
        if (!full.empty() && full != plan.workspace_target) {
          add("filesystem.tmpfs", full, "write", directoryRemedy(plan, full));
          break;
        }
        add("filesystem.max_total_size", "the workspace", "write", "raise the limit with --disk");
        break;
      case Limit::processes:
      case Limit::output:
      case Limit::none: break;
    }
  }
  const struct {
    const Stream& stream;
    std::string_view name;
  } streams[] = {{result.out, "standard output"}, {result.err, "standard error"}};
  for (const auto& [stream, name] : streams) {
    if (stream.truncated)
      add("resources.output", format("{} bytes of {}", stream.dropped, name), "write",
          "raise the limit with --output-limit");
  }
}

}  // namespace caisson::supervise
