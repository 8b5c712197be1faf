// The syntax of policy values: paths, names, hosts, ports.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "policy/fields.h"

namespace caisson::policy {

/// What is wrong with a text.
struct Flaw {
  std::string expected;  ///< "an absolute path"
  std::string hint;      ///< may be empty
};

/// Whether `~` is expanded in texts of this syntax: paths of the host, not those inside the sandbox.
bool isHostPath(Syntax syntax);

/// Replaces a leading `~` with HOME; other paths are returned unchanged. `~user`, and `~` without an absolute HOME, are
/// errors.
std::expected<std::string, Flaw> expandHome(std::string_view path);

/// Checks one text against `syntax`; nullopt if it is valid. Syntaxes of numbers accept every text.
std::optional<Flaw> findFlaw(Syntax syntax, std::string_view text);

/// Normalizes an absolute path: no repeated or trailing slashes, no `.`. Lexical only: `..` and links stay.
std::string normalPath(std::string_view path);

/// Whether `path` is `top` or below it; both normal.
bool isWithin(std::string_view path, std::string_view top);

}  // namespace caisson::policy
