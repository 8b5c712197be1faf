// The approvals inbox: what callers asked for and only the owner can allow.
//
// A request that needs an approval is refused and put here. When the owner allows it, the approval store
// (approval/store.h) gets the grant, and the caller repeats the request. Kept in CAISSON_HOME/server/inbox.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_document.h"
#include "service/clock.h"
#include "service/principal.h"
#include "sys/root_dir.h"

namespace caisson::service {

struct PendingApproval {
  std::string id;
  std::string what;     ///< approval/what.h
  std::string meaning;  ///< as a sentence
  std::string sandbox;  ///< it is for this one; empty: for a new one
  std::string exactly;  ///< only this content: the digest of a commit; may be empty
  Json content;         ///< what that content is, for the owner (ExactContent::describe)
  std::string caller, caller_name;
  Instant asked;
  std::string state;  ///< "pending", "allowed", "denied"
};

/// What an approval is limited to: one commit.
struct ExactContent {
  std::string digest;
  /// For the owner: an object with "meaning" (a sentence) and the changes. Called only if the owner must be asked; an
  /// error ends the request.
  std::function<Result<Json>()> describe;
};

class Inbox {
 public:
  static Result<std::unique_ptr<Inbox>> open();

  /// Succeeds if the owner has approved all of this for the caller's sandbox, and uses up grants for once. Else adds
  /// what is missing to the inbox; `missing` lists it. The owner needs no approval, but it is recorded. `exactly`: an
  /// approval of other content does not count.
  Result<bool> require(const Principal& caller, const std::string& sandbox, const std::vector<std::string>& what,
                       std::vector<PendingApproval>& missing, const ExactContent& exactly = {});
  /// All for the owner, else the caller's; newest last.
  Result<std::vector<PendingApproval>> list(const Principal& caller);
  /// The owner's answer. `seconds`: how long it holds (0: once, or for the sandbox that it is for).
  Result<PendingApproval> answer(const std::string& id, bool allow, std::int64_t seconds);

 private:
  explicit Inbox(sys::RootDir directory) : directory_(std::move(directory)) {}
  /// Adds requests to the inbox, or finds them there.
  Result<void> ask(const Principal& caller, const std::string& sandbox, const std::vector<std::string>& what,
                   std::vector<PendingApproval>& missing, const ExactContent& exactly);
  Result<std::vector<PendingApproval>> readAll() const;
  Result<void> write(const PendingApproval& pending) const;
  /// Removes a file that cannot be a request: it would take space for ever and be in no list.
  void removeIfOld(const std::string& name, const Instant& now) const;

  std::mutex mutex_;
  sys::RootDir directory_;
};

}  // namespace caisson::service
