// A session: a workspace that lasts over commands, branches, and can be undone.
//
//   auto store = caisson::SessionStore::open();
//   auto session = store->create({.policy = *caisson::Policy::profile("bash"), .name = "fix-login"});
//   auto result = session->exec({.command = {"make", "test"}});
//   session->destroy();
//
// What a session's commands write to /workspace is kept apart from the real directory, on disk below CAISSON_HOME.
// There is no daemon: one supervisor process per session (the installed `caisson` program) holds the sandbox and runs
// commands for any process of the same user; capabilities, system-call filter and limits are applied anew to each.
// When the sandbox is gone (a restart of the machine, a restore), the next command starts it again over the same files;
// what was in memory (/tmp, /home/sandbox, processes) is not kept.
//
// Guarantees: no exception crosses; several processes and threads may use one store, and one session, at the same time;
// a crash at any instant leaves a session as before or as after the operation. Session is a handle: copies of it, and
// handles in other processes, mean the same session. Not safe: one Session object used by two threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/error.h"
#include "caisson/policy.h"
#include "caisson/run.h"

namespace caisson {

namespace session {
class SessionContext;
class Store;
}  // namespace session

struct SessionOptions {
  Policy policy;     ///< for all of its commands; the workspace must be an overlay, or none (an empty one)
  std::string name;  ///< for people: letters, digits, `-`, `_`, `.`; unique; may be empty
  /// After so long without a request for it the session expires: its processes are killed. Without uncommitted changes
  /// it is removed; else its files are kept for kSessionGraceSeconds more, for diff(), exportTar(), commit() and
  /// renew().
  double ttl_seconds = 3600;
  /// Checkpoint before each command, if anything was written since the last one and nothing runs. The last 100 of these
  /// are kept.
  bool auto_checkpoint = false;
  /// Whether the session's processes outlive this process. Else they end with it, however it ends; the files stay until
  /// the session's time is over.
  bool keep = false;
};

/// For how long uncommitted changes of an expired session are kept.
inline constexpr double kSessionGraceSeconds = 7.0 * 24 * 3600;

struct SessionInfo {
  std::string id;
  std::string name;
  std::string workspace;     ///< the real directory, or empty when the session began with an empty workspace
  std::int64_t created = 0;  ///< seconds since 1970
  double ttl_seconds = 0;    ///< by how much a request extends its time
  double expires_in = 0;     ///< seconds; 0: expired, and kept for its uncommitted changes
  double removed_in = 0;     ///< of an expired one: seconds until its files are removed
  bool live = false;         ///< its sandbox is up; else the next command starts it
  std::string network;       ///< "none", "proxy" or "host"
  std::vector<std::string> allowed_hosts;
  std::string problem;  ///< why it cannot be used (unreadable metadata, a newer format), or empty
};

enum class OutputStreamKind : std::uint8_t { out, err };

struct ExecRequest {
  std::vector<std::string> command;  ///< argv; the program is looked up inside the sandbox
  StreamMode out = StreamMode::capture;
  StreamMode err = StreamMode::capture;
  /// Called with each piece of output as it comes, from within exec(), up to the output limit. Captured as well
  /// unless the mode is `discard`.
  std::function<void(OutputStreamKind, std::string_view)> on_output;
  bool relay_stdin = false;  ///< pass the caller's standard input on; else `input`, then end of file
  std::string input;
  /// A pty of the sandbox for those of 0, 1, 2 that are terminals. Where input and output are, the person there is
  /// asked about hosts that a session with network mode proxy does not name.
  bool interactive = false;
  bool forward_signals = false;                    ///< for programs: INT, TERM, HUP, QUIT, USR1, USR2 go to the command
  int cancel_descriptor = -1;                      ///< readable: end the command with outcome `cancelled`
  std::optional<double> timeout_seconds;           ///< unset: the policy's; must not exceed the policy's ceiling
  std::map<std::string, std::string> environment;  ///< added to the policy's
  std::string working_directory;                   ///< inside; empty: the workspace
  bool keep_input = false;                         ///< start() only: standard input stays open for feed()
};

/// A command that start() began.
struct ExecInfo {
  std::uint32_t exec = 0;  ///< its number in the session
  std::vector<std::string> command;
  std::int64_t started = 0;  ///< seconds since 1970
  bool running = false;
  OutcomeKind outcome = OutcomeKind::exited;  ///< when it has ended
  int exit_code = 0, signal = 0;
  Limit limit = Limit::none;
  std::uint64_t out_bytes = 0, err_bytes = 0;      ///< kept so far
  std::uint64_t out_dropped = 0, err_dropped = 0;  ///< beyond the output limit
  Usage usage;                                     ///< when it has ended
  std::vector<Violation> violations;               ///< system calls that it was refused, so far
};

struct LogPiece {
  std::string data;
  std::uint64_t next = 0;  ///< the offset to ask for next
  bool end = false;        ///< the command has ended and this was the last
};

struct FilePiece {
  std::string data;
  std::uint64_t size = 0;  ///< of the whole file
};

struct FileEntry {
  std::string name;
  std::string type;  ///< "regular", "directory", "link", "fifo", "socket", "character device", "block device"
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::int64_t modified = 0;  ///< seconds since 1970
};

struct WriteOptions {
  bool make_directories = true;
  std::optional<std::uint32_t> mode;  ///< unset: as the file that is replaced, else 0644
};

/// What to do when processes of the session run: an open file would go on changing what is to be frozen.
enum class WhenBusy : std::uint8_t { refuse, stop };

/// For how long openHost() opens a host: until the session's end, or as long as an owner's approval of `host:PATTERN`
/// (`caisson approvals`) stands, for the session or for a time.
enum class HostTerm : std::uint8_t { session, while_approved };

struct CheckpointInfo {
  std::string name;
  std::int64_t created = 0;  ///< seconds since 1970
};

enum class ChangeKind : std::uint8_t { added, modified, deleted };
std::string_view name(ChangeKind kind);

/// One path that differs. A directory that is gone is one change, whatever was in it.
struct Change {
  std::string path;  ///< relative to the workspace
  ChangeKind kind = ChangeKind::modified;
  std::string type;        ///< of what is there now, or was: as in FileEntry
  std::uint64_t size = 0;  ///< of what is there now
};

struct DiffOptions {
  std::string checkpoint;         ///< "" or "begin": since the session began
  std::size_t context_lines = 3;  ///< around a change, at most 1000
  bool patch = true;              ///< fill in `patch`; else only the line counts
  bool binary = false;            ///< put the content of binary files into the patch, as `git diff --binary` does
  bool renames = true;            ///< a deleted and an added file of similar content are one change
};

/// One path of a diff with what changed in it. Unlike Change, everything in a deleted directory is listed by itself.
struct FileDiff {
  std::string path;      ///< relative to the workspace
  std::string old_path;  ///< of a renamed file: what it was; else as `path`
  ChangeKind kind = ChangeKind::modified;
  std::string type, old_type;            ///< as in FileEntry; empty where the path does not exist
  std::uint32_t mode = 0, old_mode = 0;  ///< permission bits
  std::uint64_t size = 0, old_size = 0;
  bool binary = false;
  std::uint64_t added_lines = 0, removed_lines = 0;
  std::string patch;    ///< in git's format, for `git apply`; empty for what git does not track, such as directories
  std::string omitted;  ///< what of the change is not in the patch, and why; or empty
  [[nodiscard]] bool renamed() const { return path != old_path; }
};

/// Something that was left out of a copy or an export.
struct LeftOut {
  std::string path;
  std::string reason;
};

struct ExportReport {
  std::uint64_t entries = 0;         ///< files, directories and links in the archive
  std::vector<std::string> deleted;  ///< paths that the session deleted; an archive cannot hold that
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

/// A port that is open between a session and the host's loopback.
struct OpenPort {
  std::uint16_t port = 0;       ///< in the session
  std::uint16_t host_port = 0;  ///< on the host's 127.0.0.1
  bool inward = false;          ///< the session reaches the host's; else the host the session's
};

struct CommitRequest {
  /// Relative to the workspace: files, or directories with all that changed below. Empty: everything. What the host
  /// would execute later (hooks, editor tasks, start-up files, agent and CI configuration) is committed only if it is
  /// named here itself.
  std::vector<std::string> paths;
  bool dry_run = false;
  /// The digest of the changes that were approved (CommitReport::digest of a dry run). If the changes are others by
  /// now, or one of them cannot be written, the commit fails and nothing is written.
  std::string expect;
  bool stop = false;  ///< end the session's processes first, so that its files are consistent with each other
  /// Conflicts that are settled, by path: `ours` keeps the real file, `theirs` replaces it by the session's.
  std::vector<std::string> ours, theirs;
  /// Conflicts to be settled by a three-way merge: text files, or directories of such, that both the session and the
  /// real workspace changed. Needs a version that both come from: what git tracked when the session began, or what this
  /// session committed before. Where the changes touch each other the conflict stays.
  std::vector<std::string> merge;
  /// For commits that a model starts: what is not of a known, ordinary kind is held back, too
  /// (docs/protected-files.md).
  bool ordinary_files_only = false;
};

/// One change as a commit writes it.
struct ManifestEntry : Change {
  std::uint32_t mode = 0;          ///< permission bits; 0 for links and deletions
  std::string sha256;              ///< of a regular file's content, 64 hexadecimal digits
  std::string target;              ///< of a link
  bool held_unless_named = false;  ///< it is only committed because the request names it
  bool merged = false;             ///< the content is a merge of the session's and the real file's
};

struct NotCommitted {
  std::string path;
  std::string reason;
};

struct CommitReport {
  std::vector<ManifestEntry> applied;   ///< the manifest: what was written or, in a dry run, would be; by path
  std::vector<NotCommitted> conflicts;  ///< the real file changed since the session began; it was left alone
  std::vector<NotCommitted> held;       ///< would be executed by the host later, and was not named
  std::vector<NotCommitted> skipped;    ///< nothing that can be committed: pipes, sockets, unreadable files
  std::vector<std::string> kept;        ///< conflicts settled by `ours`: the real file stays
  std::string digest;                   ///< of the manifest and the workspace's path, for CommitRequest::expect
  std::uint64_t bytes = 0;              ///< of all files together
  bool consistent = true;               ///< nothing ran while the files were read
  [[nodiscard]] bool complete() const { return conflicts.empty() && held.empty() && skipped.empty(); }
};

/// A session of this user. Made by SessionStore.
class Session {
 public:
  [[nodiscard]] const std::string& id() const;
  Result<SessionInfo> info() const;
  /// Its policy as it is now, as JSON.
  Result<std::string> policyJson() const;

  /// Runs a command to its end. Processes that it leaves behind live on in the session. An error is returned only when
  /// the request or the session is unusable; a command that could not be started is a result with `setup_failed`.
  Result<RunResult> exec(const ExecRequest& request);

  /// Begins a command that lives on when this process ends, and returns its number. Its output goes to logs, each cut
  /// at the policy's output limit. Without `timeout_seconds` it may run for as long as the session.
  Result<std::uint32_t> start(const ExecRequest& request);
  /// All commands that start() began, oldest first, by any process.
  Result<std::vector<ExecInfo>> processes();
  Result<ExecInfo> status(std::uint32_t exec);
  /// Waits for its end at most this long; then `running` is still true.
  Result<ExecInfo> wait(std::uint32_t exec, double timeout_seconds);
  /// Up to `max_bytes` of its output from `offset` on. Empty while there is nothing new.
  Result<LogPiece> logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset, std::size_t max_bytes);
  /// Writes to its standard input, waiting while that is full; with `close` it then meets the end of file.
  Result<void> feed(std::uint32_t exec, std::string_view data, bool close);
  /// Asks all its processes to end (SIGTERM) and ends them (SIGKILL) after the grace. One that has ended is fine.
  Result<void> stop(std::uint32_t exec, double grace_seconds = 2);

  /// Files below /workspace, by a path relative to it or an absolute one inside. What the session's programs plant
  /// there (links, pipes, devices, directories renamed in a loop) can make these fail, but lead them nowhere else and
  /// make them wait for nothing. Up to `max_bytes` from `offset` on.
  Result<FilePiece> read(std::string_view path, std::uint64_t offset = 0, std::uint64_t max_bytes = 64U << 20);
  /// Replaces or makes the file, all of it or nothing.
  Result<void> write(std::string_view path, std::string_view data, const WriteOptions& options = {});
  /// What is in a directory, sorted by name.
  Result<std::vector<FileEntry>> listFiles(std::string_view path);

  /// Freezes the workspace as it is now under a name ("" chooses one). Takes the same time whatever is in it. The
  /// sandbox is started anew by the next command: what was only in memory (/tmp, /home/sandbox) begins empty again.
  Result<CheckpointInfo> checkpoint(std::string_view name = {}, WhenBusy when_busy = WhenBusy::refuse);
  /// Oldest first.
  Result<std::vector<CheckpointInfo>> checkpoints();
  /// Makes the workspace what it was then; "begin" is the session's beginning. Later checkpoints stay.
  Result<void> restore(std::string_view checkpoint, WhenBusy when_busy = WhenBusy::refuse);
  /// A second session that begins where this one is; from then on neither sees what the other does.
  Result<Session> fork(const ForkOptions& options = {});
  /// What changed since a checkpoint ("" or "begin": since the session began), sorted by path.
  Result<std::vector<Change>> diff(std::string_view checkpoint = {});

  /// The same with content: unified patches, line counts, renames. Calls `visit` for each path, sorted; false ends it.
  /// Files are read while the session runs; files beyond 16 MiB and a search for the shortest patch that takes too
  /// long are not waited for.
  Result<void> diffFiles(const DiffOptions& options, const std::function<bool(const FileDiff&)>& visit);
  /// What was added or modified since a checkpoint as a tar archive (POSIX 2001, sparse files as GNU tar writes them),
  /// piece by piece; false from `write` ends it.
  Result<ExportReport> exportTar(std::string_view checkpoint, const std::function<bool(std::string_view)>& write);

  /// Whether anything would be lost by destroy(): the workspace differs from the real directory. The look is bounded;
  /// where that does not suffice the answer is yes.
  [[nodiscard]] Result<bool> hasUncommittedChanges() const;

  /// Copies a file or a directory tree of the host into the session's workspace. Like `cp -r`: into `to` if that is a
  /// directory. Files are replaced whole. Pipes, sockets and devices are left out, setuid and setgid bits dropped.
  Result<CopyReport> copyIn(const std::string& from, std::string_view to);
  /// The other way. Nothing is written through a link below `to`, and links that lead out of the copied tree are left
  /// out.
  Result<CopyReport> copyOut(std::string_view from, const std::string& to);

  /// Brings changes to the real workspace as one transaction. Each file is old or new at every instant; after a crash
  /// the next use of the session finishes the commit. An error: nothing was written.
  Result<CommitReport> commit(const CommitRequest& request = {});

  /// Allows or denies a host (as in network.allowed_hosts, with or without ":port") from now on; only in a session with
  /// network mode proxy. Connections that no longer fit are cut.
  Result<void> network(bool allow, std::string_view pattern);
  /// The same, and also for a session that was made without network: it then gets an egress, and is started anew by the
  /// next command as after checkpoint().
  Result<void> openHost(std::string_view pattern, HostTerm term, WhenBusy when_busy = WhenBusy::refuse);
  /// Takes it off the list of allowed hosts again, without denying what else allows it.
  Result<void> closeHost(std::string_view pattern);
  /// Closes what is open while approved and is approved no more. Every command begins with this.
  Result<void> reviewHosts();

  /// Makes a TCP port of the session reachable at 127.0.0.1 of the host, on `host_port` or, if that is 0, on a free
  /// one; with `inward` the host's port at 127.0.0.1 of the session. Only what the policy lists (network.exposed_ports,
  /// network.host_ports). It stays until it is closed or the session ends, also over checkpoints and restores.
  Result<OpenPort> openPort(std::uint16_t port, std::uint16_t host_port = 0, bool inward = false);
  Result<std::vector<OpenPort>> openPorts();
  /// Existing connections are cut.
  Result<void> closePort(std::uint16_t port, bool inward = false);

  /// The session's time, counted from now; from then on each request extends it by as much. Brings back a session that
  /// expired with uncommitted changes.
  Result<void> renew(double ttl_seconds);

  /// Ends every process of the session and removes it with all its files. An id that is gone already is an error.
  Result<void> destroy();

  explicit Session(std::shared_ptr<session::SessionContext> handle);

 private:
  std::shared_ptr<session::SessionContext> context_;
};

namespace session {
class Pool;
}

/// Sessions made ahead, for servers that hand out many of the same kind. A thread of the pool's own keeps `size` of
/// them ready: sandboxes that stand, in which nothing has ever run. Each is handed out once and never comes back, so
/// nothing can be carried over from one to the next.
class SessionPool {
 public:
  /// One that is ready, as if it were made now; when none is, one is made. `name` as in SessionOptions.
  Result<Session> take(const std::string& name = {}, double ttl_seconds = 3600);
  [[nodiscard]] std::size_t ready() const;

  /// Destroys what was not handed out.
  ~SessionPool();
  SessionPool(SessionPool&&) noexcept;
  SessionPool& operator=(SessionPool&&) noexcept;
  explicit SessionPool(std::unique_ptr<session::Pool> pool);

 private:
  std::unique_ptr<session::Pool> pool_;
};

/// All sessions of this user below one CAISSON_HOME.
class SessionStore {
 public:
  /// Opens (and makes, if it is not there) the store in CAISSON_HOME or the user's data directory.
  static Result<SessionStore> open();

  /// Makes a session and starts its sandbox. Expired sessions that are kept no longer are removed first.
  Result<Session> create(const SessionOptions& options);
  /// A pool of such sessions (their name and time are given when they are taken). `size` is at most 64.
  Result<SessionPool> pool(const SessionOptions& options, std::size_t size);
  /// By id or by name. Unknown and malformed ones are errors that say which; so are expired ones, unless they are kept
  /// for their uncommitted changes.
  [[nodiscard]] Result<Session> find(std::string_view id_or_name) const;
  /// Session::exec for a process that runs one command and goes: by the plan that an earlier one left with the session,
  /// where it still holds, without the policy read and the host looked at again. Each command gets every layer as ever.
  Result<RunResult> exec(std::string_view id_or_name, const ExecRequest& request);
  /// Sorted by creation. Expired sessions without uncommitted changes are removed first.
  Result<std::vector<SessionInfo>> list();
  /// Session::destroy by id or name; works as well for a session that cannot be opened any more.
  Result<void> destroy(std::string_view id_or_name);
  /// Removes what crashed processes left and expired sessions that are not kept for uncommitted changes; with `all`
  /// every session. The ids removed.
  Result<std::vector<std::string>> clean(bool all);

  explicit SessionStore(std::shared_ptr<session::Store> store);

 private:
  std::shared_ptr<session::Store> store_;
};

}  // namespace caisson
