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

/// Replaces the variables of one text.
class Substitution {
 public:
  Substitution(const Variables& variables, std::size_t most) : variables_(variables), most_(most) {}

  /// Appends the text to the result; stops once that is too long.
  void add(std::string_view text) {
    for (std::size_t at = 0; at < text.size() && !tooLong(); ++at) {
      const char next = at + 1 < text.size() ? text[at + 1] : '\0';
      if (text[at] == '\\' && next == '$') {
        out_ += text[++at];
      } else if (text[at] != '$' || next == '\0') {
        out_ += text[at];
      } else if (next == '{') {
        const std::size_t end = text.find('}', at);
        if (end == std::string_view::npos) return void(out_ += text.substr(at));
        addBraced(text.substr(at + 2, end - at - 2));
        at = end;
      } else {
        std::size_t end = at + 1;
        while (end < text.size() && isNameLetter(text[end])) ++end;
        if (end == at + 1) {
          out_ += '$';
        } else {
          out_ += valueOf(text.substr(at + 1, end - at - 1));
          at = end - 1;
        }
      }
    }
  }

  [[nodiscard]] bool tooLong() const { return out_.size() > most_; }
  std::string take() { return std::move(out_); }

 private:
  [[nodiscard]] std::string_view valueOf(std::string_view name) const {
    const auto found = variables_.find(std::string(name));
    return found == variables_.end() ? std::string_view() : found->second;
  }

  /// What is between the braces of `${...}`.
  void addBraced(std::string_view inside) {
    const std::size_t colon = inside.find(':');
    const std::string_view value = valueOf(inside.substr(0, colon));
    const char sign = colon == std::string_view::npos || colon + 1 == inside.size() ? '\0' : inside[colon + 1];
    if (sign == '-' && value.empty()) return add(inside.substr(colon + 2));
    if (sign != '+') return void(out_ += value);
    if (!value.empty()) add(inside.substr(colon + 2));
  }

  const Variables& variables_;
  std::size_t most_;
  std::string out_;
};

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

std::optional<std::string> substitute(std::string_view text, const Variables& variables, ExpansionRoom& room) {
  Substitution result(variables, room.bytes);
  result.add(text);
  if (result.tooLong()) return std::nullopt;
  std::string value = result.take();
  room.bytes -= value.size();
  return value;
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
                                                                   const Variables& variables, ExpansionRoom& room) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const std::string first = instruction.words.empty() ? "" : instruction.words.front();
  const auto add = [&](const std::string& key, std::string_view value) -> Result<void> {
    auto full_key = substitute(key, variables, room);
    auto full_value = full_key ? substitute(value, variables, room) : std::nullopt;
    if (!full_value) return fail(fileError(instruction.line, kTooMuchText));
    if (full_key->empty() || full_key->find('=') != std::string::npos)
      return fail(fileError(instruction.line, "expected KEY=VALUE"));
    pairs.emplace_back(std::move(*full_key), std::move(*full_value));
    return {};
  };
  if (first.find('=') == std::string::npos) {
    const std::string_view value =
        trimmed(std::string_view(instruction.text).substr(std::min(first.size(), instruction.text.size())), kBlanks);
    if (auto added = add(first, value); !added) return fail(added.error());
    return pairs;
  }
  for (const std::string& word : instruction.words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return fail(fileError(instruction.line, "expected KEY=VALUE"));
    if (auto added = add(word.substr(0, equals), std::string_view(word).substr(equals + 1)); !added)
      return fail(added.error());
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
