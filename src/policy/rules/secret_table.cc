#include "policy/rules/secret_table.h"

#include <algorithm>
#include <span>

#include "policy/rules/copy_names.h"

namespace caisson::policy {
namespace {

struct SecretRow {
  SecretKind kind;
  SecretVerdict verdict;
  std::uint16_t checks;
  std::string_view patterns;
};

#define SECRET_HOME(kind, patterns)
#define CONFIGURATION_ENDINGS(words)
#define TEXT_ENDINGS(words)
#define SCRIPT_ENDINGS(words)
#define SHELL_ENDINGS(words)
#define TABLE_ENDINGS(words)
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
#define SECRET_HOME(kind, patterns) {SecretKind::kind, SecretVerdict::hide, 0, patterns},
#include "policy/rules/secret_files.inc"
#undef SECRET_HOME
};
#define SECRET_HOME(kind, patterns)
#undef CONFIGURATION_ENDINGS
#undef TEXT_ENDINGS
#undef SCRIPT_ENDINGS
#undef SHELL_ENDINGS
#undef TABLE_ENDINGS
#undef OTHER_ENDINGS
#undef KEY_WORDS
#undef PACKAGE_DIRECTORIES
#define CONFIGURATION_ENDINGS(words) constexpr std::string_view kConfigurationEndings = words;
#define TEXT_ENDINGS(words) constexpr std::string_view kTextEndings = words;
#define SCRIPT_ENDINGS(words) constexpr std::string_view kScriptEndings = words;
#define SHELL_ENDINGS(words) constexpr std::string_view kShellEndings = words;
#define TABLE_ENDINGS(words) constexpr std::string_view kTableEndings = words;
#define OTHER_ENDINGS(words) constexpr std::string_view kOtherEndings = words;
#define KEY_WORDS(words) constexpr std::string_view kKeyWords = words;
#define PACKAGE_DIRECTORIES(words) constexpr std::string_view kPackageDirectories = words;
#include "policy/rules/secret_files.inc"
#undef CONFIGURATION_ENDINGS
#undef TEXT_ENDINGS
#undef SCRIPT_ENDINGS
#undef SHELL_ENDINGS
#undef TABLE_ENDINGS
#undef OTHER_ENDINGS
#undef KEY_WORDS
#undef PACKAGE_DIRECTORIES
#undef SECRET
#undef SECRET_HOME

bool hasStar(std::string_view text) { return text.find('*') != std::string_view::npos; }

template <std::size_t kRows>
std::vector<SecretPattern> patternsOf(const SecretRow (&rows)[kRows]) {
  constexpr std::size_t kMax = 2400;
  std::vector<SecretPattern> made;
  made.reserve(kMax);
  for (const SecretRow& row : rows) {
    for (const std::string_view pattern : splitParts(row.patterns, ' ')) {
      made.push_back({pattern, row.kind, row.verdict, row.checks});
    }
  }
  return made;
}

}  // namespace

std::span<const SecretPattern> secretPatterns() {
  static const std::vector<SecretPattern> table = patternsOf(kSecretRows);
  return table;
}

std::span<const SecretPattern> homeSecrets() {
  static const std::vector<SecretPattern> table = patternsOf(kHomeRows);
  return table;
}

bool matchesPart(std::string_view pattern, std::string_view text) {
  if (!hasStar(pattern)) {
    return pattern.size() == text.size() && std::equal(pattern.begin(), pattern.end(), text.begin(),
                                                       [](char p, char t) { return p == t || (p == '|' && t == ' '); });
  }
  return matchesWildcard(pattern, text);
}

Catalogue::Catalogue() {
  rules_.reserve(secretPatterns().size());
  for (const SecretPattern& one : secretPatterns()) addRule(one);
  int number = 0;
  for (const std::string_view words :
       {kConfigurationEndings, kTextEndings, kScriptEndings, kShellEndings, kTableEndings, kOtherEndings}) {
    for (const std::string_view ending : splitParts(words, ' ')) endings_.add(ending, number);
    ++number;
  }
  for (const std::string_view ending : copyEndings()) {
    if (ending.starts_with('.')) endings_.add(ending.substr(1), number);
  }
  words_ = splitParts(kKeyWords, ' ');
  packages_ = splitParts(kPackageDirectories, ' ');
}

bool Catalogue::suggestsKey(std::string_view name) const {
  return std::ranges::any_of(words_, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool Catalogue::isPackage(std::string_view directory) const {
  return std::ranges::any_of(packages_, [&](std::string_view name) {
    const std::size_t at = directory.find(name);
    if (at == std::string_view::npos || at == 0 || directory[at - 1] != '/') return false;
    return at + name.size() == directory.size() || directory[at + name.size()] == '/';
  });
}

void Catalogue::addRule(const SecretPattern& one) {
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

const Catalogue& catalogue() {
  static const Catalogue made;
  return made;
}

}  // namespace caisson::policy
