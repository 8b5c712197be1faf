// Running the commands of a session.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "plan/workspace.h"
#include "session/store/background_files.h"
#include "session/supervisor/supervisor.h"
#include "supervise/control_channel.h"
#include "supervise/processes/proc_text.h"
#include "supervise/processes/process_tree.h"
#include "supervise/run_record.h"
#include "supervise/weaker_rungs.h"
#include "supervise/workspace/changes.h"
#include "sys/pipe.h"

namespace caisson::session {
namespace {

using std::chrono::milliseconds;
using sys::Fd;

/// Maximum time between the release of a newborn and its exec. That takes some 10 ms under heavy load; longer only if a
/// process of the sandbox stops the newborn.
constexpr auto kSpawnTimeout = std::chrono::seconds(3);
/// How long after SIGKILL to a command's processes everything in the session is killed.
constexpr auto kCommandKillTimeout = std::chrono::seconds(2);
/// How long after a command's arrival to wait for other writers to release the audit log.
constexpr auto kRecordTimeout = std::chrono::seconds(10);
constexpr auto kRecordPause = milliseconds(2);  ///< between two attempts
constexpr auto kShortestCpuPause = milliseconds(20), kMaxCpuPause = milliseconds(1000);

/// Compiles the plan to the flat block that pid 1 maps, without the steps that built the sandbox.
Result<isolation::BlockFile> compile(isolation::BlockSpace& space, const plan::Plan& plan,
                                     const TerminalOptions& terminal) {
  return space.compile(plan, [&](isolation::Block& block) {
    // pid 1 is in the session's domain, so every command is too.
    block.handled_fs = block.handled_net = 0;
    block.rule_count = 0;
    if (!plan.isolate_commands) block.landlock_abi = 0;
    for (int stream = 0; stream < 3; ++stream) {
      block.terminal[stream] = terminal.stream[stream];
      block.wants_terminal = block.wants_terminal || terminal.stream[stream];
    }
    block.rows = terminal.rows;
    block.columns = terminal.columns;
  });
}

/// Standard input of a background command: the given bytes as a file, or /dev/null.
Result<Fd> inputFile(const std::string& input) {
  if (input.empty()) {
    Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return fail(sysError(Stage::launch, "open", "/dev/null", errno));
    return null;
  }
  Fd file(::memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (std::size_t done = 0; file && done < input.size();) {
    const ssize_t wrote = ::write(file.get(), input.data() + done, input.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail(sysError(Stage::launch, "write", "input", errno));
    done += static_cast<std::size_t>(wrote);
  }
  if (!file || ::lseek(file.get(), 0, SEEK_SET) != 0) return fail(sysError(Stage::launch, "memfd", "input", errno));
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return file;
}

Result<void> makeStreamPipe(Fd& read_end, Fd& write_end, const plan::Identity& identity) {
  auto pipe = sys::makePipe(Stage::launch);
  if (!pipe) return fail(pipe.error());
  read_end = std::move(pipe->read);
  write_end = std::move(pipe->write);
  if (identity.change_user) {  // otherwise the payload could not open its own /dev/stdout
    (void)!::fchown(read_end.get(), identity.outside_uid, identity.outside_gid);
  }
  return {};
}

/// Reserves space for the files that describe a background command.
Result<void> reserveRecord(LogBudget& budget, const std::vector<std::string>& command) {
  std::uint64_t bytes = 512;
  for (const std::string& word : command) bytes += word.size() + 3;
  if (budget.takeRecord(bytes)) return {};
  return fail(sysError(Stage::limits, "session exec", "--background", EDQUOT,
                       "the output and command lines of the session's background commands may have " +
                           std::to_string(budget.limit()) + " bytes; stop some of those that run"));
}

/// Puts the first input into an empty pipe. The supervisor must not block, so it has to fit.
Result<void> writeFirstInput(const Fd& pipe, const std::string& input) {
  const int capacity = ::fcntl(pipe.get(), F_GETPIPE_SZ);
  if (std::cmp_greater(input.size(), std::max(capacity, 0))) {
    return fail(plainError(Stage::usage, "session exec", "input",
                           "an input that stays open may begin with at most " + std::to_string(capacity) + " bytes",
                           "send the rest when the command runs"));
  }
  if (::write(pipe.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size())) return {};
  return fail(sysError(Stage::launch, "write", "standard input", errno));
}

}  // namespace

Command* Supervisor::find(std::uint32_t number) {
  const auto found = commands_.find(number);
  return found == commands_.end() ? nullptr : found->second.get();
}

Command* Supervisor::findExec(std::uint32_t exec) {
  for (auto& [number, command] : commands_) {
    if (exec != 0 && command->exec == exec) return command.get();
  }
  return nullptr;
}

void Supervisor::startCommand(int socket, CommandOptions options, std::vector<Fd> streams) {
  if (!sandbox_ || !planner_) {
    return replyFailed(socket, sysError(Stage::state, "session exec", metadata_.id, ENOTCONN));
  }
  auto command = std::make_unique<Command>();
  command->began = Clock::now();
  command->number = ++last_number_;
  command->client = socket;
  command->runner =
      std::make_unique<supervise::CommandRunner>(loop_, [this, number = command->number] { killProcesses(number); });
  planner_->facts.caller_environment = options.caller_environment;
  auto plan = planner_->planCommand(metadata_, {options.command, options.interactive});
  if (!plan && supervise::isCommandRefusal(plan.error())) {
    const RunResult refused = supervise::refusedResult(plan.error(), metadata_.id);
    record_.commandRefused(planner_->policy, options.command, refused);
    if (options.background) return replyFailed(socket, plan.error());
    reply(socket, MessageType::finished, codec::encode(refused));
    return;
  }
  if (!plan) return replyFailed(socket, plan.error());
  for (const auto& [name, value] : options.environment) {
    std::erase_if(plan->environment, [&](const std::string& one) { return one.starts_with(name + "="); });
    plan->environment.push_back(name + "=" + value);
  }
  if (!options.working_directory.empty()) {
    auto directory = plan::directoryInside(*plan, options.working_directory);
    if (!directory) return replyFailed(socket, directory.error());
    plan->working_directory = *std::move(directory);
  }
  supervise::noteRungs(*plan, sandbox_->prepared(), plan->layers, plan->warnings);
  if (!paths_.whyInMemory().empty()) {
    plan->warnings.push_back("the session's changes are in memory and end with the machine or container (" +
                             paths_.whyInMemory() + "); to keep them, set CAISSON_HOME to a directory on a volume");
  }
  supervise::noteUnmapped(sandbox_->unmapped(), plan->warnings);
  command->plan = std::make_shared<plan::Plan>(std::move(*plan));
  command->options = std::move(options);
  if (command->background()) {
    if (auto fits = reserveRecord(logBudget(), command->options.command); !fits)
      return replyFailed(socket, fits.error());
    auto exec = claimNumber(*logs_);
    if (!exec) return replyFailed(socket, exec.error());
    command->exec = *exec;
  } else {
    clients_[socket].command = command->number;
  }
  for (Fd& stream : streams) command->streams.push_back(std::move(stream));
  const std::uint32_t number = command->number;
  command->alone = commands_.empty();
  for (const auto& other : commands_) other.second->alone = false;
  commands_[number] = std::move(command);
  queueCommand(number);
}

void Supervisor::queueCommand(std::uint32_t number) {
  Command* command = find(number);
  if (auto frozen = prepareLayers(*command); !frozen) {
    (void)endSandbox(frozen.error().message());
    return;
  }
  // A background command may run as long as the session unless a timeout is given. The time counts from here on:
  // commands ahead of it in the queue may be stopped until their own deadline.
  const auto& options = command->options;
  const std::optional<double> limit = options.timeout_seconds                          ? options.timeout_seconds
                                      : options.background && !options.default_timeout ? std::nullopt
                                                                                       : command->plan->wall_seconds;
  if (limit) command->runner->limitTime(command->began, *limit);
  afterMasks([this, number](const Result<void>& hidden) {
    if (hidden) return enqueue(number);
    if (Command* refused = find(number); refused != nullptr) failUnspawned(*refused, hidden.error());
  });
}

void Supervisor::enqueue(std::uint32_t number) {
  Command* command = find(number);
  if (command == nullptr || !sandbox_) return;
  if (secret_watch_) command->known_secrets = secret_watch_->found();
  spawn_queue_.push_back(number);
  spawnNext();
  command = find(number);
  if (command == nullptr || command->recorded || spawning_ == number) return;
  // It may wait long in the queue: record the request now, if the log is free.
  auto recorded = recordStart(*command);
  if (recorded) command->recorded = true;
  if (!recorded && recorded.error().sys_errno != EWOULDBLOCK) cancelUnrecorded(*command, recorded.error());
}

void Supervisor::spawnNext() {
  const bool killing = limits_timer_ != 0 && !limits_;  // waitUntilIdle()
  while (spawning_ == 0 && !killing && !spawn_queue_.empty()) {
    Command* command = find(spawn_queue_.front());
    spawn_queue_.pop_front();
    if (command == nullptr) continue;
    beginWatching();
    spawning_ = command->number;
    if (auto spawned = spawn(*command); !spawned) {
      failUnspawned(*command, spawned.error());
      continue;
    }
    recordAndRelease(command->number);
  }
}

void Supervisor::failUnspawned(Command& command, const Error& error) {
  command.recorded = command.recorded || recordStart(command).has_value();
  fail(command, error);
}

Result<void> Supervisor::recordStart(const Command& command) {
  return record_.starting(metadata_.id, metadata_.policy, *command.plan, command.options.command, command.background());
}

void Supervisor::recordAndRelease(std::uint32_t number) {
  Command* command = find(number);
  if (command == nullptr || !command->report) return;
  auto recorded = command->recorded ? Result<void>() : recordStart(*command);
  if (!recorded && recorded.error().sys_errno == EWOULDBLOCK && Clock::now() < command->began + kRecordTimeout) {
    command->record_timer = loop_.at(Clock::now() + kRecordPause, [this, number] { recordAndRelease(number); });
    return;
  }
  if (!recorded) return cancelUnrecorded(*command, recorded.error());
  command->recorded = true;
  record_.handOver();
  (void)!::send(command->report.get(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);  // session/init/spawn.cc waits for it
  armSpawnDeadline(*command);
}

void Supervisor::spawnFinished(std::uint32_t number) {
  if (spawning_ != number) return;
  spawning_ = 0;
  if (!spawn_queue_.empty()) loop_.at(Clock::now(), [this] { spawnNext(); });
}

void Supervisor::cancelUnrecorded(Command& command, const Error& error) {
  const int socket = command.client;
  if (sandbox_ && spawning_ == command.number) {
    InitRequest request;
    request.type = InitRequestType::kill_newborn;
    (void)sandbox_->send(request);
  }
  if (command.background()) removeCommandFiles(*logs_, command.exec);
  if (const auto client = clients_.find(socket); client != clients_.end()) client->second.command = 0;
  removeCommand(command);
  replyFailed(socket, error);
}

Result<void> Supervisor::prepareStreams(Command& command, Fd (&ends)[3]) {
  if (!command.background()) {
    if (command.streams.size() != 3) {
      return caisson::fail(sysError(Stage::launch, "recvmsg", "standard streams", EMFILE,
                                    "too many descriptors of this user are in flight; try again"));
    }
    for (int stream = 0; stream < 3; ++stream) ends[stream] = std::move(command.streams[stream]);
    return {};
  }
  if (auto written = writeCommandFile(*logs_, command.exec, command.options.command); !written) return written;
  const plan::Identity& identity = command.plan->identity;
  if (command.options.keep_input) {
    if (auto made = makeStreamPipe(ends[0], command.input, identity); !made) return made;
    if (auto written = writeFirstInput(command.input, command.options.input); !written) return written;
  } else {
    auto input = inputFile(command.options.input);
    if (!input) return caisson::fail(input.error());
    ends[0] = std::move(*input);
  }
  for (int stream = 0; stream < 2; ++stream) {
    LogPipe& log = command.logs[stream];
    auto file =
        logs_->openFile(fileName(command.exec, stream == 0 ? ".out" : ".err"), {.flags = O_WRONLY | O_CREAT | O_TRUNC});
    if (!file) return caisson::fail(file.error());
    log.log = std::move(*file);
    if (auto made = makeStreamPipe(log.pipe, ends[stream + 1], identity); !made) return made;
    ::fcntl(log.pipe.get(), F_SETFL, O_NONBLOCK);
    loop_.on(log.pipe.get(), POLLIN, [this, number = command.number, stream](short) { pumpLog(number, stream); });
  }
  return {};
}

Result<void> Supervisor::spawn(Command& command) {
  refuseWritesOverDiskLimit(command);
  auto compiled = compile(blocks_, *command.plan, command.options.terminal);
  if (!compiled) return caisson::fail(compiled.error());
  Fd ends[3];
  if (auto prepared = prepareStreams(command, ends); !prepared) return prepared;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return caisson::fail(sysError(Stage::launch, "socketpair", "report", errno));
  }
  command.report = Fd(pair[0]);
  const Fd theirs(pair[1]);
  InitRequest request;
  request.type = InitRequestType::spawn;
  request.address = compiled->address;
  request.bytes = compiled->bytes;
  request.command = command.number;
  std::vector<int> descriptors{compiled->file.get(), ends[0].get(), ends[1].get(), ends[2].get(), theirs.get()};
  command.cgroup = sandbox_->commandCgroups().take();
  if (command.cgroup) {
    const auto cgroups = command.cgroup->descriptors();
    descriptors.insert(descriptors.end(), cgroups.begin(), cgroups.end());
    request.cgroup = command.cgroup->entry();
  }
  if (const int error = sandbox_->send(request, descriptors); error != 0) {
    command.report.reset();
    if (error == EPIPE || error == ECONNRESET) {  // pid 1 just died: the client restarts it
      command.runner->noteCause(EndedBy::sandbox);
      return caisson::fail(sysError(Stage::state, "session exec", metadata_.id, ENOTCONN));
    }
    return caisson::fail(
        sysError(Stage::launch, "session exec", metadata_.id, error,
                 error == ETOOMANYREFS ? "too many descriptors of this user are in flight; try again" : ""));
  }
  ::fcntl(command.report.get(), F_SETFL, O_NONBLOCK);
  loop_.on(command.report.get(), POLLIN, [this, number = command.number](short) { onReport(number); });
  if (limits_) {
    limits_->noteFreeSpace();
    command.denials_before = limits_->deniedForks();
  }
  return {};
}

void Supervisor::armSpawnDeadline(Command& command) {
  const std::uint32_t number = command.number;
  command.spawn_deadline = loop_.at(Clock::now() + kSpawnTimeout, [this, number] {
    Command* late = find(number);
    if (late == nullptr || late->executed) return;
    InitRequest request;
    request.type = InitRequestType::kill_newborn;
    if (sandbox_) (void)sandbox_->send(request);
    end(*late, EndedBy::setup_timeout);
  });
}

void Supervisor::onReply(const InitReply& reply, Fd descriptor) {
  if (reply.type == InitReplyType::measured && limits_) limits_->setIpcBytes(reply.ipc_bytes);
  Command* command = find(reply.command);
  if (command == nullptr) return;
  if (reply.type == InitReplyType::spawned) {
    if (reply.error != 0) {
      return fail(*command, sysError(Stage::launch, "exec", "session", reply.error,
                                     reply.error == EAGAIN ? "too many commands run in this session; stop some" : ""));
    }
    command->pid = reply.pid;
    if (command->cgroup && reply.in_cgroup == 0) {
      sandbox_->commandCgroups().giveBack(std::move(*command->cgroup), true);
      command->cgroup.reset();
    }
    command->tree.emplace(sandbox_->init(), reply.pid);
    if (command->runner->killed()) command->tree->kill(command->alone);  // decided before its pid was known
    command->terminal_master = std::move(descriptor);
    if (command->options.wants_started && command->client >= 0) {
      command->answered = true;
      this->reply(command->client, MessageType::started, codec::encode(StartedCommand{0, reply.pid}),
                  command->terminal_master.get());
      command->terminal_master.reset();
    }
    if (command->plan->cpu_seconds) {
      command->tree->countCpu();
      checkCpu(command->number);
    }
    return;
  }
  if (reply.type == InitReplyType::exited) onExited(*command, reply);
}

void Supervisor::onReport(std::uint32_t number) {
  for (;;) {
    Command* command = find(number);
    if (command == nullptr || !command->report) return;
    supervise::Arrival arrival;
    const supervise::Channel state = supervise::receive(command->report.get(), arrival);
    if (state == supervise::Channel::empty) return;
    if (state == supervise::Channel::closed) {
      loop_.remove(command->report.get());
      command->report.reset();
      spawnFinished(number);
      return onExecuted(*command);
    }
    const isolation::Message& message = arrival.message;
    if (message.kind == isolation::MessageKind::failure) command->runner->fail(supervise::errorOf(message));
    if (message.kind == isolation::MessageKind::started) {
      if (message.error > 0) command->monitor_error = message.error;
      if (message.listener < 0) continue;
      auto listener = sandbox_->fetch(message.listener);
      command = find(number);  // other replies may have been handled meanwhile
      if (command == nullptr) return;
      if (listener) {
        listenTo(*command, std::move(*listener));
      } else {  // its blocked calls could not be reported: it must not run
        command->runner->failAndKill(listener.error());
      }
    }
  }
}

void Supervisor::onExecuted(Command& command) {
  if (!command.recorded) return;  // the process was killed while it waited to be recorded
  loop_.cancel(command.spawn_deadline);
  if (command.executed || command.endedBy() == EndedBy::setup_timeout) return;
  command.executed = !command.runner->exit().failure;
  if (secret_timer_ == 0) secret_timer_ = loop_.at(Clock::now() + kWatchSecretsAfter, [this] { checkSecretWatch(); });
  if (!command.background() || command.answered || !command.executed) return;
  command.answered = true;
  reply(command.client, MessageType::started, codec::encode(StartedCommand{command.exec, command.pid}));
  command.client = -1;
}

void Supervisor::fail(Command& command, Error failure) {
  command.runner->fail(std::move(failure));
  finish(command);
}

void Supervisor::checkCpu(std::uint32_t number) {
  Command* command = find(number);
  if (command == nullptr || command->exited || !command->tree) return;
  const auto counted = command->cgroup ? command->cgroup->usage().cpu_usec : std::nullopt;
  const double used = static_cast<double>(counted ? *counted : command->tree->cpuMicroseconds()) / 1e6;
  const double left = *command->plan->cpu_seconds - used;
  if (left <= 0) {
    return end(*command, EndedBy::limit, Limit::cpu);
  }
  // Poll again when eight busy processors would reach the limit, but not more often than every 20 ms.
  const auto pause =
      std::clamp<Clock::duration>(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(left / 8)),
                                  kShortestCpuPause, kMaxCpuPause);
  command->cpu_timer = loop_.at(Clock::now() + pause, [this, number] { checkCpu(number); });
}

void Supervisor::end(Command& command, EndedBy why, Limit limit, const std::string& reason) {
  if (!command.exited) command.runner->end(why, limit, reason);
}

void Supervisor::killProcesses(std::uint32_t number) {
  Command* command = find(number);
  if (command == nullptr) return;
  if (!command->report && command->pid == 0) return finish(*command);  // not spawned yet
  if (command->cgroup) command->cgroup->kill();
  if (command->tree) command->tree->kill(command->alone);
  command->kill_timer = loop_.at(Clock::now() + kCommandKillTimeout, [this, number] {
    Command* late = find(number);
    if (late == nullptr || late->exited) return;
    (void)directory_.replaceFile(kEndReasonFile, "a command could not be killed alone", 0600);
    (void)endSandbox("a command could not be killed alone");
    stopIfUnused();
  });
}

std::vector<std::uint32_t> Supervisor::commandNumbers() const {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(commands_.size());
  for (const auto& [number, command] : commands_) numbers.push_back(number);
  return numbers;
}

void Supervisor::killEverything(EndedBy why, Limit limit, const std::string& reason) {
  for (const std::uint32_t number : commandNumbers()) {
    if (Command* command = find(number)) end(*command, why, limit, reason);
  }
  if (limit == Limit::disk) disk_may_be_full_ = true;
  InitRequest request;
  request.type = InitRequestType::kill_all;
  if (sandbox_) (void)sandbox_->send(request);
}

}  // namespace caisson::session
