// Runs one verb. Apart from verbs.cc, which refers to every verb, so that a program can contain a few.
#pragma once

#include <span>

#include "base/error.h"
#include "cli/verb.h"

namespace caisson::cli {

/// Parses `words`, the arguments after the verb, and runs it or the verb below it. Returns the exit status.
int performVerb(const Verb& verb, std::span<char* const> words);

/// Prints the help of a verb. Returns the exit status.
int printHelp(const Verb& verb);

/// The error for a word that no verb among `verbs` has; `above` is the path of their group, or empty.
Error unknownVerb(std::span<const Verb* const> verbs, std::string_view above, std::string_view word);

}  // namespace caisson::cli
