#include "cli/completions.h"

#include <algorithm>
#include <vector>

#include "audit/event.h"
#include "caisson/policy.h"
#include "caisson/session.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "mcp/agent_hosts.h"
#include "mcp/hook_hosts.h"
#include "policy/profiles/presets.h"

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

/// Lists of hosts that have a name. Other hosts are not known here.
std::string presetNames(std::string_view prefix) {
  std::string list;
  for (const policy::Preset& preset : policy::presets()) addWord(list, prefix, preset.name);
  return list;
}

/// Escapes text for single quotes of a shell.
std::string escapeSingleQuotes(std::string_view text) {
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

Completes completesOption(const Option& option) {
  return option.name == "allow-host" ? Completes::hosts : completes(option.value);
}

/// Printed by `caisson __completions sessions`: ids and names change, so the shell asks for them each time.
constexpr std::string_view kListSessions = "__completions sessions 2>/dev/null";

std::string bashValue(Completes kind, std::string_view value_name) {
  switch (kind) {
    case Completes::sessions:
      return "COMPREPLY=($(compgen -W \"$(caisson " + std::string(kListSessions) + ")\" -- \"$current\"))";
    case Completes::events: return "COMPREPLY=($(compgen -W '" + audit::eventNames() + "' -- \"$current\"))";
    case Completes::words: return "COMPREPLY=($(compgen -W '" + spaced(value_name) + "' -- \"$current\"))";
    case Completes::profiles: return "COMPREPLY=($(compgen -W '" + profiles() + "' -- \"$current\"))";
    case Completes::hosts:
      return "COMPREPLY=($(compgen -W '" + presetNames(policy::kPresetPrefix) + "' -- \"$current\"))";
    case Completes::files: return "COMPREPLY=($(compgen -f -- \"$current\"))";
    case Completes::directories: return "COMPREPLY=($(compgen -d -- \"$current\"))";
    case Completes::nothing: break;
  }
  return "COMPREPLY=()";
}

std::string bashVerb(const Verb& verb) {
  std::string cases;
  std::string names;
  std::string valued;
  forEachOption(verb, [&](const Option& option) {
    addWord(names, "--", option.name);
    if (option.value.empty()) return;
    addWord(valued, "--", option.name);
    cases += "        --" + std::string(option.name) + ") " + bashValue(completesOption(option), option.value) +
             "; return ;;\n";
  });
  std::string out = "    '" + std::string(verb.path) + "')\n";
  if (!cases.empty()) out += "      case \"$previous\" in\n" + cases + "      esac\n";
  out += "      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '" + names + "' -- \"$current\"))\n";
  const std::vector<Operand> operands = operandsOf(verb);
  if (operands.empty()) return out + "      fi ;;\n";
  const bool below = verb.path.find(' ') != std::string_view::npos;
  out += "      else _caisson_position " + std::string(below ? "3" : "2") + " " + valued + "; case $position in\n";
  for (std::size_t at = 0; at < operands.size(); ++at) {
    const std::string position = at + 1 == operands.size() ? "*" : std::to_string(at);
    out += "        " + position + ") " + bashValue(operands[at].kind, operands[at].name) + " ;;\n";
  }
  return out + "      esac; fi ;;\n";
}

std::string zshValue(Completes kind, std::string_view value_name) {
  switch (kind) {
    case Completes::sessions: return "_caisson_sessions";
    case Completes::events: return "(" + audit::eventNames() + ")";
    case Completes::words: return "(" + spaced(value_name) + ")";
    case Completes::profiles: return "(" + profiles() + ")";
    case Completes::hosts: return "_caisson_hosts";
    case Completes::files: return "_files";
    case Completes::directories: return "_files -/";
    case Completes::nothing: break;
  }
  return "";
}

/// Escapes the characters of a description that are special to _arguments.
std::string zshPlain(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':') out += '\\';
    out += letter;
  }
  return escapeSingleQuotes(out);
}

std::string zshVerb(const Verb& verb) {
  std::string out = "    '" + std::string(verb.path) + "')\n      _arguments -S";
  forEachOption(verb, [&](const Option& option) {
    out += " \\\n        '" + std::string(option.repeatable ? "*" : "") + "--" + std::string(option.name);
    out += option.value.empty() ? "" : "=";
    out += "[" + zshPlain(option.help) + "]";
    if (!option.value.empty())
      out += ":" + zshPlain(option.value) + ":" + zshValue(completesOption(option), option.value);
    out += "'";
  });
  if (!verb.syntax.command.empty()) out += " \\\n        '*::command:_normal'";
  const std::vector<Operand> operands = operandsOf(verb);
  for (std::size_t at = 0; at < operands.size(); ++at) {
    const std::string position = at + 1 == operands.size() ? "*" : std::to_string(at + 1);
    out += " \\\n        '" + position + ":operand:" + zshValue(operands[at].kind, operands[at].name) + "'";
  }
  return out + " ;;\n";
}

std::string fishValue(Completes kind, std::string_view value_name) {
  switch (kind) {
    case Completes::sessions: return " -x -a '(caisson " + std::string(kListSessions) + ")'";
    case Completes::events: return " -x -a '" + audit::eventNames() + "'";
    case Completes::words: return " -x -a '" + spaced(value_name) + "'";
    case Completes::profiles: return " -x -a '" + profiles() + "'";
    case Completes::hosts: return " -x -a '" + presetNames(policy::kPresetPrefix) + "'";
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
    if (!option.value.empty()) out += fishValue(completesOption(option), option.value);
    out += " -d '" + escapeSingleQuotes(option.help) + "'\n";
  });
  for (const Operand& operand : operandsOf(verb)) {
    if (operand.kind == Completes::files) out += "complete -c caisson -n '" + seen + "' -F\n";
    if (operand.kind == Completes::sessions || operand.kind == Completes::words || operand.kind == Completes::hosts)
      out += "complete -c caisson -n '" + seen + "'" + fishValue(operand.kind, operand.name) + "\n";
  }
  if (!verb.syntax.command.empty())
    out += "complete -c caisson -n '" + seen +
           "; and contains -- -- (commandline -opc)' -x -a '(__fish_complete_subcommand)'\n";
  return out;
}

std::string agentHostNames() {
  std::string list;
  for (const mcp::AgentHost& host : mcp::kAgentHosts) addWord(list, "", host.name);
  return list;
}

std::string hookHostNames() {
  std::string list;
  for (const mcp::HookHost& host : mcp::kHookHosts) addWord(list, "", host.name);
  return list;
}

int listSessions() {
  auto store = openSessions();
  if (!store) return printError(store.error());
  const auto infos = store->list();
  if (!infos) return printError(infos.error());
  std::string text;
  for (const SessionInfo& info : *infos) text += (info.name.empty() ? info.id : info.name + "\n" + info.id) + "\n";
  return print(text);
}

int perform(const Arguments& arguments) {
  const std::string_view shell = arguments.operands.empty() ? "" : arguments.operands[0];
  if (shell == "bash") return print(bashCompletion(allVerbs()));
  if (shell == "zsh") return print(zshCompletion(allVerbs()));
  if (shell == "fish") return print(fishCompletion(allVerbs()));
  if (shell == "sessions") return listSessions();
  return printError(usageError(shell, "expected bash, zsh, fish or sessions"));
}

}  // namespace

Completes completes(std::string_view value_name) {
  if (value_name == "PROFILE") return Completes::profiles;
  if (value_name == "EVENT") return Completes::events;
  if (value_name.starts_with("HOST")) return Completes::hosts;
  if (value_name.starts_with("DIR")) return Completes::directories;
  if (value_name.starts_with("PATH") || value_name.starts_with("SRC") ||
      value_name.find("FILE") != std::string_view::npos)
    return Completes::files;
  if (value_name.find('|') != std::string_view::npos) return Completes::words;
  return Completes::nothing;
}

std::vector<Operand> operandsOf(const Verb& verb) {
  std::vector<Operand> operands;
  const std::string_view text = verb.syntax.operands;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string name(text.substr(begin, end - begin));
    begin = end + 1;
    std::erase_if(name, [](char letter) { return letter == '[' || letter == ']' || letter == '.'; });
    const bool session = operands.empty() && name == "ID" && verb.path.starts_with("session ");
    Completes kind = session ? Completes::sessions : completes(name);
    if (name == "HOST" && verb.path.starts_with("agent ")) {
      kind = Completes::words;
      name = hookHostNames();
    }
    if (verb.path == "mcp") {
      kind = Completes::words;
      if (name == "HOST") name = agentHostNames();
    }
    operands.push_back({std::move(name), kind});
  }
  return operands;
}

std::string bashCompletion(std::span<const Verb* const> verbs) {
  std::string out =
      "# bash completion for caisson, printed by `caisson __completions bash`\n"
      "# _caisson_position FIRST OPTION...: counts the operands before the current word. The options take a value.\n"
      "_caisson_position() {\n"
      "  local first=$1 at; shift; position=0\n"
      "  for ((at = first; at < COMP_CWORD; at++)); do\n"
      "    if [[ ${COMP_WORDS[at]} != -* && \" $* \" != *\" ${COMP_WORDS[at-1]} \"* ]]; then position=$((position + "
      "1)); fi\n"
      "  done\n"
      "}\n"
      "_caisson() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} at "
      "position\n"
      "  COMPREPLY=()\n"
      "  # A colon divides words.\n"
      "  if [[ $current == : ]]; then current=; at=$COMP_CWORD; else at=$((COMP_CWORD - 1)); fi\n"
      "  if [[ ${COMP_WORDS[at]} == : && ${COMP_WORDS[at-1]} == preset ]]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      presetNames("") +
      "' -- \"$current\")); return\n"
      "  fi\n"
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
      "_caisson_sessions() { compadd -- ${(f)\"$(caisson __completions sessions 2>/dev/null)\"}; }\n"
      "_caisson_hosts() { compadd -- " +
      presetNames(policy::kPresetPrefix) +
      "; }\n"
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
    out +=
        "complete -c caisson -n __fish_use_subcommand -a " + word + " -d '" + escapeSingleQuotes(verb->summary) + "'\n";
    for (const Verb* below : verb->verbs)
      out += "complete -c caisson -n '__fish_seen_subcommand_from " + word + "; and not __fish_seen_subcommand_from " +
             words(verb->verbs) + "' -a " + std::string(below->word()) + " -d '" + escapeSingleQuotes(below->summary) +
             "'\n";
  }
  for (const Verb* verb : leaves(verbs)) out += fishVerb(*verb);
  return out;
}

constinit const Verb kCompletions{
    .path = "__completions",
    .summary = "Print the completions for a shell",
    .topic = Topic::hidden,
    .syntax = {.operands = "bash|zsh|fish|sessions"},
    .perform = perform,
};

}  // namespace caisson::cli
