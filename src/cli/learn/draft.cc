#include "cli/learn/draft.h"

#include "cli/safe_text.h"

namespace caisson::cli {

std::string tomlString(std::string_view text) {
  std::string out = "\"";
  for (const char letter : safeLine(text)) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "\"";
}

std::string listOf(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names) text += (text.size() > 1 ? ", " : "") + tomlString(name);
  return text + "]";
}

void Draft::set(const std::string& key, const std::string& value, const std::string& reason) {
  if (!keys_.insert(key).second) return;
  const std::string why = safeLine(reason);
  policy_ += "# " + why + "\n" + key + " = " + value + "\n";
  diff_.push_back("+ " + key + " = " + value + "    # " + why);
  lessons_.push_back({key, value, why});
}

void Draft::remark(const std::string& words) {
  const std::string text = safeLine(words);
  if (!remarks_.insert(text).second) return;
  policy_ += "# " + text + "\n";
  diff_.push_back("  # " + text);
  told_.push_back(text);
}

void Draft::refuse(const std::string& words) {
  const std::size_t before = told_.size();
  remark(words);
  if (told_.size() == before) return;
  refused_.push_back(std::move(told_.back()));
  told_.pop_back();
}

Proposal Draft::finish(const std::string& base) {
  if (keys_.empty()) diff_.insert(diff_.begin(), "  nothing to change: the run needs no more than it had");
  return {.policy = std::string(kLearnedMark) + ". Read it before you use it: every line gives the program more.\n" +
                    "format_version = 1\nextends = " + tomlString(base) + "\nname = \"learned\"\n" + policy_,
          .diff = std::move(diff_),
          .lessons = std::move(lessons_),
          .refused = std::move(refused_),
          .remarks = std::move(told_)};
}

}  // namespace caisson::cli
