#include "policy/rules/secret_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"
#include "policy/rules/name_pattern.h"
#include "policy/rules/protected_files.h"

namespace caisson::policy {
namespace {

constexpr SecretVerdict kHide = SecretVerdict::hide, kRead = SecretVerdict::by_content, kShow = SecretVerdict::no;

struct SecretRow {
  SecretKind kind;
  SecretVerdict verdict;
  std::uint8_t checks;
  std::string_view patterns;
};

struct SecretHow {
  SecretVerdict verdict;
  std::uint8_t checks;
};
namespace secret_how {
constexpr SecretHow hide{kHide, 0};
constexpr SecretHow show{kShow, 0};
constexpr SecretHow keys{kRead, kCheckKeys | kCheckTokens | kCheckRandom};
constexpr SecretHow settings{kRead, kCheckKeys | kCheckTokens | kCheckSettings};
constexpr SecretHow raw{kRead, kCheckKeys | kCheckTokens | kCheckSettings | kCheckRaw};
constexpr SecretHow only_private{kRead, kCheckKeys | kCheckPrivate};
}  // namespace secret_how

#define SECRET_HOME(kind, patterns)
#define CONFIGURATION_ENDINGS(words)
#define TEXT_ENDINGS(words)
#define SCRIPT_ENDINGS(words)
#define OTHER_ENDINGS(words)
#define KEY_WORDS(words)
#define PACKAGE_DIRECTORIES(words)
constexpr SecretRow kSecretRows[] = {
#define SECRET(kind, how, patterns) {SecretKind::kind, secret_how::how.verdict, secret_how::how.checks, patterns},
#include "policy/rules/secret_files.inc"
#undef SECRET
};
#undef SECRET_HOME
#define SECRET(kind, how, patterns)
constexpr SecretRow kHomeRows[] = {
#define SECRET_HOME(kind, patterns) {SecretKind::kind, kHide, 0, patterns},
#include "policy/rules/secret_files.inc"
#undef SECRET_HOME
};
#define SECRET_HOME(kind, patterns)
#undef CONFIGURATION_ENDINGS
#undef TEXT_ENDINGS
#undef SCRIPT_ENDINGS
#undef OTHER_ENDINGS
#undef KEY_WORDS
#undef PACKAGE_DIRECTORIES
#define CONFIGURATION_ENDINGS(words) constexpr std::string_view kConfigurationEndings = words;
#define TEXT_ENDINGS(words) constexpr std::string_view kTextEndings = words;
#define SCRIPT_ENDINGS(words) constexpr std::string_view kScriptEndings = words;
#define OTHER_ENDINGS(words) constexpr std::string_view kOtherEndings = words;
#define KEY_WORDS(words) constexpr std::string_view kKeyWords = words;
#define PACKAGE_DIRECTORIES(words) constexpr std::string_view kPackageDirectories = words;
#include "policy/rules/secret_files.inc"
#undef CONFIGURATION_ENDINGS
#undef TEXT_ENDINGS
#undef SCRIPT_ENDINGS
#undef OTHER_ENDINGS
#undef KEY_WORDS
#undef PACKAGE_DIRECTORIES
#undef SECRET
#undef SECRET_HOME

constexpr std::string_view kSecretKindNames[] = {"environment", "token", "package manager", "cloud", "infrastructure",
                                                 "key",         "git",   "service",         "agent", "history",
                                                 "browser",     "mail",  "keyring"};

constexpr std::string_view kTemplateEndings[] = {".example",  ".sample",  ".template", ".tmpl",  ".tpl", ".dist",
                                                 ".examples", ".samples", ".j2",       ".jinja", ".erb"};
constexpr std::string_view kTemplateWords[] = {"example", "sample", "template", "examples"};

/// Endings of copies that editors, package managers and people make.
constexpr std::string_view kCopyEndings[] = {
    "~",       ".bak",     ".backup",  ".bkp",      ".old",      ".orig",      ".original",    ".save",
    ".saved",  ".prev",    ".tmp",     ".temp",     ".copy",     ".swp",       ".swo",         ".swn",
    ".un~",    ".rej",     ".new",     ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-bak",    ".rpmsave",
    ".rpmnew", ".rpmorig", ".ucf-old", ".disabled", ".off",      ".inactive",  ".kate-swp",    "#",
    ".bk",     ".last",    ".merged",  ".mine",     ".theirs",   ".ours",      ".local-backup"};
/// Marks of a copy before the ending, or at the end of a name without one.
constexpr std::string_view kCopyMarks[] = {" copy",   "-copy",   "_copy",   ".copy", "-old",    "_old",
                                           ".old",    "-bak",    "_bak",    ".bak",  "-backup", "_backup",
                                           ".backup", " - copy", "-orig",   "_orig", ".orig",   " (copy)",
                                           "-save",   "_save",   " backup", " old",  "-prev",   "_prev"};

std::uint32_t hashOf(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

/// From a name to a small number, with no allocation per name: it is filled at every start of the program.
template <std::size_t kSlots>
class NameTable {
 public:
  NameTable() { numbers_.fill(-1); }
  /// The number of a name that was added before, else `fresh` after adding it.
  int add(std::string_view name, int fresh) {
    std::size_t at = slot(name);
    if (numbers_[at] >= 0) return numbers_[at];
    names_[at] = name;
    return numbers_[at] = fresh;
  }
  [[nodiscard]] int find(std::string_view name) const { return numbers_[slot(name)]; }

 private:
  [[nodiscard]] std::size_t slot(std::string_view name) const {
    std::size_t at = hashOf(name) % kSlots;
    while (numbers_[at] >= 0 && names_[at] != name) at = (at + 1) % kSlots;
    return at;
  }
  std::array<std::string_view, kSlots> names_{};
  std::array<int, kSlots> numbers_{};
};

bool hasStar(std::string_view text) { return text.find('*') != std::string_view::npos; }

/// `|` of a pattern stands for a blank of the name.
bool matchesPart(std::string_view pattern, std::string_view text) {
  if (!hasStar(pattern)) {
    return pattern.size() == text.size() && std::equal(pattern.begin(), pattern.end(), text.begin(),
                                                       [](char p, char t) { return p == t || (p == '|' && t == ' '); });
  }
  return matchesWildcard(pattern, text);
}

struct SecretRule {
  const SecretPattern* pattern;
  std::string_view above;  ///< the parts before the last one, with a slash between them
  std::string_view last;
  std::string_view before, after;  ///< of a last part with stars: what is before the first and after the last one
  bool directory = false;
  bool exact = true;     ///< no star in the last part
  bool several = false;  ///< several stars
  int next = -1;         ///< the next rule with the same last part

  [[nodiscard]] bool matches(std::string_view name) const {
    if (exact) return matchesPart(last, name);
    return name.size() >= before.size() + after.size() && name.starts_with(before) && name.ends_with(after) &&
           (!several || matchesWildcard(last, name));
  }
};

enum class EndingClass : std::int8_t { unknown = -1, configuration = 0, text, script, other, copy };

class Catalogue {
 public:
  Catalogue() {
    rules_.reserve(secretPatterns().size());
    for (const SecretPattern& one : secretPatterns()) addRule(one);
    int number = 0;
    for (const std::string_view words : {kConfigurationEndings, kTextEndings, kScriptEndings, kOtherEndings}) {
      for (const std::string_view ending : splitParts(words, ' ')) endings_.add(ending, number);
      ++number;
    }
    for (const std::string_view ending : kCopyEndings) {
      if (ending.starts_with('.')) endings_.add(ending.substr(1), number);
    }
    words_ = splitParts(kKeyWords, ' ');
    packages_ = splitParts(kPackageDirectories, ' ');
  }

  /// The first rule whose last part matches and that passes the test; exact names first, then in the order of the
  /// table.
  template <class Test>
  [[nodiscard]] const SecretRule* find(std::string_view name, const Test& test) const {
    for (int at = exact_.find(name); at >= 0; at = rules_[static_cast<std::size_t>(at)].next) {
      const SecretRule& rule = rules_[static_cast<std::size_t>(at)];
      if (test(rule)) return &rule;
    }
    const auto& by_first = starting_[static_cast<unsigned char>(name.front())];
    const auto& by_last = ending_[static_cast<unsigned char>(name.back())];
    std::size_t a = 0, b = 0;
    while (a < by_first.size() || b < by_last.size()) {
      const bool first = b == by_last.size() || (a < by_first.size() && by_first[a] < by_last[b]);
      const SecretRule& rule = rules_[static_cast<std::size_t>(first ? by_first[a++] : by_last[b++])];
      if (rule.matches(name) && test(rule)) return &rule;
    }
    return nullptr;
  }

  [[nodiscard]] EndingClass classOf(std::string_view ending) const {
    return static_cast<EndingClass>(endings_.find(ending));
  }
  [[nodiscard]] bool suggestsKey(std::string_view name) const {
    return std::ranges::any_of(words_,
                               [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
  }
  [[nodiscard]] bool isPackage(std::string_view directory) const {
    return std::ranges::any_of(packages_, [&](std::string_view name) {
      const std::size_t at = directory.find(name);
      if (at == std::string_view::npos || at == 0 || directory[at - 1] != '/') return false;
      return at + name.size() == directory.size() || directory[at + name.size()] == '/';
    });
  }

 private:
  void addRule(const SecretPattern& one) {
    SecretRule rule{.pattern = &one, .above = {}, .last = one.pattern, .directory = one.pattern.ends_with('/')};
    if (rule.directory) rule.last.remove_suffix(1);
    if (const std::size_t slash = rule.last.rfind('/'); slash != std::string_view::npos) {
      rule.above = rule.last.substr(0, slash);
      rule.last.remove_prefix(slash + 1);
    }
    const std::size_t star = rule.last.find('*');
    rule.exact = star == std::string_view::npos;
    if (!rule.exact) {
      rule.before = rule.last.substr(0, star);
      rule.after = rule.last.substr(rule.last.rfind('*') + 1);
      rule.several = rule.last.rfind('*') != star;
    }
    const int index = static_cast<int>(rules_.size());
    rules_.push_back(rule);
    if (rule.last.find_first_of("*|") == std::string_view::npos) {
      int at = exact_.add(rule.last, index);
      if (at == index) return;
      while (rules_[static_cast<std::size_t>(at)].next >= 0) at = rules_[static_cast<std::size_t>(at)].next;
      rules_[static_cast<std::size_t>(at)].next = index;
    } else if (!rule.last.starts_with('*')) {
      starting_[static_cast<unsigned char>(rule.last.front())].push_back(index);
    } else {  // a test of the table makes sure that it has an end
      ending_[static_cast<unsigned char>(rule.last.back())].push_back(index);
    }
  }

  std::vector<SecretRule> rules_;
  NameTable<4096> exact_;
  NameTable<1024> endings_;
  std::array<std::vector<int>, 256> starting_, ending_;
  std::vector<std::string_view> words_, packages_;
};

const Catalogue& catalogue() {
  static const Catalogue made;
  return made;
}

template <std::size_t kRows>
std::vector<SecretPattern> patternsOf(const SecretRow (&rows)[kRows]) {
  constexpr std::size_t kMax = 1600;
  std::vector<SecretPattern> made;
  made.reserve(kMax);
  for (const SecretRow& row : rows) {
    for (const std::string_view pattern : splitParts(row.patterns, ' ')) {
      made.push_back({pattern, row.kind, row.verdict, row.checks});
    }
  }
  return made;
}

bool endsWithAny(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// The position of the ending's dot; npos without one. A dot at the beginning is none.
std::size_t endingOf(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == 0 ? std::string_view::npos : dot;
}

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-_:t") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

/// Without a number in parentheses, a date, or "copy 2" at the end: "x (1)", "x-2024-01-01", "x copy 2".
std::string_view withoutNumber(std::string_view stem) {
  if (stem.ends_with(')')) {
    const std::size_t open = stem.rfind(" (");
    const std::string_view inner = open == std::string_view::npos ? "" : stem.substr(open + 2, stem.size() - open - 3);
    if (isNumber(inner) || inner.starts_with("copy") || inner.ends_with("copy")) return stem.substr(0, open);
  }
  const std::size_t last = stem.find_last_not_of("0123456789-_");
  if (last != std::string_view::npos && stem.size() - last - 1 >= 7) return stem.substr(0, last + 1);  // a date
  if (last != std::string_view::npos && last + 1 < stem.size() && stem.substr(0, last + 1).ends_with("copy ")) {
    return stem.substr(0, last);
  }
  return stem;
}

/// Whether the last word of a stem may be the mark of a copy: a quick test.
bool mayEndInMark(std::string_view stem) {
  if (stem.empty()) return false;
  const char last = stem.back();
  if (last == ')' || isDigit(last)) return true;
  const std::size_t at = stem.find_last_of(" -_.");
  const std::size_t length = at == std::string_view::npos ? 0 : stem.size() - at - 1;
  if (length < 3 || length > 6) return false;
  const char first = stem[at + 1];
  return first == 'c' || first == 'o' || first == 'b' || first == 's' || first == 'p';
}

/// Whether withoutCopyMark() may change the name: a quick test.
bool mayBeCopy(std::string_view name, std::size_t dot) {
  const char last = name.back();
  if (last == '~' || last == '#' || last == ')' || name.ends_with(" copy") || name.starts_with(".#") ||
      name.starts_with("copy of "))
    return true;
  if (dot == std::string_view::npos) return mayEndInMark(name);
  const std::string_view ending = name.substr(dot + 1);
  if (!ending.empty() && (isDigit(ending.back()) || ending.starts_with("sw"))) return true;
  return catalogue().classOf(ending) == EndingClass::copy || mayEndInMark(name.substr(0, dot));
}

/// The name that this one is a copy or backup of; the same if it is none.
std::string withoutCopyMark(const std::string& name) {
  std::string_view rest = name;
  if (rest.starts_with("copy of ")) return std::string(rest.substr(8));
  if (rest.starts_with(".#")) return std::string(rest.substr(2));
  if (rest.size() > 2 && rest.starts_with('#') && rest.ends_with('#'))
    return std::string(rest.substr(1, rest.size() - 2));
  // vim: .NAME.swp, with more letters if there are several.
  if (rest.size() > 6 && rest.starts_with('.') && rest.substr(rest.size() - 4).starts_with(".sw")) {
    return std::string(rest.substr(1, rest.size() - 5));
  }
  if (rest.ends_with("~")) {  // NAME~ and emacs' NAME.~1~
    rest.remove_suffix(1);
    const std::size_t mark = rest.rfind(".~");
    if (mark != std::string_view::npos && mark > 0 && isNumber(rest.substr(mark + 2))) rest = rest.substr(0, mark);
    return std::string(rest);
  }
  for (const std::string_view ending : kCopyEndings) {
    if (rest.size() > ending.size() && rest.ends_with(ending))
      return std::string(rest.substr(0, rest.size() - ending.size()));
  }
  // Marks behind the ending: "prod.env (copy)".
  for (const std::string_view mark : {" - copy", " copy"}) {
    if (rest.size() > mark.size() && rest.ends_with(mark))
      return std::string(rest.substr(0, rest.size() - mark.size()));
  }
  if (rest.ends_with(')') && withoutNumber(rest).size() < rest.size()) return std::string(withoutNumber(rest));
  std::size_t dot = endingOf(rest);
  if (dot != std::string_view::npos) {
    const std::string_view ending = rest.substr(dot + 1);
    const bool numbered = ending.size() > 3 && ending.starts_with("bak") && isNumber(ending.substr(3));
    if (isNumber(ending) || numbered) return std::string(rest.substr(0, dot));
  }
  const std::string_view stem = withoutNumber(rest.substr(0, dot));
  const std::string_view tail = dot == std::string_view::npos ? "" : rest.substr(dot);
  if (stem.size() < std::min(dot, rest.size())) return std::string(stem) + std::string(tail);
  for (const std::string_view mark : kCopyMarks) {
    if (stem.size() > mark.size() && stem.ends_with(mark)) {
      return std::string(stem.substr(0, stem.size() - mark.size())) + std::string(tail);
    }
  }
  return name;
}

/// As foldName(), quick for the usual names.
std::string foldedName(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; }) &&
                     !name.ends_with('.') && !name.ends_with(' ') && name != "git~1";
  return plain ? lowered(name) : foldName(name);
}

/// Whether the end of the path `directory` matches these parts.
bool endsWithParts(std::string_view directory, std::string_view parts) {
  while (!parts.empty()) {
    while (directory.ends_with('/')) directory.remove_suffix(1);
    const std::size_t slash = directory.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? directory : directory.substr(slash + 1);
    directory = slash == std::string_view::npos ? "" : directory.substr(0, slash);
    const std::size_t before = parts.rfind('/');
    const std::string_view pattern = before == std::string_view::npos ? parts : parts.substr(before + 1);
    parts = before == std::string_view::npos ? "" : parts.substr(0, before);
    if (part.empty() || !matchesPart(pattern, foldedName(part))) return false;
  }
  return true;
}

bool holdsGitData(std::string_view directory) {
  return directory.ends_with("/.git") || directory.find("/.git/") != std::string_view::npos;
}

/// For files that no rule names.
SecretJudgement judgeByEnding(std::string_view directory, std::string_view name) {
  const Catalogue& table = catalogue();
  if (table.isPackage(directory)) return {};
  SecretJudgement read{.verdict = kRead, .kind = SecretKind::token, .checks = secret_how::keys.checks};
  const std::size_t dot = endingOf(name);
  if (dot == std::string_view::npos) {
    read.unnamed = !table.suggestsKey(name);
    if (holdsGitData(directory)) read.checks |= kCheckAllUrls;
    return read;
  }
  switch (table.classOf(name.substr(dot + 1))) {
    case EndingClass::script: read.checks = kCheckTokens | kCheckUrls; [[fallthrough]];
    case EndingClass::configuration:
    case EndingClass::text: read.bounded = true; return read;
    case EndingClass::other: return {};
    case EndingClass::unknown:
    case EndingClass::copy: break;
  }
  read.kind = SecretKind::key;
  return table.suggestsKey(name) ? read : SecretJudgement{};
}

/// The names that a file may be a copy of, itself first, folded.
std::vector<std::string> originalNames(std::string_view name) {
  std::vector<std::string> names{foldedName(name)};
  constexpr std::size_t kMax = 5;
  while (names.size() < kMax && !names.back().empty() && mayBeCopy(names.back(), endingOf(names.back()))) {
    std::string next = withoutCopyMark(names.back());
    if (next.empty() || next == names.back()) break;
    names.push_back(std::move(next));
  }
  return names;
}

/// Whether a part of the name is such a word: "example.env".
bool hasTemplateWord(std::string_view folded) {
  for (std::size_t begin = 0; begin <= folded.size();) {
    const std::size_t end = std::min(folded.find_first_of(".-_", begin), folded.size());
    if (std::ranges::find(kTemplateWords, folded.substr(begin, end - begin)) != std::end(kTemplateWords)) return true;
    begin = end + 1;
  }
  return false;
}

constexpr std::size_t kMaxName = 255;

}  // namespace

std::string_view name(SecretKind kind) { return kSecretKindNames[static_cast<std::size_t>(kind)]; }

std::span<const SecretPattern> secretPatterns() {
  static const std::vector<SecretPattern> table = patternsOf(kSecretRows);
  return table;
}

std::span<const SecretPattern> homeSecrets() {
  static const std::vector<SecretPattern> table = patternsOf(kHomeRows);
  return table;
}

bool isTemplate(std::string_view name) { return endsWithAny(lowered(name), kTemplateEndings); }

bool mayBeSecret(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return true;
  char buffer[kMaxName];
  unsigned char all = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    buffer[at] = lower(name[at]);
    all |= static_cast<unsigned char>(name[at]);
  }
  const std::string_view folded(buffer, name.size());
  if (all >= 0x80 || folded.ends_with('.') || folded.ends_with(' ')) return true;
  bool shown = false;
  const Catalogue& table = catalogue();
  const auto concerns = [&](const SecretRule& rule) {
    if (rule.pattern->verdict != kShow) return true;
    shown = shown || rule.above.empty();
    return false;
  };
  if (table.find(folded, concerns) != nullptr) return true;
  if (shown) return false;
  const std::size_t dot = endingOf(folded);
  if (dot == std::string_view::npos) return true;
  switch (table.classOf(folded.substr(dot + 1))) {
    case EndingClass::other: break;
    case EndingClass::unknown:
      if (table.suggestsKey(folded)) return true;
      break;
    default: return true;
  }
  // A copy of a file is judged by the name of that.
  if (!mayBeCopy(folded, dot)) return false;
  const std::string copy(folded), original = withoutCopyMark(copy);
  return original != copy && mayBeSecret(original);
}

SecretJudgement judgeSecret(std::string_view directory, std::string_view name, bool is_directory) {
  if (name.empty()) return {};
  const std::vector<std::string> names = originalNames(name);
  if (!is_directory &&
      std::ranges::any_of(names, [](const std::string& one) { return endsWithAny(one, kTemplateEndings); }))
    return {};
  SecretJudgement found;
  bool known = false;
  for (const std::string& one : names) {
    const SecretRule* rule = catalogue().find(one, [&](const SecretRule& tried) {
      return tried.directory == is_directory && (tried.above.empty() || endsWithParts(directory, tried.above));
    });
    if (rule == nullptr) continue;
    SecretJudgement judged{.verdict = rule->pattern->verdict,
                           .kind = rule->pattern->kind,
                           .checks = rule->pattern->checks,
                           .pattern = rule->pattern->pattern};
    // "example.env": what looks like a template must not hold what looks like a real secret.
    if (judged.verdict == kHide && judged.kind != SecretKind::key && !is_directory && hasTemplateWord(one)) {
      judged = {.verdict = kRead, .kind = judged.kind, .checks = secret_how::keys.checks, .pattern = judged.pattern};
    }
    // What is hidden as the original is hidden as a copy, too.
    if (!known || judged.verdict == kHide) found = judged;
    known = true;
  }
  if (known || is_directory) return found;
  return judgeByEnding(directory, names.back());
}

bool usuallySecret(std::string_view directory, std::string_view name) {
  const SecretJudgement judged = judgeSecret(directory, name, false);
  return judged.verdict == kHide || (judged.checks & kCheckPrivate) != 0;
}

bool isInSecretDirectory(std::string_view path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string_view way = path.substr(0, end);
    const std::size_t slash = way.rfind('/');
    if (slash != std::string_view::npos && slash + 1 < way.size() &&
        judgeSecret(way.substr(0, slash), way.substr(slash + 1), true).verdict == kHide) {
      return true;
    }
    if (end == std::string_view::npos) return false;
  }
}

}  // namespace caisson::policy
