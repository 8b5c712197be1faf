// The sandboxes that this server created, or whose id a client named, and the commands in them.
//
// A sandbox is a session (caisson/session.h). A client that has its random id may use the sandbox from any connection.
// A session of another process must show no directory that this server's models may not see, and give no more than
// a sandbox of this server (foreign_session.h). Every client can list those that this server created and those whose id
// a client named. The former are destroyed with the server unless
// they were created with `keep`; all others end by their time to live.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caisson/session.h"
#include "http/workers.h"
#include "mcp/sandbox/denied_requests.h"
#include "mcp/sandbox/execution.h"
#include "mcp/sandbox/operator_bounds.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

/// Ended background commands that a sandbox keeps, with their output.
inline constexpr std::size_t kKeptCommands = 256;

struct SandboxSettings {
  bool commit_without_asking = false;
  std::chrono::milliseconds answer_within{45'000};  ///< after this, a running command is returned by its exec_id
  std::string program;                              ///< the path of the caisson program; empty: the installed one
  OperatorBounds bounds;
};

class Sandbox {
 public:
  /// `stays`: it is not destroyed with the server.
  Sandbox(std::string id, bool stays) : id_(std::move(id)), stays_(stays), own_(true) {}
  /// One that another process created, the host directory that it shows, and the approvals that it needs.
  static std::shared_ptr<Sandbox> foreign(std::string id, std::string workspace, std::vector<std::string> needs) {
    auto sandbox = std::make_shared<Sandbox>(std::move(id), true);
    sandbox->own_ = false;
    sandbox->workspace_ = std::move(workspace);
    sandbox->needs_ = std::move(needs);
    return sandbox;
  }

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] bool stays() const { return stays_; }
  [[nodiscard]] bool own() const { return own_; }  ///< this server created it

  /// Keeps the newest commands; older ones that ended are dropped.
  void remember(const std::shared_ptr<Execution>& execution);
  /// Null if it is unknown, or ended long ago.
  [[nodiscard]] std::shared_ptr<Execution> execution(const std::string& exec_id) const;
  [[nodiscard]] std::vector<std::shared_ptr<Execution>> executions() const;
  /// Call after a change of the session's metadata, which each Session handle caches: drops idle handles now, and used
  /// ones when they are returned.
  void forgetHandles();
  /// Adds denials of its commands, newest last. The newest 64 are kept.
  void record(const std::vector<Denial>& denials);
  [[nodiscard]] std::vector<Denial> denials() const;
  /// How many answers the standard input of a task's command got from this server; nothing once it was closed.
  [[nodiscard]] std::optional<unsigned> inputRound(std::uint32_t command) const;
  /// Counts the answer of this round; false if another call was faster, whose answer counts. Forgets the oldest
  /// commands beyond 1024.
  bool takeInputRound(std::uint32_t command, unsigned round);
  void noteInputClosed(std::uint32_t command);

 private:
  friend class Sandboxes;
  static constexpr std::size_t kKept = 64;

  std::string id_;
  bool stays_, own_;
  std::string workspace_;           ///< of one that is not own
  std::vector<std::string> needs_;  ///< approvals (approval/what.h) of one that is not own
  mutable std::mutex mutex_;
  std::vector<Session> idle_;        ///< unused handles; a handle must not be used by two threads
  std::uint64_t handles_since_ = 0;  ///< counts forgetHandles()
  std::deque<std::shared_ptr<Execution>> executions_;
  std::deque<Denial> denials_;
  std::map<std::uint32_t, std::optional<unsigned>> inputs_;  ///< by command; absent: no answer yet
  std::uint64_t next_execution_ = 1;
};
using SandboxPointer = std::shared_ptr<Sandbox>;

class Sandboxes {
 public:
  explicit Sandboxes(SandboxSettings settings);
  /// Calls finish().
  ~Sandboxes();
  Sandboxes(const Sandboxes&) = delete;
  Sandboxes& operator=(const Sandboxes&) = delete;

  /// Notifies `announcer` of new and destroyed sandboxes from now on.
  void connect(Announcer& announcer) { announcer_ = &announcer; }

  /// Runs `make`, which creates a session, and registers that. An error if this server has as many sandboxes as its
  /// operator allows. `stays`: it is not destroyed with the server.
  Result<SandboxPointer> create(const std::function<Result<Session>(SessionStore&)>& make, bool stays);
  /// Finds by id, also a session that another process created, if it is within the operator's bounds, shows only what
  /// models may see and gives no more than a sandbox of this server: that one is then listed, too, but not destroyed
  /// with the server. The error lists the ids of this server's own, so that a model that invented one can continue.
  Result<SandboxPointer> find(const std::string& id);
  /// Whether find() might succeed once the client's roots are known. Also true for an id that does not exist, so that
  /// the question for the roots reveals nothing.
  bool mayBeInRoot(const std::string& id);
  /// Opens directories of a client's roots (canonical) to sessions of other processes.
  void openRoots(const std::vector<std::string>& roots);
  [[nodiscard]] std::vector<SandboxPointer> all() const;
  /// Kills the sandbox's commands and removes it, also one that another process created.
  Result<void> destroy(const std::string& id);

  /// Calls `use` with a handle that no other thread uses.
  template <class Use>
  auto with(Sandbox& sandbox, Use use) -> decltype(use(std::declval<Session&>())) {
    std::uint64_t since = 0;
    auto session = take(sandbox, since);
    if (!session) return std::unexpected(session.error());
    auto result = use(*session);
    give(sandbox, std::move(*session), since);
    return result;
  }

  /// Opens a host in a sandbox. `while_approved`: closes it again when the approval is revoked or expires.
  Result<void> openHost(const SandboxPointer& sandbox, const std::string& host, bool while_approved,
                        WhenBusy when_busy);

  /// Remembers that the user did not allow the network for this kind of command (`sign`) in this sandbox, so that they
  /// are not asked again.
  void decline(const std::string& id, const std::string& sign);
  [[nodiscard]] bool declined(const std::string& id, const std::string& sign) const;

  /// What the user denied in the last minutes, for all clients: since 2026-07-28 a request does not name its client.
  [[nodiscard]] DeniedRequests& deniedRequests() { return denied_requests_; }

  /// Starts a command in a worker thread; it waits while 256 others run. The sandbox remembers it.
  std::shared_ptr<Execution> begin(const SandboxPointer& sandbox, ExecRequest request, std::string command);

  [[nodiscard]] const SandboxSettings& settings() const { return settings_; }

  /// Kills every command that begin() started, and destroys every sandbox that this server created without `keep`.
  void finish();

 private:
  /// Takes one of the operator's number of sandboxes, for one that is being created; give it back with --creating_.
  Result<void> reserve();
  /// Registers a session that another process created; null if there is none that models may know of. An error if it
  /// gives more than the operator allows or than a sandbox of this server has; the refusal is recorded.
  Result<SandboxPointer> openForeign(const std::string& id);
  /// Records the refusal.
  static Error refuseForeign(const std::string& id, const Excess& excess);
  /// An error, which is recorded, if such a session needs an approval that is not on record.
  Result<void> checkNeeds(const std::string& id, const std::vector<std::string>& needs);
  /// Whether models may see a path that such a session shows: a directory that is open, a client's root, or one with
  /// an approval.
  bool mayShow(const std::string& id, const std::string& path);
  /// Whether an approval of this is on record, for this session or for a time.
  static bool isApproved(const std::string& id, const std::string& what);
  /// A session that another process created, not a sandbox of the HTTP API; nothing if there is none, or it must stay
  /// unknown to models.
  std::optional<std::pair<Session, SessionInfo>> findForeign(const std::string& id);
  /// Registers a new session.
  SandboxPointer adopt(const std::string& id, bool stays);
  /// Opened at the first use.
  Result<SessionStore> store();
  /// An idle handle of the sandbox, or a new one. `since` is for give().
  Result<Session> take(Sandbox& sandbox, std::uint64_t& since);
  /// Returns a handle; it is dropped if forgetHandles() was called since take().
  void give(Sandbox& sandbox, Session session, std::uint64_t since);
  /// The sweeper thread: calls sweep() and reviewApproved() from time to time, so that no response waits for them.
  void look();
  /// Removes what crashed processes left, expired sessions, and old commands of sandboxes that this server created.
  void sweep();
  /// Closes hosts whose approval was revoked or expired.
  void reviewApproved();

  SandboxSettings settings_;
  Announcer* announcer_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  bool finished_ = false;
  std::optional<SessionStore> store_;
  std::size_t creating_ = 0;
  std::map<std::string, SandboxPointer> sandboxes_;
  std::set<std::string> roots_;                             ///< of all clients
  std::set<std::pair<std::string, std::string>> declined_;  ///< of sandboxes that other servers created, too
  std::map<std::string, SandboxPointer> approved_;          ///< sandboxes with hosts that depend on an approval
  DeniedRequests denied_requests_;
  std::shared_ptr<OutputBudget> outputs_ = std::make_shared<OutputBudget>(kMaxOutputKept);
  std::thread sweeper_;
  http::Workers workers_;
};

}  // namespace caisson::mcp
