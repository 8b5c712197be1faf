// Credentials that the egress adds to requests (network.credentials): their members by name, and what they must be.
//
// A policy says where a secret comes from, never the secret itself; nothing here holds or shows one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/model.h"
#include "policy/validate.h"

namespace caisson::policy {

struct CredentialKey {
  std::string_view name;
  std::string Credential::* member;
  std::string_view description;
};

/// In the order in which files and the schema show them.
std::span<const CredentialKey> credentialKeys();

/// What stands for the secret in `value`.
inline constexpr std::string_view kSecretMark = "{secret}";

/// What audit, errors and the placeholder call it: its name, else its host.
std::string nameOf(const Credential& credential);
/// "api.example.org:443": `host` with its port.
std::string targetOf(const Credential& credential);
/// What `env` is set to inside: of no use to anybody, but programs that insist on a key start with it.
std::string placeholderOf(const Credential& credential);

/// For people: host, header, where the secret comes from.
std::string describe(const Credential& credential);

std::optional<Problem> findCredentialProblem(const Policy& policy);

}  // namespace caisson::policy
