// The supervisor of a session: one process outside the sandbox that enforces everything about the session's commands.
//
// Started with the session (`caisson __session supervise ID`) and alive as long as its sandbox or an open port. It owns
// time and limits, the listeners of system-call filters, the egress, background commands and their output, ports and
// the audit records. Clients talk to it and never to pid 1. It waits for nothing that a payload controls: each request
// to pid 1 has a deadline, after which the whole pid namespace is killed. If the supervisor dies, pid 1 exits and the
// kernel kills everything in the sandbox; the files of the session stay.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "host/workspace_scan.h"
#include "isolation/compile.h"
#include "session/record.h"
#include "session/sandbox.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "session/store/store.h"
#include "session/supervisor/command.h"
#include "session/supervisor/launcher.h"
#include "session/supervisor/live_sandbox.h"
#include "session/supervisor/ports.h"
#include "session/supervisor/session_limits.h"
#include "supervise/network/egress.h"
#include "supervise/workspace/secret_watch.h"
#include "sys/event_loop.h"

namespace caisson::session {

class Supervisor {
 public:
  Supervisor(const SessionPaths& paths, sys::RootDir directory, Metadata metadata, Launcher launcher);

  /// Opens the socket that clients connect to, or takes over that of an earlier supervisor.
  Result<void> listen(Succession succession);
  /// Runs until the session has neither a sandbox, nor open ports, nor clients.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    sys::Fd socket;
    std::uint64_t serial = 0;     ///< tells it from a later client with the same descriptor number
    std::uint32_t command = 0;    ///< the foreground command it waits for
    bool uses_workspace = false;  ///< it reads or writes files through a directory of the workspace
  };

  // supervisor.cc: lifetime and clients
  Result<void> bindSocket();
  void acceptClient();
  void addClient(sys::Fd socket);
  /// Lets the next supervisor start a new sandbox: a confined one can't build it.
  void succeed(int socket, const std::string& start);
  void onClient(int socket);
  void dropClient(int socket);
  void turnAwayClients();
  /// False: it could not be sent, and the client got an error or disconnected.
  bool reply(int socket, MessageType type, const std::string& value = {}, int descriptor = -1);
  void replyFailed(int socket, const Error& error);
  void armExpiry();
  void noteActivity();
  void watchCreator();
  void stopIfUnused();
  void flushRecords();
  [[nodiscard]] Welcome welcome() const;
  Result<void> startSandbox(const StartOptions& options);
  /// Kills the sandbox, finishes every command, and records why. `paused`: nothing runs in it.
  bool endSandbox(std::string_view reason, bool paused = false);
  void bury(LiveSandbox::Remains remains);
  void onSandboxExited();

  // requests.cc: requests of clients
  void serve(int socket, Packet packet);
  void serveStart(int socket, const StartOptions& options);
  void serveWorkspace(int socket);
  void serveTakeInput(int socket, const CommandNumber& number);
  void serveCloseInput(int socket, const CommandNumber& number);
  Command* commandWithInput(int socket, std::uint32_t exec);
  void serveOpenPort(int socket, const PortOptions& options);
  void serveClosePort(int socket, const PortOptions& options);
  void serveSignal(int socket, const SignalOptions& options);
  void serveSettle(int socket, const SettleOptions& options);
  void serveRenew(int socket, const Seconds& seconds);
  void serveReload(int socket);
  void serveFreeze(int socket);
  void serveSignalLeft(int socket, const SignalOptions& options);
  [[nodiscard]] ProcessList leftProcesses();

  // commands.cc: running commands
  void startCommand(int socket, CommandOptions options, std::vector<sys::Fd> streams);
  void queueCommand(std::uint32_t number);
  void enqueue(std::uint32_t number);
  Result<void> recordStart(const Command& command);
  void recordAndRelease(std::uint32_t number);
  void refuse(Command& command, const Error& error);
  void spawnNext();
  void spawnFinished(std::uint32_t number);
  Result<void> prepareStreams(Command& command, sys::Fd (&ends)[3]);
  Result<void> spawn(Command& command);
  void onReply(const InitReply& reply, sys::Fd descriptor);
  void onReport(std::uint32_t number);
  void onExecuted(Command& command);
  void fail(Command& command, Error failure);
  void armSpawnDeadline(Command& command);
  void checkCpu(std::uint32_t number);
  void end(Command& command, EndedBy why, Limit limit = Limit::none, const std::string& reason = {});
  void killProcesses(std::uint32_t number);
  void killEverything(EndedBy why, Limit limit, const std::string& reason);

  // finish.cc: their ends
  void onExited(Command& command, const InitReply& reply);
  void noteOutOfMemory(Command& command);
  void finish(Command& command);
  void forget(Command& command);
  [[nodiscard]] Command* find(std::uint32_t number);
  [[nodiscard]] Command* findExec(std::uint32_t exec);

  // layers.cc: rollback
  [[nodiscard]] bool canFreeze(std::size_t commands) const;
  Result<bool> freezeUpper(std::size_t commands);
  Result<void> prepareLayers(Command& command);
  Result<void> freeze();
  Result<void> remountWorkspace();
  std::string rollBack();
  std::string endAndRollBack();

  // secrets.cc: secret files that appear in the workspace
  [[nodiscard]] host::ScanOptions scanOptions() const;
  std::vector<std::string> newSecrets();
  void hideAtOnce(const std::vector<std::string>& secrets);
  void afterMasks(std::function<void()> action);
  void onMasksSettled();
  void makeSecretWatch();
  void checkSecretWatch();
  void endSecretWatch();
  [[nodiscard]] bool ownLayersHide(const std::string& path) const;

  // monitor.cc: blocked system calls, output, limits
  void listenTo(Command& command, sys::Fd listener);
  void onViolation(std::uint32_t number, std::uint32_t exec, const Violation& violation);
  void onEscape(std::uint32_t number, std::uint64_t monitor);
  void respondToEscape(const Command& command, RunResult& result);
  void pumpLog(std::uint32_t number, int stream);
  void drainLogs(Command& command);
  void beginWatching();
  void lookAtLimits();
  void waitUntilIdle();
  void killUntilIdle(Clock::time_point deadline);
  void onEgressReport(const egress::Report& report);
  void finishWaitingForEgress();

  /// Lives as long as any process of its command, left-behind ones included.
  struct Monitor {
    std::shared_ptr<plan::Plan> plan;  ///< the monitor refers to it
    std::shared_ptr<supervise::SyscallMonitor> calls;
  };

  const SessionPaths& paths_;
  sys::RootDir directory_;
  Metadata metadata_;
  Launcher launcher_;
  Result<sys::RootDir> logs_;
  sys::EventLoop loop_;
  sys::Fd listener_, creator_;
  std::map<int, Client> clients_;
  std::optional<Planner> planner_;
  std::unique_ptr<LiveSandbox> sandbox_;
  std::list<LiveSandbox::Remains> remains_;  ///< of sandboxes that ended, until the kernel has removed them
  std::map<std::uint32_t, std::unique_ptr<Command>> commands_;
  std::uint32_t last_number_ = 0;
  Clock::time_point next_extension_{};  ///< requests before that do not extend the session's time
  std::deque<std::uint32_t> spawn_queue_;
  std::uint32_t spawning_ = 0;  ///< the command that has not reached its exec
  std::map<std::uint64_t, Monitor> monitors_;
  std::uint64_t last_monitor_ = 0;
  std::optional<SessionLimits> limits_;
  sys::EventLoop::TimerId limits_timer_ = 0, expiry_timer_ = 0, egress_timer_ = 0, flush_timer_ = 0;
  isolation::BlockSpace blocks_;
  std::optional<supervise::EgressRecord> egress_record_;
  std::vector<std::uint32_t> waiting_for_egress_;  ///< commands that exited before the egress reported everything
  Record record_;
  PortSet ports_;
  host::ScanCache scan_cache_;
  std::optional<supervise::SecretWatch> secret_watch_;  ///< watches while anything runs
  std::vector<std::function<void()>> after_masks_;
  sys::EventLoop::TimerId secret_timer_ = 0, masks_timer_ = 0;
  std::uint64_t last_client_ = 0;
  bool ending_ = false;
  bool confined_ = false;
};

/// The supervisor's process. Writes "ready" or an encoded Error to `status` once, if that is a descriptor; returns the
/// exit status.
int runSupervisor(const Store& store, const std::string& id, Launcher launcher, Succession succession, int status);

}  // namespace caisson::session
