// The sandboxes of a server and their owners.
//
// A sandbox is a session (caisson/session.h), held by its own supervisor process, so the server can be killed at any
// time. The owner, labels and quotas of each are in CAISSON_HOME/server/sandboxes/KEY.json, written before the session
// is created under the name KEY: whatever a crash leaves, a session either has its owner or does not exist. Sessions
// without such a file (made by the command line) are visible to the owner only.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "caisson/session_pool.h"
#include "service/events.h"
#include "service/principal.h"
#include "sys/root_dir.h"

namespace caisson::service {

struct SandboxRecord {
  std::string key;  ///< the session's name
  std::string owner, owner_name;
  std::string name;  ///< for people
  std::map<std::string, std::string> labels;
  std::string profile, template_name;
  double cpus = 0;
  std::uint64_t memory = 0, disk = 0;
  double command_timeout = 120;  ///< seconds, for commands that name none
  std::int64_t created = 0;
};

class Sandbox {
 public:
  Sandbox(std::string id, SandboxRecord record) : id_(std::move(id)), record_(std::move(record)) {}
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const SandboxRecord& record() const { return record_; }
  /// Call after a change of the session's metadata, which handles cache.
  void forgetHandles();

 private:
  friend class Sandboxes;
  std::string id_;
  SandboxRecord record_;
  std::mutex mutex_;
  std::vector<Session> idle_;  ///< unused handles; a handle must not be used by two threads
  std::uint64_t generation_ = 0;
};
using SandboxPointer = std::shared_ptr<Sandbox>;

/// Whether this is a whole id, not the beginning of one.
bool isSandboxId(std::string_view text);
/// ENOENT, the same for a sandbox that never was and for one of another caller.
Error noSandbox(std::string_view id);

class Sandboxes {
 public:
  /// Opens the store and adopts the sandboxes of an earlier server. `program`: the path of caisson.
  static Result<std::unique_ptr<Sandboxes>> open(std::string program, Events& events);
  ~Sandboxes();
  Sandboxes(const Sandboxes&) = delete;
  Sandboxes& operator=(const Sandboxes&) = delete;

  /// Creates a sandbox, or takes one from `pool`. An error with EUSERS if a quota of the caller does not allow it.
  /// `record.key` may be chosen by the caller (newKey()), so that it can be found again after a crash.
  Result<SandboxPointer> create(const Principal& caller, SandboxRecord record, SessionOptions options,
                                SessionPool* pool);
  /// A second sandbox with the same files, for the same owner; counts for the caller's quotas. `key` as in create();
  /// empty: a new one.
  Result<SandboxPointer> fork(const Principal& caller, Sandbox& from, ForkOptions options, const std::string& name,
                              const std::string& key = {});
  /// ENOENT if there is none, or the caller does not see it: the two cannot be told apart.
  Result<SandboxPointer> find(const Principal& caller, const std::string& id);
  /// The sandbox that was created under this key, or null.
  SandboxPointer findKey(const std::string& key);
  /// Those that the caller sees, oldest first.
  Result<std::vector<std::pair<SandboxPointer, SessionInfo>>> list(const Principal& caller);
  /// An error without ENOENT if it could not be destroyed, or has ended but some of its files are left.
  Result<void> destroy(const Principal& caller, const std::string& id);

  /// Calls `use` with a handle that no other thread uses. ENOENT if the sandbox is gone.
  template <class Use>
  auto with(Sandbox& sandbox, Use use) -> decltype(use(std::declval<Session&>())) {
    std::uint64_t generation = 0;
    auto session = take(sandbox, generation);
    if (!session) return std::unexpected(session.error());
    auto result = use(*session);
    if (!result) result = std::unexpected(explain(sandbox, result.error()));
    give(sandbox, std::move(*session), generation);
    return result;
  }

  /// The numbers of its commands in the background, in order. Their records are large, so they are not read.
  Result<std::vector<std::uint32_t>> commandNumbers(Sandbox& sandbox);

  [[nodiscard]] SessionStore& store() { return *store_; }
  static std::string newKey();
  /// How many sandboxes this server knows.
  [[nodiscard]] std::size_t count() const;

 private:
  Sandboxes(SessionStore store, sys::RootDir records, Events& events);
  Result<Session> take(Sandbox& sandbox, std::uint64_t& generation);
  /// The error of a request: that the sandbox is gone or has expired, if that is why it failed.
  [[nodiscard]] Error explain(const Sandbox& sandbox, const Error& error) const;
  [[nodiscard]] bool exists(const Sandbox& sandbox) const;
  void give(Sandbox& sandbox, Session session, std::uint64_t generation);
  /// Checks the quotas; the record counts for them until remember() or abandon().
  Result<void> claimQuota(const Principal& caller, const SandboxRecord& record);
  /// claimQuota(), and writes the record; abandon() undoes it.
  Result<void> reserve(const Principal& caller, const SandboxRecord& record);
  void abandon(const std::string& key);
  Result<void> checkQuotas(const Principal& caller, const SandboxRecord& record) const;
  Result<void> writeRecord(const SandboxRecord& record) const;
  [[nodiscard]] std::optional<SandboxRecord> readRecord(const std::string& key) const;
  /// The record of a session by its name; the owner's if there is none.
  [[nodiscard]] SandboxRecord recordOf(const SessionInfo& info) const;
  SandboxPointer remember(const std::string& id, SandboxRecord record);
  /// The sweeper thread: removes expired sandboxes and the records of those that are gone.
  void sweep();
  void sweepOnce();
  bool isCreating(const std::string& key) const;

  std::unique_ptr<SessionStore> store_;
  sys::RootDir records_;
  Events& events_;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::map<std::string, SandboxPointer> known_;    ///< by id
  std::map<std::string, SandboxRecord> creating_;  ///< by key; they count for quotas
  std::thread sweeper_;
};

}  // namespace caisson::service
