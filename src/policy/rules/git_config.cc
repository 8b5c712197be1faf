#include "policy/rules/git_config.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Keys whose value is a command, as "section.key"; `*` stands for any key. Subsections do not matter.
constexpr std::string_view kCommands[] = {
    "alias.*",
    "browser.cmd",
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
    "gpg.program",
    "gpg.defaultkeycommand",
    "imap.tunnel",
    "interactive.difffilter",
    "man.cmd",
    "merge.driver",
    "mergetool.cmd",
    "mergetool.path",
    "pager.*",
    "remote.receivepack",
    "remote.uploadpack",
    "sendemail.smtpserver",
    "sendemail.tocmd",
    "sendemail.cccmd",
    "sequence.editor",
    "submodule.update",
    "trailer.cmd",
    "trailer.command",
    "uploadpack.packobjectshook",
};

struct Setting {
  std::string section, key, value;
};

/// One setting a line, with continued lines joined.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool next(Setting& setting) {
    while (!text_.empty()) {
      std::string line = takeLine();
      std::string_view rest = trimmed(line, kBlanks);
      if (rest.starts_with('[')) {
        const std::size_t end = std::min(rest.find(']'), rest.size());
        section_ = lowered(rest.substr(1, std::min(rest.find_first_of(" \t.\"]"), end) - 1));
        rest = trimmed(rest.substr(std::min(end + 1, rest.size())), kBlanks);
      }
      const std::size_t equals = rest.find('=');
      if (rest.empty() || rest.front() == '#' || rest.front() == ';' || equals == std::string_view::npos) continue;
      setting = {section_, lowered(trimmed(rest.substr(0, equals), kBlanks)), valueOf(rest.substr(equals + 1))};
      return true;
    }
    return false;
  }

 private:
  std::string takeLine() {
    std::string line;
    for (bool more = true; more && !text_.empty();) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      std::string_view part = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (part.ends_with('\r')) part.remove_suffix(1);
      more = part.ends_with('\\');
      line += more ? part.substr(0, part.size() - 1) : part;
    }
    return line;
  }

  /// Without quotes, escapes, a comment and blanks at both ends.
  static std::string valueOf(std::string_view text) {
    std::string value;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) {
        value += text[++i];
      } else if (text[i] == '"') {
        quoted = !quoted;
      } else if (!quoted && (text[i] == '#' || text[i] == ';')) {
        break;
      } else {
        value += text[i];
      }
    }
    return std::string(trimmed(value, kBlanks));
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

/// The words of a command that look like paths: with a slash or a dot, and not an option.
void addWords(std::string_view command, std::vector<std::string>& to) {
  constexpr std::string_view kBetween = " \t\n\"'`!$(){}<>|&;=,";
  while (!command.empty()) {
    const std::size_t end = std::min(command.find_first_of(kBetween), command.size());
    const std::string_view word = command.substr(0, end);
    command.remove_prefix(std::min(end + 1, command.size()));
    if (word.starts_with('-') || word.find_first_of("/.") == std::string_view::npos) continue;
    if (word.find_first_not_of("./") != std::string_view::npos) to.emplace_back(word);
  }
}

}  // namespace

GitConfigPaths pathsInGitConfig(std::string_view text) {
  GitConfigPaths found;
  Setting setting;
  for (Reader reader(text); reader.next(setting);) {
    if (setting.value.empty()) continue;
    if ((setting.section == "include" || setting.section == "includeif") && setting.key == "path") {
      found.included.push_back(setting.value);
    } else if (setting.section == "core" && (setting.key == "hookspath" || setting.key == "attributesfile")) {
      found.executed.push_back(setting.value);
    } else if (setting.section == "core" && setting.key == "worktree") {
      found.work_tree = setting.value;
    } else if (isCommand(setting)) {
      addWords(setting.value, found.executed);
    }
  }
  return found;
}

}  // namespace caisson::policy
