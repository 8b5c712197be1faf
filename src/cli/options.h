// Command-line options as constexpr tables. The same table parses, prints --help, and generates
// the shell completions and the man page, so that none of them can drift from what is accepted.
//
//   inline constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
//   constexpr Option kOptions[] = {kJson};
//   constexpr OptionGroup kGroups[] = {{"Output", kOptions}};
//   auto arguments = parse({.groups = kGroups}, words);
//   if (arguments->has(kJson)) ...
//
// Parsing copies no text: values are views of argv, so arguments of any bytes and any size pass
// through unchanged. `--name VALUE` and `--name=VALUE` are the same; `--` ends the options.
// Unknown options, missing values and a single option given twice are errors, never ignored.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::cli {

struct Option {
  std::string_view name;   ///< long name, without dashes
  char letter = 0;         ///< short name, or 0
  std::string_view value;  ///< "SIZE", "none|ro|rw" (these words only); empty: a switch
  std::string_view help;   ///< one sentence or two
  bool repeatable = false;
};

struct OptionGroup {
  std::string_view title;  ///< empty: accepted, but shown nowhere
  std::span<const Option> options;
};

/// What one verb takes.
struct Syntax {
  std::span<const OptionGroup> groups;
  std::string_view operands;  ///< as shown in the synopsis: "FILE..."; empty: none
  std::string_view command;   ///< what may follow `--`: "CMD [ARG]..."; empty: nothing
};

/// Every verb has this one without listing it.
inline constexpr Option kHelp{.name = "help", .letter = 'h', .help = "Print this help."};

struct Given {
  const Option* option;
  std::string_view value;
};

struct Arguments {
  std::vector<Given> given;                ///< in the order of the command line
  std::vector<std::string_view> operands;  ///< words that are no options, before `--`
  std::span<char* const> command;          ///< words after `--`
  bool help = false;                       ///< asked for before any error; nothing after it was looked at

  [[nodiscard]] bool has(const Option& option) const { return value(option).has_value(); }
  /// The value of an option that is given at most once; a switch that was given has the empty value.
  [[nodiscard]] std::optional<std::string_view> value(const Option& option) const;
};

Result<Arguments> parse(const Syntax& syntax, std::span<char* const> words);

/// `-h, --help` or `--name VALUE`, as help and errors show it.
std::string spelling(const Option& option);

/// A usage error: `subject` is the offending word, `reason` says what was expected.
Error usageError(std::string_view subject, std::string_view reason, std::string_view hint = {});

}  // namespace caisson::cli
