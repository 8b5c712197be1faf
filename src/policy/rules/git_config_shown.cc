#include "policy/rules/git_config_shown.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "policy/rules/secret_content.h"

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
/// Sections of other programs and of credentials: their keys may be named, since git or these programs define them.
constexpr std::string_view kNamedSections[] = {
    "alias",     "browser", "color",  "core",      "credential", "difftool", "filter",      "github", "gitlab",
    "gpg",       "http",    "https",  "hub",       "imap",       "instaweb", "interactive", "lfs",    "man",
    "mergetool", "pager",   "remote", "sendemail", "svn",        "trailer",  "url",         "user",   "web",
};
/// Longer words of a comment, or names of a key, may be a token.
constexpr std::size_t kMaxPlainWord = 15, kMaxNamedKey = 24;
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
  /// Whether a comment was passed that may hold a setting or a token.
  [[nodiscard]] bool hasComments() const { return comments_; }
  /// Whether git would accept what was read.
  [[nodiscard]] bool valid() const { return valid_; }

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
    comments_ = comments_ || comment.find_first_of("=:@") != std::string_view::npos || hasLongWord(comment);
    text_.remove_prefix(comment.size());
  }
  static bool hasLongWord(std::string_view text) {
    std::size_t length = 0;
    return std::ranges::any_of(text, [&](char c) {
      length = kSpaces.find(c) == std::string_view::npos ? length + 1 : 0;
      return length > kMaxPlainWord;
    });
  }

  /// A header without settings is in no other text: what it holds has to be left out, too.
  void endSection() {
    constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-";
    comments_ = comments_ ||
                (unused_ && (at_.subsection.find_first_of("=:@") != std::string::npos || hasLongWord(at_.subsection) ||
                             at_.section.find_first_not_of(kOfNames) != std::string::npos));
  }

  void readSection() {
    endSection();
    unused_ = true;
    text_.remove_prefix(1);
    at_ = {};
    while (!text_.empty() && text_.front() != ']' && text_.front() != '\n' && text_.front() != '"')
      at_.section += take();
    const bool blank_first = !at_.section.empty() && kSpaces.find(at_.section.front()) != std::string_view::npos;
    at_.section = lowered(trimmed(at_.section, kSpaces));
    valid_ = valid_ && !blank_first && !at_.section.empty() && std::ranges::all_of(at_.section, isOfSection);
    if (const std::size_t dot = at_.section.find('.'); dot != std::string::npos) {
      at_.subsection = at_.section.substr(dot + 1);
      at_.section.resize(dot);
      at_.quoted = true;
    }
    if (!text_.empty() && text_.front() == '"') readSubsection();
    while (!text_.empty() && text_.front() != '\n') {
      if (take() == ']') return;
      valid_ = false;
    }
    valid_ = false;
  }

  void readSubsection() {
    text_.remove_prefix(1);
    at_.quoted = true;
    while (!text_.empty() && text_.front() != '"' && text_.front() != '\n') {
      char c = take();
      if (c == '\\' && !text_.empty() && text_.front() != '\n') c = take();
      at_.subsection += c;
    }
    if (!text_.empty() && text_.front() == '"') {
      text_.remove_prefix(1);
    } else {
      valid_ = false;
    }
  }

  static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static bool isOfKey(char c) { return isLetter(c) || (c >= '0' && c <= '9') || c == '-'; }
  static bool isOfSection(char c) { return isOfKey(c) || c == '.'; }

  void readSetting(Line& line) {
    std::string key;
    while (!text_.empty() && text_.front() != '=' && text_.front() != '\n' && text_.front() != '#' &&
           text_.front() != ';') {
      key += take();
    }
    line = at_;
    line.key = lowered(trimmed(key, kSpaces));
    valid_ = valid_ && !at_.section.empty() && isLetter(key.front()) && std::ranges::all_of(line.key, isOfKey);
    line.set = !text_.empty() && text_.front() == '=';
    if (!line.set) {
      valid_ = valid_ && (text_.empty() || text_.front() == '\n');
      return;
    }
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
    valid_ = valid_ && !quoted;
  }

  /// Reads what follows a backslash. True: the line is continued.
  bool readEscape(char& c) {
    if (text_.starts_with("\r\n")) text_.remove_prefix(1);
    if (text_.empty()) return true;
    const char escaped = take();
    valid_ = valid_ && std::string_view("tnb\"\\\n").find(escaped) != std::string_view::npos;
    c = escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped == 'b' ? '\b' : escaped;
    return escaped == '\n';
  }

  std::string_view text_;
  Line at_;
  bool comments_ = false;
  bool valid_ = true;
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

/// A known key with a secret as its value, or in the name of its section.
bool isSecret(const std::string& key, const std::string& value, const std::string& subsection) {
  return hasSecretSetting(key + " = " + value + "\n", false) || findToken(value) || findToken(subsection) ||
         hasPrivateKey(value);
}

/// Whether the name of a key that is left out tells nothing: it may be any word of another text.
bool mayBeNamed(const Line& line) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
  return line.set && line.key.size() <= kMaxNamedKey && std::ranges::all_of(line.key, plain) &&
         (hasMember(kNamedSections, line.section) || hasMember(kPlainSections, line.section));
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

std::optional<ShownGitConfig> shownGitConfig(std::string_view text) {
  ShownGitConfig shown;
  Line line;
  std::string header;
  Lines lines(text);
  while (lines.next(line)) {
    const std::string subsection = withoutUrlCredentials(line.subsection), value = withoutUrlCredentials(line.value);
    shown.complete = shown.complete && subsection == line.subsection && value == line.value;
    if (!isShownKey(line) || isSecret(line.key, value, subsection)) {
      const std::string name = line.section + "." + line.key;
      if (mayBeNamed(line) && !hasMember(shown.left_out, name)) shown.left_out.push_back(name);
      shown.complete = false;
      continue;
    }
    std::string wanted = "[" + line.section + (line.quoted ? " \"" + escaped(subsection) + "\"" : "") + "]\n";
    if (wanted != header) shown.text += wanted;
    header = std::move(wanted);
    const char* const quote = needsQuotes(value) ? "\"" : "";
    shown.text += "\t" + line.key + (line.set ? " = " + std::string(quote) + escaped(value) + quote : "") + "\n";
  }
  if (!lines.valid()) return std::nullopt;
  shown.complete = shown.complete && !lines.hasComments();
  return shown;
}

bool isRepositoryConfig(std::string_view text) {
  Line line;
  Lines lines(text);
  bool found = false;
  while (lines.next(line)) {
    found = found || (line.section == "core" && (line.key == "repositoryformatversion" || line.key == "bare"));
  }
  return found && lines.valid();
}

}  // namespace caisson::policy
