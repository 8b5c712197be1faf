// Removes secrets from a command before it is recorded. Linear in the input's length, no start-up cost.
//
// Covers: NAME=value and --name value if the name suggests a secret (password, token, key, ...), `-u user:password` of
// curl and similar programs, the userinfo of URLs, `Authorization:` and cookie headers, tokens with a known prefix
// (GitHub, GitLab, Slack, AWS, Google, npm, OpenAI, JWT ...), and PEM blocks. Not guaranteed: a secret that looks like
// an ordinary word. So the log itself is private (0600).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace caisson::audit {

inline constexpr std::string_view kRedacted = "[redacted]";

/// Whether the value of a setting, variable or flag of this name usually is a secret.
bool namesSecret(std::string_view name);

/// Redacts one argument, of which only the first 4096 bytes are kept. `after_secret_flag`: the previous argument was a
/// flag like `--password`, so the whole argument is replaced.
std::string redactArgument(std::string_view argument, bool after_secret_flag = false);

/// The redacted arguments, separated by blanks; beyond `characters` the text is cut and ends in "...". Quotes arguments
/// with blanks or special characters, but keeps line breaks in them.
std::string redactedPreview(std::span<const std::string> command, std::size_t characters = 100);

}  // namespace caisson::audit
