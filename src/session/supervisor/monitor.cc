// Monitors running commands: blocked system calls, output, limits, network use.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "policy/rules/severity.h"
#include "session/store/background_files.h"
#include "session/supervisor/supervisor.h"
#include "supervise/command_exit.h"
#include "supervise/escape.h"

namespace caisson::session {
namespace {

constexpr std::size_t kLogPiece = 64 * 1024;
constexpr int kPiecesPerTurn = 16;                         // a flooding command must not delay the others
constexpr auto kIdleTimeout = std::chrono::seconds(2);     // of waitUntilIdle()
constexpr auto kIdlePause = std::chrono::milliseconds(5);  // between two kills
constexpr std::size_t kLastBytes = 64 * 1024;

std::string lastBytes(const sys::RootDir& logs, const std::string& name) {
  auto file = logs.openFile(name, {});
  const off_t size = file ? ::lseek(file->get(), 0, SEEK_END) : 0;
  if (size <= 0) return "";
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(size), kLastBytes), '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

void Supervisor::listenTo(Command& command, sys::Fd listener) {
  const std::uint64_t key = ++last_monitor_;
  const std::uint32_t number = command.number, exec = command.exec;
  auto calls = std::make_shared<supervise::SyscallMonitor>(
      loop_, *command.plan,
      supervise::SyscallMonitor::Response{
          .end = [this, number, key] { onEscape(number, key); },
          .record = [this, number, exec](const Violation& violation) { onViolation(number, exec, violation); },
          .closed = [this, key] { monitors_.erase(key); }},
      high_attempts_);
  if (command.plan->log_processes) {
    calls->logProcesses(
        [this](audit::EventType type, audit::Fields fields) { record_.note(metadata_.id, type, std::move(fields)); });
  }
  calls->changeForeignModes([this](int object, mode_t mode) {
    const int names = sandbox_ ? sandbox_->userNamespace() : -1;
    return names < 0 ? EPERM : launcher_.setMode(names, object, mode);
  });
  if (command.plan->task_limits && sandbox_) calls->limitTasks(sandbox_->init());
  monitors_[key] = {command.plan, calls};
  calls->listen(std::move(listener));
  command.runner->useMonitor(std::move(calls));
}

void Supervisor::onViolation(std::uint32_t number, std::uint32_t exec, const Violation& violation) {
  record_.callRefused(metadata_.id, violation);
  Command* command = find(number);
  if (exec == 0 || command == nullptr) return;
  const auto known = std::ranges::find_if(command->violations, [&](const Violation& old) {
    return old.number == violation.number && old.architecture == violation.architecture &&
           old.program == violation.program && old.rule == violation.rule && old.object == violation.object;
  });
  if (known == command->violations.end()) {
    command->violations.push_back(violation);
  } else {
    *known = violation;
  }
  (void)writeBlocked(*logs_, exec, command->violations);
}

void Supervisor::onEscape(std::uint32_t number, std::uint64_t monitor) {
  killEverything(EndedBy::sibling_escape, Limit::none, "");
  if (find(number) != nullptr) return;  // its result reports the attempt
  // A left-behind process: there is no result to report it in.
  const auto found = monitors_.find(monitor);
  if (found == monitors_.end()) return;
  const std::shared_ptr<plan::Plan> plan = found->second.plan;
  const std::shared_ptr<supervise::SyscallMonitor> calls = found->second.calls;
  loop_.at(Clock::now(), [this, plan, calls] {
    RunResult result;
    result.sandbox_id = metadata_.id;
    calls->report(result);
    if (!result.escape) return;
    supervise::classifyEscape("session exec", plan->command.front(), result);
    const std::string rolled_back = sandbox_ ? endAndRollBack() : rollBack();
    record_.escaped(metadata_.policy, withMounts(*plan), plan->command, {}, result, rolled_back);
    record_.handOver();
  });
}

plan::Plan Supervisor::withMounts(const plan::Plan& plan) const {
  plan::Plan copy = plan;
  copy.steps = mounts_;
  return copy;
}

void Supervisor::respondToEscape(const Command& command, RunResult& result) {
  supervise::classifyEscape("session exec", command.options.command.front(), result);
  result.notices.emplace_back("every process of the session was killed");
  if (result.escape->severity == name(policy::Severity::high)) {
    result.notices.emplace_back("grave attempts of all processes of the session are counted together");
  }
  supervise::LastOutput last;
  if (command.background()) {
    last = {lastBytes(*logs_, fileName(command.exec, ".out")), lastBytes(*logs_, fileName(command.exec, ".err"))};
  }
  const std::string rolled_back = sandbox_ && !ending_ ? endAndRollBack() : rollBack();
  record_.escaped(metadata_.policy, withMounts(*command.plan), command.options.command, last, result, rolled_back);
  record_.handOver();
}

LogBudget& Supervisor::logBudget() {
  if (!log_budget_) log_budget_.emplace(*logs_, LogBudget::limitOf(metadata_.policy));
  return *log_budget_;
}

void Supervisor::pumpLog(std::uint32_t number, int stream) {
  Command* command = find(number);
  if (command == nullptr) return;
  LogPipe& log = command->logs[stream];
  char buffer[kLogPiece];
  for (int turn = 0; turn < kPiecesPerTurn && log.pipe; ++turn) {
    const ssize_t got = ::read(log.pipe.get(), buffer, sizeof(buffer));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      loop_.remove(log.pipe.get());
      log.pipe.reset();
      log.log.reset();
      return;
    }
    const auto bytes = static_cast<std::uint64_t>(got);
    const std::uint64_t limit = command->plan->output_bytes;
    const std::uint64_t own = limit > log.written ? limit - log.written : 0;
    const std::uint64_t room = own == 0 ? 0 : logBudget().takeOutput(std::min(bytes, own), log.written);
    const ssize_t done = room == 0 ? 0 : ::write(log.log.get(), buffer, room);
    const std::uint64_t kept =
        done > 0 ? static_cast<std::uint64_t>(done) : 0;  // on a full disk output is dropped; writes never block
    log.written += kept;
    log.dropped += bytes - kept;
  }
}

void Supervisor::drainLogs(Command& command) {
  for (int stream = 0; stream < 2; ++stream) pumpLog(command.number, stream);
}

void Supervisor::beginWatching() {
  if (limits_ || limits_timer_ != 0 || !sandbox_ || !SessionLimits::needed(sandbox_->plan())) return;
  limits_.emplace(paths_, metadata_, *sandbox_);
  limits_timer_ = loop_.at(*limits_->next(), [this] { lookAtLimits(); });
}

void Supervisor::refuseWritesOverDiskLimit(Command& command) {
  if (!disk_may_be_full_ || !sandbox_ || !sandbox_->plan().disk) return;
  disk_may_be_full_ = SessionLimits(paths_, metadata_, *sandbox_).isOverDiskLimit(Clock::now());
  if (!disk_may_be_full_) return;
  std::erase_if(command.plan->rlimits, [](const auto& limit) { return limit.resource == RLIMIT_FSIZE; });
  command.plan->rlimits.push_back({"fsize", RLIMIT_FSIZE, 0});
}

void Supervisor::lookAtLimits() {
  limits_timer_ = 0;
  if (!limits_ || !sandbox_) return;
  if (commands_.empty() && !sandbox_->busy()) {
    limits_.reset();
    return;
  }
  for (const std::uint32_t number : commandNumbers()) {
    Command* command = find(number);
    if (command == nullptr || command->exited || !command->cgroup || !command->cgroup->ranOutOfMemory()) continue;
    noteOutOfMemory(*command);
    end(*command, EndedBy::limit, Limit::memory);
  }
  // A command that finished at once may have ended the sandbox, or replaced this timer.
  if (!limits_ || !sandbox_ || limits_timer_ != 0) return;
  if (sandbox_->commandCgroups().leftBehindRanOutOfMemory()) {
    record_.limitExceeded(metadata_.id, Limit::memory, "a left-behind process was killed for want of memory");
  }
  const auto reached = limits_->look(Clock::now());
  if (reached) {
    const std::string reason = limits_->reason();
    record_.limitExceeded(metadata_.id, *reached, reason);
    killEverything(EndedBy::limit, *reached, reason);
    return waitUntilIdle();
  }
  if (limits_->wantsIpcBytes()) (void)sandbox_->send(InitRequest{});  // measure: the reply arrives before the next poll
  if (const auto next = limits_->next()) limits_timer_ = loop_.at(*next, [this] { lookAtLimits(); });
}

void Supervisor::waitUntilIdle() { killUntilIdle(Clock::now() + kIdleTimeout); }

void Supervisor::killUntilIdle(Clock::time_point deadline) {
  limits_.reset();
  loop_.cancel(limits_timer_);
  limits_timer_ = loop_.at(Clock::now() + kIdlePause, [this, deadline] {
    limits_timer_ = 0;
    if (!sandbox_) return;
    if (!sandbox_->busy()) return spawnNext();
    if (Clock::now() > deadline) {
      (void)endSandbox("its processes could not be killed one by one");
      return stopIfUnused();
    }
    InitRequest request;
    request.type = InitRequestType::kill_all;
    (void)sandbox_->send(request);
    killUntilIdle(deadline);
  });
}

void Supervisor::onEgressReport(const egress::Report& report) {
  if (!egress_record_) return;
  egress_record_->take(report, record_.log(metadata_.policy), metadata_.id);
  if (report.kind == egress::Report::Kind::totals && !ending_) finishWaitingForEgress();
}

void Supervisor::finishWaitingForEgress() {
  loop_.cancel(egress_timer_);
  egress_timer_ = 0;
  for (const std::uint32_t number : std::exchange(waiting_for_egress_, {})) {
    if (Command* command = find(number)) finish(*command);
  }
}

}  // namespace caisson::session
