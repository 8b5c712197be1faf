#include "supervise/network/credentials.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>

#include "broker/mask.h"
#include "plan/credentials.h"
#include "policy/decode/syntax.h"
#include "policy/document/document.h"
#include "policy/rules/credential.h"
#include "sys/own_file.h"

namespace caisson::supervise {
namespace {

using broker::SecretBytes;

constexpr std::size_t kMaxSecret = 16 * 1024;
constexpr std::uint64_t kMaxBundle = 8 * 1024 * 1024;
constexpr std::uint64_t kSlackSeconds = 3600, kWithoutLimit = 7 * 24 * 3600;

constexpr const char* kBundles[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

std::string hostAuthorities() {
  for (const char* path : kBundles) {
    if (auto text = policy::readRegularFile(path); text && !text->empty()) return std::move(*text);
  }
  return {};
}

Result<SecretBytes> readAll(const sys::Fd& file, const std::string& path, std::size_t most) {
  SecretBytes bytes(most + 1);
  if (!bytes.valid()) return fail(sysError(Stage::policy, "mmap", path, ENOMEM));
  std::size_t size = 0;
  while (size <= most) {
    const ssize_t got = ::read(file.get(), bytes.data() + size, most + 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::policy, "read", path, errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > most) return fail(plainError(Stage::policy, "read", path, "it is too long for a secret"));
  bytes.shrink(size);
  return bytes;
}

/// Checks a secret; the error does not show its text.
Result<void> checkSecret(std::string_view secret, const policy::Credential& one) {
  const std::string where = one.secret_env.empty() ? one.secret_file : one.secret_env;
  if (secret.empty()) {
    return fail(
        plainError(Stage::policy, "credential", policy::nameOf(one), where + " is empty", "put the secret there"));
  }
  if (secret.size() < broker::kLeastSecretBytes) {
    return fail(plainError(Stage::policy, "credential", policy::nameOf(one),
                           where + " is too short to be masked in responses",
                           "use a secret of at least " + std::to_string(broker::kLeastSecretBytes) + " bytes"));
  }
  if (secret.size() > kMaxSecret || !std::ranges::all_of(secret, [](char c) { return c >= 0x20 && c < 0x7f; })) {
    return fail(plainError(Stage::policy, "credential", policy::nameOf(one),
                           where + " holds what cannot stand in a header", "one line of visible ASCII is expected"));
  }
  return {};
}

/// Holds the secrets until they are passed on.
struct Held {
  std::list<SecretBytes> files;
  std::list<std::string> texts;
  std::vector<char*> variables;

  Result<std::string_view> secretOf(const policy::Credential& one);
  Result<std::string_view> authoritiesOf(const policy::Credential& one);
  void forgetVariables() const {
    for (char* variable : variables) ::explicit_bzero(variable, std::strlen(variable));
  }
};

Result<std::string_view> Held::secretOf(const policy::Credential& one) {
  std::string_view secret;
  if (!one.secret_env.empty()) {
    char* value = std::getenv(one.secret_env.c_str());
    if (value == nullptr) {
      return fail(plainError(Stage::policy, "credential", policy::nameOf(one), one.secret_env + " is not set",
                             "set the variable before you start caisson"));
    }
    variables.push_back(value);
    secret = value;
  } else {
    const std::string path = policy::normalPath(one.secret_file);
    auto file = sys::openOwnFile(path, sys::Privacy::secret);
    if (!file) return fail(file.error());
    auto bytes = readAll(*file, path, kMaxSecret);
    if (!bytes) return fail(bytes.error());
    files.push_back(std::move(*bytes));
    secret = files.back().text();
    while (secret.ends_with('\n') || secret.ends_with('\r')) secret.remove_suffix(1);
  }
  if (auto checked = checkSecret(secret, one); !checked) return fail(checked.error());
  return secret;
}

Result<std::string_view> Held::authoritiesOf(const policy::Credential& one) {
  if (one.ca_file.empty()) return std::string_view();
  const std::string path = policy::normalPath(one.ca_file);
  auto file = sys::openOwnFile(path, sys::Privacy::unchanging);
  if (!file) return fail(file.error());
  auto bytes = readAll(*file, path, kMaxBundle);
  if (!bytes) return fail(bytes.error());
  files.push_back(std::move(*bytes));
  if (files.back().text().find("-----BEGIN CERTIFICATE-----") == std::string_view::npos) {
    return fail(plainError(Stage::policy, "credential", path, "it holds no certificate", "ca_file is a PEM file"));
  }
  return files.back().text();
}

}  // namespace

Result<broker::Started> startBroker(plan::Plan& plan, const BrokerOptions& options) {
  const std::vector<policy::Credential>& credentials = plan.egress->network.credentials;
  const std::string authorities = hostAuthorities();
  broker::Settings settings;
  settings.authorities = authorities;
  settings.lifetime_seconds = plan.wall_seconds && !options.for_session
                                  ? static_cast<std::uint64_t>(*plan.wall_seconds) + kSlackSeconds
                                  : kWithoutLimit;
  settings.max_connections = plan.egress->network.max_connections;
  if (plan.identity.change_user) settings.become = plan.identity.broker_uid;
  settings.landlock_abi = plan.landlock.abi;
  Held held;
  for (const policy::Credential& one : credentials) {
    const auto secret = held.secretOf(one);
    if (!secret) return fail(secret.error());
    const auto own = held.authoritiesOf(one);
    if (!own) return fail(own.error());
    const std::string& name = held.texts.emplace_back(policy::nameOf(one));
    const std::string& target = held.texts.emplace_back(policy::targetOf(one));
    settings.credentials.push_back({name, target, one.header, one.value, *secret, *own});
  }
  auto started = broker::start(options.program, settings);
  if (options.forget_variables) held.forgetVariables();
  if (!started) return started;
  plan::putTrust(plan,
                 authorities + (authorities.empty() || authorities.ends_with('\n') ? "" : "\n") + started->certificate);
  return started;
}

}  // namespace caisson::supervise
