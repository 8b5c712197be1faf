// Command-line options as constexpr tables. The same table parses, prints --help, and generates
// the shell completions and the man page, so that none of them can drift from what is accepted.
//
//   inline constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
//   constexpr Option kOptions[] = {kJson};
//   constexpr OptionGroup kGroups[] = {{"Output", kOptions}};
//   auto arguments = parse({.groups = kGroups}, words);
//   if (arguments->has(kJson)) ...
//
// Parsing copies no text: values are views of argv, so arguments of any bytes and any size are passed unchanged.
// `--name VALUE` and `--name=VALUE` are the same; `--` ends the options. Unknown options, missing values and a
// non-repeatable option given more than once are errors.
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
  std::string_view value;  ///< "SIZE", "none|ro|rw" (only these values); empty: a switch
  std::string_view help;   ///< one or two sentences
  bool repeatable = false;
  /// Further choices, parsed but not shown: the verb refuses them with a better reason than a wrong choice has.
  std::string_view unlisted;
};

struct OptionGroup {
  std::string_view title;  ///< empty: accepted, but hidden
  std::span<const Option> options;
};

/// The syntax of one verb.
struct Syntax {
  std::span<const OptionGroup> groups;
  std::string_view operands;  ///< as shown in the synopsis: "FILE..."; empty: none
  std::string_view command;   ///< the arguments after `--`: "CMD [ARG]..."; empty: none
};

/// Implicit option of every verb.
inline constexpr Option kHelp{.name = "help", .letter = 'h', .help = "Print this help."};

struct Given {
  const Option* option;
  std::string_view value;
};

struct Arguments {
  std::vector<Given> given;                ///< in the order of the command line
  std::vector<std::string_view> operands;  ///< arguments before `--` that are not options
  std::span<char* const> command;          ///< arguments after `--`
  bool help = false;                       ///< requested before any error; later arguments were not parsed

  [[nodiscard]] bool has(const Option& option) const { return value(option).has_value(); }
  /// The value of an option that is given at most once; a switch that was given has the empty value.
  [[nodiscard]] std::optional<std::string_view> value(const Option& option) const;
};

/// `words`: the arguments after the verb. Stops at `--help`, and at `--`.
Result<Arguments> parse(const Syntax& syntax, std::span<char* const> words);

/// `-h, --help` or `--name VALUE`, as help and errors show it.
std::string spelling(const Option& option);

/// A usage error: `subject` is the offending argument, `reason` describes what was expected.
Error usageError(std::string_view subject, std::string_view reason, std::string_view hint = {});

}  // namespace caisson::cli
