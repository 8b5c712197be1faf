#include "tool/command_template.h"

#include <algorithm>
#include <optional>

#include "policy/rules/shells.h"

namespace caisson::tool {
namespace {

constexpr std::string_view kMore = "...";
constexpr std::size_t kMaxParameterName = 32;
constexpr std::size_t kMaxWords = 1024;
/// The kernel's limit for one argument (MAX_ARG_STRLEN).
constexpr std::size_t kMaxWord = 128 * 1024 - 1;

/// Programs one of whose arguments can be the text of a program.
constexpr std::string_view kInterpreters[] = {
    "awk",  "bun", "deno",   "env",  "expect",  "find",   "flock", "gawk", "lua", "make",  "mawk",  "node",
    "perl", "php", "python", "ruby", "runuser", "script", "sed",   "ssh",  "su",  "tclsh", "watch", "xargs"};

/// Programs that start the one named in their arguments.
constexpr std::string_view kStarters[] = {"chroot",  "chrt",    "doas",    "ionice", "nice",   "nohup",
                                          "nsenter", "setpriv", "setsid",  "stdbuf", "strace", "sudo",
                                          "taskset", "time",    "timeout", "toybox", "unshare"};

/// A piece of an argument: literal text, or the name of a placeholder.
struct Piece {
  std::string text;
  bool place = false;
};

bool isName(std::string_view text) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= kMaxParameterName && small(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return small(c) || (c >= '0' && c <= '9') || c == '_'; });
}

bool isInterpreter(std::string_view program) {
  if (policy::isShellName(program)) return true;
  std::string_view name = program.substr(program.rfind('/') + 1);
  while (!name.empty() && (name.back() == '.' || (name.back() >= '0' && name.back() <= '9'))) name.remove_suffix(1);
  return std::ranges::find(kInterpreters, name) != std::end(kInterpreters);
}

/// Whether arguments of the command can be the text of a program.
bool interprets(std::span<const std::string> words) {
  const std::string_view program = words.front();
  if (isInterpreter(program)) return true;
  const bool starts = std::ranges::find(kStarters, program.substr(program.rfind('/') + 1)) != std::end(kStarters);
  return starts && std::ranges::any_of(words.subspan(1), isInterpreter);
}

/// The pieces of an argument; nullopt if a brace is neither doubled nor part of a placeholder.
std::optional<std::vector<Piece>> split(std::string_view word) {
  std::vector<Piece> pieces;
  std::string text;
  const auto endText = [&] {
    if (!text.empty()) pieces.push_back({std::move(text), false});
    text.clear();
  };
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char letter = word[at];
    if (letter != '{' && letter != '}') {
      text += letter;
    } else if (at + 1 < word.size() && word[at + 1] == letter) {
      text += letter;
      ++at;
    } else {
      const std::size_t end = word.find('}', at);
      if (letter == '}' || end == std::string_view::npos) return std::nullopt;
      const std::string_view name = word.substr(at + 1, end - at - 1);
      if (name != kMore && !isName(name)) return std::nullopt;
      endText();
      pieces.push_back({std::string(name), true});
      at = end;
    }
  }
  endText();
  return pieces;
}

bool isMore(const std::vector<Piece>& pieces) {
  return std::ranges::any_of(pieces, [](const Piece& piece) { return piece.place && piece.text == kMore; });
}

bool hasPlace(const std::vector<Piece>& pieces) {
  return std::ranges::any_of(pieces, [](const Piece& piece) { return piece.place; });
}

Error wordError(const std::string& word, std::string_view reason, std::string_view hint) {
  return plainError(Stage::usage, "tool", word, reason, hint);
}

}  // namespace

Result<void> checkTemplate(std::span<const std::string> words) {
  if (words.empty() || words.front().empty())
    return fail(wordError("", "a tool needs a command", "caisson tool add NAME -- CMD"));
  if (words.size() > kMaxWords) return fail(wordError(words.front(), "has more than 1024 arguments", "use a script"));
  const bool interpreter = interprets(words);
  int more = 0;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word.find('\0') != std::string::npos || word.size() > kMaxWord)
      return fail(
          wordError(word.substr(0, 80), "argument is too long or contains a NUL byte", "pass the data in a file"));
    const auto pieces = split(word);
    if (!pieces)
      return fail(wordError(word, "expected a place such as {file} or {...}", "a brace itself is written twice: {{"));
    if (at == 0 && hasPlace(*pieces))
      return fail(wordError(word, "the program itself is not a value", "declare a tool for each program"));
    if (interpreter && hasPlace(*pieces) && pieces->size() > 1)
      return fail(wordError(word, "inside a text for an interpreter a value would become part of the program",
                            "pass it as a separate argument: sh -c 'grep -- \"$1\"' sh {pattern}"));
    if (!isMore(*pieces)) continue;
    if (pieces->size() > 1 || ++more > 1)
      return fail(wordError(word, "{...} must be a separate argument and may be used once", ""));
  }
  return {};
}

std::vector<std::string> parameters(std::span<const std::string> words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    for (const Piece& piece : split(word).value_or(std::vector<Piece>())) {
      const bool known = std::ranges::find(names, piece.text) != names.end();
      if (piece.place && piece.text != kMore && !known) names.push_back(piece.text);
    }
  }
  return names;
}

bool takesMore(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    const auto pieces = split(word);
    return pieces && isMore(*pieces);
  });
}

Result<std::vector<std::string>> fillTemplate(std::span<const std::string> words,
                                              const std::map<std::string, std::string, std::less<>>& values,
                                              std::span<const std::string> more) {
  if (auto checked = checkTemplate(words); !checked) return fail(checked.error());
  const std::vector<std::string> wanted = parameters(words);
  for (const auto& [name, value] : values) {
    if (std::ranges::find(wanted, name) == wanted.end())
      return fail(wordError(name, "the tool has no such value", "caisson tool show prints the values it takes"));
    if (value.find('\0') != std::string::npos) return fail(wordError(name, "the value holds a NUL byte", ""));
  }
  for (const std::string& name : wanted) {
    if (!values.contains(name)) return fail(wordError(name, "this value is missing", "give " + name + "=VALUE"));
  }
  if (!more.empty() && !takesMore(words))
    return fail(wordError(more.front(), "the tool takes no extra arguments: its command has no {...}",
                          "leave out what follows `--`"));
  std::vector<std::string> command;
  bool options_ended = false;
  for (const std::string& word : words) {
    const std::vector<Piece> pieces = *split(word);
    if (isMore(pieces)) {
      command.insert(command.end(), more.begin(), more.end());
      continue;
    }
    std::string filled;
    for (const Piece& piece : pieces) filled += piece.place ? values.find(piece.text)->second : piece.text;
    const bool starts_with_value = !pieces.empty() && pieces.front().place;
    if (starts_with_value && filled.starts_with('-') && !options_ended)
      return fail(wordError(pieces.front().text, "the value begins with `-`: the program would read it as an option",
                            "declare the tool with `--` before it, if the program knows that"));
    if (filled.size() > kMaxWord) return fail(wordError(filled.substr(0, 80), "the value is too long", ""));
    options_ended = options_ended || word == "--";
    command.push_back(std::move(filled));
  }
  return command;
}

}  // namespace caisson::tool
