#include "session/supervisor/supervisor.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/version.h"
#include "policy/rules/credential.h"
#include "session/layers/root_layers.h"
#include "session/store/background_files.h"
#include "session/store/session_info.h"
#include "session/store/store.h"
#include "session/supervisor/confine.h"
#include "supervise/disk/kept_logs.h"
#include "supervise/weaker_rungs.h"
#include "supervise/workspace/exec_config.h"
#include "sys/raw_syscall.h"
#include "sys/unix_peer.h"

namespace caisson::session {
namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kMaxClients = 512;
constexpr auto kMaxSleep = std::chrono::seconds(60);  // the timer's clock stops while the machine is suspended

Error inOtherNamespace(const std::string& id) {
  return plainError(Stage::usage, "connect", id,
                    "this program is in another user namespace than the session's supervisor (a sandbox, a container, "
                    "`unshare`)",
                    "use the session from the namespace in which it was started");
}

}  // namespace

Supervisor::Supervisor(const SessionPaths& paths, sys::RootDir directory, Metadata metadata, Launcher launcher)
    : paths_(paths),
      directory_(std::move(directory)),
      metadata_(std::move(metadata)),
      launcher_(std::move(launcher)),
      logs_(directory_.enter(kLogDirectory)),
      ports_(
          directory_, metadata_, loop_,
          [this](int family) -> Result<sys::Fd> {
            if (!sandbox_) {
              return caisson::fail(plainError(Stage::state, "session expose", metadata_.id,
                                              "the session's sandbox is not running", "run a command in it first"));
            }
            InitRequest request;
            request.type = InitRequestType::socket;
            request.family = family;
            return sandbox_->askForDescriptor(request, "session expose");
          },
          [this] { return record_.log(metadata_.policy); }) {}

Result<void> Supervisor::bindSocket() {
  listener_ = sys::Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return caisson::fail(sysError(Stage::launch, "socket", "session", errno));
  if (auto removed = directory_.remove(kControlSocket); !removed) return removed;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the descriptor: the path itself may exceed the length of a socket address.
  std::snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory_.descriptor(),
                kControlSocket);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return caisson::fail(
        sysError(Stage::state, "bind", directory_.knownAs() + "/" + kControlSocket, errno,
                 "the file system of CAISSON_HOME must hold sockets; set CAISSON_HOME to a local disk"));
  }
  if (::listen(listener_.get(), kBacklog) != 0) {
    return caisson::fail(sysError(Stage::state, "listen", kControlSocket, errno));
  }
  return {};
}

Result<void> Supervisor::listen(Succession succession) {
  if (!logs_) return caisson::fail(logs_.error());
  const bool first = !succession.listener;
  listener_ = std::move(succession.listener);
  if (first) {
    if (auto bound = bindSocket(); !bound) return bound;
  }
  loop_.on(listener_.get(), POLLIN, [this](short) { acceptClient(); });
  record_.deferWhenBusy();
  record_.sendAlertsBy([this](const std::string& text) { return launcher_.sendAlert(text); });
  loop_.afterTurn([this] { flushRecords(); });
  armExpiry();
  watchCreator();
  for (KeptPort& port : succession.ports) ports_.adopt(std::move(port));
  if (first) return {};
  const int client = succession.client.get();
  addClient(std::move(succession.client));
  serve(client, {.sender = ownProtocols(), .type = MessageType::start, .value = std::move(succession.start)});
  return {};
}

void Supervisor::succeed(int socket, const std::string& start) {
  record_.flush(true);
  record_.handOverIfDue();
  if (!launcher_.succeed(listener_.get(), socket, start, ports_.kept())) {
    replyFailed(socket,
                sysError(Stage::state, "session", metadata_.id, ENOTCONN, "its launcher was killed; try again"));
  }
  clients_.erase(socket);  // belongs to the next supervisor now
  loop_.remove(socket);
  loop_.stop();
}

void Supervisor::run() {
  loop_.run();
  turnAwayClients();
  record_.flush(true);
  record_.handOverIfDue();
}

void Supervisor::turnAwayClients() {
  listener_.reset();
  std::vector<int> sockets;
  for (const auto& [socket, client] : clients_) sockets.push_back(socket);
  for (const int socket : sockets) {
    ::shutdown(socket, SHUT_RD);  // later requests fail to be sent
    Packet packet;
    if (receivePacket(socket, packet) != Receipt::message) continue;
    replyFailed(socket, sysError(Stage::state, "session", metadata_.id, ENOTCONN));
  }
}

void Supervisor::flushRecords() {
  record_.handOverIfDue();
  if (!record_.hasDeferred()) {
    if (sandbox_ && (!egress_record_ || egress_record_->recordedAll())) sandbox_->confirmRecorded();
    return;
  }
  if (flush_timer_ != 0) return;
  flush_timer_ = loop_.at(Clock::now() + std::chrono::milliseconds(10), [this] {
    flush_timer_ = 0;
    record_.flush();
    record_.handOver();  // what was deferred is to reach the disk as well
  });
}

void Supervisor::acceptClient() {
  for (;;) {
    sys::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const auto peer = sys::identifyPeer(socket.get());
    if (peer && peer->isInOtherNamespace()) {
      (void)sendPacket(socket.get(), MessageType::failed, codec::encode(inOtherNamespace(metadata_.id)), {}, false);
    }
    // No sandbox sees CAISSON_HOME; should one see it nevertheless, its payload is refused.
    if (!peer || !peer->is_owner || clients_.size() >= kMaxClients) continue;
    const int number = socket.get();
    addClient(std::move(socket));
    reply(number, MessageType::welcome, codec::encode(welcome()));
  }
}

void Supervisor::addClient(sys::Fd socket) {
  const int number = socket.get();
  clients_[number] = {std::move(socket), ++last_client_};
  loop_.on(number, POLLIN, [this, number](short) { onClient(number); });
}

Welcome Supervisor::welcome() const {
  const policy::Environment& environment = metadata_.policy.environment;
  return {.version = std::string(ownVersion()),
          .sandbox_runs = sandbox_ != nullptr,
          .review_first = !metadata_.granted.empty(),
          .passes_whole_environment = environment.mode == policy::EnvironmentMode::inherit,
          .pass = environment.pass,
          .output_bytes = sandbox_ ? sandbox_->plan().output_bytes : 0,
          .payload_id = sandbox_ && sandbox_->plan().identity.change_user ? sandbox_->plan().identity.outside_uid : 0};
}

Error Supervisor::notUnderstood(const std::string& reason) const {
  return otherVersionError("session", metadata_.id, "the request comes from another version of caisson: " + reason,
                           "use caisson " + std::string(ownVersion()) + ", which started the session's supervisor");
}

void Supervisor::onClient(int socket) {
  Packet packet;
  switch (receivePacket(socket, packet)) {
    case Receipt::nothing: return;
    case Receipt::closed: return dropClient(socket);
    case Receipt::message: return serve(socket, std::move(packet));
    case Receipt::other_version:
      if (packet.type == MessageType::settle) return serve(socket, std::move(packet));
      return replyFailed(
          socket, notUnderstood("it speaks " + describe(packet.sender) +
                                " of the session protocol, the session's supervisor " + describe(ownProtocols())));
  }
}

void Supervisor::dropClient(int socket) {
  const auto client = clients_.find(socket);
  if (client == clients_.end()) return;
  const std::uint32_t foreground = client->second.command;
  loop_.remove(socket);
  clients_.erase(client);
  // The socket's number may be reused for another client.
  for (auto& [number, command] : commands_) {
    if (command->client == socket) command->client = -1;
  }
  // The reader of the command's output is gone.
  if (Command* command = find(foreground)) end(*command, EndedBy::client);
  stopIfUnused();
}

bool Supervisor::reply(int socket, MessageType type, const std::string& value, const std::vector<int>& descriptors) {
  if (!clients_.contains(socket)) return false;
  const int error = sendPacket(socket, type, value, descriptors, false);
  if (error == ETOOMANYREFS) {
    replyFailed(socket, sysError(Stage::supervise, "sendmsg", "session", error,
                                 "too many descriptors of this user are in flight; try again"));
    return false;
  }
  if (error != 0) dropClient(socket);  // it does not read its responses, or disconnected
  return error == 0;
}

void Supervisor::replyFailed(int socket, const Error& error) {
  (void)reply(socket, MessageType::failed, codec::encode(error));
}

void Supervisor::armExpiry() {
  loop_.cancel(expiry_timer_);
  double left = metadata_.secondsLeft(Moment::now());
  if (left <= 0) {  // a client may have extended it without a request to us
    if (const auto current = readMetadata(directory_)) metadata_.expires = current->expires;
    left = metadata_.secondsLeft(Moment::now());
  }
  if (left <= 0) {
    (void)endSandbox("the session expired");
    ports_.closeAll();
    return loop_.stop();
  }
  const auto sleep = std::min<Clock::duration>(
      kMaxSleep, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(left)));
  expiry_timer_ = loop_.at(Clock::now() + sleep, [this] { armExpiry(); });
}

void Supervisor::extendTime() {
  if (Clock::now() < next_extension_) return;
  next_extension_ =
      Clock::now() + std::min<Clock::duration>(std::chrono::seconds(1),
                                               std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(metadata_.ttl_seconds / 20)));
  if (extendByActivity(directory_, metadata_)) armExpiry();
}

void Supervisor::watchCreator() {
  if (!metadata_.creator) return;
  const long opened = sys::raw(SYS_pidfd_open, metadata_.creator->pid, 0);
  const auto gone = [this] {
    (void)endSandbox("the process that created the session exited");
    ports_.closeAll();
    loop_.stop();
  };
  if (opened < 0 || !metadata_.creator->isAlive()) {
    if (opened >= 0) ::close(static_cast<int>(opened));
    loop_.at(Clock::now(), gone);
    return;
  }
  creator_ = sys::Fd(static_cast<int>(opened));
  loop_.on(creator_.get(), POLLIN, [gone](short) { gone(); });
}

void Supervisor::stopIfUnused() {
  if (!sandbox_ && clients_.empty() && ports_.empty()) loop_.stop();
}

Result<void> Supervisor::startSandbox(const StartOptions& options) {
  if (sandbox_) return {};
  auto metadata = readMetadata(directory_);
  if (!metadata) return caisson::fail(metadata.error());
  metadata_ = std::move(*metadata);
  armExpiry();
  writeMissingEnds(*logs_);
  for (const auto& [name, value] : options.secrets) ::setenv(name.c_str(), value.c_str(), 1);
  planner_.reset();
  auto planner = Planner::observe(directory_, metadata_);
  if (!planner) return caisson::fail(planner.error());
  planner_ = std::move(*planner);
  auto plan = planner_->planSandbox(metadata_);
  if (!plan) return caisson::fail(plan.error());
  if (auto used = useRootLayers(paths_, metadata_, *plan); !used) return used;
  if (auto stored = supervise::storeStateBefore(*plan); !stored) return stored;
  auto started = LiveSandbox::start(
      paths_, directory_, metadata_, *plan, loop_, launcher_,
      {.reply = [this](const InitReply& reply, sys::Fd descriptor) { onReply(reply, std::move(descriptor)); },
       .egress_report = [this](const egress::Report& report) { onEgressReport(report); },
       .exited = [this] { onSandboxExited(); }});
  for (const auto& [name, value] : options.secrets) ::unsetenv(name.c_str());
  if (!started) return caisson::fail(started.error());
  sandbox_ = std::move(*started);
  if (!sandbox_->directParts().redacted().empty()) makeSecretWatch();  // knows these files from now on
  if (auto stored = supervise::storeInit(*plan, sandbox_->init()); !stored) {
    (void)endSandbox("the trees that it writes could not be recorded");
    return stored;
  }
  for (auto& [path, tree] : planner_->facts.named_trees) tree.writer.reset();  // its record ends with the sandbox
  mounts_ = plan->steps;
  std::vector<std::string> warnings = plan->warnings;
  std::map<std::string, std::string> layers;
  supervise::noteRungs(*plan, sandbox_->prepared(), layers, warnings);
  supervise::noteUnmapped(sandbox_->unmapped(), warnings);
  keepWarnings(directory_, warnings);
  egress_record_.reset();
  if (sandbox_->hasEgress()) egress_record_.emplace(sandbox_->capture());
  if (auto opened = ports_.sandboxStarted(*plan, sandbox_->takeHostListeners()); !opened) {
    (void)endSandbox("its ports could not be opened");
    return opened;
  }
  if (auto noted = record_.lifecycle(metadata_.id, metadata_.policy, "started"); !noted) {
    (void)endSandbox("it could not be put on record");
    return noted;
  }
  // From here on this process reads data from payloads and the egress.
  if (auto confined = confineSupervisor(); !confined) {
    (void)endSandbox("its supervisor could not be confined");
    return confined;
  }
  confined_ = true;
  return {};
}

void Supervisor::reapLater(LiveSandbox::Remains remains) {
  remains_.push_back(std::move(remains));
  const auto kept = std::prev(remains_.end());
  loop_.on(kept->pidfd.get(), POLLIN, [this, kept](short) {
    loop_.remove(kept->pidfd.get());
    sys::raw(SYS_wait4, kept->init, nullptr, __WALL, nullptr);
    remains_.erase(kept);
  });
}

bool Supervisor::endSandbox(std::string_view reason, bool paused) {
  if (!sandbox_ || ending_) return true;
  ending_ = true;
  bool ended = false;
  if (paused) {
    auto remains = sandbox_->killPaused();
    ended = remains.has_value();
    if (remains) reapLater(std::move(*remains));
  } else {
    ended = sandbox_->kill();
  }
  loop_.cancel(limits_timer_);
  limits_timer_ = 0;
  limits_.reset();
  while (!commands_.empty()) {
    Command& command = *commands_.begin()->second;
    command.runner->noteCause(EndedBy::sandbox, Limit::none, std::string(reason));
    finish(command);
  }
  monitors_.clear();
  std::string noted(reason);
  if (ended) {
    const supervise::KeptLogNotes logs = supervise::keepWrittenLogs(
        sandbox_->plan(), metadata_.id, [this](std::string_view target) { return sandbox_->sizedDirectory(target); });
    for (const auto* notes : {&logs.notices, &logs.warnings}) {
      for (const std::string& note : *notes) noted += "; " + note;
    }
    sandbox_.reset();
  }
  planner_.reset();
  endSecretWatch();
  ports_.sandboxEnded();
  if (ended) (void)directory_.remove("init.json");
  (void)record_.lifecycle(metadata_.id, metadata_.policy, "ended", noted);
  ending_ = false;
  return ended;
}

void Supervisor::onSandboxExited() {
  // Not from within the sandbox's own handler, which this would destroy.
  loop_.at(Clock::now(), [this] {
    std::string reason = "its memory was used up, or a process on the host killed it";
    if (sandbox_ && sandbox_->cgroup().valid() && sandbox_->cgroup().oomKills().value_or(0) > 0) {
      reason = "its memory limit was exceeded";
      for (auto& [number, command] : commands_) {
        command->runner->noteCause(EndedBy::limit, Limit::memory);
      }
    }
    (void)directory_.replaceFile(kEndReasonFile, reason, 0600);
    (void)endSandbox(reason);
    stopIfUnused();
  });
}

int runSupervisor(const Store& store, const std::string& id, Launcher launcher, Succession succession, int status) {
  const auto report = [&](const std::string& text) {
    if (status < 0) return;
    (void)!::write(status, text.data(), text.size());
    ::close(status);
  };
  auto found = store.find("session", id);
  if (!found) {
    report("failed" + codec::encode(found.error()));
    return 1;
  }
  Supervisor supervisor(store.paths(), std::move(found->directory), std::move(found->metadata), std::move(launcher));
  if (auto listening = supervisor.listen(std::move(succession)); !listening) {
    report("failed" + codec::encode(listening.error()));
    return 1;
  }
  report("ready");
  supervisor.run();
  return 0;
}

}  // namespace caisson::session
