#include "supervise/syscalls/process_log.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/syscall_names.h"
#include "plan/observation.h"
#include "supervise/syscalls/observer.h"
#include "sys/process_view.h"

namespace caisson::supervise {
namespace {

using How = ProcessLog::Kind::How;

std::string signalName(std::uint64_t number) {
  const char* known = ::sigabbrev_np(static_cast<int>(number));
  return known != nullptr ? "SIG" + std::string(known) : "signal " + std::to_string(number);
}

/// The path of an exec, or "" if it is unknown or no file: a search through PATH tries many that do not exist.
std::string programOfExec(const Attempt& attempt) {
  const bool at = attempt.number == SYS_execveat;
  const auto text = sys::readText(attempt.pid, attempt.arguments[at ? 1 : 0]);
  if (!text) return {};
  const int descriptor = at ? static_cast<int>(attempt.arguments[0]) : AT_FDCWD;
  // An empty path stands for the file behind the descriptor, which may be a memory file.
  if (text->empty()) return at ? "descriptor " + std::to_string(descriptor) : std::string();
  std::string path = plainPath(text->front() == '/' ? "" : sys::directoryOf(attempt.pid, descriptor), *text);
  const sys::Fd root = path.empty() ? sys::Fd() : sys::rootOf(attempt.pid);
  return root && sys::glance(root.get(), path).error == 0 ? path : std::string();
}

}  // namespace

std::optional<ProcessLog::Kind> ProcessLog::kindOf(const Attempt& attempt, const Listener& listener) const {
  const std::string_view call = syscallName(attempt.number);
  const std::string parent = listener.programOf(attempt);
  if (const auto signal = plan::signalArgument(call)) {
    return Kind{How::signal, signalName(attempt.arguments[*signal] & 0xffffffff), parent};
  }
  if (call != "execve" && call != "execveat") return std::nullopt;  // observed for another purpose
  Kind kind{How::exec, programOfExec(attempt), parent};
  if (kind.program.empty() || !listener.isValid(attempt)) return std::nullopt;
  return kind;
}

void ProcessLog::note(const Attempt& attempt, const Listener& listener) {
  if (const auto kind = kindOf(attempt, listener)) add(*kind, attempt.pid, Clock::now());
}

bool ProcessLog::hasRoom(Clock::time_point now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    in_second_ = 0;
  }
  return ++in_second_ <= kMaxEventsPerSecond;
}

void ProcessLog::add(const Kind& kind, pid_t pid, Clock::time_point now) {
  ++(kind.how == How::exec ? execs_ : signals_);
  auto known = counts_.find(kind);
  if (known == counts_.end()) {
    if (counts_.size() >= kMaxKinds) return noteOverflow();  // in the totals only
    known = counts_.emplace(kind, 0).first;
  }
  const std::uint64_t count = ++known->second;
  if (!std::has_single_bit(count) || !hasRoom(now)) return;
  ++events_;
  audit::Fields fields;
  if (kind.how == How::signal) {
    fields.text("signal", kind.program).text("sent_by", kind.parent).number("pid", pid).number("count", count);
    return record_(audit::EventType::signal_sent, std::move(fields));
  }
  fields.text("how", "exec").text("program", kind.program);
  fields.text("parent", kind.parent).number("pid", pid).number("count", count);
  record_(audit::EventType::process_created, std::move(fields));
}

void ProcessLog::noteOverflow() {
  if (std::exchange(overflowed_, true)) return;
  audit::Fields fields;
  fields.text("how", "overflow").number("kinds", kMaxKinds).number("recorded", events_);
  record_(audit::EventType::process_created, std::move(fields));
}

void ProcessLog::finish() {
  const std::uint64_t all = execs_ + signals_;
  if (all == events_ || std::exchange(finished_at_, all) == all) return;
  audit::Fields fields;
  fields.text("how", "total").number("execs", execs_).number("signals", signals_);
  fields.number("recorded", events_);
  record_(audit::EventType::process_created, std::move(fields));
}

}  // namespace caisson::supervise
