#include "service/tokens.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "audit/log.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/version.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"
#include "sys/state_home.h"

namespace caisson::service {
namespace {

constexpr const char* kTokenFile = "tokens.json";
constexpr std::size_t kMaxTokens = 10'000;
constexpr std::string_view kPrefix = "cst_";
constexpr std::int64_t kTokenFormat = 1;

struct ScopeName {
  std::string_view name;
  Scope scope;
};
constexpr ScopeName kScopeNames[] = {{"read", Scope::read}, {"exec", Scope::exec}, {"admin", Scope::admin}};

std::optional<std::uint64_t> unsignedAt(const JsonValue& object, std::string_view key) {
  const auto number = object.integerAt(key);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

/// Fractions are stored in thousandths.
std::optional<double> thousandthsAt(const JsonValue& object, std::string_view key) {
  const auto number = object.integerAt(key);
  return number ? std::optional(static_cast<double>(*number) / 1000) : std::nullopt;
}

Token readToken(const JsonValue& value) {
  Token token;
  token.id = value.textAt("id").value_or("");
  token.name = value.textAt("name").value_or("");
  token.hash = value.textAt("sha256").value_or("");
  token.scopes = static_cast<unsigned>(value.integerAt("scopes").value_or(0));
  token.created = value.integerAt("created").value_or(0);
  token.expires = value.integerAt("expires").value_or(1);  // a damaged entry must not live for ever
  token.expires_boot = value.integerAt("expires_boot").value_or(0);
  token.boot_id = value.textAt("boot_id").value_or("");
  token.quotas = {.sandboxes = unsignedAt(value, "sandboxes"),
                  .memory = unsignedAt(value, "memory"),
                  .disk = unsignedAt(value, "disk"),
                  .cpus = thousandthsAt(value, "millicpus"),
                  .rate = thousandthsAt(value, "millirate")};
  return token;
}

void writeToken(JsonWriter& json, const Token& token) {
  json.beginObject().key("id").string(token.id).key("name").string(token.name).key("sha256").string(token.hash);
  json.key("scopes").number(token.scopes).key("created").number(token.created).key("expires").number(token.expires);
  if (!token.boot_id.empty()) json.key("expires_boot").number(token.expires_boot).key("boot_id").string(token.boot_id);
  const Quotas& quotas = token.quotas;
  if (quotas.sandboxes) json.key("sandboxes").number(*quotas.sandboxes);
  if (quotas.memory) json.key("memory").number(*quotas.memory);
  if (quotas.disk) json.key("disk").number(*quotas.disk);
  if (quotas.cpus) json.key("millicpus").number(static_cast<std::int64_t>(*quotas.cpus * 1000));
  if (quotas.rate) json.key("millirate").number(static_cast<std::int64_t>(*quotas.rate * 1000));
  json.end();
}

Error tokenError(std::string_view object, std::string reason, std::string hint) {
  return plainError(Stage::usage, "token", object, std::move(reason), std::move(hint));
}

bool isName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return isDigit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_' || c == '.';
  });
}

Result<void> recordToken(std::string_view action, const Token& token) {
  auto log = audit::Log::open();
  if (!log) return std::unexpected(log.error());
  audit::Fields fields;
  fields.text("action", action).text("token", token.name).text("token_id", token.id);
  fields.text("scopes", scopeNames(token.scopes)).number("expires", token.expires);
  return log->append({audit::EventType::token_changed, audit::Severity::warn, "", fields});
}

}  // namespace

std::string randomName(std::size_t count) {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string name(count, '\0');
  std::vector<unsigned char> random(count);
  if (::getrandom(random.data(), count, 0) != static_cast<ssize_t>(count)) std::abort();
  for (std::size_t i = 0; i < count; ++i) name[i] = kLetters[random[i] % 32];
  return name;
}

Result<unsigned> parseScopes(std::string_view text) {
  unsigned scopes = 0;
  for (const std::string_view part : split(text, ',')) {
    const auto* const known = std::find_if(std::begin(kScopeNames), std::end(kScopeNames),
                                           [&](const ScopeName& one) { return one.name == part; });
    if (known == std::end(kScopeNames))
      return std::unexpected(tokenError(part, "unknown scope", "use read, exec and admin, separated by commas"));
    scopes |= static_cast<unsigned>(known->scope);
  }
  if (scopes == 0)
    return std::unexpected(tokenError(text, "no scope", "use read, exec and admin, separated by commas"));
  return scopes;
}

std::string scopeNames(unsigned scopes) {
  std::string names;
  for (const auto& [name, scope] : kScopeNames)
    if ((scopes & static_cast<unsigned>(scope)) != 0) names.append(names.empty() ? "" : ",").append(name);
  return names;
}

Result<TokenStore> TokenStore::waitingFor(std::chrono::milliseconds lock_timeout) {
  auto opened = sys::openStateDirectory("server");
  if (!opened) return std::unexpected(opened.error());
  auto directory = sys::RootDir::adopt(std::move(*opened), {});
  if (!directory) return std::unexpected(directory.error());
  return TokenStore(*std::move(directory), lock_timeout);
}

Result<sys::Fd> TokenStore::lock() const {
  auto file = directory_.openFile("tokens.lock", {.flags = O_RDWR | O_CREAT, .mode = 0600});
  if (!file) return file;
  const auto path = sys::canonicalPath(file->get());
  auto locked = sys::lockFile(file->get(), sys::LockKind::exclusive, lock_timeout_, path ? *path : "tokens.lock");
  if (!locked) return std::unexpected(locked.error());
  return file;
}

Result<std::vector<Token>> TokenStore::list() const {
  auto text = directory_.readFile(kTokenFile, std::uint64_t{16} << 20U);
  std::vector<Token> tokens;
  if (!text && text.error().sys_errno == ENOENT) return tokens;
  if (!text) return std::unexpected(text.error());
  const auto document = JsonValue::parse(*text);
  if (document && document->isObject() && document->integerAt("format_version")) {
    const FormatVersion format{
        .found = *document->integerAt("format_version"), .oldest = kTokenFormat, .newest = kTokenFormat};
    if (!format.isKnown())
      return std::unexpected(unknownFormat("server/" + std::string(kTokenFile), format,
                                           "use the caisson that wrote it, or move it away and create new tokens"));
  }
  // Before 0.2.0 the file was the list alone.
  const auto list = document && document->isObject() ? document->find("tokens") : document;
  if (!list || !list->isArray())
    return std::unexpected(
        plainError(Stage::state, "read", kTokenFile, "it is damaged", "remove it and create new tokens"));
  for (const JsonValue& value : list->items()) tokens.push_back(readToken(value));
  return tokens;
}

Result<void> TokenStore::write(const std::vector<Token>& tokens) const {
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("format_version").number(kTokenFormat).key("tokens").beginArray();
  for (const Token& token : tokens) writeToken(json, token);
  json.end().end();
  return directory_.writeFileAtomic(kTokenFile, json.text() + "\n", 0600);
}

void Token::expireAt(const Instant& end) {
  expires = end.wall;
  expires_boot = end.boot;
  boot_id = end.boot_id;
}

bool Token::hasExpired(const Instant& now) const {
  return expires != 0 && now.since({expires, expires_boot, boot_id}) >= 0;
}

Result<std::string> TokenStore::create(Token token, const Instant& now) {
  if (!isName(token.name))
    return std::unexpected(tokenError(token.name, "invalid name", "up to 64 letters, digits, '-', '_' and '.'"));
  const auto held = lock();
  if (!held) return std::unexpected(held.error());
  auto tokens = list();
  if (!tokens) return std::unexpected(tokens.error());
  std::erase_if(*tokens, [&](const Token& one) { return one.hasExpired(now); });
  for (const Token& one : *tokens)
    if (one.name == token.name)
      return std::unexpected(
          tokenError(token.name, "a token of this name exists", "caisson token revoke " + token.name));
  if (tokens->size() >= kMaxTokens) return std::unexpected(tokenError(token.name, "too many tokens", "revoke some"));
  const std::string secret = std::string(kPrefix) + randomName(32);
  token.id = "tk-" + randomName(12);
  token.hash = hex(Sha256().add(secret).finish());
  token.created = now.wall;
  if (auto recorded = recordToken("create", token); !recorded) return std::unexpected(recorded.error());
  tokens->push_back(std::move(token));
  if (auto written = write(*tokens); !written) return std::unexpected(written.error());
  return secret;
}

Result<std::optional<std::string>> TokenStore::revoke(std::string_view id_or_name) {
  const auto held = lock();
  if (!held) return std::unexpected(held.error());
  auto tokens = list();
  if (!tokens) return std::unexpected(tokens.error());
  const auto found = std::find_if(tokens->begin(), tokens->end(),
                                  [&](const Token& one) { return one.id == id_or_name || one.name == id_or_name; });
  if (found == tokens->end()) return std::nullopt;
  const Token revoked = *found;
  tokens->erase(found);
  // Revoked first: a log that cannot be written must not keep a token alive.
  if (auto written = write(*tokens); !written) return std::unexpected(written.error());
  if (auto recorded = recordToken("revoke", revoked); !recorded) return std::unexpected(recorded.error());
  return revoked.id;
}

bool TokenChecker::refresh() {
  struct stat status{};
  const std::string path = sys::stateHome() + "/server/" + kTokenFile;
  if (::stat(path.c_str(), &status) != 0) {
    tokens_.clear();
    inode_ = 0;
    return false;
  }
  if (status.st_ino != inode_ || status.st_mtim.tv_sec != changed_.tv_sec ||
      status.st_mtim.tv_nsec != changed_.tv_nsec) {
    auto tokens = store_.list();
    if (!tokens) return false;
    tokens_ = *std::move(tokens);
    inode_ = status.st_ino;
    changed_ = status.st_mtim;
  }
  return true;
}

bool TokenChecker::isValid(std::string_view id, const Instant& now) {
  const std::lock_guard lock(mutex_);
  return refresh() && std::any_of(tokens_.begin(), tokens_.end(),
                                  [&](const Token& one) { return one.id == id && !one.hasExpired(now); });
}

std::optional<Principal> TokenChecker::check(std::string_view token, const Instant& now) {
  const std::lock_guard lock(mutex_);
  if (!refresh()) return std::nullopt;
  if (!token.starts_with(kPrefix) || token.size() > 128) return std::nullopt;
  const std::string hash = hex(Sha256().add(token).finish());
  for (const Token& one : tokens_) {
    if (one.hash != hash) continue;
    if (one.hasExpired(now)) return std::nullopt;
    return Principal{.id = one.id, .name = one.name, .owner = false, .scopes = one.scopes, .quotas = one.quotas};
  }
  return std::nullopt;
}

}  // namespace caisson::service
