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

/// Programs that run no file that an argument names, unless it has a slash or a dot.
constexpr std::string_view kRunNoFile[] = {"[",     "basename", "cd",    "cut",  "date",   "dirname", "echo",  "exit",
                                           "false", "git-lfs",  "grep",  "head", "less",   "ls",      "mkdir", "more",
                                           "popd",  "printf",   "pushd", "read", "return", "rm",      "shift", "sort",
                                           "tail",  "test",     "touch", "tr",   "true",   "uniq",    "wc"};
/// The same for commands of git, without the options below.
constexpr std::string_view kGitRunsNoFile[] = {
    "add",      "blame", "branch",       "cat-file", "checkout", "cherry-pick",  "clean",     "commit",   "describe",
    "diff",     "fetch", "for-each-ref", "lfs",      "log",      "ls-files",     "ls-remote", "merge",    "merge-base",
    "pull",     "push",  "reflog",       "remote",   "reset",    "restore",      "revert",    "rev-list", "rev-parse",
    "shortlog", "show",  "stash",        "status",   "switch",   "symbolic-ref", "tag"};
constexpr std::string_view kRunOptions[] = {"--exec", "--extcmd", "--receive-pack", "--upload-pack"};
/// Words before a program that are none themselves.
constexpr std::string_view kTransparent[] = {"command", "do",   "elif", "else",  "exec",
                                             "if",      "then", "time", "until", "while"};
/// Programs that run a directory, too: with `python tools`, tools/__main__.py.
constexpr std::string_view kRunDirectories[] = {"bun", "deno", "node", "pypy", "python"};

template <class List>
bool isOneOf(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::end(list);
}

/// Collects the words of a command that may be what it runs. A word with a slash or a dot that is not an option is a
/// path. Other words are arguments, unless the program is known to run none. After a variable or a command that is
/// replaced, `$PWD/x` and `$(git rev-parse --show-toplevel)/x`, the rest is a path, too.
class CommandWords {
 public:
  explicit CommandWords(GitConfigPaths& found) : found_(found) {}

  /// `of_git`: the command begins with arguments of git.
  void add(std::string_view command, bool of_git) {
    constexpr std::string_view kBetween = " \t\n\"'`!$(){}<>|&;=,";
    if (of_git) words_.emplace_back("git");
    std::string_view last;
    for (std::size_t at = 0; at < command.size();) {
      const std::size_t end = std::min(command.find_first_of(kBetween, at), command.size());
      const std::string_view word = command.substr(at, end - at);
      const char before = at == 0 ? ' ' : command[at - 1];
      const bool behind = std::string_view(")}`\"'").find(before) != std::string_view::npos;
      if (last == "~" && behind && word.starts_with('/')) addPath("~" + std::string(word));  // "$HOME"/x
      const bool variable = before == '$' || (before == '{' && at > 1 && command[at - 2] == '$');
      takeWord(word, variable, behind && word.starts_with('/'));
      if (!word.empty()) last = word;
      if (end < command.size()) separate(command[end], end > 0 && command[end - 1] == '$');
      at = end + 1;
    }
    endCommand();
  }

 private:
  static constexpr std::size_t kMaxDirectories = 16;

  /// `rest`: it follows a directory that is not known.
  void takeWord(std::string_view word, bool variable, bool rest) {
    const std::size_t slash = word.find('/');
    if (!variable || slash != std::string_view::npos) {
      takeDirectory(variable || rest ? word.substr(slash + 1) : word);
    }
    addPath(word);
    if ((variable || rest) && slash != std::string_view::npos) addRest(word.substr(slash + 1));
    if (!word.empty()) words_.push_back(variable ? "$" : word);
    if (word == "cd" || word == "pushd") enters_ = true;
  }

  /// Ends a simple command at some of the characters between words.
  void separate(char c, bool after_dollar) {
    const bool ends = std::string_view(";&|\n").find(c) != std::string_view::npos;
    if (ends || c == '(' || c == ')' || c == '`' || (c == '{' && !after_dollar)) endCommand();
    if (c == '(') ++depth_;
    if (c == ')' && depth_ > 0) --depth_;
    if (c == '`') in_ticks_ = !in_ticks_;
    // The program of the command around it is not known any more.
    if (c == ')' || (c == '`' && !in_ticks_)) words_.emplace_back("$");
    if (ends) leaveCd();
  }

  [[nodiscard]] int depth() const { return depth_ + (in_ticks_ ? 1 : 0); }

  /// The directory of `env -C sub`, `-Csub` and `--chdir=sub`.
  void takeDirectory(std::string_view word) {
    if (word.empty()) return;
    if (chdir_depth_ == depth()) {
      chdir_depth_ = -1;
      enter(word, directories_);
    } else if (word == "-C" || word == "--chdir" || word == "--directory") {
      chdir_depth_ = depth();
    } else if (word.starts_with("-C")) {
      enter(word.substr(2), directories_);
    }
  }

  /// Adds a directory, from each one that the command may be in.
  void enter(std::string_view word, std::vector<std::string>& to) {
    const std::vector<std::string> from = directories_;
    if (!word.starts_with('/') && !word.starts_with('~')) {
      for (const std::string& directory : from) to.push_back(directory + "/" + std::string(word));
    }
    to.emplace_back(word);
    if (to.size() <= kMaxDirectories) return;
    to.resize(kMaxDirectories);
    found_.complete = false;
  }

  /// What follows an unknown directory: it may be the top of the work tree, or one in it.
  void addRest(std::string_view word) {
    addPath(word, true);
    if (!word.starts_with("../")) return;
    while (word.starts_with("../")) word.remove_prefix(3);
    addPath(word, true);
  }

  void addPath(std::string_view word, bool certain = false) {
    if (word.starts_with('-')) return;
    const bool relative = !word.starts_with('/') && !word.starts_with('~');
    if (enters_ && !word.empty() && word != "cd" && word != "pushd") {
      if (relative) {
        for (const std::string& directory : directories_) entered_.push_back(directory + "/" + std::string(word));
      }
      if (!relative || directories_.empty()) entered_.emplace_back(word);
    }
    if (!certain && word.find_first_of("/.") == std::string_view::npos) return;
    addTo(found_.executed, word, !enters_ && relative);
  }

  /// Adds a word, with `below` also from the directories that the command may be in.
  void addTo(std::vector<std::string>& to, std::string_view word, bool below) {
    if (word.find_first_not_of("./") == std::string_view::npos) return;
    to.emplace_back(word);
    if (!below) return;
    for (const std::string& directory : directories_) to.push_back(directory + "/" + std::string(word));
  }

  /// Judges the words of a simple command that are not paths.
  void endCommand() {
    const std::vector<std::string_view> words = std::exchange(words_, {});
    std::size_t first = 0;
    while (first < words.size() && isOneOf(kTransparent, words[first])) ++first;
    if (first >= words.size()) return;
    const std::string_view program = words[first];
    std::size_t next = first + 1;
    bool configures = false;  // git -c core.hooksPath=hooks
    if (program == "git") {
      for (; next < words.size() && words[next].starts_with('-'); ++next) {
        configures = configures || words[next] == "-c" || words[next] == "--config-env";
      }
      const auto is_run_option = [](std::string_view word) { return isOneOf(kRunOptions, word); };
      const bool known = next >= words.size() || isOneOf(kGitRunsNoFile, words[next]);
      if (!configures && known && std::ranges::none_of(words, is_run_option)) return;
    }
    if (isOneOf(kRunNoFile, program)) return;
    const bool directories = configures || std::ranges::any_of(kRunDirectories, [&](std::string_view one) {
                               return program.starts_with(one);
                             });
    for (; next < words.size(); ++next) {
      if (words[next].find_first_of("/.") != std::string_view::npos) continue;
      if (std::string_view("-~%$").find(words[next].front()) != std::string_view::npos) continue;
      addTo(directories ? found_.executed : found_.arguments, words[next], true);
    }
  }

  /// The command `cd` is complete.
  void leaveCd() {
    if (!enters_) return;
    enters_ = false;
    directories_ = std::exchange(entered_, {});
    if (directories_.size() <= kMaxDirectories) return;
    directories_.resize(kMaxDirectories);
    found_.complete = false;
  }

  GitConfigPaths& found_;
  std::vector<std::string> directories_, entered_;  ///< where the command may be, and what `cd` names
  std::vector<std::string_view> words_;             ///< of the simple command; `$`: not known
  int depth_ = 0, chdir_depth_ = -1;                ///< of parentheses; and where a directory is expected
  bool enters_ = false, in_ticks_ = false;
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
    if (found.executed.size() + found.included.size() + found.hooks.size() > kMaxGitConfigPaths) {
      found.complete = false;
      break;
    }
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
      const bool of_git = setting.section == "alias" && !setting.value.starts_with('!');
      CommandWords(found).add(withHome(setting.value), of_git);
    }
  }
  std::ranges::sort(found.arguments);
  const auto repeated = std::ranges::unique(found.arguments);
  found.arguments.erase(repeated.begin(), repeated.end());
  found.complete = found.complete && found.arguments.size() <= kMaxGitConfigPaths;
  return found;
}

std::span<const std::string_view> gitHookNames() { return kHooks; }

}  // namespace caisson::policy
