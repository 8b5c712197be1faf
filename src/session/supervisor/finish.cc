// The end of a session's commands: exit, result, audit record.
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "session/store/background_files.h"
#include "session/supervisor/supervisor.h"
#include "supervise/processes/proc_text.h"
#include "supervise/processes/process_tree.h"
#include "supervise/workspace/changes.h"
#include "sys/process_start.h"

namespace caisson::session {
namespace {

/// How long to wait for the egress's report about a command after its exit.
constexpr auto kEgressTimeout = std::chrono::seconds(1);
/// Entries of the upper layer that are read after a command: some milliseconds, in which the event loop does not run.
constexpr std::size_t kMaxChangeEntries = 5000;

/// Records which files of the workspace changed since the command began, by it or by processes that ran beside it.
void recordChanges(const Command& command, int upper, const std::string& session, Record& record) {
  if (upper < 0) return;
  // The kernel's time stamps lag by up to a tick.
  const auto ran = std::chrono::steady_clock::now() - command.began + std::chrono::milliseconds(10);
  const auto since = std::chrono::system_clock::now() - std::chrono::duration_cast<std::chrono::microseconds>(ran);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since.time_since_epoch()).count();
  const timespec from{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  const supervise::ChangedFiles changes = supervise::findChangedFiles(upper, kMaxChangeEntries, from);
  if (changes.count > 0 || !changes.complete) record.filesChanged(session, supervise::describeChanges(changes));
}

bool startedOverDiskLimit(const plan::Plan& plan) {
  return std::ranges::any_of(plan.rlimits, [](const plan::ResourceLimit& limit) {
    return limit.resource == RLIMIT_FSIZE && limit.value == 0;
  });
}

}  // namespace

void Supervisor::onExited(Command& command, const InitReply& reply) {
  onReport(command.number);  // its reports from before its exit
  command.exited = reply;
  loop_.cancel(command.kill_timer);
  if (command.cgroup) {
    command.counted = command.cgroup->usage();
    if (command.counted.oom_kills.value_or(0) > 0) noteOutOfMemory(command);
  }
  // cgroup v1 counts a denied fork where it was attempted, v2 where the limit is: take the command's count or the
  // growth of the session's.
  const std::uint64_t denied = limits_ ? limits_->deniedForks() : 0;
  command.denied_forks =
      std::max(command.counted.pids_limit_hits.value_or(0), denied - std::min(denied, command.denials_before));
  if (command.denied_forks == 0 && reply.status != 0 && limits_ && limits_->wasFullOfProcesses()) {
    command.denied_forks = 1;
  }
  if (limits_ && command.endedBy() == EndedBy::itself && !command.runner->exit().failure) {
    if (const auto limit = limits_->lookAtEnd()) {
      const std::string reason = limits_->reason();
      command.runner->noteCause(EndedBy::limit, *limit, reason);
      killEverything(EndedBy::limit, *limit, reason);
      waitUntilIdle();
    }
  }
  if (!sandbox_ || !sandbox_->hasEgress() || ending_) return finish(command);
  // Another process reports its connections: wait for those reports, but not long.
  waiting_for_egress_.push_back(command.number);
  sandbox_->requestEgressTotals();
  if (egress_timer_ == 0) {
    egress_timer_ = loop_.at(Clock::now() + kEgressTimeout, [this] {
      egress_timer_ = 0;
      finishWaitingForEgress();
    });
  }
}

void Supervisor::noteOutOfMemory(Command& command) {
  if (command.endedBy() != EndedBy::itself || command.runner->exit().failure) return;
  const std::string reason = "the session's memory limit was exceeded";
  command.runner->noteCause(EndedBy::limit, Limit::memory, reason);
  command.runner->exit().alone = true;
  record_.limitExceeded(metadata_.id, Limit::memory, reason);
  command.cgroup->kill();
}

void Supervisor::finish(Command& command) {
  const std::uint32_t number = command.number;
  if (command.background()) drainLogs(command);
  RunResult result = resultOf(command, metadata_.id);
  if (startedOverDiskLimit(*command.plan)) {
    if (result.limit == Limit::file_size) result.limit = Limit::disk;
    result.notices.emplace_back(
        "the session is over its disk limit (filesystem.max_total_size or the size of a directory): the command could "
        "remove files and write none");
  }
  if (egress_record_) egress_record_->fillAndReset(result);
  if (secret_watch_) secret_watch_->report(result.notices, result.warnings, command.known_secrets);
  supervise::explainMissingNetwork(metadata_.policy.network.mode, command.options.command, metadata_.id, result);
  if (command.background() && command.runner->monitor()) {
    command.violations = result.violations;
    if (!result.violations.empty()) (void)writeBlocked(*logs_, command.exec, command.violations);
  }
  if (command.recorded && command.executed)
    recordChanges(command, sandbox_ ? sandbox_->upper() : -1, metadata_.id, record_);
  if (command.recorded && command.denied_forks > 0 && result.limit != Limit::processes)
    record_.limitExceeded(metadata_.id, Limit::processes, "reached; the command was not killed");
  if (result.escape) respondToEscape(command, result);
  if (command.recorded) record_.ended(result);
  if (command.background()) {
    if (command.executed) {
      storeEnd(command.exec, endRecordOf(command, result));
      logBudget().countEnd(command.exec);
    } else {
      removeCommandFiles(*logs_, command.exec);
    }
    if (!command.answered) {
      Error error = result.error ? *result.error
                                 : plainError(Stage::launch, "session exec", metadata_.id,
                                              "the command was killed before it started");
      if (command.endedBy() == EndedBy::sandbox) error = sysError(Stage::state, "session exec", metadata_.id, ENOTCONN);
      replyFailed(command.client, error);
    }
  } else if (const auto client = clients_.find(command.client); client != clients_.end()) {
    client->second.command = 0;
    if (!command.executed && command.endedBy() == EndedBy::sandbox) {  // the client restarts the sandbox and retries
      replyFailed(client->first, sysError(Stage::state, "session exec", metadata_.id, ENOTCONN));
    } else {
      reply(client->first, MessageType::finished, codec::encode(result));
    }
  }
  if (Command* still = find(number)) removeCommand(*still);
  stopIfUnused();
}

void Supervisor::storeEnd(std::uint32_t exec, const EndRecord& record) {
  constexpr std::chrono::milliseconds kRetryAfter{500};
  if (writeEnd(*logs_, exec, record)) return;
  // The disk is full. Without its end the command would seem to run for ever.
  loop_.at(Clock::now() + kRetryAfter, [this, exec, record] { storeEnd(exec, record); });
}

void Supervisor::removeCommand(Command& command) {
  for (const sys::EventLoop::TimerId timer :
       {command.spawn_deadline, command.cpu_timer, command.kill_timer, command.record_timer}) {
    loop_.cancel(timer);
  }
  if (command.report) loop_.remove(command.report.get());
  for (LogPipe& log : command.logs) {
    if (log.pipe) loop_.remove(log.pipe.get());
  }
  spawnFinished(command.number);
  if (command.cgroup && sandbox_) {
    sandbox_->commandCgroups().giveBack(std::move(*command.cgroup), command.exited && command.exited->alone != 0);
    loop_.at(Clock::now(), [this] {
      if (sandbox_) sandbox_->commandCgroups().refill();
    });
  }
  commands_.erase(command.number);
}

ProcessList Supervisor::leftProcesses() {
  ProcessList list;
  std::vector<pid_t> known;
  for (const auto& [number, command] : commands_) {
    if (!command->tree) continue;
    for (const auto& member : command->tree->members()) known.push_back(member.pid);
  }
  for (const pid_t pid : supervise::ProcessTree(sandbox_->init()).members()) {
    if (pid == sandbox_->init() || std::ranges::find(known, pid) != known.end()) continue;
    const std::uint64_t start = sys::processStart(pid);
    if (start != 0) list.processes.push_back({pid, start, supervise::programName(pid)});
  }
  return list;
}

}  // namespace caisson::session
