// One session in use by this process, behind the public Session.
#pragma once

#include <functional>

#include "egress/settings.h"
#include "session/client/command_rights.h"
#include "session/client/connection.h"
#include "session/client/host_prompt.h"
#include "session/layers/layer_stack.h"
#include "session/record.h"
#include "session/sandbox.h"
#include "session/store/store.h"

namespace caisson::session {

/// Mode of directories created for a file that a client writes.
inline constexpr mode_t kNewDirectoryMode = 0755;

class SessionContext {
 public:
  SessionContext(std::shared_ptr<Store> store, Store::Found found)
      : store_(std::move(store)), directory_(std::move(found.directory)), metadata_(std::move(found.metadata)) {}

  [[nodiscard]] const std::string& id() const { return metadata_.id; }
  [[nodiscard]] const sys::RootDir& directory() const { return directory_; }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] Store& store() const { return *store_; }
  [[nodiscard]] const std::shared_ptr<Store>& sharedStore() const { return store_; }

  /// Returns a connection to the supervisor of a running sandbox. Starts both if needed.
  Result<const SupervisorConnection*> connect();
  /// Drops the connection, so that the next connect() opens one. Does not end the sandbox.
  void disconnect() {
    connection_.reset();
    forgetRoom();
  }
  /// Writes a change of the session's state to the audit log; on an error the change must not happen.
  Result<void> note(std::string_view state, std::string_view detail = {}) {
    return record_.lifecycle(id(), metadata_.policy, state, detail);
  }
  // The functions of the public Session are explained in include/caisson/session.h.
  /// Runs a command and waits for its end. Starts the sandbox if needed, and again if it ended before the command ran.
  Result<RunResult> exec(const ExecRequest& request);
  /// exec() in the landlock tier, by a separate run.
  Result<RunResult> execInTier(const ExecRequest& request);
  /// exec() for a one-shot caller: decodes the policy only if needed.
  static Result<RunResult> execOnce(const std::shared_ptr<Store>& store, std::string_view id_or_name,
                                    const ExecRequest& request);
  /// Sets the session's end to `ttl_seconds` from now, also for an expired session.
  Result<void> renew(double ttl_seconds);
  // rebind.cc
  Result<void> rebind(const std::string& directory, WhenBusy when_busy);
  /// Turns a pooled session into a normal one that begins now. The change survives a crash of this process; so that it
  /// survives a power loss, call Store::completeLater() with the result, the replaced metadata file.
  Result<sys::Fd> handOut(const std::string& name, double ttl_seconds);

  // network.cc
  /// Allows or denies hosts that match `pattern`. An error if the session has no network.
  Result<void> changeNetwork(bool allow, std::string_view pattern);
  /// Allows a host. A session without network gets one, for which its sandbox is ended and its /tmp and home discarded.
  Result<void> openHost(std::string_view pattern, HostTerm term, WhenBusy when_busy);
  /// Removes the pattern from the allowed hosts; no error if it is not there. Other patterns may still allow the host.
  Result<void> closeHost(std::string_view pattern);
  /// Closes hosts whose approval expired or was revoked.
  Result<void> reviewHosts();
  /// Creates the prompt for hosts of a command on a user's terminal. Null without a terminal or without mode proxy. The
  /// sandbox must run.
  std::unique_ptr<HostPrompt> promptForHosts(const ExecRequest& request);

  // ports.cc
  /// Opens a port that the policy lists. `inward`: the sandbox reaches a port of the host; else the host reaches a port
  /// of the sandbox.
  Result<OpenPort> openPort(std::uint16_t port, std::uint16_t host_port, bool inward);
  /// Lists the ports that are open; empty without a supervisor.
  Result<std::vector<OpenPort>> openPorts();
  /// Also closes its connections. An error if the port is not open.
  Result<void> closePort(std::uint16_t port, bool inward);

  // background.cc
  /// Starts a background command and returns its number.
  Result<std::uint32_t> start(const ExecRequest& request);
  /// Describes all background commands, also those that ended.
  Result<std::vector<ExecInfo>> processes();
  Result<ExecInfo> status(std::uint32_t exec);
  /// Waits for the end of a background command. No error after the timeout: `running` is still true then.
  Result<ExecInfo> wait(std::uint32_t exec, double timeout_seconds);
  /// Reads kept output; empty if there is nothing new. Does not wait.
  Result<LogPiece> logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset, std::size_t max_bytes);
  /// Calls `use` with the directory of the kept output.
  Result<void> useLogs(const std::function<void(int)>& use);
  /// Writes to the standard input of a background command; an error if that does not take all within 30 seconds.
  Result<void> feed(std::uint32_t exec, std::string_view data, bool close);
  /// Sends SIGTERM to the command's tree, and SIGKILL after `grace_seconds`; waits for the end. An error if it survives
  /// that for five seconds, none if it has ended already.
  Result<void> stop(std::uint32_t exec, double grace_seconds);
  Result<void> signal(std::uint32_t exec, int number);
  Result<void> dropEnded(std::size_t keep);
  Result<std::vector<LeftBehind>> leftBehind();
  /// Like stop(), for all left-behind processes; returns those that there were.
  Result<std::vector<LeftBehind>> stopLeftBehind(double grace_seconds);

  // layers.cc
  /// Freezes the workspace under `name`, or a generated one if that is empty. Ends the sandbox.
  Result<CheckpointInfo> checkpoint(std::string_view name, WhenBusy when_busy);
  Result<std::vector<CheckpointInfo>> checkpoints();
  /// Returns the workspace to a checkpoint, or to "begin". Ends the sandbox; later checkpoints stay.
  Result<void> restore(std::string_view checkpoint, WhenBusy when_busy);
  /// Creates a session with the current workspace and policy of this one. Ends this session's sandbox.
  Result<Store::Found> fork(const ForkOptions& options);
  /// Lists the changes since a checkpoint; "" or "begin": since the session began.
  Result<std::vector<Change>> diff(std::string_view checkpoint);

  // changes/
  Result<void> diffFiles(const DiffOptions& options, const std::function<bool(const FileDiff&)>& visit);
  Result<ExportReport> exportTar(std::string_view checkpoint, const std::function<bool(std::string_view)>& write);

  // copy.cc
  /// Like `cp -r`, from the host into the workspace; copyOut() the other way. Both start the sandbox if needed.
  Result<CopyReport> copyIn(const std::string& from, std::string_view to);
  Result<CopyReport> copyOut(std::string_view from, const std::string& to);

  // commit.cc
  Result<CommitReport> commit(const CommitRequest& request);
  /// Undoes the newest commit that is not undone.
  Result<CommitReport> uncommit(bool dry_run);

  // files.cc: through the sandbox's mounts; starts the sandbox if needed
  Result<FilePiece> read(std::string_view path, std::uint64_t offset, std::uint64_t max_bytes, FileReach reach);
  Result<void> write(std::string_view path, std::string_view data, const WriteOptions& options);
  Result<std::uint64_t> writeFrom(std::string_view path,
                                  const std::function<Result<std::size_t>(std::span<char>)>& read,
                                  const WriteOptions& options);
  Result<int> openFile(std::string_view path, FileReach reach);
  Result<std::vector<FileEntry>> listFiles(std::string_view path, const std::function<void(int)>& opened,
                                           FileReach reach);
  Result<FileEntry> statFile(std::string_view path, FileReach reach);
  Result<PathAccess> pathAccess(std::string_view path);
  Result<void> makeDirectory(std::string_view path);
  Result<void> moveFile(std::string_view from, std::string_view to, bool replace);
  Result<void> removeFile(std::string_view path, bool recursive);

  /// Takes the session's lock, which the result holds, and rereads the metadata; an error if the session was destroyed
  /// meanwhile. Also does a requested rollback, finishes an interrupted commit and extends the session's time.
  Result<sys::Fd> lock();

 private:
  /// Starts the supervisor and its sandbox, as far as they do not run; takes the session's lock. An error if the
  /// session has expired.
  Result<std::optional<SupervisorConnection>> startSandbox();
  /// Makes the supervisor reread the metadata, if one runs.
  Result<void> reload();
  /// An error if the sandbox runs and its supervisor speaks no version of the protocol that we speak. Called before
  /// metadata are written that the supervisor has to reread.
  [[nodiscard]] Result<void> checkProtocol() const;
  /// A client's path, made relative if it begins with /workspace and the workspace is shown at its own path, where
  /// /workspace is a link.
  [[nodiscard]] std::string_view withoutLink(std::string_view path) const;
  /// The workspace as the session's programs see it, opened from outside. Must be released after use
  /// (release_workspace): while a client has it, the supervisor does not remount the workspace.
  Result<sys::RootDir> workspace();
  /// Calls `work` with the workspace and releases it; starts the sandbox if needed. Records a path that leads out of
  /// the workspace.
  Result<void> useWorkspace(const std::function<Result<void>(const sys::RootDir&)>& work);
  /// useWorkspace() with the rights of the sandbox's user (AsPayload).
  template <class T>
  Result<T> withWorkspace(const std::function<Result<T>(const sys::RootDir&)>& work);
  /// The whole sandbox as its commands see it; must be released like workspace().
  Result<SandboxFiles> sandboxFiles();
  /// Releases what workspace() or sandboxFiles() returned, which is closed by now. Records a path that led out of the
  /// workspace.
  void releaseFiles(const Result<void>& result);
  /// Calls `work` with a root and the path below it: with the workspace, or with the sandbox's root directory and in a
  /// thread with the commands' rights. Starts the sandbox if needed.
  template <class T>
  Result<T> withFiles(FileReach reach, std::string_view path,
                      const std::function<Result<T>(const sys::RootDir&, std::string_view)>& work);
  /// Validates `after` and writes it as the new metadata; if the sandbox runs, makes the supervisor reread it and sends
  /// the changes to the egress. The caller holds the lock.
  Result<void> applyNetwork(Metadata after, const std::vector<egress::Change>& changes);
  /// Reserves `bytes` of the session's disk quota for a write from outside; EDQUOT if they do not fit. The layers are
  /// measured again only after `unmeasured` bytes, since that takes time per file. Call noteWritten() after the write.
  Result<void> reserveRoom(std::uint64_t bytes, std::uint64_t unmeasured);
  void noteWritten(std::uint64_t bytes);
  /// Makes the next reserveRoom() measure.
  void forgetRoom();
  /// What the handles of this process share about the session's disk quota; null if it has none.
  WriteRoom* room();
  /// Bytes of the quota that the layers leave.
  [[nodiscard]] std::uint64_t measureRoom() const;
  Result<sys::RootDir> logDirectory();
  /// Lists left-behind processes (`processes`), or sends them a signal (`signal_left`) and lists them. Empty without a
  /// supervisor.
  Result<std::vector<LeftBehind>> askAboutLeft(MessageType type, int signal);
  /// Ends the sandbox, so that the layers can change. EBUSY if a process runs, unless `when_busy` is stop; kills the
  /// sandbox if the supervisor is gone or fails otherwise. The caller holds the lock. Also does a rollback that was
  /// requested meanwhile.
  Result<void> settle(std::string_view call, WhenBusy when_busy);
  /// Who may write to the layers that a commit reads.
  enum class LayerUse : std::uint8_t {
    none,    ///< no sandbox runs, and none starts while the caller holds the lock
    frozen,  ///< a new upper layer was begun, which is not part of the commit
    live,    ///< processes run: each file is read once, even if it changes
  };
  /// Ends the sandbox or freezes its upper layer, as far as the request and running processes allow. The caller holds
  /// the lock.
  Result<LayerUse> freezeForCommit(const CommitRequest& request);
  /// An error if an escape attempt requested a rollback while the commit read files: none of them may be written. Does
  /// the rollback.
  Result<void> rollBackBeforeApply();
  /// Finishes a commit or uncommit that a crash interrupted, if there is one. The caller holds the lock. The error
  /// about a journal that was kept aside is returned once more by the next call.
  Result<void> finishInterruptedCommit();
  /// Writes it to the audit log and passes it to SessionStore::onNotice(), or else keeps it for the next command.
  void reportFinished(std::string_view state, std::string notice);
  /// If the session has as many layers as possible, starts a worker that merges them and waits at most ten minutes for
  /// it.
  void makeRoom();
  /// Starts a worker that merges the layers, if there are many. Does not wait.
  void squashIfDeep() const;
  /// The workspace at a checkpoint and now, readable without the session's lock: layers removed meanwhile are an error.
  struct Compared {
    LayerRoots roots;
    LayerStack before, now;
  };
  /// The caller holds the lock. `checkpoint`: as in layersOf().
  Result<Compared> openForComparison(std::string_view call, std::string_view checkpoint);
  /// The layers of a checkpoint, uppermost first. "" or "begin": none, the state in which the session began.
  Result<std::vector<std::string>> layersOf(std::string_view call, std::string_view checkpoint);

  std::shared_ptr<Store> store_;
  sys::RootDir directory_;
  Metadata metadata_;
  std::optional<SupervisorConnection> connection_;
  std::shared_ptr<WriteRoom> room_;  ///< since the first write
  std::optional<Error> rejected_journal_;
  std::optional<CommitReport> finished_uncommit_;  ///< one that was interrupted
  std::string restart_notice_;                     ///< for the next command's result
  Record record_;
};

/// An error if the request is malformed, or if its timeout exceeds the owner's ceiling and is not `typed`; for exec()
/// and start().
Result<void> checkExec(const ExecRequest& request, const policy::Policy& policy);

}  // namespace caisson::session
