// Subordinate ids of an ordinary caller (/etc/subuid, /etc/subgid), and the two setuid programs that map them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"

namespace caisson::host {

/// Finds the caller's subordinate ids, draws a uid and gid for a separate user, and finds the programs that map them;
/// `why_not` says what is missing.
plan::SubordinateIds observeSubordinateIds(uid_t uid, gid_t gid);

/// Has newuidmap and newgidmap write the id maps of `pid`, a child of ours in a new user namespace. An error, with its
/// message, if one of them fails or neither prints anything nor exits for ten seconds.
Result<void> mapSubordinateIds(const plan::Identity& identity, pid_t pid);

/// Why a program at this path is not one that can map ids: not root's, writable by others, without privileges. Empty if
/// it is one.
std::string whyNotHelper(const std::string& path);

// Pure parsers.
using plan::IdRange;
/// The largest range of a user in the text of /etc/subuid, by name or number; nullopt: there is none.
std::optional<IdRange> parseIdRange(std::string_view text, std::string_view name, uid_t uid);
struct Account {
  std::string name;
  gid_t gid = 0;
};
/// The entry of `uid` in the text of /etc/passwd.
std::optional<Account> parseAccount(std::string_view passwd, uid_t uid);

}  // namespace caisson::host
