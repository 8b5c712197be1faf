// Help texts, rendered from the verbs' tables. They fit a terminal of 100 columns.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/verb.h"

namespace caisson::cli {

inline constexpr std::size_t kHelpWidth = 100;

/// `caisson --help`: what caisson is, its verbs by topic, examples.
std::string renderOverview(std::span<const Verb* const> verbs, bool colour);

/// `caisson` alone: how it is used most, and where to read on.
std::string renderShortHelp();

/// `caisson VERB --help`.
std::string renderHelp(const Verb& verb, bool colour);

/// `caisson run [OPTION]... -- CMD [ARG]...`
std::string synopsis(const Verb& verb);

/// The heading of a topic in help and man page.
std::string_view title(Topic topic);

/// Wraps `text` at spaces into lines of at most `width` columns, each indented by `indent` spaces. Line ends
/// in `text` count as spaces; a word that is too long is not split.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width = kHelpWidth);

/// The exit statuses, as rows of status and meaning.
struct StatusRow {
  std::string_view status, meaning;
};
std::span<const StatusRow> exitStatuses();

/// The overview's introduction and examples, shared with the man page.
std::string_view introduction();
std::string_view overviewExamples();

}  // namespace caisson::cli
