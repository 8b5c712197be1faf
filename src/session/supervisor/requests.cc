// Requests of clients.
#include <signal.h>

#include <cerrno>

#include "session/supervisor/supervisor.h"

namespace caisson::session {
namespace {

Error notRunning(const std::string& id) {
  return plainError(Stage::state, "session", id, "the session's sandbox is not running", "try again");
}

/// Requests that use the session, unlike those that only show it or change its time.
bool isActivity(MessageType type) {
  switch (type) {
    case MessageType::start:
    case MessageType::exec:
    case MessageType::signal:
    case MessageType::take_input:
    case MessageType::workspace:
    case MessageType::open_port: return true;
    default: return false;
  }
}

}  // namespace

void Supervisor::serve(int socket, Packet packet) {
  if (isActivity(packet.type)) noteActivity();
  const auto malformed = [&] { dropClient(socket); };
  switch (packet.type) {
    case MessageType::start: {
      const auto options = codec::decode<StartOptions>(packet.value);
      if (!options) return malformed();
      if (!sandbox_ && confined_) return succeed(socket, packet.value);
      if (auto started = startSandbox(*options); !started) return replyFailed(socket, started.error());
      return static_cast<void>(reply(socket, MessageType::done, codec::encode(welcome())));
    }
    case MessageType::exec: {
      auto options = codec::decode<CommandOptions>(packet.value);
      if (!options || options->command.empty()) return malformed();
      return startCommand(socket, std::move(*options), std::move(packet.descriptors));
    }
    case MessageType::signal: {
      const auto options = codec::decode<SignalOptions>(packet.value);
      if (!options) return malformed();
      return serveSignal(socket, *options);
    }
    case MessageType::take_input:
    case MessageType::close_input: {
      const auto number = codec::decode<CommandNumber>(packet.value);
      if (!number) return malformed();
      Command* command = findExec(number->number);
      if (command == nullptr) {
        return replyFailed(socket, sysError(Stage::state, "session feed", std::to_string(number->number), ESRCH));
      }
      if (!command->input) {
        return replyFailed(socket, sysError(Stage::state, "session feed", std::to_string(number->number), EPIPE,
                                            "its standard input is closed"));
      }
      if (packet.type == MessageType::take_input)
        return static_cast<void>(reply(socket, MessageType::done, {}, command->input.get()));
      command->input.reset();
      return static_cast<void>(reply(socket, MessageType::done));
    }
    case MessageType::workspace: {
      if (!sandbox_) return replyFailed(socket, notRunning(metadata_.id));
      if (!secret_watch_ || !secret_watch_->watching()) hideAtOnce(newSecrets());
      return afterMasks([this, socket] { serveWorkspace(socket); });
    }
    case MessageType::release_workspace: clients_[socket].uses_workspace = false; return;
    case MessageType::renew: {
      const auto seconds = codec::decode<Seconds>(packet.value);
      if (!seconds) return malformed();
      return serveRenew(socket, seconds->value);
    }
    case MessageType::settle: {
      const auto options = codec::decode<SettleOptions>(packet.value);
      if (!options) return malformed();
      return serveSettle(socket, *options);
    }
    case MessageType::open_port:
    case MessageType::close_port: {
      auto options = codec::decode<PortOptions>(packet.value);
      if (!options) return malformed();
      if (packet.type == MessageType::close_port) {
        if (auto closed = ports_.close(*options); !closed) return replyFailed(socket, closed.error());
      } else if (auto opened = ports_.open(*options); !opened) {
        return replyFailed(socket, opened.error());
      }
      return static_cast<void>(reply(socket, MessageType::done, codec::encode(*options)));
    }
    case MessageType::reload: return serveReload(socket);
    case MessageType::processes: {
      ProcessList list;
      if (sandbox_) list = leftProcesses();
      return static_cast<void>(reply(socket, MessageType::done, codec::encode(list)));
    }
    case MessageType::freeze: return serveFreeze(socket);
    default: return malformed();
  }
}

void Supervisor::serveWorkspace(int socket) {
  if (!clients_.contains(socket)) return;
  if (!sandbox_) return replyFailed(socket, notRunning(metadata_.id));
  auto directory = sandbox_->openWorkspace();
  if (!directory) return replyFailed(socket, directory.error());
  if (reply(socket, MessageType::done, sandbox_->plan().working_directory, directory->get())) {
    clients_[socket].uses_workspace = true;
  }
}

void Supervisor::serveSignal(int socket, const SignalOptions& options) {
  Command* command = options.number != 0 ? findExec(options.number) : find(clients_[socket].command);
  if (command == nullptr) {
    if (options.number == 0) return;  // it just exited
    return replyFailed(socket, sysError(Stage::state, "session stop", std::to_string(options.number), ESRCH));
  }
  if ((options.signal == SIGKILL && options.number == 0) || !command->tree) {  // also one that was not spawned yet
    end(*command, EndedBy::client);
  } else if (options.whole_tree) {
    options.signal == SIGKILL ? command->tree->kill() : command->tree->signal(options.signal);
  } else {
    InitRequest request;
    request.type = InitRequestType::signal;
    request.command = command->number;
    request.number = options.signal;
    if (sandbox_) (void)sandbox_->send(request);
  }
  if (options.number != 0) reply(socket, MessageType::done);
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

/// For a commit: what was written so far no longer changes, and the sandbox stays.
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

void Supervisor::serveRenew(int socket, double seconds) {
  metadata_.setTtl(Moment::now(), seconds);
  armExpiry();
  reply(socket, MessageType::done);
}

/// The policy's network and the session's name may have changed. Layers only change while there is no sandbox.
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
