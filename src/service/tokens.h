// Bearer tokens of HTTP clients: CAISSON_HOME/server/tokens.json holds their SHA-256, never the tokens.
//
// A token has 160 random bits, so a plain hash is enough: there is nothing to guess. Creation and revocation are in the
// audit log. A running server notices changes of the file with the next request.
#pragma once

#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "service/clock.h"
#include "service/principal.h"
#include "sys/file_lock.h"
#include "sys/root_dir.h"

namespace caisson::service {

struct Token {
  std::string id;
  std::string name;  ///< letters, digits, `-`, `_`, `.`; unique
  std::string hash;  ///< SHA-256, in hexadecimal
  unsigned scopes = static_cast<unsigned>(Scope::read) | static_cast<unsigned>(Scope::exec);
  Quotas quotas;
  std::int64_t created = 0;
  std::int64_t expires = 0;  ///< seconds since 1970; 0: never
  /// The same moment on the clock since boot, and of which boot: setting the wall clock neither expires a token nor
  /// makes an expired one valid.
  std::int64_t expires_boot = 0;
  std::string boot_id;

  void expireAt(const Instant& end);
  [[nodiscard]] bool hasExpired(const Instant& now) const;
};

class TokenStore {
 public:
  /// Opens the store in CAISSON_HOME; creates its directory if missing.
  static Result<TokenStore> open() { return waitingFor(sys::kLockTimeout); }
  /// As open(), with another limit on the wait for a process that changes the tokens.
  static Result<TokenStore> waitingFor(std::chrono::milliseconds lock_timeout);

  /// Stores a token under `token.name` and returns its text, which is shown once. Sets id, hash and created.
  Result<std::string> create(Token token, const Instant& now);
  [[nodiscard]] Result<std::vector<Token>> list() const;
  /// By id or name. Returns the id, or nothing if there is none.
  Result<std::optional<std::string>> revoke(std::string_view id_or_name);

 private:
  TokenStore(sys::RootDir directory, std::chrono::milliseconds lock_timeout)
      : directory_(std::move(directory)), lock_timeout_(lock_timeout) {}
  /// An error if another process holds the lock for longer than the timeout.
  [[nodiscard]] Result<sys::Fd> lock() const;
  [[nodiscard]] Result<void> write(const std::vector<Token>& tokens) const;

  sys::RootDir directory_;
  std::chrono::milliseconds lock_timeout_;
};

/// policy::Policy::use of the sandboxes of the token with this id.
inline std::string useOfToken(const std::string& id) { return "token-" + id; }

/// Checks tokens for a server. Reads the file again when it changed.
class TokenChecker {
 public:
  explicit TokenChecker(TokenStore store) : store_(std::move(store)) {}
  /// The caller with this token; nothing if it is unknown or expired.
  std::optional<Principal> check(std::string_view token, const Instant& now);
  /// Whether the token with this id is still there and has not expired.
  bool isValid(std::string_view id, const Instant& now);

 private:
  /// Reads the file again if it changed. False: it cannot be read. With mutex_ held.
  bool refresh();

  std::mutex mutex_;
  TokenStore store_;
  timespec changed_{};
  std::uint64_t inode_ = 0;
  std::vector<Token> tokens_;
};

/// "read,exec" to bits and back; an error names the valid scopes.
Result<unsigned> parseScopes(std::string_view text);
std::string scopeNames(unsigned scopes);

/// `count` random characters of a-z and 2-7.
std::string randomName(std::size_t count);

}  // namespace caisson::service
