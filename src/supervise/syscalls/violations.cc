#include "supervise/syscalls/violations.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/syscall_arguments.h"
#include "base/syscall_names.h"
#include "plan/syscalls.h"
#include "supervise/syscalls/denials.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kMaxEntries = 64;
constexpr std::size_t kMaxPerCall = 8;
constexpr int kX32Bit = 0x40000000;

bool isForeign(const Attempt& attempt) {
  return attempt.architecture != plan::nativeArchitecture() || attempt.number >= kX32Bit;
}

std::string architectureName(const Attempt& attempt) {
  if (attempt.architecture == AUDIT_ARCH_X86_64) return attempt.number >= kX32Bit ? "x32" : "x86_64";
  if (attempt.architecture == AUDIT_ARCH_AARCH64) return "aarch64";
  if (attempt.architecture == AUDIT_ARCH_I386) return "i386";
  if (attempt.architecture == AUDIT_ARCH_ARM) return "arm";
  return "architecture " + hex(attempt.architecture);
}

/// A number is a different call on another architecture, so only native calls are named.
bool isNamed(const Attempt& attempt) { return !isForeign(attempt) && !syscallName(attempt.number).empty(); }

std::string callName(const Attempt& attempt) {
  if (isForeign(attempt)) return architectureName(attempt) + " call " + std::to_string(attempt.number & ~kX32Bit);
  return isNamed(attempt) ? std::string(syscallName(attempt.number)) : "call " + std::to_string(attempt.number);
}

/// The arguments without registers that the call does not read: those differ from one attempt to the next and would
/// split entries. For another architecture all six are kept.
std::array<std::uint64_t, 6> ownArguments(const Attempt& attempt) {
  std::array<std::uint64_t, 6> own{};
  const std::size_t count = isForeign(attempt) ? own.size() : syscallArgumentCount(attempt.number);
  std::copy_n(attempt.arguments, count, own.begin());
  return own;
}

policy::Severity severityOf(const Attempt& attempt, std::string_view call, const policy::Syscalls& table) {
  // No call of such a program is ever allowed, so it is harmless.
  if (isForeign(attempt)) return attempt.foreign_program ? policy::Severity::low : policy::Severity::critical;
  const policy::Severity severity = policy::severityOf(table, call);
  // PTRACE_TRACEME only makes the caller traceable.
  const bool own = call == "ptrace" && static_cast<std::uint32_t>(attempt.arguments[0]) == 0;
  return own && severity == policy::Severity::high ? policy::Severity::low : severity;
}

}  // namespace

bool HighAttempts::tooMany(Time now, const policy::Syscalls& table) {
  const auto window = std::chrono::duration<double>(table.high_window_seconds);
  times_.push_back(now);
  while (times_.size() > table.high_limit || now - times_.front() > window) times_.pop_front();
  if (times_.size() < table.high_limit) return false;
  times_.clear();
  return true;
}

std::uint32_t Violations::evaluate(const Attempt& attempt) {
  std::span<const sock_filter> program = plan::builtinProgram();
  if (!plan_.builtin_syscalls) {
    if (program_.empty() && plan_.syscalls) {
      if (auto compiled = plan::compile(*plan_.syscalls)) program_ = std::move(*compiled);
    }
    program = program_;
  }
  return plan::evaluate(program, attempt.architecture, attempt.number, attempt.arguments);
}

bool Violations::isAnswered(const Attempt& attempt) {
  return attempt.number == SYS_sysinfo && !isForeign(attempt) &&
         evaluate(attempt) == (SECCOMP_RET_USER_NOTIF | plan::kAnswer.error);
}

bool Violations::isServed(const Attempt& attempt) {
  return !isForeign(attempt) && evaluate(attempt) == (SECCOMP_RET_USER_NOTIF | plan::kServe.error);
}

int Violations::answerTo(const Attempt& attempt) {
  const std::uint32_t answer = evaluate(attempt);
  const int error = static_cast<int>(answer & SECCOMP_RET_DATA);
  return (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF && error != 0 && error < 4096 ? error : EPERM;
}

Violation& Violations::entryFor(const Attempt& attempt, const std::function<std::string()>& program) {
  Violation* alike = nullptr;
  std::size_t of_this_call = 0;
  const std::string architecture = architectureName(attempt);
  const std::array<std::uint64_t, 6> arguments = ownArguments(attempt);
  const std::string_view severity = name(severityOf(attempt, callName(attempt), plan_.severities));
  for (Violation& entry : entries_) {
    if (entry.architecture != architecture) continue;
    const bool same = entry.number == attempt.number;
    // There are billions of unnamed numbers: all of them are one kind.
    const bool both_unnamed = !isNamed(attempt) && entry.syscall.find(' ') != std::string::npos;
    if (!same && !(both_unnamed && entry.severity == severity)) continue;
    ++of_this_call;
    alike = &entry;
    if (same && entry.pid == attempt.pid && std::ranges::equal(entry.arguments, arguments)) return entry;
  }
  // A payload controls numbers, arguments and pids: attempts beyond the limit are counted with the last entry of their
  // kind.
  if (alike != nullptr && (of_this_call >= kMaxPerCall || entries_.size() >= kMaxEntries)) return *alike;
  Violation entry;
  entry.syscall = callName(attempt);
  entry.number = attempt.number;
  entry.architecture = architecture;
  std::ranges::copy(arguments, entry.arguments);
  entry.pid = attempt.pid;
  entry.program = program();
  entry.severity = name(severityOf(attempt, entry.syscall, plan_.severities));
  entry.indicator = name(policy::indicatorOf(entry.syscall));
  entry.error = answerTo(attempt);
  static_cast<Denial&>(entry) = explainRefusedCall(plan_, entry);
  return entries_.emplace_back(std::move(entry));
}

Verdict Violations::judge(const Attempt& attempt, Time now, const std::function<std::string()>& program) {
  Violation& entry = entryFor(attempt, program);
  ++entry.count;
  Verdict verdict{.error = entry.error, .entry = &entry, .worth_logging = (entry.count & (entry.count - 1)) == 0};
  if (escape_) return verdict;
  // Grade this attempt, not the entry: it may be more severe than the attempt that created the entry (ptrace).
  switch (severityOf(attempt, entry.syscall, plan_.severities)) {
    case policy::Severity::low: verdict.end_process = attempt.foreign_program; return verdict;
    case policy::Severity::high:
      if (!high_->tooMany(now, plan_.severities)) return verdict;
      escape_ = Escape{.indicator = entry.indicator, .severity = "HIGH", .reason = describeEscape(plan_, entry, true)};
      break;
    case policy::Severity::critical:
      escape_ =
          Escape{.indicator = entry.indicator, .severity = "CRITICAL", .reason = describeEscape(plan_, entry, false)};
      break;
  }
  verdict.end = verdict.worth_logging = true;
  return verdict;
}

void Violations::report(RunResult& result) {
  for (const Violation& entry : entries_) {
    const auto known = std::ranges::find_if(result.denials, [&](const Denial& denial) {
      return denial.rule == entry.rule && denial.object == entry.object && denial.operation == entry.operation;
    });
    if (known != result.denials.end()) {
      known->count += entry.count;
      continue;
    }
    result.denials.push_back(entry);
    result.denials.back().count = entry.count;
  }
  for (Violation& entry : entries_) result.violations.push_back(std::move(entry));
  entries_.clear();
}

}  // namespace caisson::supervise
