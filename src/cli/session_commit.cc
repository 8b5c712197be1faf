// `caisson session commit`: changes to the real workspace.
#include "cli/json_writer.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/session_verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kDryRun{.name = "dry-run", .letter = 'n', .help = "Change nothing, only say what would be done."};
constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kOptions[] = {kDryRun, kJson};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

void writeList(JsonWriter& json, std::string_view key, const std::vector<NotCommitted>& list) {
  json.key(key).beginArray();
  for (const NotCommitted& one : list) {
    json.beginObject().key("path").string(one.path).key("reason").string(one.reason).end();
  }
  json.end();
}

std::string asJson(const CommitReport& report) {
  JsonWriter json;
  json.beginObject().key("applied").beginArray();
  for (const Change& change : report.applied) {
    json.beginObject().key("path").string(change.path).key("change").string(name(change.kind)).end();
  }
  json.end();
  writeList(json, "conflicts", report.conflicts);
  writeList(json, "held", report.held);
  writeList(json, "skipped", report.skipped);
  json.end();
  return json.text() + "\n";
}

std::string asText(const CommitReport& report) {
  std::string text;
  for (const Change& change : report.applied) {
    const char letter = change.kind == ChangeKind::added ? 'A' : change.kind == ChangeKind::deleted ? 'D' : 'M';
    text += std::string(1, letter) + " " + safeLine(change.path) + "\n";
  }
  return text;
}

void tellLists(const CommitReport& report) {
  for (const NotCommitted& one : report.conflicts) tell("conflict: " + one.path + ": " + one.reason);
  for (const NotCommitted& one : report.held)
    tell("held: " + one.path + ": " + one.reason + "; commit it by naming it");
  for (const NotCommitted& one : report.skipped) tell("skipped: " + one.path + ": " + one.reason);
}

int perform(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session commit", 1, 0);
  if (!session) return complain(session.error());
  CommitRequest request;
  for (std::size_t i = 1; i < arguments.operands.size(); ++i) request.paths.emplace_back(arguments.operands[i]);
  request.dry_run = arguments.has(kDryRun);
  const auto report = session->commit(request);
  if (!report) return complain(report.error());
  const int failed = print(arguments.has(kJson) ? asJson(*report) : asText(*report));
  if (!arguments.has(kJson)) tellLists(*report);
  if (failed != 0) return failed;
  return report->complete() ? 0 : 1;
}

}  // namespace

constinit const Verb kSessionCommit{
    .path = "session commit",
    .summary = "Bring a session's changes to the real workspace",
    .description =
        "Everything that changed, or the paths given. A file that changed in the real workspace since the session "
        "began "
        "is left alone and named as a conflict. What the host would execute later by itself (git hooks and "
        "configuration, editor tasks, shell start-up files, agent and CI configuration) is held back unless it is "
        "named "
        "as a path. The exit status is 0 if everything was done, 1 if something was left.",
    .examples =
        "caisson session commit --dry-run fix-login\n"
        "caisson session commit fix-login src test/login_test.py",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID [PATH]..."},
    .perform = perform,
};

}  // namespace caisson::cli
