// Credentials for registries, from the files and helpers of docker and podman.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::image {

struct RegistryCredentials {
  std::string username, password;
  std::string identity_token;  ///< instead of a password: exchanged for an access token
};

/// Looks in $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json, ~/.config/containers/auth.json and
/// ~/.docker/config.json, in this order; nothing if none has an entry for the repository.
Result<std::optional<RegistryCredentials>> credentialsFor(const std::string& host, const std::string& repository);

/// The entry of one file's content. Helpers are started.
Result<std::optional<RegistryCredentials>> credentialsIn(std::string_view json, const std::string& host,
                                                         const std::string& repository);

}  // namespace caisson::image
