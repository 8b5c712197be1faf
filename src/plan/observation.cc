#include "plan/observation.h"

#include <sched.h>

#include <algorithm>
#include <iterator>

#include "base/syscall_names.h"

namespace caisson::plan {
namespace {

using enum FileOperation;

constexpr PathArgument at(std::int8_t path) { return {-1, path}; }
constexpr PathArgument pathIn(std::int8_t directory, std::int8_t path) { return {directory, path}; }

constexpr ObservedCall kFileCalls[] = {
    {.name = "open", .operation = open, .first = at(0), .flags = 1},
    {.name = "openat", .operation = open, .first = pathIn(0, 1), .flags = 2},
    {.name = "creat", .operation = create, .first = at(0)},
    {.name = "execve", .operation = execute, .first = at(0)},
    {.name = "execveat", .operation = execute, .first = pathIn(0, 1)},
    {.name = "stat", .operation = look, .first = at(0)},
    {.name = "lstat", .operation = look, .first = at(0)},
    {.name = "newfstatat", .operation = look, .first = pathIn(0, 1)},
    {.name = "statx", .operation = look, .first = pathIn(0, 1)},
    {.name = "access", .operation = look, .first = at(0)},
    {.name = "faccessat", .operation = look, .first = pathIn(0, 1)},
    {.name = "faccessat2", .operation = look, .first = pathIn(0, 1)},
    {.name = "readlink", .operation = look, .first = at(0)},
    {.name = "readlinkat", .operation = look, .first = pathIn(0, 1)},
    {.name = "chdir", .operation = look, .first = at(0)},
    {.name = "mkdir", .operation = create, .first = at(0)},
    {.name = "mkdirat", .operation = create, .first = pathIn(0, 1)},
    {.name = "mknod", .operation = create, .first = at(0)},
    {.name = "mknodat", .operation = create, .first = pathIn(0, 1)},
    {.name = "symlink", .operation = create, .first = at(1)},
    {.name = "symlinkat", .operation = create, .first = pathIn(1, 2)},
    {.name = "link", .operation = look, .first = at(0), .second = at(1)},
    {.name = "linkat", .operation = look, .first = pathIn(0, 1), .second = pathIn(2, 3)},
    {.name = "rename", .operation = write, .first = at(0), .second = at(1)},
    {.name = "renameat", .operation = write, .first = pathIn(0, 1), .second = pathIn(2, 3)},
    {.name = "renameat2", .operation = write, .first = pathIn(0, 1), .second = pathIn(2, 3)},
    {.name = "unlink", .operation = write, .first = at(0)},
    {.name = "unlinkat", .operation = write, .first = pathIn(0, 1)},
    {.name = "rmdir", .operation = write, .first = at(0)},
    {.name = "truncate", .operation = write, .first = at(0)},
};

constexpr std::string_view kNetworkCalls[] = {"connect", "sendto", "sendmmsg", "sendmsg"};

void show(Action& action) {
  if (action == kAllow) action = kObserve;
}

/// Makes the filter report the call where it is allowed, also where only a rule on its arguments allows it.
void observe(SyscallFilter& filter, std::string_view name) {
  const auto number = syscallNumber(name, filter.architecture);
  if (!number) return;
  auto rule = std::ranges::find(filter.rules, *number, &SyscallRule::number);
  if (rule == filter.rules.end()) rule = filter.rules.insert(rule, {*number, {}, filter.unlisted});
  // With a single exec, the branch that allows it is the payload's own start.
  if (name != "execveat") {
    for (Branch& branch : rule->branches) show(branch.action);
  }
  show(rule->otherwise);
  if (name != "execve" || rule->otherwise != kObserve) return;
  ArgumentTest own;
  own.argument = kOwnExecArgument;
  own.want = kOwnExecMark;
  rule->branches.insert(rule->branches.begin(), {{own}, kAllow});
}

/// Exempts calls with these arguments from being reported.
void exempt(SyscallFilter& filter, std::string_view name, const ArgumentTest& test) {
  const auto number = syscallNumber(name, filter.architecture);
  const auto rule = std::ranges::find(filter.rules, number.value_or(-1), &SyscallRule::number);
  if (rule == filter.rules.end() || rule->otherwise != kObserve) return;
  rule->branches.push_back({{test}, kAllow});  // last: what other branches deny stays denied
}

constexpr std::string_view kForkCalls[] = {"fork", "vfork", "clone"};

struct SignalCall {
  std::string_view name;
  std::uint8_t signal = 1;  ///< index of the argument
};
// Not tkill and tgkill, which threads of one process use among themselves: Go runtimes send thousands.
constexpr SignalCall kSignalCalls[] = {{"kill"}, {"pidfd_send_signal"}, {"rt_sigqueueinfo"}};

}  // namespace

std::span<const ObservedCall> observedFileCalls() { return kFileCalls; }
std::span<const std::string_view> observedNetworkCalls() { return kNetworkCalls; }

void observeFiles(SyscallFilter& filter) {
  for (const ObservedCall& call : kFileCalls) observe(filter, call.name);
}

void observeNetwork(SyscallFilter& filter) {
  for (const std::string_view name : kNetworkCalls) observe(filter, name);
}

void observeProcesses(SyscallFilter& filter) {
  for (const std::string_view name : {"execve", "execveat"}) observe(filter, name);
  for (const SignalCall& call : kSignalCalls) {
    observe(filter, call.name);
    exempt(filter, call.name, {.argument = call.signal, .want = 0});  // signal 0 only asks whether the process exists
  }
}

void observeTasks(SyscallFilter& filter) {
  for (const std::string_view name : kForkCalls) observe(filter, name);
}

bool createsTask(std::string_view call) { return std::ranges::find(kForkCalls, call) != std::end(kForkCalls); }

bool createsThread(std::string_view call, std::span<const std::uint64_t> arguments) {
  return call == "clone" && (arguments[0] & CLONE_THREAD) != 0;
}

std::optional<std::size_t> signalArgument(std::string_view call) {
  const auto* found = std::ranges::find(kSignalCalls, call, &SignalCall::name);
  return found == std::end(kSignalCalls) ? std::nullopt : std::optional<std::size_t>(found->signal);
}

}  // namespace caisson::plan
