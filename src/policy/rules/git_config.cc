#include "policy/rules/git_config.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Keys whose value is a command, as "section.key"; `*` stands for any key. Subsections do not matter.
constexpr std::string_view kCommands[] = {
    "alias.*",
    "browser.cmd",
    "browser.path",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "diff.command",
    "diff.external",
    "diff.textconv",
    "difftool.cmd",
    "difftool.path",
    "filter.clean",
    "filter.process",
    "filter.smudge",
    "gc.recentobjectshook",
    "gpg.defaultkeycommand",
    "gpg.program",
    "guitool.cmd",
    "hook.command",
    "imap.tunnel",
    "instaweb.browser",
    "instaweb.httpd",
    "interactive.difffilter",
    "lfs.clean",
    "lfs.path",
    "lfs.smudge",
    "man.cmd",
    "man.path",
    "merge.driver",
    "mergetool.cmd",
    "mergetool.path",
    "pager.*",
    "remote.receivepack",
    "remote.uploadpack",
    "sendemail.cccmd",
    "sendemail.headercmd",
    "sendemail.sendmailcmd",
    "sendemail.smtpserver",
    "sendemail.tocmd",
    "sequence.editor",
    "submodule.update",
    "tar.command",
    "trailer.cmd",
    "trailer.command",
    "uploadpack.packobjectshook",
};

struct Setting {
  std::string section, key, value;
};

/// Reads settings as git does, but reports no error: what git would refuse is skipped.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  bool next(Setting& setting) {
    while (!text_.empty()) {
      const char first = text_.front();
      if (first == '#' || first == ';') {
        takeUntil("\n");
      } else if (first == '[') {
        takeSection();
      } else if (first == '\n' || kBlanks.find(first) != std::string_view::npos) {
        text_.remove_prefix(1);
      } else {
        const std::string key = lowered(trimmed(takeUntil("=\n"), kBlanks));
        if (!text_.starts_with('=')) continue;  // true, without a value
        text_.remove_prefix(1);
        setting = {section_, key, takeValue()};
        return true;
      }
    }
    return false;
  }

 private:
  std::string_view takeUntil(std::string_view ends) {
    const std::size_t end = std::min(text_.find_first_of(ends), text_.size());
    const std::string_view taken = text_.substr(0, end);
    text_.remove_prefix(end);
    return taken;
  }

  /// `[name]`, `[name.subsection]` or `[name "subsection"]`; the quoted one may contain `]`.
  void takeSection() {
    text_.remove_prefix(1);
    section_ = lowered(trimmed(takeUntil(" \t.\"]\n"), kBlanks));
    bool quoted = false;
    while (!text_.empty() && text_.front() != '\n') {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '\\' && !text_.empty() && text_.front() != '\n') text_.remove_prefix(1);
      if (c == '"') quoted = !quoted;
      if (c == ']' && !quoted) return;
    }
  }

  /// The value up to the end of the line, with continued lines, without quotes, escapes, a comment and blanks at both
  /// ends.
  std::string takeValue() {
    std::string value;
    bool quoted = false;
    while (!text_.empty()) {
      char c = text_.front();
      if (c == '\n') break;
      if (!quoted && (c == '#' || c == ';')) {
        takeUntil("\n");
        break;
      }
      text_.remove_prefix(1);
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      if (c == '\\' && takeEscape(c)) continue;
      value += c;
    }
    return std::string(trimmed(value, kBlanks));
  }

  /// Takes the character after a backslash. True: the line is continued.
  bool takeEscape(char& c) {
    if (text_.starts_with("\r\n")) text_.remove_prefix(1);
    if (text_.empty()) return true;
    const char escaped = text_.front();
    text_.remove_prefix(1);
    c = escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped == 'b' ? '\b' : escaped;
    return escaped == '\n';
  }

  std::string_view text_;
  std::string section_;
};

bool isCommand(const Setting& setting) {
  return std::ranges::any_of(kCommands, [&](std::string_view one) {
    const std::size_t dot = one.find('.');
    return one.substr(0, dot) == setting.section && (one.substr(dot + 1) == "*" || one.substr(dot + 1) == setting.key);
  });
}

void addWord(std::string_view word, std::vector<std::string>& to) {
  if (word.starts_with('-') || word.find_first_of("/.") == std::string_view::npos) return;
  if (word.find_first_not_of("./") != std::string_view::npos) to.emplace_back(word);
}

/// A command with `~` instead of `$HOME` and `${HOME}`.
std::string withHome(std::string_view command) {
  std::string text;
  while (!command.empty()) {
    for (const std::string_view home : {"${HOME}", "$HOME"}) {
      if (!command.starts_with(home)) continue;
      const char next = command.size() > home.size() ? command[home.size()] : '\0';
      if (!home.ends_with('}') && (std::isalnum(static_cast<unsigned char>(next)) != 0 || next == '_')) continue;
      text += '~';
      command.remove_prefix(home.size());
      break;
    }
    if (command.empty()) break;
    text += command.front();
    command.remove_prefix(1);
  }
  return text;
}

/// Collects the words of a command that look like paths: with a slash or a dot, and not an option. After a variable or
/// a command that is replaced, `$PWD/x` and `$(git rev-parse --show-toplevel)/x`, the rest counts, too.
class CommandWords {
 public:
  explicit CommandWords(std::vector<std::string>& to) : to_(to) {}

  void add(std::string_view command) {
    constexpr std::string_view kBetween = " \t\n\"'`!$(){}<>|&;=,";
    std::string_view last;
    for (char before = ' '; !command.empty();) {
      const std::size_t end = std::min(command.find_first_of(kBetween), command.size());
      const std::string_view word = command.substr(0, end);
      const bool quoted = std::string_view(")}`\"'").find(before) != std::string_view::npos;
      if (last == "~" && quoted && word.starts_with('/')) addPath("~" + std::string(word));  // "$HOME"/x
      addPath(word);
      const std::size_t slash = word.find('/');
      const bool replaced = before == '$' || (slash == 0 && quoted);
      if (replaced && slash != std::string_view::npos) addPath(word.substr(slash + 1));
      if (word == "cd" || word == "pushd") enters_ = true;
      if (!word.empty()) last = word;
      if (end < command.size()) before = command[end];
      if (std::string_view(";&|\n").find(before) != std::string_view::npos) leaveCd();
      command.remove_prefix(std::min(end + 1, command.size()));
    }
  }

 private:
  static constexpr std::size_t kMaxDirectories = 8;

  void addPath(std::string_view word) {
    addWord(word, to_);
    const bool relative = !word.starts_with('/') && !word.starts_with('~');
    if (enters_ && !word.empty() && !word.starts_with('-') && word != "cd" && word != "pushd") {
      if (relative) {
        for (const std::string& directory : directories_) entered_.push_back(directory + "/" + std::string(word));
      }
      if (!relative || directories_.empty()) entered_.emplace_back(word);
    } else if (relative) {
      if (word.starts_with('-') || word.find_first_of("/.") == std::string_view::npos) return;
      for (const std::string& directory : directories_) addWord(directory + "/" + std::string(word), to_);
    }
  }

  /// The command `cd` is complete.
  void leaveCd() {
    if (!enters_) return;
    enters_ = false;
    directories_ = std::exchange(entered_, {});
    if (directories_.size() > kMaxDirectories) directories_.resize(kMaxDirectories);
  }

  std::vector<std::string>& to_;
  std::vector<std::string> directories_, entered_;  ///< where the command may be, and what `cd` names
  bool enters_ = false;
};

constexpr std::string_view kHooks[] = {
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "query-watchman",
    "reference-transaction",
    "sendemail-validate",
    "update",
};

}  // namespace

GitConfigPaths pathsInGitConfig(std::string_view text) {
  GitConfigPaths found;
  Setting setting;
  for (Reader reader(text); reader.next(setting);) {
    if (setting.value.empty()) continue;
    found.complete = found.executed.size() + found.included.size() + found.hooks.size() <= kMaxGitConfigPaths;
    if (!found.complete) break;
    if ((setting.section == "include" || setting.section == "includeif") && setting.key == "path") {
      found.included.push_back(setting.value);
    } else if ((setting.section == "core" && setting.key == "hookspath") ||
               (setting.section == "init" && setting.key == "templatedir")) {
      found.hooks.push_back(setting.value);
    } else if (setting.section == "core" && setting.key == "attributesfile") {
      found.executed.push_back(setting.value);
    } else if (setting.section == "core" && setting.key == "worktree") {
      found.work_tree = setting.value;
    } else if (isCommand(setting)) {
      CommandWords(found.executed).add(withHome(setting.value));
    }
  }
  return found;
}

std::span<const std::string_view> gitHookNames() { return kHooks; }

}  // namespace caisson::policy
