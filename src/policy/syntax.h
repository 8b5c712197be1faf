// The syntax of what stands in policies: paths, names, hosts, ports.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/fields.h"

namespace caisson::policy {

/// What is wrong with a text, or nothing. `hint` may be empty.
struct Flaw {
  std::string expected;
  std::string hint;
};

/// Checks one text against `syntax`.
std::optional<Flaw> findFlaw(Syntax syntax, std::string_view text);

/// An absolute path without repeated or trailing slashes and `.`. Lexical only: two paths that a link makes
/// the same still differ.
std::string normalPath(std::string_view path);

/// Whether `path` is `top` or stands below it; both normal.
bool isWithin(std::string_view path, std::string_view top);

}  // namespace caisson::policy
