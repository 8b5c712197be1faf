// The sandboxes that this server made, or was shown the id of, and the commands in them.
//
// A sandbox is a session (caisson/session.h). Its id is random and is the only key to it: a client that has it may use
// the sandbox, whichever connection made it; one that has it not can't find it here unless it was made by this server.
// Sandboxes are ended with the server unless they were made to stay; then their time to live ends them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "caisson/session.h"
#include "mcp/features.h"
#include "mcp/sandbox/execution.h"
#include "mcp/workers.h"

namespace caisson::mcp {

struct SandboxSettings {
  bool commit_without_asking = false;
  std::string workspace;                            ///< --workspace: shown when a client names none; may be empty
  std::vector<std::string> allowed;                 ///< directories that may be shown without asking
  std::chrono::milliseconds answer_within{45'000};  ///< a command that takes longer is handed over by its exec_id
};

class Sandbox {
 public:
  Sandbox(std::string id, bool stays) : id_(std::move(id)), stays_(stays) {}

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] bool stays() const { return stays_; }

  /// The newest commands; older ones that have ended are forgotten.
  void remember(const std::shared_ptr<Execution>& execution);
  [[nodiscard]] std::shared_ptr<Execution> execution(const std::string& exec_id) const;
  [[nodiscard]] std::vector<std::shared_ptr<Execution>> executions() const;
  /// Something about it changed that handles keep a copy of: those that nobody uses are dropped, the others when they
  /// come back.
  void forgetHandles();
  /// What was refused in its commands, newest last.
  void record(const std::vector<Denial>& denials);
  [[nodiscard]] std::vector<Denial> denials() const;

 private:
  friend class Sandboxes;
  static constexpr std::size_t kKept = 64;

  std::string id_;
  bool stays_;
  mutable std::mutex mutex_;
  std::vector<Session> idle_;        ///< handles that nobody uses now; one must not be used by two threads
  std::uint64_t handles_since_ = 0;  ///< counts forgetHandles()
  std::deque<std::shared_ptr<Execution>> executions_;
  std::deque<Denial> denials_;
  std::uint64_t next_execution_ = 1;
};
using SandboxPointer = std::shared_ptr<Sandbox>;

class Sandboxes {
 public:
  explicit Sandboxes(SandboxSettings settings);
  ~Sandboxes();
  Sandboxes(const Sandboxes&) = delete;
  Sandboxes& operator=(const Sandboxes&) = delete;

  void connect(Announcer& announcer) { announcer_ = &announcer; }

  Result<SandboxPointer> create(const SessionOptions& options, bool stays);
  /// Takes over a session that a fork made.
  SandboxPointer adopt(const std::string& id, bool stays);
  /// By its id. The error lists the ids there are: a model that invented one can go on.
  Result<SandboxPointer> find(const std::string& id);
  [[nodiscard]] std::vector<SandboxPointer> all() const;
  Result<void> destroy(const std::string& id);

  /// Calls `use` with a handle that nobody else uses.
  template <class Use>
  auto with(Sandbox& sandbox, Use use) -> decltype(use(std::declval<Session&>())) {
    std::uint64_t since = 0;
    auto session = take(sandbox, since);
    if (!session) return std::unexpected(session.error());
    auto result = use(*session);
    give(sandbox, std::move(*session), since);
    return result;
  }

  /// Opens a host in a sandbox. `while_approved`: it is closed again when the approval is revoked or expires.
  Result<void> openHost(const SandboxPointer& sandbox, const std::string& host, bool while_approved,
                        WhenBusy when_busy);

  /// Begins a command in a thread of its own.
  std::shared_ptr<Execution> begin(const SandboxPointer& sandbox, ExecRequest request, std::string command);

  [[nodiscard]] const SandboxSettings& settings() const { return settings_; }

  /// Ends every command, and every sandbox that does not stay.
  void finish();

 private:
  Result<SessionStore> store();
  Result<Session> take(Sandbox& sandbox, std::uint64_t& since);
  void give(Sandbox& sandbox, Session session, std::uint64_t since);
  void look();
  void sweep();
  void reviewApproved();

  SandboxSettings settings_;
  Announcer* announcer_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  bool finished_ = false;
  std::optional<SessionStore> store_;
  std::map<std::string, SandboxPointer> sandboxes_;
  std::map<std::string, SandboxPointer> approved_;  ///< those with hosts that stand by an approval
  std::thread sweeper_;
  Workers workers_;
};

}  // namespace caisson::mcp
