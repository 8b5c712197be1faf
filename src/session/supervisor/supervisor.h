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
#include <set>

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
#include "session/supervisor/log_budget.h"
#include "session/supervisor/ports.h"
#include "session/supervisor/session_limits.h"
#include "supervise/network/egress.h"
#include "supervise/workspace/secret_watch.h"
#include "sys/event_loop.h"

namespace caisson::session {

class Supervisor {
 public:
  Supervisor(const SessionPaths& paths, sys::RootDir directory, Metadata metadata, Launcher launcher);

  /// Opens the socket that clients connect to. With a succession, takes over the socket and ports of the earlier
  /// supervisor instead, and builds the sandbox for the client that waits.
  Result<void> listen(Succession succession);
  /// Runs until the session has neither a sandbox, nor open ports, nor clients. Also ends when the session expires, its
  /// creator exits, a client requests it, or the next supervisor takes over.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    sys::Fd socket;
    std::uint64_t serial = 0;     ///< tells it from a later client with the same descriptor number
    std::uint32_t command = 0;    ///< the foreground command it waits for; 0: none
    bool uses_workspace = false;  ///< it reads or writes files through a directory of the workspace
  };

  // supervisor.cc: lifetime and clients
  /// Creates the listening socket in the session's directory, in place of one that an earlier supervisor left.
  Result<void> bindSocket();
  /// Accepts all waiting connections and sends each a welcome. Drops those of other users and those over kMaxClients.
  void acceptClient();
  /// Watches a client's socket; sends nothing.
  void addClient(sys::Fd socket);
  /// Makes the launcher fork the next supervisor, which builds a new sandbox for the client at `socket`, and stops this
  /// one: a confined process cannot build a sandbox. `start`: the client's StartOptions, encoded.
  void succeed(int socket, const std::string& start);
  /// The error for a client whose request this version does not know.
  [[nodiscard]] Error notUnderstood(const std::string& reason) const;
  /// A client's socket is readable: handles one message, or drops the client at end of file.
  void onClient(int socket);
  /// Closes a client's connection and kills the foreground command that it waited for.
  void dropClient(int socket);
  /// Replies ENOTCONN to requests that arrived while this process was exiting. They were not executed: the client may
  /// restart the session and retry.
  void turnAwayClients();
  /// Sends a message without blocking. False: there is no such client, or the message could not be sent, and the client
  /// got an error or was dropped.
  bool reply(int socket, MessageType type, const std::string& value = {}, int descriptor = -1) {
    return reply(socket, type, value, descriptor < 0 ? std::vector<int>() : std::vector<int>{descriptor});
  }
  bool reply(int socket, MessageType type, const std::string& value, const std::vector<int>& descriptors);
  /// reply() with `failed`.
  void replyFailed(int socket, const Error& error);
  /// Sets the timer for the end of the session's time. If that has passed, ends the sandbox, closes all ports and stops
  /// the event loop.
  void armExpiry();
  /// Extends the session's time after a request, at most once a second (more often only if its time to live is below
  /// 20 s): this reads files, and there may be thousands of commands.
  void extendTime();
  /// Ends the sandbox and stops the event loop when the process that created the session exits. Nothing for a session
  /// that is kept.
  void watchCreator();
  /// Stops the event loop if there is neither a sandbox, nor a client, nor an open port.
  void stopIfUnused();
  /// After each turn of the event loop: syncs new audit records, and retries those that failed because another process
  /// held the log. Connections through the egress carry no data until everything about them is recorded.
  void flushRecords();
  [[nodiscard]] Welcome welcome() const;
  /// Reads meta.json, builds the sandbox if none runs, opens the policy's ports, and then confines this process.
  Result<void> startSandbox(const StartOptions& options);
  /// Kills the sandbox, finishes every command, and records why. `paused`: nothing runs in it. False: a process
  /// survives SIGKILL. True without a sandbox, or when called while this runs.
  bool endSandbox(std::string_view reason, bool paused = false);
  /// Reaps the pid 1 of a killed sandbox and removes its cgroup, as soon as the kernel has removed its mounts.
  void reapLater(LiveSandbox::Remains remains);
  /// pid 1 exited without a request from us: records the reason, out of memory or killed from outside, and finishes
  /// every command in the next turn of the event loop.
  void onSandboxExited();

  // requests.cc: requests of clients. Each serveX() replies with `done` or `failed`; see MessageType.
  /// Handles one request; drops a client that sent an invalid one.
  void serve(int socket, Packet packet);
  /// Starts the sandbox and replies with a Welcome. If this process is confined and has no sandbox, the launcher must
  /// start another supervisor.
  void serveStart(int socket, const StartOptions& options);
  /// Replies with a descriptor of the workspace, after new secret files are hidden, or after a second (afterMasks).
  void serveWorkspace(int socket);
  /// The same with the root directory and the commands' Landlock rules.
  void serveView(int socket);
  /// Calls `send` after new secret files are hidden, or after a second; if it returns true, the client has files of the
  /// sandbox open. Nothing if the client left meanwhile.
  void sendFiles(int socket, std::function<bool()> send);
  /// Replies with the write end of a background command's standard input, which stays open here too.
  void serveTakeInput(int socket, const CommandNumber& number);
  void serveCloseInput(int socket, const CommandNumber& number);
  /// The background command `exec`, if its standard input is open. Else replies with the error and returns null.
  Command* commandWithInput(int socket, std::uint32_t exec);
  void serveOpenPort(int socket, const PortOptions& options);
  void serveClosePort(int socket, const PortOptions& options);
  /// A foreground command gets no reply. SIGKILL to it, or any signal to a command that was not spawned yet, ends it.
  void serveSignal(int socket, const SignalOptions& options);
  /// Ends the sandbox; EBUSY if a process runs, unless `stop_processes`. With `end_supervisor`, this process ends too.
  void serveSettle(int socket, const SettleOptions& options);
  /// Sets the end of the session in memory only; the client writes meta.json.
  void serveRenew(int socket, const Seconds& seconds);
  /// Rereads meta.json, in which a client changed the network policy, the name or the time of the session.
  void serveReload(int socket);
  /// Starts a new upper layer for a commit: the layers below no longer change, and the sandbox stays. EBUSY if that is
  /// not possible now; after any other error the sandbox is ended.
  void serveFreeze(int socket);
  /// Signals the left-behind processes. SIGKILL stops them first, until no new one appears, so that none escapes by
  /// forking. Signals nothing while a newborn exists, which would be among them: the client retries.
  void serveSignalLeft(int socket, const SignalOptions& options);
  /// All processes of the sandbox except pid 1 and those of running commands. The sandbox must run.
  [[nodiscard]] ProcessList leftProcesses();

  // commands.cc: running commands. The order: startCommand, queueCommand, enqueue, spawnNext, spawn, recordAndRelease,
  // onReport, onExecuted; then finish.cc. `number` is Command::number; functions that take it do nothing if the command
  // is gone.
  /// An `exec` request: plans the command and queues it. A command that the policy denies is recorded, and the client
  /// gets a result with the denial; for a background command an error.
  void startCommand(int socket, CommandOptions options, std::vector<sys::Fd> streams);
  /// Prepares the layers, starts the time limit, and calls enqueue() when new secret files are hidden.
  void queueCommand(std::uint32_t number);
  /// Adds the command to the spawn queue. If it has to wait there, records the request now.
  void enqueue(std::uint32_t number);
  /// Writes the command's start to the audit log. EWOULDBLOCK: another process holds the log, retry.
  Result<void> recordStart(const Command& command);
  /// Records the command, and then lets its newborn, which waits for this before it installs its filter, execute the
  /// program. Retries for kRecordTimeout while another process holds the log; the rest of the session continues.
  void recordAndRelease(std::uint32_t number);
  /// The command could not be recorded: kills its newborn, if any, and replies with the error. fail() instead finishes
  /// the command with a result.
  void cancelUnrecorded(Command& command, const Error& error);
  /// Spawns the next queued command, unless waitUntilIdle() still kills processes or a newborn exists: that shares pid
  /// 1's memory and descriptors until its exec, so there is one at a time.
  void spawnNext();
  /// Call when the newborn has reached its exec or died: the next command may be spawned. Nothing for other commands.
  void spawnFinished(std::uint32_t number);
  /// Sets `ends` to the command's descriptors 0, 1 and 2: those of the client, or for a background command its input
  /// and pipes to its log files.
  Result<void> prepareStreams(Command& command, sys::Fd (&ends)[3]);
  /// Sends the spawn request to pid 1. Its reply arrives in onReply().
  Result<void> spawn(Command& command);
  /// A reply of pid 1: the command was spawned or exited, or the measured memory of System V objects.
  void onReply(const InitReply& reply, sys::Fd descriptor);
  /// The command's report socket is readable: a set-up failure, or the listener of its filter. End of file: the program
  /// runs, or the process died.
  void onReport(std::uint32_t number);
  /// The report socket was closed. Unless the set-up failed, the program runs: a background command's client gets
  /// `started`.
  void onExecuted(Command& command);
  /// Finishes a command that could not be spawned, with a result that holds the error.
  void fail(Command& command, Error failure);
  /// The same for a command that was not spawned, after its record.
  void failUnspawned(Command& command, const Error& error);
  /// Call when the newborn was released: kills it if it has not reached its exec after kSpawnTimeout.
  void armSpawnDeadline(Command& command);
  /// Polls the command's CPU time and ends the command if its limit is exceeded; sets the timer for the next poll.
  void checkCpu(std::uint32_t number);
  /// Kills a command that has not exited, and remembers the first cause. One that was not spawned yet is finished, and
  /// destroyed, at once.
  void end(Command& command, EndedBy why, Limit limit = Limit::none, const std::string& reason = {});
  /// SIGKILL to every process of a command; one that was not spawned yet is finished. If pid 1 does not report the exit
  /// within two seconds, the sandbox is killed.
  void killProcesses(std::uint32_t number);
  /// Ends all commands with this cause, and kills every other process of the sandbox except pid 1.
  void killEverything(EndedBy why, Limit limit, const std::string& reason);

  // finish.cc: their ends
  /// pid 1 reaped the command: collects its usage and checks the session's limits, then calls finish(). With an egress,
  /// finish() waits for the egress's reports, at most kEgressTimeout.
  void onExited(Command& command, const InitReply& reply);
  /// The OOM killer killed a process of the command: records that and kills the rest. Nothing if it has another cause
  /// of its end.
  void noteOutOfMemory(Command& command);
  /// Makes the result, records the end, replies to the client and removes the command, which is destroyed.
  void finish(Command& command);
  /// Stores how a background command ended, later if it cannot be stored now.
  void storeEnd(std::uint32_t exec, const EndRecord& record);
  /// Cancels the command's timers, closes its descriptors, gives its cgroup back and destroys it. Sends no reply.
  void removeCommand(Command& command);
  /// By Command::number; null if there is none.
  [[nodiscard]] Command* find(std::uint32_t number);
  /// For loops that call end(): it may destroy any command.
  [[nodiscard]] std::vector<std::uint32_t> commandNumbers() const;
  /// By Command::exec; null if no such background command runs.
  [[nodiscard]] Command* findExec(std::uint32_t exec);

  // layers.cc: rollback
  /// Whether the layers can be changed now: no process and no client uses the workspace, and exactly `commands`
  /// commands exist, none of which runs yet.
  [[nodiscard]] bool canFreeze(std::size_t commands) const;
  /// Starts a new upper layer, if the current one has content. The caller holds the session's lock. False: not possible
  /// now, and nothing changed. After an error the sandbox is unusable. `commands`: as canFreeze(); if not 0, a session
  /// with auto_checkpoint gets an automatic checkpoint, too.
  Result<bool> freezeUpper(std::size_t commands);
  /// Before a command: hides new secret files and freezes the upper layer, if nothing runs. Else masks the files, which
  /// afterMasks() waits for. After an error the sandbox is unusable.
  Result<void> prepareLayers(Command& command);
  /// freezeUpper() for the command that is about to start. Does nothing while a client holds the session's lock.
  Result<void> freeze();
  /// Remounts the same layers, so that names added to the mask layer become hidden. False: a process runs, and nothing
  /// changed. After an error the sandbox is unusable.
  Result<bool> remountWorkspace();
  /// Whether the host may have changed names since the overlay was mounted, as far as the last search knows. An overlay
  /// serves a file that was moved away under its old name as long as it has that name in its cache.
  [[nodiscard]] bool hasOldNames() const { return mount_used_ && scan_cache_.listings != mounted_listings_; }
  /// The overlay was mounted anew: nothing is cached, no mask is left.
  void noteMounted();
  /// Discards what was written since the last moment at which nothing ran, and keeps it as a checkpoint. The sandbox is
  /// dead. If a client holds the session's lock, the next use of the session does it. Returns a text for the result.
  std::string rollBack();
  /// After an escape attempt: kills the sandbox and calls rollBack(). Finishes the commands in the next turn of the
  /// event loop.
  std::string endAndRollBack();

  // secrets.cc: secret files that appear in the workspace
  /// What to look for in the real workspace: secret files, unless the policy shows them, and denied patterns.
  /// Secret files in the real workspace that the sandbox's layers do not hide, those with a mask included.
  Result<std::vector<std::string>> newSecrets();
  /// Starts to mask files in the running sandbox; afterMasks() waits until that is done.
  void hideAtOnce(const std::vector<std::string>& secrets);
  /// Calls `action` once the masks that were begun are in place; at once if there are none. With an error if the
  /// sandbox still shows a file of the host that has to be hidden: nothing may use the workspace then.
  void afterMasks(std::function<void(const Result<void>&)> action);
  /// Masks are in place or failed: calls the actions of afterMasks() that wait for no other.
  void onMasks();
  /// What the payload can make in the workspace directly may delay nothing for longer: stops waiting for these masks.
  void dropWrittenMasks();
  /// Creates secret_watch_, which does not watch yet.
  void makeSecretWatch();
  /// Watches the workspace while anything runs; called every two seconds then.
  void checkSecretWatch();
  /// The watch starts this long after a command or a reader, so that short ones do not pay for it.
  static constexpr auto kWatchSecretsAfter = std::chrono::milliseconds(20);
  /// Destroys secret_watch_ and calls what afterMasks() was given.
  void endSecretWatch();
  /// Whether the session's layers have a file or a deletion at `path`: its commands do not see the real file.
  [[nodiscard]] bool ownLayersHide(const std::string& path) const;

  // monitor.cc: blocked system calls, output, limits
  /// Answers and records the calls that the command's filter reports at `listener`, while any process of it lives.
  void listenTo(Command& command, sys::Fd listener);
  /// Records a blocked call. `exec`: of a background command, whose file of blocked calls is rewritten; else 0.
  void onViolation(std::uint32_t number, std::uint32_t exec, const Violation& violation);
  /// An escape attempt: kills everything, since left-behind processes and other commands may be part of it. If command
  /// `number` is gone, a left-behind process did it: alerts and rolls back here, since there is no result to do it in.
  void onEscape(std::uint32_t number, std::uint64_t monitor);
  /// The plan of a command with the mounts of the sandbox, which it has not: the caches among them are discarded.
  [[nodiscard]] plan::Plan withMounts(const plan::Plan& plan) const;
  /// Completes the result of a command that tried to escape: alert, trace, rollback.
  void respondToEscape(const Command& command, RunResult& result);
  /// Output of a background command is readable: writes it to the log file, up to the limit. `stream`: 0 for standard
  /// output, 1 for standard error.
  void pumpLog(std::uint32_t number, int stream);
  /// Reads what a command wrote before its exit, up to 1 MiB per stream. Later output of left-behind processes is lost.
  void drainLogs(Command& command);
  /// Starts to poll the session's limits, unless that runs or the plan has nothing to poll.
  void beginWatching();
  /// Polls the limits; kills everything if one is exceeded. Stops when nothing runs.
  void lookAtLimits();
  /// Before a command starts: over the session's disk limit it can only remove files. Otherwise each command could
  /// store as much as it writes until it is killed.
  void refuseWritesOverDiskLimit(Command& command);
  /// After a limit was exceeded: spawns nothing until all killed processes are gone, since they would count against the
  /// next command.
  void waitUntilIdle();
  /// Kills all processes every 5 ms until there are none; after the deadline kills the sandbox.
  void killUntilIdle(Clock::time_point deadline);
  /// The space for files of background commands.
  LogBudget& logBudget();
  /// Counts and records a report of the egress; one of totals also finishes the commands that wait for it.
  void onEgressReport(const egress::Report& report);
  /// The egress has reported its totals, or took too long: finishes the commands that wait for this.
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
  std::optional<LogBudget> log_budget_;  ///< since the first background command
  sys::EventLoop loop_;
  sys::Fd listener_;
  sys::Fd creator_;                 ///< pidfd of the process that created the session, if the session ends with it
  std::map<int, Client> clients_;   ///< by descriptor
  std::optional<Planner> planner_;  ///< while a sandbox runs
  std::unique_ptr<LiveSandbox> sandbox_;
  std::vector<plan::Step> mounts_;           ///< of the last sandbox
  std::list<LiveSandbox::Remains> remains_;  ///< of sandboxes that ended, until the kernel has removed them
  std::map<std::uint32_t, std::unique_ptr<Command>> commands_;
  std::uint32_t last_number_ = 0;
  Clock::time_point next_extension_{};     ///< requests before that do not extend the session's time
  std::deque<std::uint32_t> spawn_queue_;  ///< numbers of commands
  std::uint32_t spawning_ = 0;             ///< the command whose newborn has not reached its exec; 0: none
  std::map<std::uint64_t, Monitor> monitors_;
  std::uint64_t last_monitor_ = 0;
  std::shared_ptr<supervise::HighAttempts> high_attempts_ = std::make_shared<supervise::HighAttempts>();
  std::optional<SessionLimits> limits_;
  bool disk_may_be_full_ = true;  ///< until a measurement before a command shows that it is not
  sys::EventLoop::TimerId limits_timer_ = 0, expiry_timer_ = 0, egress_timer_ = 0, flush_timer_ = 0;
  isolation::BlockSpace blocks_;
  std::optional<supervise::EgressRecord> egress_record_;
  std::vector<std::uint32_t> waiting_for_egress_;  ///< commands that exited before the egress reported everything
  Record record_;
  PortSet ports_;
  host::ScanCache scan_cache_;
  std::uint64_t mounted_listings_ = 0;                  ///< of the search before the overlay was mounted
  bool mount_used_ = false;                             ///< the overlay may have cached names since then
  std::optional<supervise::SecretWatch> secret_watch_;  ///< watches while anything runs
  struct AfterMasks {
    std::set<std::string> paths;  ///< whose masks it waits for
    std::function<void(const Result<void>&)> action;
  };
  std::vector<AfterMasks> after_masks_;
  sys::EventLoop::TimerId secret_timer_ = 0, masks_timer_ = 0;
  std::uint64_t last_client_ = 0;
  bool ending_ = false;    ///< inside endSandbox()
  bool confined_ = false;  ///< this process cannot build another sandbox: see succeed()
};

/// The supervisor's process. Writes "ready", or "failed" and an encoded Error, to `status` once, if that is a
/// descriptor; returns the exit status.
int runSupervisor(const Store& store, const std::string& id, Launcher launcher, Succession succession, int status);

}  // namespace caisson::session
