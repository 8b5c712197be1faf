#include "policy/rules/protected_files.h"

#include <algorithm>

#include "base/utf8.h"
#include "policy/rules/name_pattern.h"

namespace caisson::policy {
namespace {

constexpr std::size_t kMaxProtectedPattern = 256;

struct CategoryRows {
  ProtectedCategory category;
  std::string_view patterns;
};

constexpr CategoryRows kCategoryRows[] = {
#define PROTECTED(category, patterns) {ProtectedCategory::category, patterns},
#include "policy/rules/protected_files.inc"
#undef PROTECTED
};

struct CategoryText {
  std::string_view name;
  std::string_view reason;
};

constexpr CategoryText kCategories[] = {
    {"version-control", "version control runs programs that it names"},
    {"shell", "shells read it when they start"},
    {"editor", "editors run tasks from it"},
    {"environment", "tools that set up a directory's environment run it"},
    {"task-runner", "tools run commands from it unasked"},
    {"packages", "package managers run programs that it names"},
    {"interpreter", "programs run commands from it when they start"},
    {"ci", "build servers run it"},
    {"agent", "agents and their tool servers are configured by it"},
    {"desktop", "the desktop starts programs that it names"},
    {"service", "the service manager starts programs that it names"},
    {"custom", "the policy protects it"},
};

/// The only parts of a git directory that may change without approval: objects and references name no program.
constexpr std::string_view kRepositoryData[] = {"objects",        "refs",       "logs",       "head",
                                                "index",          "orig_head",  "fetch_head", "packed-refs",
                                                "commit_editmsg", "merge_head", "shallow",    "cherry_pick_head",
                                                "revert_head",    "merge_msg",  "merge_mode", "description"};

constexpr std::string_view kRepositoryPrograms[] = {"config",
                                                    "config.worktree",
                                                    "hooks/",
                                                    "info/",
                                                    "commondir",
                                                    "gitdir",
                                                    "objects/info/alternates",
                                                    "objects/info/http-alternates",
                                                    "rebase-merge/",
                                                    "rebase-apply/"};

/// Where agents keep work trees in their own directories.
constexpr std::string_view kAgentWorktrees = "worktrees";

/// Other members of a git directory. A rebase in progress has a list of commands.
constexpr std::string_view kRepositoryOther[] = {"config.lock",  "modules",   "worktrees", "rebase-merge",
                                                 "rebase-apply", "sequencer", "branches",  "remotes",
                                                 "lfs",          "svn",       "annex",     "reftable"};

template <class Range>
bool contains(const Range& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool hasWildcard(std::string_view part) { return part.find('*') != std::string_view::npos; }

/// The ending that all names have that match a pattern such as "*-gdb.py" (".py"); empty: the pattern is of another
/// kind.
std::string_view wildcardEnding(std::string_view part) {
  if (!part.starts_with('*') || hasWildcard(part.substr(1))) return {};
  const std::size_t dot = part.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : part.substr(dot);
}

/// Whether the folded parts of a path relative to a git directory lead to data.
bool isData(std::span<const std::string> folded) {
  if (folded.empty()) return false;
  // Alternates make git read objects from elsewhere.
  if (folded[0] == "objects" && folded.size() > 2 && folded[1] == "info" &&
      folded[2].find("alternates") != std::string::npos) {
    return false;
  }
  return contains(kRepositoryData, folded[0]);
}

/// Characters that a case-insensitive ext4 or f2fs directory ignores when it compares names (default-ignorable).
constexpr bool isIgnoredInNames(char32_t code) {
  return code == 0xAD || code == 0x34F || code == 0x61C || (code >= 0x115F && code <= 0x1160) ||
         (code >= 0x17B4 && code <= 0x17B5) || (code >= 0x180B && code <= 0x180F) ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0x3164 || (code >= 0xFE00 && code <= 0xFE0F) || code == 0xFEFF ||
         code == 0xFFA0 || (code >= 0xFFF0 && code <= 0xFFF8) || (code >= 0x1BCA0 && code <= 0x1BCA3) ||
         (code >= 0x1D173 && code <= 0x1D17A) || (code >= 0xE0000 && code <= 0xE0FFF);
}

/// What a letter folds to that becomes one or several ASCII letters; empty: it does not.
constexpr std::string_view foldedLetters(char32_t code) {
  switch (code) {
    case 0x212A: return "k";  // KELVIN SIGN
    case 0x17F: return "s";   // LATIN SMALL LETTER LONG S
    case 0xDF:
    case 0x1E9E: return "ss";
    case 0xFB00: return "ff";
    case 0xFB01: return "fi";
    case 0xFB02: return "fl";
    case 0xFB03: return "ffi";
    case 0xFB04: return "ffl";
    case 0xFB05:
    case 0xFB06: return "st";
    default: return "";
  }
}

/// Whether a directory holds packages that others published, or is in one. A build server runs what is at the top of a
/// repository, and packages carry what their own repository had there.
bool isInPackage(std::span<const std::string_view> parts) {
  constexpr std::string_view kPackages[] = {
      "node_modules", "bower_components", "site-packages", "dist-packages", "vendor", ".venv", "venv", "target"};
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return std::ranges::find(kPackages, part) != std::end(kPackages); });
}

}  // namespace

std::string_view name(ProtectedCategory category) { return kCategories[static_cast<std::size_t>(category)].name; }
std::string_view reason(ProtectedCategory category) { return kCategories[static_cast<std::size_t>(category)].reason; }

std::span<const ProtectedPattern> protectedPatterns() {
  static const std::vector<ProtectedPattern> table = [] {
    std::vector<ProtectedPattern> made;
    for (const CategoryRows& row : kCategoryRows) {
      for (const std::string_view pattern : splitParts(row.patterns, ' ')) made.push_back({pattern, row.category});
    }
    return made;
  }();
  return table;
}

std::string foldName(std::string_view name) {
  std::string folded;
  folded.reserve(name.size());
  while (!name.empty()) {
    const Character next = firstCharacter(name);
    if (next.valid && next.code < 0x80) {
      folded += next.code >= 'A' && next.code <= 'Z' ? static_cast<char>(next.code - 'A' + 'a')
                                                     : static_cast<char>(next.code);
    } else if (const std::string_view letters = next.valid ? foldedLetters(next.code) : ""; !letters.empty()) {
      folded += letters;
    } else if (!next.valid || !isIgnoredInNames(next.code)) {
      folded += name.substr(0, next.length);
    }
    name.remove_prefix(next.length);
  }
  // vfat, exFAT and servers with Windows drop dots and blanks at the end.
  const std::size_t last = folded.find_last_not_of(". ");
  if (last != std::string::npos) folded.resize(last + 1);
  if (folded == "git~1") return ".git";
  return folded;
}

bool isConfigName(std::string_view name) {
  if (name.empty()) return false;
  const unsigned char first = name.front();
  if (first != 'c' && first != 'C' && first < 0x80) return false;  // most names
  const std::string folded = foldName(name);
  return folded == "config" || folded == "config.worktree";
}

std::optional<std::string> protectedPatternProblem(std::string_view pattern) {
  if (pattern.size() > kMaxProtectedPattern) return "at most " + std::to_string(kMaxProtectedPattern) + " bytes";
  if (pattern.starts_with('/')) return "a path relative to the workspace";
  if (!isUtf8(pattern)) return "UTF-8 text";
  for (const char c : pattern) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "no control characters";
  }
  const std::vector<std::string_view> parts = splitParts(pattern, '/');
  if (parts.empty()) return "a name";
  for (const std::string_view part : parts) {
    if (part == "." || part == "..") return "a path without \".\" and \"..\"";
    if (foldName(part).empty()) return "a name with visible characters";
  }
  const auto stars = [](char c) { return c == '*'; };
  if (std::all_of(parts.back().begin(), parts.back().end(), stars)) return "a name beside the \"*\"";
  return std::nullopt;
}

ProtectedFiles::ProtectedFiles(std::span<const std::string> added, std::string_view directory) {
  for (const std::string& pattern : added) {
    if (!protectedPatternProblem(pattern)) added_.add(pattern, ProtectedCategory::custom);
  }
  setDirectory(directory);
}

const ProtectedFiles::Table& ProtectedFiles::builtIn() {
  static const Table table = [] {
    Table made;
    for (const ProtectedPattern& one : protectedPatterns()) made.add(one.pattern, one.category);
    return made;
  }();
  return table;
}

ProtectedFiles ProtectedFiles::at(std::string_view directory) const {
  ProtectedFiles files = *this;
  files.setDirectory(directory);
  return files;
}

void ProtectedFiles::setDirectory(std::string_view directory) {
  above_.clear();
  std::vector<std::string> parts = foldedParts(splitParts(directory, '/'));
  std::size_t begin = 0;
  for (std::size_t at = 0; at + 2 < parts.size(); ++at) {
    const Pattern* agent = parts[at + 1] == kAgentWorktrees ? find(parts, at) : nullptr;
    if (agent != nullptr && agent->directory && agent->category == ProtectedCategory::agent) begin = at + 2;
  }
  std::size_t decides = begin;  // the first part that protects what is below, or makes git's rules decide
  while (decides < parts.size() && parts[decides] != ".git" && !protectsBelow(parts, decides)) ++decides;
  // Without one, only patterns of several parts need what is above.
  const std::size_t longest = std::max(builtIn().longest(), added_.longest());
  if (decides == parts.size()) begin = std::max(begin, parts.size() - std::min(parts.size(), longest - 1));
  above_.assign(parts.begin() + static_cast<std::ptrdiff_t>(begin), parts.end());
  first_ = decides - std::min(decides, begin);
}

bool ProtectedFiles::protectsBelow(const std::vector<std::string>& folded, std::size_t at) const {
  const Pattern* pattern = find({folded.begin(), folded.begin() + static_cast<std::ptrdiff_t>(at) + 1}, at);
  return pattern != nullptr && pattern->directory;
}

std::vector<std::string> ProtectedFiles::foldedParts(const std::vector<std::string_view>& parts) const {
  std::vector<std::string> folded = above_;
  folded.reserve(above_.size() + parts.size());
  for (const std::string_view part : parts) folded.push_back(foldName(part));
  return folded;
}

void ProtectedFiles::Table::add(std::string_view pattern, ProtectedCategory category) {
  Pattern made{.directory = pattern.ends_with('/'), .category = category};
  for (const std::string_view part : splitParts(pattern, '/')) made.parts.push_back(foldName(part));
  const std::size_t index = patterns_.size();
  const std::string& last = made.parts.back();
  const std::string_view ending = wildcardEnding(last);
  if (!hasWildcard(last)) {
    by_last_part_[last].push_back(index);
  } else if (!ending.empty()) {
    by_ending_[std::string(ending)].push_back(index);
  } else if (last.front() != '*') {
    by_first_letter_[last.front()].push_back(index);
  } else {
    with_wildcard_.push_back(index);
  }
  for (std::size_t count = 1; count < made.parts.size(); ++count) {
    const std::string& part = made.parts[count - 1];
    (hasWildcard(part) ? beginnings_with_wildcard_ : by_beginning_[part]).push_back({index, count});
  }
  longest_ = std::max(longest_, made.parts.size());
  patterns_.push_back(std::move(made));
}

const ProtectedFiles::Pattern* ProtectedFiles::find(const std::vector<std::string>& folded, std::size_t at) const {
  const Pattern* found = builtIn().find(folded, at);
  return found != nullptr ? found : added_.find(folded, at);
}

const ProtectedFiles::Pattern* ProtectedFiles::Table::find(const std::vector<std::string>& folded,
                                                           std::size_t at) const {
  const bool last = at + 1 == folded.size();
  const auto fits = [&](std::size_t index) {
    const Pattern& pattern = patterns_[index];
    if ((!pattern.directory && !last) || pattern.parts.size() > at + 1) return false;
    for (std::size_t i = 0; i < pattern.parts.size(); ++i) {
      if (!matchesWildcard(pattern.parts[i], folded[at + 1 - pattern.parts.size() + i])) return false;
    }
    return true;
  };
  const auto among = [&](const Indexes& indexes) -> const Pattern* {
    const auto found = std::ranges::find_if(indexes, fits);
    return found == indexes.end() ? nullptr : &patterns_[*found];
  };
  const auto under = [&](const auto& index, const auto& key) -> const Pattern* {
    const auto indexes = index.find(key);
    return indexes == index.end() ? nullptr : among(indexes->second);
  };
  const std::string& name = folded[at];
  if (const Pattern* found = under(by_last_part_, name)) return found;
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) {
    if (const Pattern* found = under(by_ending_, name.substr(dot))) return found;
  }
  if (!name.empty()) {
    if (const Pattern* found = under(by_first_letter_, name.front())) return found;
  }
  return among(with_wildcard_);
}

std::optional<ProtectedMatch> ProtectedFiles::match(std::string_view path) const {
  const std::vector<std::string_view> parts = splitParts(path, '/');
  const std::vector<std::string> folded = foldedParts(parts);
  const auto upTo = [&](std::size_t at) {
    if (at < above_.size()) return path.substr(0, 0);
    const std::string_view part = parts[at - above_.size()];
    return path.substr(0, static_cast<std::size_t>(part.data() + part.size() - path.data()));
  };
  for (std::size_t at = first_; at < folded.size(); ++at) {
    if (folded[at] == ".git") {
      // A .git file names another git directory.
      if (at + 1 == folded.size()) return ProtectedMatch{ProtectedCategory::version_control, upTo(at), false};
      if (!isData(std::span(folded).subspan(at + 1))) {
        return ProtectedMatch{ProtectedCategory::version_control, path, false};
      }
    } else if (const Pattern* pattern = find(folded, at)) {
      const bool in_package = at > above_.size() && isInPackage(std::span(parts).first(at - above_.size()));
      if (pattern->category == ProtectedCategory::ci && in_package) continue;
      return ProtectedMatch{pattern->category, upTo(at), pattern->directory};
    }
  }
  return std::nullopt;
}

bool ProtectedFiles::Table::endsWithBeginning(const std::vector<std::string>& folded) const {
  const auto ends = [&](const std::vector<std::string>& parts, std::size_t count) {
    if (count > folded.size()) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!matchesWildcard(parts[i], folded[folded.size() - count + i])) return false;
    }
    return true;
  };
  const auto any = [&](const std::vector<Beginning>& beginnings) {
    return std::ranges::any_of(beginnings,
                               [&](const Beginning& one) { return ends(patterns_[one.pattern].parts, one.count); });
  };
  if (folded.empty()) return false;
  const auto named = by_beginning_.find(folded.back());
  return (named != by_beginning_.end() && any(named->second)) || any(beginnings_with_wildcard_);
}

bool ProtectedFiles::mayHold(std::string_view path) const {
  const std::vector<std::string> folded = foldedParts(splitParts(path, '/'));
  return builtIn().endsWithBeginning(folded) || added_.endsWithBeginning(folded);
}

bool hasRepositoryShape(const std::function<bool(std::string_view)>& has) {
  // A directory with `commondir` uses objects and references of the directory that it names.
  return has("head") && ((has("objects") && has("refs")) || has("commondir"));
}

bool mayShapeRepository(std::string_view name) {
  // The first letters of the names in hasRepositoryShape(); other characters may fold to these or to nothing.
  const char first = name.empty() ? '\0' : name.front();
  return static_cast<unsigned char>(first) >= 0x80 ||
         std::string_view("HhOoRrCc").find(first) != std::string_view::npos;
}

bool isRepositoryData(std::string_view path) {
  std::vector<std::string> folded;
  for (const std::string_view part : splitParts(path, '/')) folded.push_back(foldName(part));
  return isData(folded);
}

bool isRepositoryMember(std::string_view path) {
  const std::vector<std::string_view> parts = splitParts(path, '/');
  if (parts.empty()) return false;
  const std::string first = foldName(parts[0]);
  if (contains(kRepositoryData, first) || contains(kRepositoryOther, first)) return true;
  return std::any_of(std::begin(kRepositoryPrograms), std::end(kRepositoryPrograms), [&](std::string_view one) {
    return first == (one.ends_with('/') ? one.substr(0, one.size() - 1) : one);
  });
}

std::span<const std::string_view> repositoryPrograms() { return kRepositoryPrograms; }

}  // namespace caisson::policy
