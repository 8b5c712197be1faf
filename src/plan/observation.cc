#include "plan/observation.h"

#include <algorithm>

#include "base/syscall_names.h"

namespace caisson::plan {
namespace {

using enum FileOperation;

constexpr PathArgument at(std::int8_t path) { return {-1, path}; }
constexpr PathArgument below(std::int8_t directory, std::int8_t path) { return {directory, path}; }

constexpr ObservedCall kFileCalls[] = {
    {.name = "open", .operation = open, .first = at(0), .flags = 1},
    {.name = "openat", .operation = open, .first = below(0, 1), .flags = 2},
    {.name = "creat", .operation = create, .first = at(0)},
    {.name = "execve", .operation = execute, .first = at(0)},
    {.name = "execveat", .operation = execute, .first = below(0, 1)},
    {.name = "stat", .operation = look, .first = at(0)},
    {.name = "lstat", .operation = look, .first = at(0)},
    {.name = "newfstatat", .operation = look, .first = below(0, 1)},
    {.name = "statx", .operation = look, .first = below(0, 1)},
    {.name = "access", .operation = look, .first = at(0)},
    {.name = "faccessat", .operation = look, .first = below(0, 1)},
    {.name = "faccessat2", .operation = look, .first = below(0, 1)},
    {.name = "readlink", .operation = look, .first = at(0)},
    {.name = "readlinkat", .operation = look, .first = below(0, 1)},
    {.name = "chdir", .operation = look, .first = at(0)},
    {.name = "mkdir", .operation = create, .first = at(0)},
    {.name = "mkdirat", .operation = create, .first = below(0, 1)},
    {.name = "mknod", .operation = create, .first = at(0)},
    {.name = "mknodat", .operation = create, .first = below(0, 1)},
    {.name = "symlink", .operation = create, .first = at(1)},
    {.name = "symlinkat", .operation = create, .first = below(1, 2)},
    {.name = "link", .operation = look, .first = at(0), .second = at(1)},
    {.name = "linkat", .operation = look, .first = below(0, 1), .second = below(2, 3)},
    {.name = "rename", .operation = write, .first = at(0), .second = at(1)},
    {.name = "renameat", .operation = write, .first = below(0, 1), .second = below(2, 3)},
    {.name = "renameat2", .operation = write, .first = below(0, 1), .second = below(2, 3)},
    {.name = "unlink", .operation = write, .first = at(0)},
    {.name = "unlinkat", .operation = write, .first = below(0, 1)},
    {.name = "rmdir", .operation = write, .first = at(0)},
    {.name = "truncate", .operation = write, .first = at(0)},
};

constexpr std::string_view kNetworkCalls[] = {"connect", "sendto", "sendmmsg", "sendmsg"};

void show(Action& action) {
  if (action == kAllow) action = kObserve;
}

void observe(SyscallFilter& filter, std::string_view name) {
  const auto number = syscallNumber(name);
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

}  // namespace

std::span<const ObservedCall> observedFileCalls() { return kFileCalls; }
std::span<const std::string_view> observedNetworkCalls() { return kNetworkCalls; }

void observeFiles(SyscallFilter& filter) {
  for (const ObservedCall& call : kFileCalls) observe(filter, call.name);
}

void observeNetwork(SyscallFilter& filter) {
  for (const std::string_view name : kNetworkCalls) observe(filter, name);
}

}  // namespace caisson::plan
