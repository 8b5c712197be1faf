#include "cli/help.h"

#include <algorithm>

namespace caisson::cli {
namespace {

constexpr std::string_view kIntroduction =
    "caisson runs an untrusted command (an agent's, a tool's, a stranger's) in a sandbox: it sees the "
    "system read-only, a copy-on-write view of the current directory, no network, none of your secrets, and it ends "
    "within limits. No root, no daemon, nothing to set up.";

constexpr std::string_view kExamples =
    "caisson run -- make test                       changes made here are dropped at the end\n"
    "caisson run --workspace .:rw -- npm run fmt    changes are made for real, and nowhere else\n"
    "caisson run --timeout 10s --json -- ./a.out    one JSON object, for programs\n"
    "caisson plan -- make test                      what such a run may see and do\n"
    "caisson doctor                                 what this machine can enforce";

constexpr StatusRow kStatuses[] = {
    {"the program's own", "it ran and exited"},
    {"124", "the time limit ended it"},
    {"125", "caisson could not or would not run it; the reason is on standard error"},
    {"126", "the program was found but cannot be executed"},
    {"127", "the program was not found in the sandbox"},
    {"128+N", "signal N ended it"},
};

constexpr Topic kShownTopics[] = {Topic::run,    Topic::session, Topic::images,
                                  Topic::policy, Topic::agents,  Topic::machine};

struct Painter {
  bool colour;
  [[nodiscard]] std::string heading(std::string_view text) const {
    return colour ? "\033[1m" + std::string(text) + "\033[0m\n" : std::string(text) + "\n";
  }
};

/// Appends `term` at the left with its text in a column beside it, or below it if the term is too long.
void appendRow(std::string& out, std::string_view term, std::string_view text, std::size_t column) {
  out += "  ";
  out += term;
  const std::string body = wrap(text, column);
  if (term.size() + 4 <= column) {
    out += std::string(column - term.size() - 2, ' ');
    out += std::string_view(body).substr(std::min(column, body.size()));
  } else {
    out += "\n" + body;
  }
}

void appendIndented(std::string& out, std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    out += "  ";
    out += lines.substr(0, end);
    out += "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

void appendOptions(std::string& out, const Painter& painter, const OptionGroup& group) {
  out += "\n" + painter.heading(group.title);
  for (const Option& option : group.options) {
    std::string help(option.help);
    if (option.repeatable) help += " Repeatable.";
    appendRow(out, (option.letter == 0 ? "    " : "") + spelling(option), help, 32);
  }
}

void appendParagraphs(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    out += "\n" + wrap(text.substr(0, end), 0);
    text.remove_prefix(std::min(end + 2, text.size()));
  }
}

}  // namespace

std::string_view introduction() { return kIntroduction; }
std::string_view overviewExamples() { return kExamples; }
std::span<const StatusRow> exitStatuses() { return kStatuses; }

std::string_view title(Topic topic) {
  switch (topic) {
    case Topic::run: return "Run";
    case Topic::session: return "Sessions";
    case Topic::images: return "Images";
    case Topic::policy: return "Policies";
    case Topic::agents: return "Agents";
    case Topic::machine: return "This machine and caisson itself";
    case Topic::hidden: return "";
  }
  return "";
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::string line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  return out + std::string(indent, ' ') + line + "\n";
}

std::string synopsis(const Verb& verb) {
  std::string text = "caisson " + std::string(verb.path);
  if (!verb.verbs.empty()) return text + " COMMAND ...";
  if (!verb.syntax.groups.empty()) text += " [OPTION]...";
  if (!verb.syntax.operands.empty()) text += " " + std::string(verb.syntax.operands);
  if (!verb.syntax.command.empty()) text += " " + std::string(verb.syntax.command);
  return text;
}

std::string renderOverview(std::span<const Verb* const> verbs, bool colour) {
  const Painter painter{colour};
  std::string out = wrap(kIntroduction, 0);
  out += "\n" + painter.heading("Usage");
  out += "  caisson COMMAND [OPTION]...\n  caisson COMMAND --help\n";
  for (const Topic topic : kShownTopics) {
    out += "\n" + painter.heading(title(topic));
    for (const Verb* verb : verbs) {
      if (verb->topic != topic) continue;
      if (verb->verbs.empty()) appendRow(out, verb->path, verb->summary, 24);
      for (const Verb* below : verb->verbs) appendRow(out, below->path, below->summary, 24);
    }
  }
  out += "\n" + painter.heading("Examples");
  appendIndented(out, kExamples);
  out += "\n" + painter.heading("Exit status of run");
  for (const StatusRow& row : kStatuses) appendRow(out, row.status, row.meaning, 24);
  return out;
}

std::string renderShortHelp() {
  std::string out = "caisson runs untrusted commands in a sandbox.\n\n";
  appendIndented(out, kExamples);
  return out + "\n`caisson --help` lists every command.\n";
}

std::string renderHelp(const Verb& verb, bool colour) {
  const Painter painter{colour};
  std::string out = std::string(verb.summary) + ".\n\n" + painter.heading("Usage") + "  " + synopsis(verb) + "\n";
  appendParagraphs(out, verb.description);
  if (!verb.verbs.empty()) {
    out += "\n" + painter.heading("Commands");
    for (const Verb* below : verb.verbs) appendRow(out, below->word(), below->summary, 16);
  }
  for (const OptionGroup& group : verb.syntax.groups)
    if (!group.title.empty()) appendOptions(out, painter, group);
  if (verb.verbs.empty()) appendOptions(out, painter, {"Help", {&kHelp, 1}});
  if (!verb.examples.empty()) {
    out += "\n" + painter.heading("Examples");
    appendIndented(out, verb.examples);
  }
  return out;
}

}  // namespace caisson::cli
