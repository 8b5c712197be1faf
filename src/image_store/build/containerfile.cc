#include "image_store/build/containerfile.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/json_value.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr std::size_t kMaxText = 1U << 20;
constexpr std::string_view kKnown[] = {"FROM", "RUN", "COPY",       "ADD", "ENV",   "WORKDIR",
                                       "USER", "ARG", "ENTRYPOINT", "CMD", "LABEL", "EXPOSE"};
constexpr std::string_view kBlanks = " \t\r";

Error fileError(std::size_t line, std::string_view reason, std::string_view hint = {}) {
  return plainError(Stage::usage, "build", "Containerfile:" + std::to_string(line), reason, hint);
}

bool isNameLetter(char c) { return isDigit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }

/// The next logical line: comments removed, continuations joined. Advances `text` and `line`.
std::string nextLine(std::string_view& text, std::size_t& line) {
  std::string joined_line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view piece = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (trimmed(piece, kBlanks).starts_with('#')) continue;
    while (!piece.empty() && kBlanks.find(piece.back()) != std::string_view::npos) piece.remove_suffix(1);
    const bool more = piece.ends_with('\\');
    if (more) piece.remove_suffix(1);
    joined_line += piece;
    if (!more && !trimmed(joined_line, kBlanks).empty()) return joined_line;
    if (!more) joined_line.clear();
  }
  return joined_line;
}

/// Takes `--name=value` from the beginning of the text.
void takeFlags(std::string_view& rest, Instruction& instruction) {
  while (rest.starts_with("--")) {
    const std::string_view flag = rest.substr(0, rest.find_first_of(kBlanks));
    const std::size_t equals = std::min(flag.find('='), flag.size());
    instruction.flags[std::string(flag.substr(2, equals - 2))] = flag.substr(std::min(equals + 1, flag.size()));
    rest = trimmed(rest.substr(flag.size()), kBlanks);
  }
}

Result<Instruction> parseInstruction(std::string_view text, std::size_t line) {
  text = trimmed(text, kBlanks);
  const std::string_view name = text.substr(0, text.find_first_of(kBlanks));
  Instruction instruction{.line = line};
  for (const char c : name) instruction.name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (std::ranges::find(kKnown, instruction.name) == std::end(kKnown)) {
    return fail(fileError(
        line, "unsupported instruction " + printable(name, 40),
        "supported: FROM, RUN, COPY, ADD (local files), ENV, WORKDIR, USER, ARG, ENTRYPOINT, CMD, LABEL, EXPOSE"));
  }
  std::string_view rest = trimmed(text.substr(name.size()), kBlanks);
  if (instruction.name == "COPY" || instruction.name == "ADD" || instruction.name == "FROM" ||
      instruction.name == "RUN")
    takeFlags(rest, instruction);
  if (rest.empty()) return fail(fileError(line, instruction.name + " needs an argument"));
  if (rest.find("<<") != std::string_view::npos && (instruction.name == "COPY" || rest.starts_with("<<")))
    return fail(fileError(line, "here-documents are not supported"));
  instruction.text = rest;
  if (const auto list = rest.starts_with('[') ? JsonValue::parse(rest) : std::nullopt; list && list->isArray()) {
    instruction.json = true;
    for (const JsonValue& item : list->items()) {
      const auto word = item.text();
      if (!word || word->find('\0') != std::string::npos) return fail(fileError(line, "expected a list of strings"));
      instruction.words.push_back(*word);
    }
    return instruction;
  }
  const bool shell = instruction.name == "RUN" || instruction.name == "CMD" || instruction.name == "ENTRYPOINT";
  instruction.words = shell ? std::vector<std::string>{std::string(rest)} : splitQuoted(rest);
  return instruction;
}

/// The value of `${...}`.
std::string braced(std::string_view inside, const Variables& variables) {
  const std::size_t colon = inside.find(':');
  const std::string name(inside.substr(0, colon));
  const auto found = variables.find(name);
  const std::string value = found == variables.end() ? "" : found->second;
  if (colon == std::string_view::npos || colon + 1 == inside.size()) return value;
  const std::string other(inside.substr(colon + 2));
  if (inside[colon + 1] == '-') return value.empty() ? substitute(other, variables) : value;
  if (inside[colon + 1] == '+') return value.empty() ? "" : substitute(other, variables);
  return value;
}

}  // namespace

Result<std::vector<Instruction>> parseContainerfile(std::string_view text) {
  if (text.size() > kMaxText) return fail(fileError(1, "the file is larger than 1 MiB"));
  if (text.find('\0') != std::string_view::npos) return fail(fileError(1, "the file contains a NUL byte"));
  std::vector<Instruction> list;
  std::size_t line = 0;
  while (!text.empty()) {
    const std::string logical = nextLine(text, line);
    if (trimmed(logical, kBlanks).empty()) continue;
    auto instruction = parseInstruction(logical, line);
    if (!instruction) return fail(instruction.error());
    list.push_back(std::move(*instruction));
  }
  const auto first = std::ranges::find_if(list, [](const Instruction& one) { return one.name != "ARG"; });
  if (first == list.end() || first->name != "FROM") return fail(fileError(1, "the first instruction must be FROM"));
  return list;
}

std::string substitute(std::string_view text, const Variables& variables) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '$') {
      out += text[++at];
      continue;
    }
    if (text[at] != '$' || at + 1 == text.size()) {
      out += text[at];
      continue;
    }
    if (text[at + 1] == '{') {
      const std::size_t end = text.find('}', at);
      if (end == std::string_view::npos) return out + std::string(text.substr(at));
      out += braced(text.substr(at + 2, end - at - 2), variables);
      at = end;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && isNameLetter(text[end])) ++end;
    if (end == at + 1) {
      out += '$';
      continue;
    }
    const auto found = variables.find(std::string(text.substr(at + 1, end - at - 1)));
    if (found != variables.end()) out += found->second;
    at = end - 1;
  }
  return out;
}

std::vector<std::string> splitQuoted(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote == 0 && kBlanks.find(c) != std::string_view::npos) {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
      continue;
    }
    open = true;
    if (c == '\\' && quote != '\'' && at + 1 < text.size() && text[at + 1] != '$') {
      word += text[++at];
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      word += c;
    }
  }
  if (open) words.push_back(std::move(word));
  return words;
}

Result<std::vector<std::pair<std::string, std::string>>> keyValues(const Instruction& instruction,
                                                                   const Variables& variables) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const std::string first = instruction.words.empty() ? "" : instruction.words.front();
  const auto add = [&](const std::string& key, std::string_view value) {
    pairs.emplace_back(substitute(key, variables), substitute(value, variables));
    return !pairs.back().first.empty() && pairs.back().first.find('=') == std::string::npos;
  };
  if (first.find('=') == std::string::npos) {
    const std::string_view value =
        trimmed(std::string_view(instruction.text).substr(std::min(first.size(), instruction.text.size())), kBlanks);
    if (!add(first, value)) return fail(fileError(instruction.line, "expected KEY=VALUE"));
    return pairs;
  }
  for (const std::string& word : instruction.words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !add(word.substr(0, equals), std::string_view(word).substr(equals + 1)))
      return fail(fileError(instruction.line, "expected KEY=VALUE"));
  }
  return pairs;
}

bool isIgnored(const std::vector<std::string>& lines, const std::string& path) {
  bool ignored = false;
  for (const std::string& line : lines) {
    std::string_view pattern = trimmed(line, kBlanks);
    if (pattern.empty() || pattern.starts_with('#')) continue;
    const bool include = pattern.starts_with('!');
    pattern = trimmed(include ? pattern.substr(1) : pattern, "/");
    std::string plain(pattern.starts_with("./") ? pattern.substr(2) : pattern);
    const bool anywhere = plain.starts_with("**/");
    if (anywhere) plain.erase(0, 3);
    // A pattern excludes a directory with everything below it.
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end == 0 ? 0 : end + 1);
      std::string part = path.substr(0, end);
      if (anywhere) part = part.substr(part.rfind('/') == std::string::npos ? 0 : part.rfind('/') + 1);
      if (::fnmatch(plain.c_str(), part.c_str(), FNM_PATHNAME) == 0) ignored = !include;
    }
  }
  return ignored;
}

}  // namespace caisson::image
