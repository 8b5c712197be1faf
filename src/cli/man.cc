// The manual page caisson(1), as roff, generated from the verbs' tables.
#include <algorithm>
#include <string>

#include "cli/help.h"
#include "cli/output.h"
#include "cli/self/version.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

/// Escapes backslashes and dashes for roff, and lines that begin like a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

std::string optionTag(const Option& option) {
  std::string tag;
  if (option.letter != 0) tag = bold(std::string("-") + option.letter) + ", ";
  tag += bold("--" + std::string(option.name));
  if (!option.value.empty()) tag += " \\fI" + roff(option.value) + "\\fR";
  return tag;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    out += ".PP\n" + roff(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

std::string exampleBlock(std::string_view lines) { return ".PP\n.nf\n" + roff(lines) + "\n.fi\n"; }

void appendVerb(std::string& out, const Verb& verb) {
  if (verb.topic == Topic::hidden) return;
  for (const Verb* below : verb.verbs) appendVerb(out, *below);
  if (!verb.verbs.empty()) return;
  out += ".SS \"" + roff(synopsis(verb)) + "\"\n" + roff(verb.summary) + ".\n";
  out += paragraphs(verb.description);
  for (const OptionGroup& group : verb.syntax.groups) {
    if (group.title.empty()) continue;
    out += ".PP\n" + bold(group.title) + "\n";
    for (const Option& option : group.options) {
      out += ".TP\n" + optionTag(option) + "\n" + roff(option.help) + (option.repeatable ? " Repeatable.\n" : "\n");
    }
  }
  if (!verb.examples.empty()) out += ".PP\nExamples:\n" + exampleBlock(verb.examples);
}

int printManPage(const Arguments&) {
  std::string out = ".TH CAISSON 1 \"\" \"caisson " + std::string(programVersion()) + "\" \"User Commands\"\n";
  out += ".SH NAME\ncaisson \\- run untrusted code and protect the host\n";
  out += ".SH SYNOPSIS\n.B caisson\n.I COMMAND\n[\\fIOPTION\\fR]...\n";
  out += ".SH DESCRIPTION\n" + roff(introduction()) + "\n";
  out += ".SH COMMANDS\n";
  for (const Verb* verb : allVerbs()) appendVerb(out, *verb);
  out += ".SH \"EXIT STATUS\"\nOf \\fBcaisson run\\fR:\n";
  for (const StatusRow& row : exitStatuses()) out += ".TP\n" + bold(row.status) + "\n" + roff(row.meaning) + "\n";
  out +=
      ".SH ENVIRONMENT\n.TP\n.B CAISSON_HOME\nWhere caisson keeps its state; by default below the user's XDG data "
      "directory.\n.TP\n.B NO_COLOR\nIf set, no colours are used.\n";
  out += ".SH EXAMPLES\n" + exampleBlock(overviewExamples());
  return print(out);
}

}  // namespace

constinit const Verb kMan{
    .path = "__man",
    .summary = "Print the manual page",
    .topic = Topic::hidden,
    .perform = printManPage,
};

}  // namespace caisson::cli
