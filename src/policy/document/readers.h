// The three parsers behind document.h. Their input is already checked: small, UTF-8, no NUL.
#pragma once

#include "policy/document/document.h"

namespace caisson::policy {

/// Why a text could not be read, and where.
struct SyntaxError {
  int line = 0;  ///< from 1; 0: unknown
  std::string reason;
};

template <class T>
using Parsed = std::expected<T, SyntaxError>;

Parsed<Node> readToml(std::string_view text);
Parsed<Node> readJson(std::string_view text);
Parsed<Node> readYaml(std::string_view text);

}  // namespace caisson::policy
