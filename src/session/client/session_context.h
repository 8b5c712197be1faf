// One session in use by this process, behind the public Session.
#pragma once

#include <functional>

#include "egress/settings.h"
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
  /// Drops the connection: the sandbox ended.
  void disconnect() {
    connection_.reset();
    room_.reset();
  }
  /// Records a change of the session's state; on an error the change must not happen.
  Result<void> note(std::string_view state, std::string_view detail = {}) {
    return record_.lifecycle(id(), metadata_.policy, state, detail);
  }
  Result<RunResult> exec(const ExecRequest& request);
  /// The same for a one-shot caller: decodes the policy only if needed.
  static Result<RunResult> execOnce(const std::shared_ptr<Store>& store, std::string_view id_or_name,
                                    const ExecRequest& request);
  Result<void> renew(double ttl_seconds);
  /// Turns a pooled session into a normal one that starts now. The change survives a crash of this process; for a power
  /// loss, call syncMetadata.
  Result<void> handOut(const std::string& name, double ttl_seconds);

  // network.cc
  Result<void> changeNetwork(bool allow, std::string_view pattern);
  Result<void> openHost(std::string_view pattern, HostTerm term, WhenBusy when_busy);
  Result<void> closeHost(std::string_view pattern);
  Result<void> reviewHosts();
  /// Creates the prompt for a command on a user's terminal; otherwise null. The sandbox must run.
  std::unique_ptr<HostPrompt> promptForHosts(const ExecRequest& request);

  // ports.cc
  Result<OpenPort> openPort(std::uint16_t port, std::uint16_t host_port, bool inward);
  Result<std::vector<OpenPort>> openPorts();
  Result<void> closePort(std::uint16_t port, bool inward);

  // background.cc
  Result<std::uint32_t> start(const ExecRequest& request);
  Result<std::vector<ExecInfo>> processes();
  Result<ExecInfo> status(std::uint32_t exec);
  Result<ExecInfo> wait(std::uint32_t exec, double timeout_seconds);
  Result<LogPiece> logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset, std::size_t max_bytes);
  Result<void> feed(std::uint32_t exec, std::string_view data, bool close);
  Result<void> stop(std::uint32_t exec, double grace_seconds);
  Result<std::vector<LeftBehind>> leftBehind();
  Result<std::vector<LeftBehind>> stopLeftBehind(double grace_seconds);

  // layers.cc
  Result<CheckpointInfo> checkpoint(std::string_view name, WhenBusy when_busy);
  Result<std::vector<CheckpointInfo>> checkpoints();
  Result<void> restore(std::string_view checkpoint, WhenBusy when_busy);
  Result<Store::Found> fork(const ForkOptions& options);
  Result<std::vector<Change>> diff(std::string_view checkpoint);

  // changes/
  Result<void> diffFiles(const DiffOptions& options, const std::function<bool(const FileDiff&)>& visit);
  Result<ExportReport> exportTar(std::string_view checkpoint, const std::function<bool(std::string_view)>& write);

  // copy.cc
  Result<CopyReport> copyIn(const std::string& from, std::string_view to);
  Result<CopyReport> copyOut(std::string_view from, const std::string& to);

  // commit.cc
  Result<CommitReport> commit(const CommitRequest& request);

  // files.cc
  Result<FilePiece> read(std::string_view path, std::uint64_t offset, std::uint64_t max_bytes);
  Result<void> write(std::string_view path, std::string_view data, const WriteOptions& options);
  Result<std::vector<FileEntry>> listFiles(std::string_view path);

  /// Takes the session's lock and rereads its metadata; an error if it was destroyed meanwhile.
  Result<sys::Fd> lock();

 private:
  Result<std::optional<SupervisorConnection>> startSandbox();
  /// Makes the supervisor reread the metadata, if one runs.
  Result<void> reload();
  /// A client's path with the name /workspace removed, which is a link if the workspace is shown at its own path.
  [[nodiscard]] std::string_view withoutLink(std::string_view path) const;
  /// The workspace as the session's programs see it, from outside. Must be released after use: while a client has it,
  /// the supervisor does not remount the workspace.
  Result<sys::RootDir> workspace();
  /// Calls `work` with the workspace, in a new sandbox if the old one ended.
  Result<void> useWorkspace(const std::function<Result<void>(const sys::RootDir&)>& work);
  /// The same with the rights of the sandbox's user.
  template <class T>
  Result<T> withWorkspace(const std::function<Result<T>(const sys::RootDir&)>& work);
  /// Writes `after` and notifies the egress, if there is one. The caller holds the lock.
  Result<void> applyNetwork(Metadata after, const std::vector<egress::Change>& changes);
  /// Whether the session may store `bytes` more; measures its layers again after `unmeasured` bytes.
  Result<void> checkRoom(std::uint64_t bytes, std::uint64_t unmeasured);
  Result<sys::RootDir> logDirectory();
  /// Asks the supervisor about left-behind processes, or to send them a signal; none without a supervisor.
  Result<std::vector<LeftBehind>> askAboutLeft(MessageType type, int signal);
  /// Ends the sandbox if nothing runs in it or `when_busy` says to stop it. The caller holds the lock.
  Result<void> settle(std::string_view call, WhenBusy when_busy);
  /// Who may write to the layers that a commit reads.
  enum class LayerUse : std::uint8_t {
    none,    ///< no sandbox runs, and none starts while the caller holds the lock
    frozen,  ///< a new upper layer was begun, which is not part of the commit
    live,    ///< processes run: each file is read once, even if it changes
  };
  Result<LayerUse> freezeForCommit(const CommitRequest& request);
  Result<void> rollBackBeforeApply();
  /// After a crash. The caller holds the lock.
  Result<void> finishInterruptedCommit();
  void makeRoom();
  void squashIfDeep() const;
  /// The workspace at a checkpoint and now, readable without the session's lock: layers removed meanwhile are an error.
  struct Compared {
    LayerRoots roots;
    LayerStack before, now;
  };
  Result<Compared> openForComparison(std::string_view call, std::string_view checkpoint);
  /// The layers of a checkpoint, uppermost first.
  Result<std::vector<std::string>> layersOf(std::string_view call, std::string_view checkpoint);

  std::shared_ptr<Store> store_;
  sys::RootDir directory_;
  Metadata metadata_;
  std::optional<SupervisorConnection> connection_;
  std::optional<std::uint64_t> room_;  ///< disk space left for the session, when last measured
  std::string restart_notice_;         ///< for the next command's result
  std::uint64_t written_ = 0;          ///< by us since then
  Record record_;
};

/// Whether the request makes sense, for exec() and start().
Result<void> checkExec(const ExecRequest& request, const policy::Policy& policy);

}  // namespace caisson::session
