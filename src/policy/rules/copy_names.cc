#include "policy/rules/copy_names.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::policy {
namespace {

/// Endings of copies that editors, package managers and people make.
constexpr std::string_view kCopyEndings[] = {
    "~",       ".bak",     ".backup",  ".bkp",      ".old",      ".orig",      ".original",     ".save",
    ".saved",  ".prev",    ".tmp",     ".temp",     ".copy",     ".swp",       ".swo",          ".swn",
    ".un~",    ".rej",     ".new",     ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-bak",     ".rpmsave",
    ".rpmnew", ".rpmorig", ".ucf-old", ".disabled", ".off",      ".inactive",  ".kate-swp",     "#",
    ".bk",     ".last",    ".merged",  ".mine",     ".theirs",   ".ours",      ".local-backup", ".pacsave",
    ".pacnew", ".pacorig"};
/// Marks of a copy before the ending, or at the end of a name without one.
constexpr std::string_view kCopyMarks[] = {" copy",   "-copy",   "_copy",   ".copy", "-old",    "_old",
                                           ".old",    "-bak",    "_bak",    ".bak",  "-backup", "_backup",
                                           ".backup", " - copy", "-orig",   "_orig", ".orig",   " (copy)",
                                           "-save",   "_save",   " backup", " old",  "-prev",   "_prev"};

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-_:t") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

/// What git's merge tools put before a number: "x_BACKUP_1234.yaml".
constexpr std::string_view kMergeMarks[] = {"_backup_", "_base_", "_local_", "_remote_"};

/// Without a number in parentheses, a date, or "copy 2" at the end: "x (1)", "x-2024-01-01", "x copy 2".
std::string_view withoutNumber(std::string_view stem) {
  if (stem.ends_with(')')) {
    const std::size_t open = stem.rfind(" (");
    const std::string_view inner = open == std::string_view::npos ? "" : stem.substr(open + 2, stem.size() - open - 3);
    const bool copy = inner.find("copy") != std::string_view::npos || inner.find("conflict") != std::string_view::npos;
    if (isNumber(inner) || copy) return stem.substr(0, open);
  }
  const std::size_t word = stem.find_last_not_of("0123456789") + 1;  // 0: only digits
  for (const std::string_view mark : kMergeMarks) {
    const std::string_view before = stem.substr(0, word);
    if (word < stem.size() && before.size() > mark.size() && before.ends_with(mark)) {
      return before.substr(0, before.size() - mark.size());
    }
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

}  // namespace

std::span<const std::string_view> copyEndings() { return kCopyEndings; }

std::size_t endingOf(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == 0 ? std::string_view::npos : dot;
}

bool mayBeCopy(std::string_view name, std::size_t dot, bool copy_ending) {
  const char last = name.back();
  if (last == '~' || last == '#' || last == ')' || name.ends_with(" copy") || name.starts_with(".#") ||
      name.starts_with("copy of "))
    return true;
  if (dot == std::string_view::npos) return mayEndInMark(name);
  const std::string_view ending = name.substr(dot + 1);
  if (!ending.empty() && (isDigit(ending.back()) || ending.starts_with("sw"))) return true;
  return copy_ending || mayEndInMark(name.substr(0, dot));
}

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
  for (const std::string_view ending : {".un~", ".kate-swp"}) {  // undo files of vim, .NAME.un~, and swap files of Kate
    if (rest.size() <= ending.size() + 1 || !rest.ends_with(ending)) continue;
    rest.remove_suffix(ending.size());
    if (rest.starts_with('.')) rest.remove_prefix(1);
    return std::string(rest);
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
  std::size_t longest = 0;  // " - copy" ends with " copy"
  for (const std::string_view mark : kCopyMarks) {
    if (stem.size() > mark.size() && stem.ends_with(mark)) longest = std::max(longest, mark.size());
  }
  return longest == 0 ? name : std::string(stem.substr(0, stem.size() - longest)) + std::string(tail);
}

}  // namespace caisson::policy
