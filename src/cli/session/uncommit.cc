// `caisson session uncommit`: puts back what the newest commit replaced.
#include "base/json_writer.h"
#include "base/path_text.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kDryRunUndo{.name = "dry-run", .letter = 'n', .help = "Change nothing, only say what would be done."};
constexpr Option kJsonUndo{.name = "json", .help = "Print one JSON object."};
constexpr Option kUndoOptions[] = {kDryRunUndo, kJsonUndo};
constexpr OptionGroup kUndoGroups[] = {{"Options", kUndoOptions}};

std::string undoJson(const CommitReport& report) {
  JsonWriter json;
  json.beginObject().key("applied").beginArray();
  for (const ManifestEntry& entry : report.applied) {
    json.beginObject().bytes("path", entry.path).key("change").string(name(entry.kind));
    json.key("type").string(entry.type).end();
  }
  json.end().key("conflicts").beginArray();
  for (const NotCommitted& one : report.conflicts) {
    json.beginObject().bytes("path", one.path).key("reason").string(one.reason).end();
  }
  json.end().end();
  return json.text() + "\n";
}

std::string undoText(const CommitReport& report) {
  std::string text;
  for (const ManifestEntry& entry : report.applied) {
    const char letter = entry.kind == ChangeKind::added ? 'A' : entry.kind == ChangeKind::deleted ? 'D' : 'M';
    text += std::string(1, letter) + " " + displayedPath(entry.path) + (entry.type == "directory" ? "/" : "") + "\n";
  }
  return text;
}

int undo(const Arguments& arguments) {
  if (auto counted = countOperands(arguments, "session uncommit", 1, 1); !counted) return printError(counted.error());
  auto store = openSessions();
  if (!store) return printError(store.error());
  const auto report = store->uncommit(arguments.operands[0], arguments.has(kDryRunUndo));
  if (!report) return printError(report.error());
  const int failed = print(arguments.has(kJsonUndo) ? undoJson(*report) : undoText(*report));
  if (!arguments.has(kJsonUndo)) printCommitLists(*report, false);
  if (failed != 0) return arguments.has(kDryRunUndo) ? failed : kIncomplete;
  return report->complete() ? 0 : kIncomplete;
}

}  // namespace

constinit const Verb kSessionUncommit{
    .path = "session uncommit",
    .summary = "Undo the newest commit of a session",
    .description =
        "What the commit replaced and deleted is put back, what it added is removed. What changed in the workspace "
        "since is left alone and named as a conflict, with the place where the object from before the commit is kept; "
        "resolve it and run the command again to continue. What a commit replaces is kept below CAISSON_HOME for seven "
        "days; "
        "`caisson session info` lists it. Also works after the session was destroyed, with its whole id.",
    .examples = "caisson session uncommit --dry-run fix-login\ncaisson session uncommit fix-login",
    .topic = Topic::session,
    .syntax = {.groups = kUndoGroups, .operands = "ID"},
    .perform = undo,
};

}  // namespace caisson::cli
