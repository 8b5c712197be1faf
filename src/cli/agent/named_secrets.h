// Secrets beside their name, in settings and in sentences.
#pragma once

#include <string_view>

#include "cli/agent/secret_text.h"

namespace caisson::cli {

/// Whether a name of a secret is followed by a value: `apiKey: WORD`, `--token WORD`, `<password>WORD</password>`,
/// `setenv API_KEY WORD`, on the next line, in a list below it, in a row of a table, or in a sentence.
bool holdsNamedSecret(std::string_view text, TextKind kind);

}  // namespace caisson::cli
