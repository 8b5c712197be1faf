#include "cli/learn/merge.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "approval/owner.h"
#include "base/text.h"
#include "cli/learn/draft.h"
#include "policy/decode/convert.h"
#include "policy/decode/decode.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r";

using policy::Document;
using policy::Node;

constexpr std::string_view kDefaultBase = "bash";

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

const Node* findKey(const Node& root, std::string_view key) {
  const Node* node = &root;
  while (node != nullptr && !key.empty()) {
    const std::size_t end = std::min(key.find('.'), key.size());
    node = node->find(key.substr(0, end));
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return node;
}

/// The table that a line opens, as in "[filesystem]", or "".
std::string_view headerOf(std::string_view line) {
  line = trimmed(line.substr(0, line.find('#')), kBlanks);
  if (line.size() < 3 || line.front() != '[' || line.back() != ']' || line[1] == '[') return {};
  return trimmed(line.substr(1, line.size() - 2), kBlanks);
}

bool opensTable(std::string_view line) { return trimmed(line, kBlanks).starts_with('['); }

/// The lists of both without duplicates; "" if the present number is not smaller; else the lesson's value.
std::string joinedValue(const policy::Field& field, const Node& before, const Lesson& lesson) {
  const auto document = policy::readText("value = " + lesson.value, policy::Format::toml, "lesson");
  const Node* node = document ? document->root.find("value") : nullptr;
  const auto now = policy::fromNode(field, before);
  const auto wanted = node != nullptr ? policy::fromNode(field, *node) : now;
  // A list of names may be an allowlist or a denylist.
  if (!now || !wanted || field.key == "syscalls.names") return lesson.value;
  if (const auto* names = std::get_if<std::vector<std::string>>(&*now)) {
    std::vector<std::string> all = *names;
    for (const std::string& name : std::get<std::vector<std::string>>(*wanted)) {
      if (std::ranges::find(all, name) == all.end()) all.push_back(name);
    }
    return listOf(all);
  }
  const auto number = [](const policy::Value& value) {
    if (const auto* count = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*count);
    const auto* real = std::get_if<double>(&value);
    return real != nullptr ? *real : -1.0;
  };
  return number(*now) >= 0 && number(*now) >= number(*wanted) ? "" : lesson.value;
}

/// Edits the lines of a policy file.
class Editor {
 public:
  explicit Editor(std::string_view text) : lines_(linesOf(text)) {}

  /// Replaces the statement on line `number` (from 1), which sets the lesson's key. False if it is not a plain `name =
  /// value`.
  bool replace(std::size_t number, const Lesson& lesson, const std::string& value) {
    if (number == 0 || number > lines_.size()) return false;
    const std::size_t first = number - 1;
    const std::size_t equals = lines_[first].find('=');
    if (equals == std::string::npos) return false;
    const std::string name(trimmed(std::string_view(lines_[first]).substr(0, equals), kBlanks));
    if (name.empty() || (lesson.key != name && !lesson.key.ends_with("." + name))) return false;
    std::string statement = lines_[first];
    std::size_t last = first;
    while (!policy::readText(statement, policy::Format::toml, "statement")) {  // a list over several lines
      if (++last >= lines_.size()) return false;
      statement += "\n" + lines_[last];
    }
    std::string old = statement.substr(equals + 1);
    std::ranges::replace(old, '\n', ' ');
    diff_.push_back("- " + lesson.key + " = " + std::string(trimmed(old, kBlanks)));
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                 lines_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    lines_[first] = lines_[first].substr(0, equals) + "= " + value;
    tellAdded(lesson, value);
    return true;
  }

  void add(const Lesson& lesson) {
    std::size_t at = lines_.size();
    std::string_view section;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      if (at == lines_.size() && opensTable(lines_[line])) at = line;
    }
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      const std::string_view header = headerOf(lines_[line]);
      const bool holds = !header.empty() && lesson.key.starts_with(std::string(header) + ".");
      if (!holds || header.size() <= section.size()) continue;
      section = header;
      at = line + 1;
    }
    const std::string name = section.empty() ? lesson.key : lesson.key.substr(section.size() + 1);
    const std::string statement = name + " = " + lesson.value;
    const auto place = lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at), "# " + lesson.reason);
    lines_.insert(place + 1, statement);
    tellAdded(lesson, lesson.value);
  }

  MergedPolicy finish() && {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return {std::move(text), std::move(diff_)};
  }

 private:
  void tellAdded(const Lesson& lesson, const std::string& value) {
    diff_.push_back("+ " + lesson.key + " = " + value + "    # " + lesson.reason);
  }

  std::vector<std::string> lines_;
  std::vector<std::string> diff_;
};

Error cannotMerge(const std::string& path, const std::string& key) {
  return plainError(Stage::state, "merge", path, "cannot change " + key + " in it, and nothing was written",
                    "give --learn another file, or write the key as one line `" + key + " = ...`");
}

/// Fails if the text is not a valid policy. Returns what it allows beyond the policy that it extends.
Result<std::vector<std::string>> checkMerged(const std::string& path, const MergedPolicy& merged) {
  auto document = policy::readText(merged.text, policy::Format::toml, path);
  if (!document) return fail(document.error());
  const policy::Ceilings none = approval::noCeilings();
  policy::Origin origin;
  origin.directory = std::filesystem::absolute(path).parent_path().string();
  origin.ceilings = &none;
  const auto decoded = policy::decode(*document, origin);
  if (!decoded) return fail(decoded.error());
  std::vector<std::string> lines;
  for (const policy::Widening& one : decoded->widenings) lines.push_back(one.key + ": " + one.from + " -> " + one.to);
  return lines;
}

}  // namespace

bool isLearnedPolicy(std::string_view text) { return text.starts_with(kLearnedMark); }

Result<std::string> baseOfPolicy(const std::string& path, std::string_view text) {
  auto document = policy::readText(text, policy::Format::toml, path);
  if (!document) return fail(document.error());
  const Node* extends = document->root.find("extends");
  return extends == nullptr ? std::string(kDefaultBase) : extends->text;
}

Result<MergedPolicy> mergeLessons(const std::string& path, std::string_view text, const Proposal& proposal, bool own) {
  std::string merged(text);
  std::vector<std::string> diff;
  for (const Lesson& lesson : proposal.lessons) {
    auto document = policy::readText(merged, policy::Format::toml, path);  // again: lines move
    if (!document) return fail(document.error());
    const policy::Field* field = policy::findField(lesson.key);
    const Node* before = findKey(document->root, lesson.key);
    Editor editor(merged);
    if (before == nullptr || field == nullptr) {
      editor.add(lesson);
    } else {
      const std::string value = own ? lesson.value : joinedValue(*field, *before, lesson);
      const auto again = policy::readText("value = " + value, policy::Format::toml, path);
      const auto now = policy::fromNode(*field, *before);
      const auto wanted = again ? policy::fromNode(*field, *again->root.find("value")) : now;
      if (value.empty() || (now && wanted && *now == *wanted)) continue;
      if (!editor.replace(static_cast<std::size_t>(before->line), lesson, value)) {
        return fail(cannotMerge(path, lesson.key));
      }
    }
    MergedPolicy step = std::move(editor).finish();
    if (!policy::readText(step.text, policy::Format::toml, path)) return fail(cannotMerge(path, lesson.key));
    merged = std::move(step.text);
    diff.insert(diff.end(), step.diff.begin(), step.diff.end());
  }
  MergedPolicy result{.text = std::move(merged), .diff = std::move(diff), .widenings = {}};
  auto widenings = checkMerged(path, result);
  if (!widenings) return fail(widenings.error());
  result.widenings = *std::move(widenings);
  return result;
}

}  // namespace caisson::cli
