// Who makes a request, and what they may do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::service {

/// read: look; exec: create and change one's own sandboxes; admin: the sandboxes of all tokens
/// and the server's own figures.
enum class Scope : std::uint8_t { read = 1, exec = 2, admin = 4 };

/// Limits of one token over all its sandboxes. Unset: none but the owner's ceilings.
struct Quotas {
  std::optional<std::uint64_t> sandboxes, memory, disk;
  std::optional<double> cpus;
  std::optional<double> rate;  ///< requests per second
};

/// Principal::id of the owner.
inline constexpr std::string_view kOwnerId = "owner";

struct Principal {
  std::string id;    ///< of the token; kOwnerId for the owner
  std::string name;  ///< for the record
  bool owner = false;
  unsigned scopes = 0;
  Quotas quotas;

  [[nodiscard]] bool may(Scope scope) const { return owner || (scopes & static_cast<unsigned>(scope)) != 0; }
  /// Whether sandboxes of `other` exist for this caller. Those of the owner, sessions of the command line included, may
  /// write to host files without an approval, so they are the owner's alone.
  [[nodiscard]] bool sees(const std::string& other) const {
    return owner || other == id || (may(Scope::admin) && other != kOwnerId);
  }
};

}  // namespace caisson::service
