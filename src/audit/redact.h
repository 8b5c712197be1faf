// Secrets taken out of a command before it is put on record. Linear in the input's length, nothing compiled at start.
//
// Covered: NAME=value and --name value where the name speaks of a secret (password, token, key, ...), `-u
// user:password` of curl and its like, the userinfo of URLs, `Authorization:` and cookie headers, tokens known by their
// first letters (GitHub, GitLab, Slack, AWS, Google, npm, OpenAI, JWT ...), and PEM blocks. Not guaranteed: a secret
// that looks like any other word. So the log itself is private (0600).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace caisson::audit {

inline constexpr std::string_view kRedacted = "[redacted]";

/// One argument. `after_secret_flag`: the argument before it was a flag like `--password`.
std::string redactArgument(std::string_view argument, bool after_secret_flag = false);

/// The command as one line, redacted, then cut to `characters`. Words with blanks are quoted.
std::string redactedPreview(std::span<const std::string> command, std::size_t characters = 100);

}  // namespace caisson::audit
