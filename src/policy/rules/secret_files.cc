#include "policy/rules/secret_files.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "policy/rules/copy_names.h"
#include "policy/rules/protected_files.h"
#include "policy/rules/secret_table.h"

namespace caisson::policy {
namespace {

constexpr SecretVerdict kHide = SecretVerdict::hide, kRead = SecretVerdict::by_content, kShow = SecretVerdict::no;

constexpr std::string_view kSecretKindNames[] = {"environment", "token", "package manager", "cloud", "infrastructure",
                                                 "key",         "git",   "service",         "agent", "history",
                                                 "browser",     "mail",  "keyring"};

constexpr std::string_view kTemplateEndings[] = {".example",  ".sample",  ".template", ".tmpl",  ".tpl", ".dist",
                                                 ".examples", ".samples", ".j2",       ".jinja", ".erb"};
constexpr std::string_view kTemplateWords[] = {"example", "sample", "template", "examples"};

bool endsWithAny(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

bool mayBeCopyOfOther(std::string_view name) {
  const std::size_t dot = endingOf(name);
  const bool ending = dot != std::string_view::npos && catalogue().classOf(name.substr(dot + 1)) == EndingClass::copy;
  return mayBeCopy(name, dot, ending);
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
SecretJudgement judgeByEnding(std::string_view directory, std::string_view name, bool copy) {
  const Catalogue& table = catalogue();
  if (table.isPackage(directory)) return {};
  SecretJudgement read{.verdict = kRead, .kind = SecretKind::token, .checks = secret_how::keys.checks};
  const std::size_t dot = endingOf(name);
  if (dot == std::string_view::npos) {
    read.unnamed = !table.suggestsKey(name);
    read.checks |= kCheckCommands;
    if (holdsGitData(directory)) read.checks |= kCheckAllUrls;
    return read;
  }
  switch (table.classOf(name.substr(dot + 1))) {
    case EndingClass::script: read.checks = kCheckTokens | kCheckUrls; break;
    case EndingClass::shell: read.checks = kCheckTokens | kCheckUrls | kCheckRandom | kCheckCommands; break;
    case EndingClass::table:
      read.checks = kCheckTokens | kCheckTable;
      read.first_only = true;
      break;
    case EndingClass::configuration:
    case EndingClass::text: break;
    case EndingClass::other: return {};
    case EndingClass::unknown:
    case EndingClass::copy:
      if (table.suggestsKey(name)) {
        read.kind = SecretKind::key;
        return read;
      }
      read.unnamed = true;
  }
  // No program needs the copy of a script.
  if (copy && !read.first_only) read.checks |= kCheckRandom;
  read.bounded = true;
  return read;
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

/// Whether a file that a row names is judged like others of its ending: small, and not in packages.
bool isSource(std::string_view name, const SecretJudgement& judged) {
  if (judged.checks == secret_how::script.checks) return true;
  const std::size_t dot = endingOf(name);
  return judged.checks == secret_how::keys.checks && dot != std::string_view::npos &&
         catalogue().classOf(name.substr(dot + 1)) == EndingClass::script;
}

constexpr std::size_t kMaxName = 255;

}  // namespace

std::string_view name(SecretKind kind) { return kSecretKindNames[static_cast<std::size_t>(kind)]; }

bool isTemplate(std::string_view name) { return endsWithAny(lowered(name), kTemplateEndings); }

std::vector<std::string> originalNames(std::string_view name) {
  std::vector<std::string> names{foldedName(name)};
  constexpr std::size_t kMax = 8;
  while (names.size() < kMax && !names.back().empty() && mayBeCopyOfOther(names.back())) {
    std::string next = withoutCopyMark(names.back());
    if (next.empty() || next == names.back()) break;
    // Editors put a dot before the name, unless it has one.
    if (names.back().starts_with('.') && !next.starts_with('.')) names.push_back("." + next);
    names.push_back(std::move(next));
  }
  return names;
}

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
    default: return true;
  }
  // A copy of a file is judged by the name of that.
  if (!mayBeCopyOfOther(folded)) return false;
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
  if (found.verdict == kRead && isSource(names.back(), found)) {
    if (catalogue().isPackage(directory)) return {};
    found.bounded = true;
  }
  // What a package calls a password is public: its author published it.
  constexpr unsigned kInPackages = kCheckKeys | kCheckTokens | kCheckPrivate;
  if (found.verdict == kRead && catalogue().isPackage(directory)) {
    found.checks &= kInPackages;
    if (found.checks == 0) return {};
  }
  if (known || is_directory) return found;
  return judgeByEnding(directory, names.back(), names.size() > 1);
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
