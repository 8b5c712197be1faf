#include "policy/rules/called_files.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "policy/rules/git_config.h"
#include "policy/rules/setting_values.h"

namespace caisson::policy {
namespace {

/// Stands in a word for the value of a variable or of a command, which is not known here.
constexpr char kVariable = '\x01';
/// Commands in commands (`$( )`, `sh -c`) that are followed.
constexpr int kMaxNested = 8;
/// Of one file. No real one comes near it, and only the host can write one.
constexpr std::size_t kMaxCalled = 4096;

using CommandLine = std::vector<std::string>;

template <std::size_t n>
bool isOneOfNames(const std::string_view (&names)[n], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

/// Take a script as their first operand.
bool isInterpreter(std::string_view name) {
  constexpr std::string_view kNames[] = {"sh",     "bash",   "dash",   "zsh",     "ksh",   "fish",      "ash",
                                         "node",   "nodejs", "ruby",   "perl",    "php",   "deno",      "bun",
                                         "tsx",    "lua",    "pwsh",   "rscript", "tclsh", "osascript", "ts-node",
                                         "python", "pypy",   "source", "."};
  const std::size_t version = name.find_last_not_of("0123456789.");
  const std::string_view plain =
      name == "." ? name : name.substr(0, version == std::string_view::npos ? 0 : version + 1);
  return isOneOfNames(kNames, plain);
}

/// Take a command as their operands.
bool isWrapper(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "exec",   "command", "builtin", "env",    "nohup",  "time",   "nice", "sudo", "doas",  "eval",    "if",
      "then",   "else",    "elif",    "do",     "while",  "until",  "!",    "{",    "xargs", "timeout", "stdbuf",
      "setsid", "run",     "uv",      "poetry", "pipenv", "bundle", "mise", "pnpm", "yarn"};
  return isOneOfNames(kNames, name);
}

class Collector {
 public:
  explicit Collector(std::vector<CalledPath>& found) : found_(found) {}

  /// The words of one command.
  void command(const CommandLine& words, int nested);
  /// A text with any number of commands, as a shell reads it.
  void script(std::string_view text, int nested);

 private:
  void add(std::string word);
  /// The script of an interpreter: words[at] is the first word after its name.
  void operand(const CommandLine& words, std::size_t at, int nested);

  std::vector<CalledPath>& found_;
  std::set<std::pair<std::string, bool>> known_;
  std::string entered_;  ///< `cd` leads there
};

void Collector::add(std::string word) {
  bool after_variable = false;
  if (const std::size_t last = word.rfind(kVariable); last != std::string::npos) {
    // "$ROOT/x", "$(dirname "$0")/../x"; a variable in a name can be anything.
    if (last + 1 >= word.size() || word[last + 1] != '/') return;
    word.erase(0, last + 2);
    after_variable = true;
  }
  while (word.starts_with("./")) word.erase(0, 2);
  if (word.empty() || word.find("://") != std::string::npos || word.starts_with('-')) return;
  const auto keep = [&](CalledPath path) {
    if (found_.size() < kMaxCalled && known_.emplace(path.path, path.after_variable).second) {
      found_.push_back(std::move(path));
    }
  };
  if (!entered_.empty() && !word.starts_with('/') && !word.starts_with('~')) {
    keep({entered_ + "/" + word, after_variable});
  }
  keep({std::move(word), after_variable});
}

void Collector::operand(const CommandLine& words, std::size_t at, int nested) {
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "-c" || word == "-lc" || word == "-ec" || word == "-e" || word == "--eval") {
      if (at + 1 < words.size()) script(words[at + 1], nested + 1);
      return;
    }
    if (word == "-m") return;
    if (word == "-r" || word == "--require" || word == "--import" || word == "--rcfile") {
      if (at + 1 < words.size()) add(words[++at]);
      continue;
    }
    if (word.starts_with('-') || word == "run") continue;
    return add(word);
  }
}

void Collector::command(const CommandLine& words, int nested) {
  if (nested > kMaxNested) return;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const bool assigns = word.find('=') != std::string::npos && word.find('=') < std::min(word.find('/'), word.size());
    if (word.empty() || word.starts_with('-') || assigns) continue;
    const std::string name = inLowerCase(word.substr(word.rfind('/') + 1));
    if (name == "cd" || name == "pushd") {
      std::string to = at + 1 < words.size() ? words[at + 1] : "";
      if (const std::size_t last = to.rfind(kVariable); last != std::string::npos) {
        to.erase(0, std::min(last + 2, to.size()));
      }
      while (to.starts_with("./")) to.erase(0, 2);
      if (!to.empty() && to != "." && !to.starts_with('-')) entered_ = to;
      return;
    }
    if (word.find('/') != std::string::npos && word != "/") add(word);
    if (isInterpreter(name)) return operand(words, at + 1, nested);
    const bool in_project = word.find('/') != std::string::npos && !word.starts_with('/');
    if (in_project || !isWrapper(name)) return;
    if (name == "eval" && at + 1 < words.size()) return script(words[at + 1], nested + 1);
    // `timeout 5 x`: skip the number.
    while (at + 1 < words.size() && !words[at + 1].empty() && words[at + 1].front() >= '0' &&
           words[at + 1].front() <= '9')
      ++at;
  }
}

/// Splits a shell script into commands.
class ShellReader {
 public:
  ShellReader(std::string_view text, Collector& to, int nested) : text_(text), to_(to), nested_(nested) {}

  void read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#' && !in_word_) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\\') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') put(text_[at_ + 1]);
        at_ += 2;
      } else if (c == '\'') {
        const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
        in_word_ = true;
        word_ += text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
      } else if (c == '"') {
        in_word_ = true;
        ++at_;
        while (at_ < text_.size() && text_[at_] != '"') quoted();
        ++at_;
      } else if (c == '$' || c == '`') {
        variable();
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '<' || c == '>') {
        endWord();
        ++at_;
      } else if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
        endCommand();
        ++at_;
      } else {
        put(c);
        ++at_;
      }
    }
    endCommand();
  }

 private:
  void put(char c) {
    in_word_ = true;
    word_ += c;
  }
  void endWord() {
    if (in_word_) words_.push_back(std::exchange(word_, {}));
    in_word_ = false;
  }
  void endCommand() {
    endWord();
    if (!words_.empty()) to_.command(words_, nested_);
    words_.clear();
  }
  void quoted() {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      put(text_[at_ + 1]);
      at_ += 2;
    } else if (text_[at_] == '$' || text_[at_] == '`') {
      variable();
    } else {
      put(text_[at_++]);
    }
  }
  /// The end of what begins with an opening bracket at `begin`.
  [[nodiscard]] std::size_t closing(std::size_t begin, char open, char close) const {
    int depth = 0;
    for (std::size_t i = begin; i < text_.size(); ++i) {
      if (text_[i] == open) ++depth;
      if (text_[i] == close && --depth == 0) return i;
    }
    return text_.size();
  }
  void nestedScript(std::size_t begin, std::size_t end) {
    if (nested_ < kMaxNested) to_.script(text_.substr(begin, end - begin), nested_ + 1);
  }
  /// `$NAME`, `${NAME%/*}`, `$(command)` and `command` in backquotes.
  void variable() {
    in_word_ = true;
    word_ += kVariable;
    if (text_[at_] == '`') {
      const std::size_t end = std::min(text_.find('`', at_ + 1), text_.size());
      nestedScript(at_ + 1, end);
      at_ = end + 1;
      return;
    }
    ++at_;
    if (at_ >= text_.size()) return;
    if (text_[at_] == '(') {
      const std::size_t end = closing(at_, '(', ')');
      nestedScript(at_ + 1, end);
      at_ = end + 1;
    } else if (text_[at_] == '{') {
      at_ = closing(at_, '{', '}') + 1;
    } else {
      const auto named = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      };
      if (!named(text_[at_])) {
        ++at_;  // $@, $?
      } else {
        while (at_ < text_.size() && named(text_[at_])) ++at_;
      }
    }
  }

  const std::string_view text_;
  Collector& to_;
  const int nested_;
  std::size_t at_ = 0;
  bool in_word_ = false;
  std::string word_;
  CommandLine words_;
};

void Collector::script(std::string_view text, int nested) { ShellReader(text, *this, nested).read(); }

/// Keys of hooks, tasks, servers and helpers, in lower case.
bool isArgumentList(std::string_view key) { return key == "args" || key == "arguments"; }
bool namesCommand(std::string_view key) {
  constexpr std::string_view kKeys[] = {"command",
                                        "cmd",
                                        "run",
                                        "entry",
                                        "exec",
                                        "script",
                                        "notify",
                                        "apikeyhelper",
                                        "awsauthrefresh",
                                        "awscredentialexport",
                                        "otelheadershelper",
                                        "statusline",
                                        "program",
                                        "shellcommand",
                                        "initializecommand",
                                        "oncreatecommand",
                                        "updatecontentcommand",
                                        "postcreatecommand",
                                        "poststartcommand",
                                        "postattachcommand",
                                        "before",
                                        "init",
                                        "executable",
                                        "bin",
                                        "path"};
  return isOneOfNames(kKeys, key) || std::ranges::find(gitHookNames(), key) != gitHookNames().end();
}

void readSettings(std::string_view text, Collector& to) {
  CommandLine command;  // of the last key, for the arguments that may follow
  const auto matters = [](std::string_view key) { return isArgumentList(key) || namesCommand(key); };
  forEachSetting(text, matters, [&](std::string_view key, const KeyedValue& value) {
    if (isArgumentList(key)) {
      CommandLine words = command;
      words.insert(words.end(), value.texts.begin(), value.texts.end());
      if (!command.empty()) to.command(words, 0);
    } else {
      command = value.texts;
      if (value.list) {
        to.command(value.texts, 0);
      } else {
        to.script(value.texts.front(), 0);
      }
      for (std::string& word : command) {
        if (word.starts_with("${") && word.find('}') != std::string::npos)
          word.replace(0, word.find('}') + 1, 1, kVariable);
      }
    }
  });
}

}  // namespace

CommandSource commandSource(std::string_view name) {
  const std::string folded = inLowerCase(name);
  const std::size_t dot = folded.rfind('.');
  // A dot at the beginning does not begin an ending: `.envrc`.
  const std::string_view ending = dot == std::string::npos || dot == 0 ? "" : std::string_view(folded).substr(dot + 1);
  constexpr std::string_view kSettings[] = {"json", "jsonc", "json5", "toml", "yaml", "yml", "code-workspace"};
  constexpr std::string_view kScripts[] = {"", "sh", "bash", "zsh", "local", "user"};
  if (isOneOfNames(kSettings, ending)) return CommandSource::settings;
  return isOneOfNames(kScripts, ending) ? CommandSource::script : CommandSource::none;
}

std::vector<CalledPath> calledFiles(CommandSource source, std::string_view text) {
  std::vector<CalledPath> found;
  text = text.substr(0, kMaxCommandSource);
  if (text.find('\0') != std::string_view::npos) return found;
  Collector to(found);
  if (source == CommandSource::settings) {
    readSettings(text, to);
  } else if (source == CommandSource::script) {
    const std::string_view first = text.substr(0, text.find('\n'));
    constexpr std::string_view kOther[] = {"python", "node", "ruby", "perl", "php", "deno", "bun", "lua"};
    const bool other = first.starts_with("#!") && std::ranges::any_of(kOther, [&](std::string_view name) {
                         return first.find(name) != std::string_view::npos;
                       });
    if (!other) to.script(text, 0);
  }
  return found;
}

}  // namespace caisson::policy
