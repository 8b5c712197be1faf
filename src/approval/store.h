// Stored approvals: an owner grants them for once, a session or a time; they can be listed, redeemed and revoked.
//
//   auto store = approval::Store::open();
//   store->grant({.what = "host:example.org:443", .scope = Scope::timed, .expires = now + 3600, .by = "terminal"});
//   if (auto used = store->redeem("host:example.org:443", "", now); used && *used) ...
//
// One small file, rewritten as a whole under a lock: there are few approvals, users should be able to read them, and a
// database would slow down every launch. A crash leaves the old or the new file. Every process that can write to
// CAISSON_HOME has the owner's uid and is outside the security boundary (SECURITY.md); sandboxes never see it. Every
// change is in the audit log; if it cannot be recorded, nothing is approved.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/file_lock.h"
#include "sys/root_dir.h"

namespace caisson::approval {

/// once: for one use; session: for any number of uses in one session; timed: for any number until it expires.
enum class Scope : std::uint8_t { once, session, timed };
std::string_view name(Scope scope);

struct Approval {
  std::string id;    ///< random; set by grant()
  std::string what;  ///< what.h
  Scope scope = Scope::once;
  std::string session;       ///< with Scope::session
  std::int64_t given = 0;    ///< seconds since 1970; set by grant()
  std::int64_t expires = 0;  ///< seconds since 1970; 0: grant() sets it, but a timed one must name its end
  std::string by;            ///< where the owner answered: "terminal", "elicitation", "console"
  std::string place;         ///< of a project's policy: the digest of the file's path; empty in older records
};

/// What useAll() looks for.
struct Claim {
  std::string what;
  std::string session;  ///< or empty
};

/// Maximum age at which an approval for once, or for a session, can be redeemed.
inline constexpr std::int64_t kMaxUnused = 24L * 3600;
/// Maximum time that a timed approval may be given for.
inline constexpr std::int64_t kMaxValidSeconds = 365L * 24 * 3600;

/// Records in the audit log an answer that applies to one run and is not stored. On error the answer must not be used.
/// `by` as in Approval.
Result<void> recordAnswer(std::string_view what, std::string_view by, bool yes, std::string_view session = {});
/// Records in the audit log that the owner is being prompted.
Result<void> recordQuestion(std::string_view what, std::string_view by, std::string_view session);

class Store {
 public:
  /// Opens CAISSON_HOME/approvals; creates it if missing.
  static Result<Store> open();
  /// Uses an open directory. `audited`: false only in tests, which have no audit log.
  static Result<Store> adopt(sys::Fd directory, bool audited,
                             std::chrono::milliseconds lock_timeout = sys::kLockTimeout);

  /// Records and stores an approval; returns it with its id. An error for an invalid `what`, time or session, and if
  /// there are a thousand already. All times are in seconds since 1970.
  Result<Approval> grant(Approval approval, std::int64_t now);
  /// The approvals that can still be redeemed, oldest first.
  Result<std::vector<Approval>> list(std::int64_t now) const;
  /// Uses the oldest valid approval for exactly this `what`; false if there is none. Those of another session do not
  /// count. Records the use and, if its scope is once, removes it.
  Result<bool> redeem(std::string_view what, std::string_view session, std::int64_t now);
  /// As redeem(), but returns the approval, or nullopt.
  Result<std::optional<Approval>> use(std::string_view what, std::string_view session, std::int64_t now);
  /// As use() for several at once: all are used, or none if one of them has no approval. In the order of `claims`.
  Result<std::optional<std::vector<Approval>>> useAll(std::span<const Claim> claims, std::int64_t now);
  /// Makes the newest approval for one use that use() or useAll() took for this claim in the last minute valid again:
  /// for a caller whose use of it failed. False if there is none.
  Result<bool> giveBack(std::string_view what, std::string_view session, std::int64_t now);
  /// Removes the approval with this id. Returns whether there was one. If only the audit log fails, it is removed
  /// nevertheless and the result is an error.
  Result<bool> revoke(std::string_view id, std::int64_t now);

 private:
  Store(sys::RootDir directory, bool audited, std::chrono::milliseconds lock_timeout)
      : directory_(std::move(directory)), audited_(audited), lock_timeout_(lock_timeout) {}
  /// Waits for the store's lock, which is held until the result is closed; an error after the timeout.
  Result<sys::Fd> lock() const;
  /// An approval for one use that was used, for giveBack().
  struct Used {
    Approval approval;
    std::string claimed_by;  ///< a session, or empty
    std::int64_t at = 0;     ///< seconds since 1970
  };
  struct Content {
    std::vector<Approval> approvals;
    std::vector<Used> used;  ///< of the last minute
  };
  /// What is in the file and valid at `now`.
  Result<Content> read(std::int64_t now) const;
  /// Replaces the whole file, atomically.
  Result<void> write(const Content& content) const;
  /// Writes an audit event; `event` is "grant", "redeem", "give back" or "revoke".
  Result<void> record(std::string_view event, const Approval& approval) const;

  sys::RootDir directory_;
  bool audited_ = true;
  std::chrono::milliseconds lock_timeout_;
};

}  // namespace caisson::approval
