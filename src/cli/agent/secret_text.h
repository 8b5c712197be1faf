// Finds keys, passwords and tokens in settings. Errs on the side of yes: what is left out of a copy is named, and the
// user can put it where it belongs.
#pragma once

#include <string_view>

namespace caisson::cli {

/// How a text is read: in prose a colon after `password` is ordinary.
enum class TextKind { prose, settings };

/// Whether a setting, flag or variable of this name usually holds a secret: apiKey, --token, MY_PASSWORD.
bool isSecretName(std::string_view name);

/// Whether a number under such a name is a number of tokens: max_tokens.
bool isTokenCount(std::string_view name);

/// Whether a text holds a secret: a known kind of token, a random-looking word, the user or query of a URL, a
/// password by its place (secret_shapes.h), or the value of a secret name or flag, also on the next line.
bool holdsSecret(std::string_view text, TextKind kind);

}  // namespace caisson::cli
