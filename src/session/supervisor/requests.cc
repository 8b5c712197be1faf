// Requests of clients.
#include <signal.h>

#include <cerrno>

#include "session/supervisor/supervisor.h"
#include "supervise/processes/command_tree.h"

namespace caisson::session {
namespace {

/// Each takes a port of the host, which all users share.
constexpr std::size_t kMaxOpenPorts = 64;

Error notRunning(const std::string& id) {
  return plainError(Stage::state, "session", id, "the session's sandbox is not running", "try again");
}

/// Whether a request extends the session's time: it uses the session, and does not only show it or change its time.
bool isActivity(MessageType type) {
  switch (type) {
    case MessageType::start:
    case MessageType::exec:
    case MessageType::signal:
    case MessageType::take_input:
    case MessageType::workspace:
    case MessageType::view:
    case MessageType::open_port: return true;
    default: return false;
  }
}

}  // namespace

void Supervisor::serve(int socket, Packet packet) {
  if (isActivity(packet.type)) extendTime();
  const auto decoded = [&]<class T>(void (Supervisor::*handle)(int, const T&)) {
    const auto options = codec::decode<T>(packet.value);
    options ? (this->*handle)(socket, *options) : dropClient(socket);
  };
  switch (packet.type) {
    case MessageType::start: return decoded(&Supervisor::serveStart);
    case MessageType::exec: {
      auto options = codec::decode<CommandOptions>(packet.value);
      if (!options || options->command.empty()) return dropClient(socket);
      return startCommand(socket, std::move(*options), std::move(packet.descriptors));
    }
    case MessageType::signal: return decoded(&Supervisor::serveSignal);
    case MessageType::take_input: return decoded(&Supervisor::serveTakeInput);
    case MessageType::close_input: return decoded(&Supervisor::serveCloseInput);
    case MessageType::workspace: return serveWorkspace(socket);
    case MessageType::view: return serveView(socket);
    case MessageType::release_workspace: clients_[socket].uses_workspace = false; return;
    case MessageType::renew: return decoded(&Supervisor::serveRenew);
    case MessageType::settle: return decoded(&Supervisor::serveSettle);
    case MessageType::open_port: return decoded(&Supervisor::serveOpenPort);
    case MessageType::close_port: return decoded(&Supervisor::serveClosePort);
    case MessageType::reload: return serveReload(socket);
    case MessageType::processes: {
      const ProcessList list = sandbox_ ? leftProcesses() : ProcessList{};
      return static_cast<void>(reply(socket, MessageType::done, codec::encode(list)));
    }
    case MessageType::signal_left: return decoded(&Supervisor::serveSignalLeft);
    case MessageType::freeze: return serveFreeze(socket);
    default: return replyFailed(socket, notUnderstood("the session's supervisor does not know this kind of request"));
  }
}

void Supervisor::serveStart(int socket, const StartOptions& options) {
  if (!sandbox_ && confined_) return succeed(socket, codec::encode(options));
  if (auto started = startSandbox(options); !started) return replyFailed(socket, started.error());
  reply(socket, MessageType::done, codec::encode(welcome()));
}

Command* Supervisor::commandWithInput(int socket, std::uint32_t exec) {
  Command* command = findExec(exec);
  if (command != nullptr && command->input) return command;
  const bool closed = command != nullptr;
  replyFailed(socket, sysError(Stage::state, "session feed", std::to_string(exec), closed ? EPIPE : ESRCH,
                               closed ? "its standard input is closed" : ""));
  return nullptr;
}

void Supervisor::serveTakeInput(int socket, const CommandNumber& number) {
  if (const Command* command = commandWithInput(socket, number.number)) {
    reply(socket, MessageType::done, {}, command->input.get());
  }
}

void Supervisor::serveCloseInput(int socket, const CommandNumber& number) {
  if (Command* command = commandWithInput(socket, number.number)) {
    command->input.reset();
    reply(socket, MessageType::done);
  }
}

void Supervisor::serveOpenPort(int socket, const PortOptions& options) {
  PortOptions port = options;
  if (ports_.count() >= kMaxOpenPorts) {
    return replyFailed(socket, Error{.stage = Stage::limits,
                                     .call = "session expose",
                                     .object = std::to_string(options.port),
                                     .sys_errno = EUSERS,
                                     .reason = "the session has " + std::to_string(kMaxOpenPorts) + " open ports",
                                     .hint = "close one first (--close)"});
  }
  if (auto opened = ports_.open(port); !opened) return replyFailed(socket, opened.error());
  reply(socket, MessageType::done, codec::encode(port));
}

void Supervisor::serveClosePort(int socket, const PortOptions& options) {
  if (auto closed = ports_.close(options); !closed) return replyFailed(socket, closed.error());
  reply(socket, MessageType::done, codec::encode(options));
}

void Supervisor::sendFiles(int socket, std::function<bool()> send) {
  if (!sandbox_) return replyFailed(socket, notRunning(metadata_.id));
  if (!secret_watch_ || !secret_watch_->watching()) {
    const auto secrets = newSecrets();
    if (!secrets) return replyFailed(socket, secrets.error());
    if (!mount_used_) mounted_listings_ = scan_cache_.listings;
    if (hasOldNames() && canFreeze(0)) {
      if (auto mounted = remountWorkspace(); !mounted) return replyFailed(socket, mounted.error());
    }
    hideAtOnce(*secrets);
  }
  afterMasks([this, socket, serial = clients_[socket].serial, send = std::move(send)](const Result<void>& hidden) {
    const auto client = clients_.find(socket);
    if (client == clients_.end() || client->second.serial != serial) return;  // the number is another client's by now
    if (!sandbox_) return replyFailed(socket, notRunning(metadata_.id));
    if (!hidden) return replyFailed(socket, hidden.error());
    mount_used_ = true;
    if (!send() || !clients_.contains(socket)) return;
    clients_[socket].uses_workspace = true;
    // Until it is gone, the overlay cannot be mounted anew: its old names are hidden when the host moves files.
    if (secret_timer_ == 0) {
      secret_timer_ = loop_.at(Clock::now() + kWatchSecretsAfter, [this] { checkSecretWatch(); });
    }
  });
}

void Supervisor::serveWorkspace(int socket) {
  sendFiles(socket, [this, socket] {
    auto directory = sandbox_->openWorkspace();
    if (directory) return reply(socket, MessageType::done, sandbox_->plan().workspace_target, directory->get());
    replyFailed(socket, directory.error());
    return false;
  });
}

void Supervisor::serveView(int socket) {
  sendFiles(socket, [this, socket] {
    auto root = sandbox_->openRoot();
    const auto rules = sandbox_->landlockRules();
    if (!root || !rules) {
      replyFailed(socket, root ? rules.error() : root.error());
      return false;
    }
    std::vector<int> descriptors{root->get()};
    if (*rules >= 0) descriptors.push_back(*rules);
    return reply(socket, MessageType::done, codec::encode(FileView{sandbox_->plan().workspace_target}), descriptors);
  });
}

void Supervisor::serveSignal(int socket, const SignalOptions& options) {
  Command* command = options.command != 0 ? findExec(options.command) : find(clients_[socket].command);
  if (command == nullptr) {
    if (options.command == 0) return;  // it just exited
    return replyFailed(socket, sysError(Stage::state, "session stop", std::to_string(options.command), ESRCH));
  }
  if ((options.signal == SIGKILL && options.command == 0) || !command->tree) {  // also one that was not spawned yet
    end(*command, EndedBy::client);
  } else if (options.whole_tree) {
    options.signal == SIGKILL ? command->tree->kill(command->alone) : command->tree->signal(options.signal);
  } else {
    InitRequest request;
    request.type = InitRequestType::signal;
    request.command = command->number;
    request.signal = options.signal;
    if (sandbox_) (void)sandbox_->send(request);
  }
  record_.signalForwarded(metadata_.id, options.signal);
  if (options.command != 0) reply(socket, MessageType::done);
}

void Supervisor::serveSignalLeft(int socket, const SignalOptions& options) {
  constexpr int kMaxRounds = 16;
  ProcessList list;
  const auto signalAll = [&](int signal) {
    list = sandbox_ ? leftProcesses() : ProcessList{};
    if (spawning_ != 0) return;  // the newborn is among them; the client asks again
    for (const LeftProcess& one : list.processes) {
      supervise::signalExactly({.pid = one.pid, .start = one.start, .ticks = 0}, signal);
    }
  };
  if (options.signal == SIGKILL) {
    for (std::size_t round = 0, before = 0; round < kMaxRounds; ++round) {
      signalAll(SIGSTOP);
      if (round > 0 && list.processes.size() == before) break;
      before = list.processes.size();
    }
  }
  signalAll(options.signal);
  if (!list.processes.empty()) record_.signalForwarded(metadata_.id, options.signal);
  reply(socket, MessageType::done, codec::encode(list));
}

void Supervisor::serveSettle(int socket, const SettleOptions& options) {
  bool paused = false;
  if (sandbox_ && !options.stop_processes) {
    auto alone = commands_.empty() ? sandbox_->pause() : Result<bool>(false);
    if (alone && !*alone) {
      return replyFailed(socket, sysError(Stage::state, "session", metadata_.id, EBUSY,
                                          "processes of the session are running: stop them first, or use --stop"));
    }
    paused = alone.has_value();
  }
  if (!endSandbox(options.end_supervisor ? "the session was ended" : "its layers change", paused)) {
    return replyFailed(socket, plainError(Stage::state, "kill", metadata_.id, "its processes survive SIGKILL",
                                          "they hang in the kernel; see its log"));
  }
  if (options.end_supervisor) ports_.closeAll();
  reply(socket, MessageType::done);
  if (options.end_supervisor) loop_.stop();
}

void Supervisor::serveFreeze(int socket) {
  auto frozen = freezeUpper(0);
  if (!frozen) {
    replyFailed(socket, frozen.error());
    (void)endSandbox(frozen.error().message());
    return;
  }
  if (!*frozen) {
    return replyFailed(socket, sysError(Stage::state, "session", metadata_.id, EBUSY, "processes of the session run"));
  }
  reply(socket, MessageType::done);
}

void Supervisor::serveRenew(int socket, const Seconds& seconds) {
  metadata_.setTtl(Moment::now(), seconds.value);
  armExpiry();
  reply(socket, MessageType::done);
}

void Supervisor::serveReload(int socket) {
  auto metadata = readMetadata(directory_);
  if (!metadata) return replyFailed(socket, metadata.error());
  metadata_ = std::move(*metadata);
  armExpiry();
  if (planner_) {
    if (auto used = planner_->usePolicy(directory_, metadata_); !used) return replyFailed(socket, used.error());
  }
  reply(socket, MessageType::done);
}

}  // namespace caisson::session
