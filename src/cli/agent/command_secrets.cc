#include "cli/agent/command_secrets.h"

#include <algorithm>

#include "base/text.h"
#include "cli/agent/argument_secrets.h"
#include "cli/agent/secret_shapes.h"
#include "cli/agent/secret_text.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r";

class CommandReader {
 public:
  explicit CommandReader(std::string_view text) : text_(text) {}

  std::vector<CommandWord> read() {
    while (at_ < text_.size()) step(text_[at_]);
    endWord();
    return std::move(words_);
  }

 private:
  void step(char c) {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\n';
    if (c == '\\' && endsLine(at_ + 1)) {
      endWord();
      at_ = std::min(text_.find('\n', at_), text_.size());
      ++at_;
      return;
    }
    ++at_;
    if (c == '\n') return endLine();
    if (c == '"' || c == '\'') return readQuote(c, next);
    if (c == '\\' && (next == '"' || next == '\'')) return;
    if (kBlanks.find(c) != std::string_view::npos || c == '`' || c == '(' || c == ')') return endWord();
    if (c == ';' || c == '|' || (c == '&' && (next == '&' || next == ' '))) return endCommand();
    if (c == ',' && endsItem(next)) return endWord();
    word_ += c;
  }

  [[nodiscard]] bool endsLine(std::size_t at) const {
    const std::size_t end = text_.find_first_not_of(kBlanks, at);
    return end != std::string_view::npos && text_[end] == '\n';
  }

  /// A comma of a list, not one of `NAME,WORD`.
  [[nodiscard]] bool endsItem(char next) const {
    const char last = at_ > 1 ? text_[at_ - 2] : '\n';
    const auto separates = [](char c) { return std::string_view(" \t\r\n\"'[]-").find(c) != std::string_view::npos; };
    return separates(last) || separates(next);
  }

  /// Quotes do not group words: in prose most are apostrophes. Separators of commands do not count within them.
  void readQuote(char c, char next) {
    const char last = at_ > 1 ? text_[at_ - 2] : '\n';
    const bool in_word = isLetter(last) || isDigit(last);
    const bool opens_in_word = in_word && quote_ != c && (quote_ == 0 || c == '\'');  // me':WORD'
    if (quote_ == c) {
      quote_ = 0;
    } else if (quote_ == 0 && !in_word) {
      quote_ = c;
    }
    if (next != ':' || opens_in_word) return;
    endWord();  // of "key": "value"
    ++at_;
  }

  void endCommand() {
    endWord();
    first_ = first_ || quote_ == 0;
  }

  void endLine() {
    endWord();
    quote_ = 0;
    const std::size_t last = text_.substr(0, at_ - 1).find_last_not_of(kBlanks);
    const bool open = last != std::string_view::npos && (text_[last] == ',' || text_[last] == '[');
    first_ = !open && !continuesList();
    const std::size_t start = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
    if (text_.substr(start, 2) == "- ") at_ = start + 2;
  }

  /// Whether the line at hand is an item of one word, or names a list of arguments.
  [[nodiscard]] bool continuesList() const {
    const std::string_view line =
        trimmed(text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_), kBlanks);
    if (line.starts_with("- ")) return trimmed(line.substr(2), kBlanks).find_first_of(" \t") == std::string_view::npos;
    if (line.starts_with('"') || line.starts_with('\'') || line == "[") return true;
    const std::size_t colon = line.find(':');
    return colon != std::string_view::npos &&
           (line.substr(0, colon).ends_with("args") || line.starts_with("arguments"));
  }

  void endWord() {
    std::string_view word = word_;
    if (word.find(']') == std::string_view::npos)
      word.remove_prefix(std::min(word.find_first_not_of('['), word.size()));
    if (word.find('[') == std::string_view::npos) word = word.substr(0, word.find_last_not_of(']') + 1);
    if (word.empty()) return word_.clear();
    words_.push_back({std::string(word), first_});
    first_ = false;
    word_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string word_;
  char quote_ = 0;
  bool first_ = true;
  std::vector<CommandWord> words_;
};

/// A program that takes a password behind a flag whose name does not say so.
struct PasswordFlag {
  std::string_view program, flag;
  bool attached;  ///< `-pWORD`; else the next word is the password
};
constexpr PasswordFlag kPasswordFlags[] = {{"mysql", "-p", true},
                                           {"mysqldump", "-p", true},
                                           {"mysqladmin", "-p", true},
                                           {"mysqlimport", "-p", true},
                                           {"mysqlshow", "-p", true},
                                           {"mysqlcheck", "-p", true},
                                           {"mysqlslap", "-p", true},
                                           {"mariadb", "-p", true},
                                           {"mariadb-dump", "-p", true},
                                           {"mariadb-admin", "-p", true},
                                           {"mariadb-import", "-p", true},
                                           {"mariadb-show", "-p", true},
                                           {"mariadb-check", "-p", true},
                                           {"mariadb-slap", "-p", true},
                                           {"mycli", "-p", true},
                                           {"xfreerdp", "/p:", true},
                                           {"ipmitool", "-P", false},
                                           {"cqlsh", "-p", false},
                                           {"7z", "-p", true},
                                           {"7za", "-p", true},
                                           {"7zz", "-p", true},
                                           {"rar", "-p", true},
                                           {"unrar", "-p", true},
                                           {"sshpass", "-p", true},
                                           {"sshpass", "-p", false},
                                           {"redis-cli", "-a", false},
                                           {"valkey-cli", "-a", false},
                                           {"keydb-cli", "-a", false},
                                           {"sqlcmd", "-P", false},
                                           {"bcp", "-P", false},
                                           {"mongo", "-p", false},
                                           {"mongosh", "-p", false},
                                           {"mongodump", "-p", false},
                                           {"mongorestore", "-p", false},
                                           {"mongoexport", "-p", false},
                                           {"mongoimport", "-p", false},
                                           {"ldapsearch", "-w", false},
                                           {"ldapadd", "-w", false},
                                           {"ldapmodify", "-w", false},
                                           {"zip", "-P", false},
                                           {"unzip", "-P", false},
                                           {"mosquitto_pub", "-P", false},
                                           {"mosquitto_sub", "-P", false},
                                           {"openssl", "-k", false},
                                           {"login", "-p", false},
                                           {"login", "-p", true},
                                           {"mysqlsh", "-p", true},
                                           {"sqlcmd", "-P", true},
                                           {"bcp", "-P", true},
                                           {"cypher-shell", "-p", false},
                                           {"rabbitmqadmin", "-p", false},
                                           {"ssh-keygen", "-N", false},
                                           {"ssh-keygen", "-P", false}};
constexpr std::string_view kOraclePrograms[] = {"sqlplus", "sqlldr", "expdp", "impdp"};
/// `-a NAME:WORD`
constexpr std::string_view kHttpPrograms[] = {"http", "https", "xh"};

bool isKnownProgram(std::string_view name) {
  constexpr std::string_view kOthers[] = {"curl", "lftp", "sudo", "htpasswd", "vault", "git"};
  return isOneOf(name, kOthers) || isOneOf(name, kOraclePrograms) || isOneOf(name, kHttpPrograms) ||
         std::ranges::any_of(kPasswordFlags, [&](const PasswordFlag& one) { return one.program == name; });
}

/// `name:password` of curl; not the user and group of a container.
bool isUserWithPassword(std::string_view value, char sign = ':') {
  const std::size_t colon = value.find(sign);
  if (colon == std::string_view::npos || colon == 0 || isPlace(value.substr(colon + 1))) return false;
  return value.find_first_not_of("0123456789:") != std::string_view::npos;
}

/// `-u NAME:WORD`, also `-sSu` and `-uNAME:WORD`, and the same for a proxy.
bool isUserFlag(std::string_view program, std::string_view word, std::string_view next) {
  for (const std::string_view flag : {"--user", "--proxy-user", "--basic", "--basic-auth"}) {
    if (word == flag) return isUserWithPassword(next);
    if (word.starts_with(flag) && word.substr(flag.size()).starts_with('='))
      return isUserWithPassword(word.substr(flag.size() + 1));
  }
  if (!word.starts_with('-')) return false;
  constexpr std::string_view kWithoutValue = "#012346aBfgGiIjJklLMnNOpqRsSvVZ";
  const std::string_view letters = word.substr(1);
  const std::size_t at = letters.find_first_not_of(kWithoutValue);
  if (at == std::string_view::npos || (letters[at] != 'u' && letters[at] != 'U')) return false;
  const std::string_view value = letters.substr(at + 1);
  if (value.empty())
    return isUserWithPassword(next) || (program == "lftp" && isUserWithPassword(next, ',')) ||
           (letters[at] == 'U' && isUserWithPassword(next, '%'));
  return (program == "curl" || at == 0) && !value.starts_with("rl") && isUserWithPassword(value);
}

/// `-b NAME=WORD` of curl, `-E FILE:WORD`, and `-u :WORD`, which has no name.
bool isPasswordOfCurl(std::string_view word, std::string_view next) {
  struct Flag {
    std::string_view flag;
    char sign;
  };
  constexpr Flag kFlags[] = {{"-b", '='}, {"--cookie", '='}, {"-E", ':'},     {"--cert", ':'},
                             {"-u", ':'}, {"-U", ':'},       {"--user", ':'}, {"--proxy-user", ':'}};
  for (const auto& [flag, sign] : kFlags) {
    if (!word.starts_with(flag)) continue;
    std::string_view value = word.substr(flag.size());
    if (value.empty()) {
      value = next;
    } else if (flag.starts_with("--")) {
      if (value.front() != '=') continue;
      value.remove_prefix(1);
    }
    const std::size_t at = value.find(sign);
    if (at != std::string_view::npos && (at == 0 || sign == '=' || flag == "-E" || flag == "--cert") &&
        !isPlace(value.substr(at + 1)) && !value.substr(at + 1).starts_with('\\'))
      return true;
  }
  return false;
}

/// `vault kv put PATH NAME=WORD`, `--from-literal=NAME=WORD`: not what is read from a file (`NAME=@FILE`).
bool isLiteral(std::string_view program, std::string_view word, std::string_view next) {
  constexpr std::string_view kFlag = "--from-literal";
  std::string_view pair;
  if (word == kFlag) {
    pair = next;
  } else if (word.starts_with(kFlag) && word.substr(kFlag.size()).starts_with('=')) {
    pair = word.substr(kFlag.size() + 1);
  } else if (program == "vault" && !word.starts_with('-')) {
    pair = word;
  }
  const std::size_t sign = pair.find('=');
  if (sign == std::string_view::npos || sign == 0) return false;
  const std::string_view value = pair.substr(sign + 1);
  return !isPlace(value) && !value.starts_with('@');
}

/// Whether `word`, or the next one after it, is a password of the program.
bool isPasswordOf(std::string_view program, std::string_view word, std::string_view next) {
  for (const PasswordFlag& one : kPasswordFlags) {
    if (one.program != program || !word.starts_with(one.flag)) continue;
    const std::string_view rest = word.substr(one.flag.size());
    if (program == "ssh-keygen" && next.starts_with('-')) continue;  // -N '': none
    if (one.attached   ? !isPlace(rest)
        : rest.empty() ? !isPlace(next)
                       : rest.starts_with('=') && !isPlace(rest.substr(1)))
      return true;
  }
  if (program == "curl" && isPasswordOfCurl(word, next)) return true;
  if (word == "-a" && isOneOf(program, kHttpPrograms)) return isUserWithPassword(next);
  if (program == "openssl" && word.starts_with("pass:")) return !isPlace(word.substr(5));
  const std::size_t slash = word.find('/');
  return isOneOf(program, kOraclePrograms) && slash != std::string_view::npos && slash > 0 &&
         !isPlace(word.substr(slash + 1));
}

/// `-bB`: one of several letters behind a dash.
bool isShortFlag(std::string_view word, char letter) {
  return word.starts_with('-') && !word.starts_with("--") && word.find(letter) != std::string_view::npos;
}

/// `git -c http.extraHeader=X-Team: WORD`
bool isHeaderOfGit(std::string_view word, std::string_view next) {
  constexpr std::string_view kEnd = ".extraheader=";
  const std::size_t sign = word.find('=');
  if (sign == std::string_view::npos || !lowered(word.substr(0, sign + 1)).ends_with(kEnd)) return false;
  return isHeaderArgument("-H", std::string(word.substr(sign + 1)).append(" ").append(next));
}

/// Whether the program reads a password from standard input.
bool readsPassword(std::string_view program, std::string_view word) {
  if (word == "--password-stdin" || word == "--with-token") return true;
  return program == "sudo" && (word == "--stdin" || isShortFlag(word, 'S'));
}

}  // namespace

std::vector<CommandWord> commandWords(std::string_view text) { return CommandReader(text).read(); }

bool hasCommandSecret(std::string_view text) {
  const std::vector<CommandWord> words = commandWords(text);
  std::string_view program, printed, piped, here;
  bool reads = false;  // the command at hand reads a password
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].first) {
      program = {};
      piped = printed;
      printed = here = {};
      reads = false;
    }
    const auto after = [&](std::size_t n) {
      for (std::size_t k = i + 1; k <= i + n; ++k)
        if (k >= words.size() || words[k].first) return std::string_view();
      return std::string_view(words[i + n].text);
    };
    const std::string_view word = words[i].text;
    if (!program.empty() && isPasswordOf(program, word, after(1))) return true;
    if (isLiteral(program, word, after(1)) || isHeaderOfGit(word, after(1))) return true;
    // htpasswd -b FILE NAME WORD
    if (program == "htpasswd" && isShortFlag(word, 'b') && !isPlace(after(isShortFlag(word, 'n') ? 2 : 3))) return true;
    if (isUserFlag(program, word, after(1))) return true;
    if (word.starts_with('-') &&
        isHeaderArgument(word, std::string(after(1)).append(" ").append(after(2)).append(" ").append(after(3))))
      return true;
    if (word.starts_with("<<<")) here = word.size() > 3 ? word.substr(3) : after(1);
    reads = reads || readsPassword(program, word);
    if (reads && (!isPlace(piped) || !isPlace(here))) return true;
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (name == "echo" || name == "printf") {
      const std::size_t at = after(1).starts_with('-') ? 2 : 1;
      printed = after(at).starts_with('%') && !after(at + 1).empty() ? after(at + 1) : after(at);
    }
    if (isKnownProgram(name)) program = name;
  }
  return false;
}

}  // namespace caisson::cli
