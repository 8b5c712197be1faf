// Approvals that outlast one answer: given by an owner once, for a session or for a time; listed, redeemed, revoked.
//
//   auto store = approval::Store::open();
//   store->grant({.what = "host:example.org:443", .scope = Scope::timed, .expires = now + 3600, .by = "terminal"});
//   if (auto used = store->redeem("host:example.org:443", "", now); used && *used) ...
//
// One small file, rewritten as a whole under a lock: there are few approvals, people should be able to read them, and
// a database would cost every launch of the program. A crash leaves the file as before or as after. Whoever can write
// to CAISSON_HOME is the owner's own uid and outside the boundary (SECURITY.md); a sandbox is never shown it.
// Every change is in the audit log; if it cannot be recorded, nothing is approved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::approval {

enum class Scope : std::uint8_t { once, session, timed };
std::string_view name(Scope scope);

struct Approval {
  std::string id;    ///< random; made by grant()
  std::string what;  ///< what.h
  Scope scope = Scope::once;
  std::string session;       ///< with Scope::session
  std::int64_t given = 0;    ///< seconds since 1970; made by grant()
  std::int64_t expires = 0;  ///< always set: an approval that nobody uses must not lie around for ever
  std::string by;            ///< how the owner said it: "terminal", "elicitation", "console"
};

/// How long one that was given for once, or for a session, can be redeemed at most.
inline constexpr std::int64_t kLongestUnused = 24L * 3600;
inline constexpr std::int64_t kLongest = 365L * 24 * 3600;

/// Puts an answer on record that was given for one run and is not kept. Not recorded means not given.
Result<void> recordAnswer(std::string_view what, std::string_view by, bool yes, std::string_view session = {});
/// Puts on record that an owner is being asked.
Result<void> recordQuestion(std::string_view what, std::string_view by, std::string_view session);

class Store {
 public:
  /// CAISSON_HOME/approvals, made if missing.
  static Result<Store> open();
  static Result<Store> adopt(sys::Fd directory, bool audited);

  Result<Approval> grant(Approval approval, std::int64_t now);
  /// Those that can still be redeemed, oldest first.
  Result<std::vector<Approval>> list(std::int64_t now) const;
  /// Whether there is one for exactly this (in this session, if any); one given for once is used up.
  Result<bool> redeem(std::string_view what, std::string_view session, std::int64_t now);
  /// The same; which one it was.
  Result<std::optional<Approval>> use(std::string_view what, std::string_view session, std::int64_t now);
  /// Whether there was one with this id.
  Result<bool> revoke(std::string_view id, std::int64_t now);

 private:
  Store(sys::RootDir directory, bool audited) : directory_(std::move(directory)), audited_(audited) {}
  Result<sys::Fd> lock() const;
  Result<std::vector<Approval>> read(std::int64_t now) const;
  Result<void> write(const std::vector<Approval>& approvals) const;
  Result<void> record(std::string_view event, const Approval& approval) const;

  sys::RootDir directory_;
  bool audited_ = true;
};

}  // namespace caisson::approval
