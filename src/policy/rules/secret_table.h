// The rules of secret_files.inc, looked up by name and by ending. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "policy/rules/name_pattern.h"
#include "policy/rules/secret_files.h"

namespace caisson::policy {

/// What the word of a row in secret_files.inc says about a file.
struct SecretHow {
  SecretVerdict verdict;
  std::uint16_t checks;
};
namespace secret_how {
constexpr SecretHow hide{SecretVerdict::hide, 0};
constexpr SecretHow show{SecretVerdict::no, 0};
constexpr SecretHow keys{SecretVerdict::by_content, kCheckKeys | kCheckTokens | kCheckRandom};
constexpr SecretHow script{SecretVerdict::by_content, kCheckTokens | kCheckUrls};
constexpr SecretHow settings{SecretVerdict::by_content, kCheckKeys | kCheckTokens | kCheckSettings};
constexpr SecretHow raw{SecretVerdict::by_content, kCheckKeys | kCheckTokens | kCheckSettings | kCheckRaw};
constexpr SecretHow only_private{SecretVerdict::by_content, kCheckKeys | kCheckPrivate};
}  // namespace secret_how

inline std::uint32_t hashOf(std::string_view text) {
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

/// Whether a part of a path matches: `|` of a pattern stands for a blank of the name.
bool matchesPart(std::string_view pattern, std::string_view text);

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

enum class EndingClass : std::int8_t { unknown = -1, configuration = 0, text, script, shell, table, other, copy };

/// All rules.
class Catalogue {
 public:
  Catalogue();

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
  /// Whether a word of the name suggests a key.
  [[nodiscard]] bool suggestsKey(std::string_view name) const;
  /// Whether a directory is one of packages that others published, or lies in one.
  [[nodiscard]] bool isPackage(std::string_view directory) const;

 private:
  void addRule(const SecretPattern& one);

  std::vector<SecretRule> rules_;
  NameTable<4096> exact_;
  NameTable<1024> endings_;
  std::array<std::vector<int>, 256> starting_, ending_;
  std::vector<std::string_view> words_, packages_;
};

const Catalogue& catalogue();

}  // namespace caisson::policy
