// A session: a workspace that persists across commands and supports checkpoints, forks and commits.
//
//   auto store = caisson::SessionStore::open();
//   auto session = store->create({.policy = *caisson::Policy::profile("bash"), .name = "fix-login"});
//   auto result = session->exec({.command = {"make", "test"}});
//   session->destroy();
//
// What a session's commands write to /workspace is stored below CAISSON_HOME, apart from the real directory. There is
// no daemon: one supervisor process per session (the installed `caisson` program) keeps the sandbox and runs commands
// for any process of the same user. Capabilities, system-call filter and limits are applied to each command. If the
// sandbox is gone (reboot, restore), the next command starts it again over the same files; what was in memory
// (processes, and /tmp and /home/sandbox unless the policy puts them on disk) is lost.
//
// In the landlock tier (isolation.tier, or where it replaces missing namespaces) no sandbox is kept: the workspace is a
// copy, or with mode `rw` the real directory, and each command is a separate run that exec() supervises. Background
// commands, checkpoints, forks, ports and pools are errors there.
//
// Guarantees: no exception is thrown. Several processes and threads may use one store, and one session, at the same
// time. After a crash at any moment, a session is in its state before or after the operation. Session is a handle:
// its copies, and handles in other processes, refer to the same session. Not thread-safe: one Session object.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/changes.h"
#include "caisson/error.h"
#include "caisson/policy.h"
#include "caisson/run.h"

namespace caisson {

namespace session {
class SessionContext;
class Store;
}  // namespace session

struct SessionOptions {
  /// For all its commands; filesystem.workspace must be an overlay or none (an empty workspace), in the landlock tier
  /// an overlay (which becomes a copy), none or rw.
  Policy policy;
  std::string name;  ///< display name: letters, digits, `-`, `_`, `.`; unique; may be empty
  /// The session expires after this long without a request: its processes are killed. If it has no uncommitted
  /// changes, it is removed. Otherwise its files are kept for kSessionGraceSeconds more, for diff(), exportTar(),
  /// commit() and renew().
  double ttl_seconds = 3600;
  /// Takes a checkpoint before each command, if anything was written since the last one and nothing runs. The last
  /// 100 automatic checkpoints are kept.
  bool auto_checkpoint = false;
  /// True: the session's processes outlive this process. False: they are killed when this process ends, however it
  /// ends; the files stay until the session expires.
  bool keep = false;
  /// False: create() does not wait until the new session is on the disk; it is within a second. A power loss before
  /// that may leave a session that can only be destroyed.
  bool wait_for_disk = true;
};

/// Grace period: how long an expired session with uncommitted changes is kept.
inline constexpr double kSessionGraceSeconds = 7.0 * 24 * 3600;

struct SessionInfo {
  std::string id;
  std::string name;
  std::string workspace;     ///< the real directory; empty if the session started with an empty workspace
  std::int64_t created = 0;  ///< seconds since 1970
  double ttl_seconds = 0;    ///< a request extends the session to this long from then
  double expires_in = 0;     ///< seconds; 0: expired, kept because of uncommitted changes
  double removed_in = 0;     ///< expired sessions only: seconds until the files are removed
  bool live = false;         ///< the sandbox is running; else the next command starts it
  std::string network;       ///< "none", "proxy" or "host"
  std::vector<std::string> allowed_hosts;
  std::string directory;              ///< the workspace as commands see it: /workspace, or a directory of the host
  std::vector<std::string> warnings;  ///< weaker protection than usual, of the sandbox that was started last
  std::string problem;                ///< why it cannot be used (unreadable metadata, a newer format), or empty
};

enum class OutputStreamKind : std::uint8_t { out, err };

struct ExecRequest {
  std::vector<std::string> command;  ///< argv; the program is looked up inside the sandbox
  StreamMode out = StreamMode::capture;
  StreamMode err = StreamMode::capture;
  /// Called from within exec() with each piece of output as it arrives, up to the output limit; not for output through
  /// a pty. The output is captured, relayed or discarded as well, according to its mode.
  std::function<void(OutputStreamKind, std::string_view)> on_output;
  bool relay_stdin = false;  ///< `input`, then the caller's standard input; else `input`, then end of file
  std::string input;
  /// If relayed input is a terminal, allocates a pty in the sandbox for each relayed terminal of descriptors 0, 1, 2.
  /// If output is one, too, the user is prompted for hosts that the policy of a session with network mode proxy does
  /// not list.
  bool interactive = false;
  bool ask_for_hosts = true;                       ///< false: the person at the terminal may not allow hosts
  bool forward_signals = false;                    ///< as in Request, but kills 4 s after TERM or HUP; for programs
  int cancel_descriptor = -1;                      ///< when it is readable, the command is killed: outcome `cancelled`
  std::optional<double> timeout_seconds;           ///< unset: from the policy; at most the owner's ceiling
  bool typed = false;                              ///< a person typed it: the ceiling does not bind timeout_seconds
  std::map<std::string, std::string> environment;  ///< added to the policy's environment; overrides it
  /// Inside the sandbox, absolute or relative to the workspace; empty: the policy's.
  std::string working_directory;
  /// Truncates each output stream here, unless it is relayed to a terminal. Unset: captured output at the policy's
  /// limit, relayed output never. Ignored by start().
  std::optional<std::uint64_t> output_limit;
  bool keep_input = false;       ///< start() only: standard input stays open for feed()
  bool default_timeout = false;  ///< start() only: without timeout_seconds the policy's applies, as for exec()
};

/// A command that start() started.
struct ExecInfo {
  std::uint32_t exec = 0;  ///< its number in the session
  std::vector<std::string> command;
  std::int64_t started = 0;  ///< seconds since 1970
  bool running = false;
  OutcomeKind outcome = OutcomeKind::exited;  ///< valid once it has ended
  int exit_code = 0, signal = 0;
  Limit limit = Limit::none;
  std::uint64_t out_bytes = 0, err_bytes = 0;      ///< stored so far
  std::uint64_t out_dropped = 0, err_dropped = 0;  ///< beyond the output limit
  Usage usage;                                     ///< valid once it has ended
  std::vector<Violation> violations;               ///< its blocked system calls so far
  bool stopped = false;                            ///< stop() was called while it ran
  bool ended_with_sandbox = false;                 ///< killed because the whole sandbox ended
};

struct LogPiece {
  std::string data;
  std::uint64_t next = 0;  ///< offset for the next request
  bool end = false;        ///< the command has ended and this is the last piece
};

struct FilePiece {
  std::string data;
  std::uint64_t size = 0;  ///< of the whole file
};

struct FileEntry {
  std::string name;
  /// "regular file", "directory", "symbolic link", "FIFO", "socket", "character device", "block device"
  std::string type;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::int64_t modified = 0;  ///< seconds since 1970
};

/// Which files an operation reaches.
enum class FileReach : std::uint8_t {
  workspace,  ///< those of the workspace; another path is an error
  /// Every path that a command sees, with the rights of a command: /tmp, the home, the root of an image. A relative
  /// path is below the workspace, and links are followed as a command follows them. An error for /proc, /sys and
  /// devices. In the landlock tier the same as `workspace`.
  sandbox,
};

/// How a command may access a path.
struct PathAccess {
  bool exists = false;
  std::string nearest;     ///< the path itself, or its nearest parent that exists
  bool read_only = false;  ///< that one is on a read-only mount
  bool denied = false;     ///< a command can't open it for reading, for want of rights
};

struct WriteOptions {
  bool make_directories = true;
  std::optional<std::uint32_t> mode;  ///< unset: the mode of the replaced file, else 0644
  FileReach reach = FileReach::workspace;
};

/// What to do if processes of the session are running, which could keep changing files through open descriptors:
/// `refuse` fails with EBUSY, `stop` kills them first.
enum class WhenBusy : std::uint8_t { refuse, stop };

/// How long openHost() allows a host: until the session ends, or while the owner's approval of `host:PATTERN`
/// (`caisson approvals`) is valid, for the session or for a time.
enum class HostTerm : std::uint8_t { session, while_approved };

struct CheckpointInfo {
  std::string name;
  std::int64_t created = 0;  ///< seconds since 1970
};

/// A path that a copy or an export skipped.
struct LeftOut {
  std::string path;
  std::string reason;
};

struct ExportReport {
  std::uint64_t entries = 0;         ///< files, directories and links in the archive
  std::vector<std::string> deleted;  ///< paths that the session deleted; an archive cannot represent deletions
  std::vector<LeftOut> left_out;
};

struct CopyReport {
  std::uint64_t files = 0, bytes = 0;
  std::vector<LeftOut> left_out;
};

struct ForkOptions {
  std::string name;
  double ttl_seconds = 3600;
  WhenBusy when_busy = WhenBusy::refuse;
};

/// A port forwarded between a session and the host's loopback interface.
struct OpenPort {
  std::uint16_t port = 0;       ///< in the session
  std::uint16_t host_port = 0;  ///< on the host's 127.0.0.1
  bool inward = false;          ///< the session connects to the host's port; else the reverse
};

/// A process of a session whose command has ended. It keeps `checkpoint` and others from working (WhenBusy).
struct LeftBehind {
  std::int32_t pid = 0;  ///< on the host
  std::string program;
};

/// A session of this user. Obtained from SessionStore.
class Session {
 public:
  [[nodiscard]] const std::string& id() const;
  /// Reads the current state. An error if the session was destroyed, or has expired and is not kept.
  Result<SessionInfo> info() const;
  /// The current policy, as JSON.
  Result<std::string> policyJson() const;

  /// Runs a command and waits until it ends. Left-behind processes keep running in the session. Returns an error if the
  /// request or the session is unusable, the command is quarantined or cannot be recorded, or the supervisor is killed
  /// meanwhile; if the command could not be started, the result has outcome `setup_failed`.
  Result<RunResult> exec(const ExecRequest& request);

  /// Starts a background command and returns its number. It survives this process, unless this process created the
  /// session without SessionOptions::keep. Its output goes to logs, each truncated at the policy's output limit.
  /// Without `timeout_seconds` it may run as long as the session. An error with `interactive` or `relay_stdin`.
  Result<std::uint32_t> start(const ExecRequest& request);
  /// All commands that any process started with start(), oldest first.
  Result<std::vector<ExecInfo>> processes();
  /// For all functions with `exec`: it is a number that start() returned; an unknown one is an error.
  Result<ExecInfo> status(std::uint32_t exec);
  /// Waits until it ends, at most this long; on timeout `running` is still true.
  Result<ExecInfo> wait(std::uint32_t exec, double timeout_seconds);
  /// Reads up to `max_bytes` of its output from `offset` on. Empty if there is nothing new.
  Result<LogPiece> logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset, std::size_t max_bytes);
  /// Calls `use` with a descriptor of the directory that changes when logs() or status() would return more, to watch
  /// it.
  Result<void> useLogs(const std::function<void(int)>& use);
  /// Writes to its standard input (ExecRequest::keep_input), then closes it if `close` is set. ETIMEDOUT if the command
  /// has not read enough after 30 s; a part may be written by then.
  Result<void> feed(std::uint32_t exec, std::string_view data, bool close);
  /// Sends SIGTERM to all its processes, and SIGKILL when it has ended or after the grace period. Waits until it has
  /// ended; an error if it survives SIGKILL for 5 s. Not an error if it has already ended.
  Result<void> stop(std::uint32_t exec, double grace_seconds = 2);
  /// Removes the records and outputs of commands that have ended, except those of the newest `keep` commands (at least
  /// one, so that no number is used twice).
  Result<void> dropEnded(std::size_t keep);
  /// Sends a signal to all its processes. ESRCH if it has ended.
  Result<void> signal(std::uint32_t exec, int number);

  /// Processes that outlived the command that started them.
  Result<std::vector<LeftBehind>> leftBehind();
  /// Sends them SIGTERM, and SIGKILL after the grace period, and waits until they are gone. Returns those that were
  /// there; an error if one survives SIGKILL for 5 s.
  Result<std::vector<LeftBehind>> stopLeftBehind(double grace_seconds = 2);

  /// Reads up to `max_bytes` from `offset` on. For all file operations: `path` is relative to the workspace, or
  /// absolute and inside it (/workspace/a). Other paths of the sandbox, such as /tmp, are an error, unless the
  /// operation takes a FileReach. Whatever the payload plants there (links, pipes, devices, rename races) can make them
  /// fail, but cannot redirect them to the host or make them block.
  Result<FilePiece> read(std::string_view path, std::uint64_t offset = 0, std::uint64_t max_bytes = 64U << 20,
                         FileReach reach = FileReach::workspace);
  /// Creates or replaces the file, atomically; only a file whose directory can't be written is changed in place.
  Result<void> write(std::string_view path, std::string_view data, const WriteOptions& options = {});
  /// Like write(), with the bytes that `read` returns until it returns 0. The file appears only when it is complete.
  /// While this runs, checkpoints of the session wait. Returns the size.
  Result<std::uint64_t> writeFrom(std::string_view path,
                                  const std::function<Result<std::size_t>(std::span<char>)>& read,
                                  const WriteOptions& options = {});
  /// Opens a regular file for reading and returns the descriptor, which the caller closes.
  Result<int> openFile(std::string_view path, FileReach reach = FileReach::workspace);
  /// The entries of a directory, sorted by name. More than a million are an error.
  /// `opened` is called with a descriptor of the directory before it is read, for example to watch it for changes.
  Result<std::vector<FileEntry>> listFiles(std::string_view path, const std::function<void(int)>& opened = nullptr,
                                           FileReach reach = FileReach::workspace);
  /// One file or directory; of the workspace also a link itself.
  Result<FileEntry> statFile(std::string_view path, FileReach reach = FileReach::workspace);
  /// How a command may access a path, as with FileReach::sandbox. Opens nothing for writing. An error in the landlock
  /// tier.
  Result<PathAccess> pathAccess(std::string_view path);
  /// Creates a directory and its missing parents.
  Result<void> makeDirectory(std::string_view path);
  /// Renames within the workspace. Without `replace`, EEXIST if `to` exists.
  Result<void> moveFile(std::string_view from, std::string_view to, bool replace = false);
  /// Removes a file, link or empty directory; with `recursive`, a whole tree. ENOENT if there is none.
  Result<void> removeFile(std::string_view path, bool recursive = false);

  /// Freezes the current workspace under a name ("" generates one). Takes the same time whatever the workspace's
  /// size, unless there are so many layers that they are merged first. The next command restarts the sandbox: what was
  /// only in memory (/tmp and /home/sandbox, unless the policy puts them on disk) is lost.
  Result<CheckpointInfo> checkpoint(std::string_view name = {}, WhenBusy when_busy = WhenBusy::refuse);
  /// Oldest first.
  Result<std::vector<CheckpointInfo>> checkpoints();
  /// Restores the workspace to a checkpoint; "begin" is the session's start. What was written since the last checkpoint
  /// is lost; later checkpoints stay. Ends the sandbox as checkpoint() does.
  Result<void> restore(std::string_view checkpoint, WhenBusy when_busy = WhenBusy::refuse);
  /// Creates a second session with the current workspace, checkpoints and policy of this one; afterwards the two are
  /// independent.
  /// Hosts allowed by HostTerm::while_approved and published ports are not taken over. Ends this session's sandbox as
  /// checkpoint() does.
  Result<Session> fork(const ForkOptions& options = {});
  /// What changed since a checkpoint ("" or "begin": since the session began), sorted by path.
  Result<std::vector<Change>> diff(std::string_view checkpoint = {});

  /// Like diff(), with content: unified patches, line counts, renames. Calls `visit` for each path, sorted; returning
  /// false stops the iteration. Reads files while the session runs. Files over 16 MiB get no patch, and the search
  /// for the shortest patch is bounded in time.
  Result<void> diffFiles(const DiffOptions& options, const std::function<bool(const FileDiff&)>& visit);
  /// Writes what was added or modified since a checkpoint as a tar archive (POSIX 2001, sparse files as GNU tar
  /// writes them), piece by piece. Returning false from `write` stops it, which is not an error.
  Result<ExportReport> exportTar(std::string_view checkpoint, const std::function<bool(std::string_view)>& write);

  /// Whether destroy() would lose anything, that is, whether the workspace differs from the real directory. The check
  /// is bounded in effort; returns true if it cannot finish.
  [[nodiscard]] Result<bool> hasUncommittedChanges() const;

  /// Copies a file or a directory tree from the host into the session's workspace. Like `cp -r`: into `to` if that is
  /// a directory. Files are replaced whole. Skips pipes, sockets and devices, drops setuid and setgid bits.
  Result<CopyReport> copyIn(const std::string& from, std::string_view to);
  /// Copies from the session to the host. Writes through no link below `to`. Of a tree, skips links that lead out of
  /// it and files that the host would execute by itself (docs/protected-files.md).
  Result<CopyReport> copyOut(std::string_view from, const std::string& to);

  /// Applies changes to the real workspace as one transaction. Each file is always entirely old or entirely new;
  /// after a crash, the next use of the session completes the commit. On error nothing was written, unless the error's
  /// hint names what was.
  Result<CommitReport> commit(const CommitRequest& request = {});

  /// Allows or denies a host (syntax of network.allowed_hosts, with or without ":port") from now on. Only in a
  /// session with network mode proxy. Closes connections that are no longer allowed.
  Result<void> network(bool allow, std::string_view pattern);
  /// Allows a host as network() does, also in a session that was created without network: it gets an egress, /tmp and
  /// the home are emptied, and the next command restarts the sandbox. `when_busy` matters only for that.
  Result<void> openHost(std::string_view pattern, HostTerm term, WhenBusy when_busy = WhenBusy::refuse);
  /// Removes the pattern from the allowed hosts; not an error if it is not among them. Does not deny what another
  /// pattern allows.
  Result<void> closeHost(std::string_view pattern);
  /// Removes hosts that were allowed by HostTerm::while_approved and whose approval expired or was revoked, and closes
  /// their connections. Every command starts with this.
  Result<void> reviewHosts();

  /// Forwards a TCP port of the session to 127.0.0.1 of the host, on `host_port` or, if that is 0, on a free port;
  /// with `inward`, forwards the host's port (0: the same number) to 127.0.0.1 of the session, where `port` must be
  /// 1024 or above. Only ports that the policy lists (network.exposed_ports, network.host_ports). Stays open until it
  /// is closed or the session ends, across checkpoints and restores. The ports of network.host_ports and
  /// network.published_ports are open from the start.
  Result<OpenPort> openPort(std::uint16_t port, std::uint16_t host_port = 0, bool inward = false);
  /// The ports that are open now; none if the session's supervisor does not run.
  Result<std::vector<OpenPort>> openPorts();
  /// Closes existing connections, too. An error if it is not open.
  Result<void> closePort(std::uint16_t port, bool inward = false);

  /// Makes `directory` the session's real directory. Needed when the old one was moved or made anew: a session refuses
  /// whatever else has its path. Ends the sandbox; the session's changes stay.
  Result<void> rebind(const std::string& directory, WhenBusy when_busy = WhenBusy::refuse);

  /// Sets the session's TTL, counted from now; every later request restarts it. Reactivates a session that expired
  /// with uncommitted changes.
  Result<void> renew(double ttl_seconds);

  /// Kills every process of the session and removes it with all its files. An error if it no longer exists.
  Result<void> destroy();

  explicit Session(std::shared_ptr<session::SessionContext> handle);

 private:
  std::shared_ptr<session::SessionContext> context_;
};

// caisson/session_pool.h
struct PoolOptions;
class SessionPool;

/// All sessions of this user below one CAISSON_HOME.
class SessionStore {
 public:
  /// Opens the store in CAISSON_HOME or the user's data directory; creates it if missing. `program`: the path of the
  /// caisson program, which runs the sessions' supervisors; empty: the installed one.
  static Result<SessionStore> open(std::string program = {});

  /// Creates a session and starts its sandbox. First removes expired sessions that are no longer kept, at most once a
  /// minute.
  Result<Session> create(const SessionOptions& options);
  /// Creates a pool of such sessions, and the first of them; take() sets their name and TTL. An error for a policy with
  /// network.published_ports.
  Result<SessionPool> pool(const SessionOptions& options, PoolOptions pool_options);
  Result<SessionPool> pool(const SessionOptions& options, std::size_t size);
  /// Finds a session by id, by the beginning of one ("cs-" and at least 4 digits), or by name. Unknown and malformed
  /// ones are distinct errors; so are expired ones, unless they are kept because of uncommitted changes.
  [[nodiscard]] Result<Session> find(std::string_view id_or_name) const;
  /// Session::exec for one-shot callers: if the session's sandbox runs, sends the command to the supervisor without
  /// reading the session's policy first. Every command still gets every layer.
  Result<RunResult> exec(std::string_view id_or_name, const ExecRequest& request);
  /// Sorted by creation time, without sessions that wait in a pool. First removes expired sessions that are not kept
  /// for uncommitted changes.
  Result<std::vector<SessionInfo>> list();
  /// Session::destroy by id or name; also works for a session that can no longer be opened.
  Result<void> destroy(std::string_view id_or_name);
  /// The commits of a session that can be undone, oldest first; also of a session that was destroyed, by its id.
  [[nodiscard]] Result<std::vector<ReplacedByCommit>> replaced(std::string_view id_or_name) const;
  /// What is kept of all sessions and runs together.
  [[nodiscard]] KeptData keptData() const;
  /// Undoes the newest commit of a session that is not undone: puts back what it replaced and deleted, and removes what
  /// it added. What changed in the workspace since is a conflict and left alone; the next call continues with it. Also
  /// for a session that was destroyed, by its id. What is undone is kept in turn. `dry_run`: only reports.
  Result<CommitReport> uncommit(std::string_view id_or_name, bool dry_run = false);
  /// Removes what crashed processes left behind, and expired sessions not kept for uncommitted changes; with `all`,
  /// destroys every session, running or not. Returns the removed ids.
  Result<std::vector<std::string>> clean(bool all);

  /// Calls `handler` at once when an operation of this store or its sessions finishes a commit or an uncommit that was
  /// interrupted, which changes the real workspace: with what was done, and the files that were left alone. Without a
  /// handler, the next result of Session::exec() has it as a notice.
  void onNotice(std::function<void(const std::string&)> handler);

  explicit SessionStore(std::shared_ptr<session::Store> store);

 private:
  std::shared_ptr<session::Store> store_;
};

}  // namespace caisson
