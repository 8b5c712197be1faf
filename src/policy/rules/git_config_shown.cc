#include "policy/rules/git_config_shown.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kHidden = "REDACTED";
constexpr std::string_view kSpaces = " \t\r";

/// Sections whose keys say how git shows and stores things. Keys with commands or addresses are listed singly below.
constexpr std::string_view kPlainSections[] = {
    "add",       "advice", "am",        "apply",  "attr",     "blame",         "branch",     "checkout",
    "clean",     "color",  "column",    "commit", "diff",     "extensions",    "fastimport", "feature",
    "fetch",     "format", "fsck",      "gc",     "grep",     "gui",           "i18n",       "include",
    "includeif", "index",  "init",      "log",    "mailmap",  "maintenance",   "merge",      "notes",
    "pack",      "pull",   "push",      "rebase", "receive",  "reftable",      "repack",     "rerere",
    "reset",     "revert", "safe",      "scalar", "sequence", "showbranch",    "sparse",     "splitindex",
    "stash",     "status", "submodule", "tag",    "transfer", "uploadarchive", "uploadpack", "versionsort",
    "worktree",
};
/// Keys of these sections that may hold anything: commands, and texts for other programs.
constexpr std::string_view kNeverShown[] = {
    "core.askpass",    "core.sshcommand",      "core.gitproxy",    "core.alternaterefscommand",
    "diff.command",    "diff.external",        "diff.textconv",    "format.headers",
    "format.from",     "gc.recentobjectshook", "init.templatedir", "merge.driver",
    "push.pushoption", "sequence.editor",      "submodule.update", "uploadpack.packobjectshook",
    "gui.gcwarning",
};
constexpr std::string_view kShownKeys[] = {
    "filter.required",
    "gpg.format",
    "http.followredirects",
    "http.lowspeedlimit",
    "http.lowspeedtime",
    "http.maxrequests",
    "http.postbuffer",
    "http.sslbackend",
    "http.sslverify",
    "http.sslversion",
    "http.version",
    "lfs.concurrenttransfers",
    "lfs.fetchexclude",
    "lfs.fetchinclude",
    "lfs.locksverify",
    "lfs.repositoryformatversion",
    "lfs.url",
    "lfs.pushurl",
    "remote.fetch",
    "remote.followremotehead",
    "remote.mirror",
    "remote.partialclonefilter",
    "remote.promisor",
    "remote.prune",
    "remote.prunetags",
    "remote.push",
    "remote.pushurl",
    "remote.skipdefaultupdate",
    "remote.skipfetchall",
    "remote.tagopt",
    "remote.url",
    "remote.pushdefault",
    "url.insteadof",
    "url.pushinsteadof",
    "user.email",
    "user.name",
    "user.useconfigonly",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
};
/// Commands that name no secret.
constexpr std::string_view kFilterCommands[] = {"clean", "process", "smudge"};
constexpr std::string_view kKnownFilter = "git-lfs ";

struct Line {
  std::string section, subsection, key, value;
  bool quoted = false;  ///< the section has a subsection
  bool set = false;     ///< it has a value
};

/// Reads a configuration as git does; what git would refuse ends up as a key that is not known.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }
  /// Whether a comment was passed that may hold a setting.
  [[nodiscard]] bool hasComments() const { return comments_; }

  bool next(Line& line) {
    while (!text_.empty()) {
      const char first = text_.front();
      if (first == '#' || first == ';') {
        skipComment();
      } else if (first == '[') {
        readSection();
      } else if (first == '\n' || kSpaces.find(first) != std::string_view::npos) {
        text_.remove_prefix(1);
      } else {
        readSetting(line);
        unused_ = false;
        return true;
      }
    }
    endSection();
    return false;
  }

 private:
  char take() {
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }
  void skipComment() {
    const std::string_view comment = text_.substr(0, std::min(text_.find('\n'), text_.size()));
    comments_ = comments_ || comment.find_first_of("=:@") != std::string_view::npos;
    text_.remove_prefix(comment.size());
  }

  /// A header without settings is in no other text: what it holds has to be left out, too.
  void endSection() {
    constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-";
    comments_ = comments_ || (unused_ && (at_.subsection.find_first_of("=:@") != std::string::npos ||
                                          at_.section.find_first_not_of(kOfNames) != std::string::npos));
  }

  void readSection() {
    endSection();
    unused_ = true;
    text_.remove_prefix(1);
    at_ = {};
    while (!text_.empty() && text_.front() != ']' && text_.front() != '\n' && text_.front() != '"')
      at_.section += take();
    at_.section = lowered(trimmed(at_.section, kSpaces));
    if (const std::size_t dot = at_.section.find('.'); dot != std::string::npos) {
      at_.subsection = at_.section.substr(dot + 1);
      at_.section.resize(dot);
      at_.quoted = true;
    }
    if (!text_.empty() && text_.front() == '"') readSubsection();
    while (!text_.empty() && text_.front() != '\n') {
      const char c = take();
      if (c == ']') return;
      comments_ = comments_ || kSpaces.find(c) == std::string_view::npos;  // git would refuse it
    }
  }

  void readSubsection() {
    text_.remove_prefix(1);
    at_.quoted = true;
    while (!text_.empty() && text_.front() != '"' && text_.front() != '\n') {
      char c = take();
      if (c == '\\' && !text_.empty() && text_.front() != '\n') c = take();
      at_.subsection += c;
    }
    if (!text_.empty() && text_.front() == '"') text_.remove_prefix(1);
  }

  void readSetting(Line& line) {
    std::string key;
    while (!text_.empty() && text_.front() != '=' && text_.front() != '\n' && text_.front() != '#' &&
           text_.front() != ';') {
      key += take();
    }
    line = at_;
    line.key = lowered(trimmed(key, kSpaces));
    line.set = !text_.empty() && text_.front() == '=';
    if (!line.set) return;
    text_.remove_prefix(1);
    readValue(line.value);
  }

  void readValue(std::string& value) {
    bool quoted = false;
    std::size_t kept = 0;  // blanks at the end count only inside quotes
    while (!text_.empty() && text_.front() != '\n') {
      if (!quoted && (text_.front() == '#' || text_.front() == ';')) {
        skipComment();
        break;
      }
      char c = take();
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      const bool blank = !quoted && kSpaces.find(c) != std::string_view::npos;
      if (c == '\\' && readEscape(c)) continue;
      if (blank && value.empty()) continue;
      value += c;
      if (!blank) kept = value.size();
    }
    value.resize(kept);
  }

  /// Reads what follows a backslash. True: the line is continued.
  bool readEscape(char& c) {
    if (text_.starts_with("\r\n")) text_.remove_prefix(1);
    if (text_.empty()) return true;
    const char escaped = take();
    c = escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped == 'b' ? '\b' : escaped;
    return escaped == '\n';
  }

  std::string_view text_;
  Line at_;
  bool comments_ = false;
  bool unused_ = false;  ///< no setting of the section was read yet
};

template <class Range>
bool hasMember(const Range& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

bool isShownKey(const Line& line) {
  const std::string name = line.section + "." + line.key;
  if (hasMember(kNeverShown, name)) return false;
  if (line.section == "core" || hasMember(kPlainSections, line.section) || hasMember(kShownKeys, name)) return true;
  return line.section == "filter" && hasMember(kFilterCommands, line.key) && line.value.starts_with(kKnownFilter);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\b') {
      result += "\\b";
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result;
}

bool needsQuotes(std::string_view value) {
  return value != trimmed(value, kSpaces) || value.find_first_of("#;\"\\\n\b") != std::string_view::npos;
}

}  // namespace

std::string withoutUrlCredentials(std::string_view text) {
  std::string result(text);
  for (std::size_t at = result.find("://"); at != std::string::npos; at = result.find("://", at + 3)) {
    const std::size_t begin = at + 3;
    const std::size_t url_end = result.size();
    std::size_t host_end = std::min(result.find_first_of("/?#", begin), url_end);
    // No URL may have a slash in its password, but some programs accept it.
    if (result.substr(begin, host_end - begin).find(':') != std::string::npos) host_end = url_end;
    if (const std::size_t sign = result.substr(begin, host_end - begin).rfind('@'); sign != std::string::npos) {
      const std::string user = result.substr(begin, sign);
      if (user != "git" && user != kHidden) result.replace(begin, sign, kHidden);
    }
    const std::size_t end = result.size();
    const std::size_t query = result.find_first_of("?#", begin);
    if (query < end && result.substr(query + 1, end - query - 1) != kHidden)
      result.replace(query + 1, end - query - 1, kHidden);
  }
  return result;
}

ShownGitConfig shownGitConfig(std::string_view text) {
  ShownGitConfig shown;
  Line line;
  std::string header;
  Lines lines(text);
  while (lines.next(line)) {
    if (!isShownKey(line)) {
      const std::string name = line.section + "." + line.key;
      if (!hasMember(shown.left_out, name)) shown.left_out.push_back(name);
      shown.complete = false;
      continue;
    }
    const std::string subsection = withoutUrlCredentials(line.subsection), value = withoutUrlCredentials(line.value);
    shown.complete = shown.complete && subsection == line.subsection && value == line.value;
    std::string wanted = "[" + line.section + (line.quoted ? " \"" + escaped(subsection) + "\"" : "") + "]\n";
    if (wanted != header) shown.text += wanted;
    header = std::move(wanted);
    const char* const quote = needsQuotes(value) ? "\"" : "";
    shown.text += "\t" + line.key + (line.set ? " = " + std::string(quote) + escaped(value) + quote : "") + "\n";
  }
  shown.complete = shown.complete && !lines.hasComments();
  return shown;
}

}  // namespace caisson::policy
