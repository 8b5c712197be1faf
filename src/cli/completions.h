// Shell completions, generated from the verbs' tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace caisson::cli {

std::string bashCompletion(std::span<const Verb* const> verbs);
std::string zshCompletion(std::span<const Verb* const> verbs);
std::string fishCompletion(std::span<const Verb* const> verbs);

/// How a value or an operand is completed; derived from its name in help.
enum class Completes : std::uint8_t { nothing, words, files, directories, profiles, sessions, events, hosts };
Completes completes(std::string_view value_name);
/// The operands of a verb in their order; the last one stands for all further ones.
struct Operand {
  std::string name;
  Completes kind = Completes::nothing;
};
std::vector<Operand> operandsOf(const Verb& verb);

}  // namespace caisson::cli
