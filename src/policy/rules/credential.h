// Credentials that the egress adds to requests (network.credentials): their members by name, and their checks.
//
// A policy names the source of a secret, never the secret itself; nothing here holds or prints one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/decode/validate.h"
#include "policy/model.h"

namespace caisson::policy {

struct CredentialKey {
  std::string_view name;
  std::string Credential::* member;
  std::string_view description;
};

/// In the order in which files and the schema show them.
std::span<const CredentialKey> credentialKeys();

/// The mark in `value` that is replaced by the secret.
inline constexpr std::string_view kSecretMark = "{secret}";

/// Its name in audit, errors and the placeholder: `name`, else `host` without the port.
std::string nameOf(const Credential& credential);
/// "api.example.org:443": `host` with its port, 443 if it has none.
std::string targetOf(const Credential& credential);
/// The value of `env` inside: worthless, but enough for programs that require a key to start.
std::string placeholderOf(const Credential& credential);

/// For display: host, header, source of the secret.
std::string describe(const Credential& credential);

/// The first problem of network.credentials, or nullopt: an invalid entry, or one that conflicts with another entry or
/// with `environment`.
std::optional<Problem> findCredentialProblem(const Policy& policy);

}  // namespace caisson::policy
