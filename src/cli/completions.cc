#include "cli/completions.h"

#include <vector>

#include "caisson/policy.h"
#include "cli/output.h"

namespace caisson::cli {
namespace {

/// Verbs that take options, without those that only group other verbs.
std::vector<const Verb*> leaves(std::span<const Verb* const> verbs) {
  std::vector<const Verb*> found;
  for (const Verb* verb : verbs) {
    if (verb->topic == Topic::hidden) continue;
    if (verb->verbs.empty()) found.push_back(verb);
    for (const Verb* below : verb->verbs) found.push_back(below);
  }
  return found;
}

void addWord(std::string& list, std::string_view prefix, std::string_view word) {
  if (!list.empty()) list += ' ';
  list += prefix;
  list += word;
}

std::string words(std::span<const Verb* const> verbs) {
  std::string list;
  for (const Verb* verb : verbs)
    if (verb->topic != Topic::hidden) addWord(list, "", verb->word());
  return list;
}

std::string spaced(std::string_view choices) {
  std::string list(choices);
  for (char& letter : list)
    if (letter == '|') letter = ' ';
  return list;
}

std::string profiles() {
  std::string list;
  for (const std::string& name : Policy::profileNames()) addWord(list, "", name);
  return list;
}

/// Escapes text for single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char letter : text) out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return out;
}

template <class Visit>
void forEachOption(const Verb& verb, Visit visit) {
  for (const OptionGroup& group : verb.syntax.groups) {
    if (group.title.empty()) continue;
    for (const Option& option : group.options) visit(option);
  }
  visit(kHelp);
}

std::string bashValue(std::string_view value_name) {
  switch (completes(value_name)) {
    case Completes::words: return "COMPREPLY=($(compgen -W '" + spaced(value_name) + "' -- \"$current\"))";
    case Completes::profiles: return "COMPREPLY=($(compgen -W '" + profiles() + "' -- \"$current\"))";
    case Completes::files: return "COMPREPLY=($(compgen -f -- \"$current\"))";
    case Completes::directories: return "COMPREPLY=($(compgen -d -- \"$current\"))";
    case Completes::nothing: break;
  }
  return "COMPREPLY=()";
}

std::string bashVerb(const Verb& verb) {
  std::string cases;
  std::string names;
  forEachOption(verb, [&](const Option& option) {
    addWord(names, "--", option.name);
    if (!option.value.empty())
      cases += "        --" + std::string(option.name) + ") " + bashValue(option.value) + "; return ;;\n";
  });
  std::string out = "    '" + std::string(verb.path) + "')\n";
  if (!cases.empty()) out += "      case \"$previous\" in\n" + cases + "      esac\n";
  out += "      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '" + names + "' -- \"$current\"))\n";
  out += "      else " + bashValue(verb.syntax.operands) + "; fi ;;\n";
  return out;
}

std::string zshValue(std::string_view value_name) {
  switch (completes(value_name)) {
    case Completes::words: return "(" + spaced(value_name) + ")";
    case Completes::profiles: return "(" + profiles() + ")";
    case Completes::files: return "_files";
    case Completes::directories: return "_files -/";
    case Completes::nothing: break;
  }
  return "";
}

/// Removes the characters that are special to _arguments from a description.
std::string zshPlain(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':') out += '\\';
    out += letter;
  }
  return quoted(out);
}

std::string zshVerb(const Verb& verb) {
  std::string out = "    '" + std::string(verb.path) + "')\n      _arguments -S";
  forEachOption(verb, [&](const Option& option) {
    out += " \\\n        '" + std::string(option.repeatable ? "*" : "") + "--" + std::string(option.name);
    out += option.value.empty() ? "" : "=";
    out += "[" + zshPlain(option.help) + "]";
    if (!option.value.empty()) out += ":" + zshPlain(option.value) + ":" + zshValue(option.value);
    out += "'";
  });
  if (!verb.syntax.command.empty()) out += " \\\n        '*::command:_normal'";
  if (!verb.syntax.operands.empty()) out += " \\\n        '*:operand:" + zshValue(verb.syntax.operands) + "'";
  return out + " ;;\n";
}

std::string fishValue(std::string_view value_name) {
  switch (completes(value_name)) {
    case Completes::words: return " -x -a '" + spaced(value_name) + "'";
    case Completes::profiles: return " -x -a '" + profiles() + "'";
    case Completes::files: return " -r -F";
    case Completes::directories: return " -x -a '(__fish_complete_directories)'";
    case Completes::nothing: break;
  }
  return " -x";
}

std::string fishVerb(const Verb& verb) {
  std::string seen;
  for (const char letter : verb.path) {
    if (seen.empty() || letter == ' ')
      seen += seen.empty() ? "__fish_seen_subcommand_from " : "; and __fish_seen_subcommand_from ";
    if (letter != ' ') seen += letter;
  }
  std::string out;
  forEachOption(verb, [&](const Option& option) {
    out += "complete -c caisson -n '" + seen + "' -l " + std::string(option.name);
    if (option.letter != 0) out += std::string(" -s ") + option.letter;
    if (!option.value.empty()) out += fishValue(option.value);
    out += " -d '" + quoted(option.help) + "'\n";
  });
  if (completes(verb.syntax.operands) == Completes::files) out += "complete -c caisson -n '" + seen + "' -F\n";
  if (!verb.syntax.command.empty())
    out += "complete -c caisson -n '" + seen +
           "; and contains -- -- (commandline -opc)' -x -a '(__fish_complete_subcommand)'\n";
  return out;
}

int perform(const Arguments& arguments) {
  const std::string_view shell = arguments.operands.empty() ? "" : arguments.operands[0];
  if (shell == "bash") return print(bashCompletion(allVerbs()));
  if (shell == "zsh") return print(zshCompletion(allVerbs()));
  if (shell == "fish") return print(fishCompletion(allVerbs()));
  return complain(usageError(shell, "expected bash, zsh or fish"));
}

}  // namespace

Completes completes(std::string_view value_name) {
  if (value_name == "PROFILE") return Completes::profiles;
  if (value_name.starts_with("DIR")) return Completes::directories;
  if (value_name.starts_with("PATH") || value_name.starts_with("SRC") ||
      value_name.find("FILE") != std::string_view::npos)
    return Completes::files;
  if (value_name.find('|') != std::string_view::npos) return Completes::words;
  return Completes::nothing;
}

std::string bashCompletion(std::span<const Verb* const> verbs) {
  std::string out =
      "# bash completion for caisson, printed by `caisson __completions bash`\n"
      "_caisson() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} at\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      words(verbs) +
      " --help --version' -- \"$current\")); return\n"
      "  fi\n"
      "  # After `--` comes the payload's command line.\n"
      "  for ((at = 2; at < COMP_CWORD; at++)); do\n"
      "    if [[ ${COMP_WORDS[at]} == -- ]]; then\n"
      "      if ((at == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- \"$current\"))\n"
      "      else COMPREPLY=($(compgen -f -- \"$current\")); fi\n"
      "      return\n"
      "    fi\n"
      "  done\n";
  for (const Verb* verb : verbs) {
    if (verb->verbs.empty()) continue;
    const std::string word(verb->word());
    out += "  if [[ $verb == " + word + " ]]; then\n    if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W '" +
           words(verb->verbs) + " --help' -- \"$current\")); return; fi\n    verb+=\" ${COMP_WORDS[2]}\"\n  fi\n";
  }
  out += "  case \"$verb\" in\n";
  for (const Verb* verb : leaves(verbs)) out += bashVerb(*verb);
  return out + "  esac\n}\ncomplete -o filenames -F _caisson caisson\n";
}

std::string zshCompletion(std::span<const Verb* const> verbs) {
  std::string out =
      "#compdef caisson\n# zsh completion for caisson, printed by `caisson __completions zsh`\n"
      "_caisson() {\n  local verb=${words[2]}\n"
      "  if ((CURRENT == 2)); then compadd -- " +
      words(verbs) + " --help --version; return; fi\n";
  for (const Verb* verb : verbs) {
    if (verb->verbs.empty()) continue;
    out += "  if [[ $verb == " + std::string(verb->word()) + " ]]; then\n    if ((CURRENT == 3)); then compadd -- " +
           words(verb->verbs) + " --help; return; fi\n    verb+=\" ${words[3]}\"; shift words; ((CURRENT--))\n  fi\n";
  }
  out += "  shift words; ((CURRENT--))\n  case \"$verb\" in\n";
  for (const Verb* verb : leaves(verbs)) out += zshVerb(*verb);
  return out + "  esac\n}\n_caisson \"$@\"\n";
}

std::string fishCompletion(std::span<const Verb* const> verbs) {
  std::string out = "# fish completion for caisson, printed by `caisson __completions fish`\ncomplete -c caisson -f\n";
  for (const Verb* verb : verbs) {
    if (verb->topic == Topic::hidden) continue;
    const std::string word(verb->word());
    out += "complete -c caisson -n __fish_use_subcommand -a " + word + " -d '" + quoted(verb->summary) + "'\n";
    for (const Verb* below : verb->verbs)
      out += "complete -c caisson -n '__fish_seen_subcommand_from " + word + "; and not __fish_seen_subcommand_from " +
             words(verb->verbs) + "' -a " + std::string(below->word()) + " -d '" + quoted(below->summary) + "'\n";
  }
  for (const Verb* verb : leaves(verbs)) out += fishVerb(*verb);
  return out;
}

constinit const Verb kCompletions{
    .path = "__completions",
    .summary = "Print the completions for a shell",
    .topic = Topic::hidden,
    .syntax = {.operands = "bash|zsh|fish"},
    .perform = perform,
};

}  // namespace caisson::cli
