// `caisson session commit`: changes to the real workspace.
#include "base/json_writer.h"
#include "base/path_text.h"
#include "cli/output.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kDryRun{.name = "dry-run", .letter = 'n', .help = "Change nothing, only say what would be done."};
constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kExpect{.name = "expect",
                         .value = "DIGEST",
                         .help = "Commit only if the changes are those of this digest, which --dry-run prints."};
constexpr Option kStop{.name = "stop",
                       .help = "End the session's processes first, so that its files are consistent with each other."};
constexpr Option kOurs{.name = "ours",
                       .value = "PATH",
                       .help = "A conflict: keep the real file. A directory: all in it.",
                       .repeatable = true};
constexpr Option kTheirs{.name = "theirs",
                         .value = "PATH",
                         .help = "A conflict: replace the real file by the session's. A directory: all in it.",
                         .repeatable = true};
constexpr Option kMerge{
    .name = "merge",
    .value = "PATH",
    .help =
        "A conflict in a text file: combine the changes of both sides, if they do not touch. A directory: all in it.",
    .repeatable = true};
constexpr Option kDiscard{.name = "discard",
                          .help = "Keep nothing of what is replaced or deleted: the commit cannot be undone."};
constexpr Option kOptions[] = {kDryRun, kExpect, kStop, kOurs, kTheirs, kMerge, kDiscard, kJson};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

void writeList(JsonWriter& json, std::string_view key, const std::vector<NotCommitted>& list) {
  json.key(key).beginArray();
  for (const NotCommitted& one : list) {
    json.beginObject().bytes("path", one.path).key("reason").string(one.reason).end();
  }
  json.end();
}

std::string asJson(const CommitReport& report) {
  JsonWriter json;
  json.beginObject().key("digest").string(report.digest).key("bytes").number(report.bytes);
  json.key("replaced_bytes").number(report.replaced_bytes);
  json.key("consistent")
      .boolean(report.consistent)
      .key("searched")
      .boolean(report.searched)
      .key("applied")
      .beginArray();
  for (const ManifestEntry& entry : report.applied) {
    json.beginObject().bytes("path", entry.path).key("change").string(name(entry.kind));
    json.key("type").string(entry.type).key("mode").number(std::uint64_t{entry.mode}).key("size").number(entry.size);
    if (!entry.sha256.empty()) json.key("sha256").string(entry.sha256);
    if (!entry.target.empty()) json.bytes("target", entry.target);
    if (const std::string mode = modeChange(entry); !mode.empty()) json.key("mode_change").string(mode);
    if (entry.merged) json.key("merged").boolean(true);
    if (entry.replaces_directory) json.key("replaces_directory").boolean(true);
    json.end();
  }
  json.end();
  writeList(json, "conflicts", report.conflicts);
  writeList(json, "held", report.held);
  writeList(json, "skipped", report.skipped);
  json.bytes("kept", report.kept).end();
  return json.text() + "\n";
}

std::string asText(const CommitReport& report) {
  std::string text;
  for (const ManifestEntry& entry : report.applied) {
    const char letter = entry.kind == ChangeKind::added ? 'A' : entry.kind == ChangeKind::deleted ? 'D' : 'M';
    text += std::string(1, letter) + " " + displayedPath(entry.path);
    if (entry.kind == ChangeKind::deleted && entry.type == "directory") text += "/ (with everything in it)";
    if (entry.replaces_directory) text += " (replaces a directory with everything in it)";
    if (const std::string mode = modeChange(entry); !mode.empty()) text += " (" + mode + ")";
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> commitLists(const CommitReport& report, bool dry_run) {
  std::vector<std::string> lines;
  for (const NotCommitted& one : report.conflicts)
    lines.push_back("conflict: " + displayedPath(one.path) + ": " + one.reason);
  for (const NotCommitted& one : report.held)
    lines.push_back("held: " + displayedPath(one.path) + ": " + one.reason + "; commit it by naming it");
  for (const NotCommitted& one : report.skipped)
    lines.push_back("skipped: " + displayedPath(one.path) + ": " + one.reason);
  for (const ManifestEntry& entry : report.applied) {
    if (entry.merged) lines.push_back("merged: " + displayedPath(entry.path) + ": it holds the changes of both sides");
  }
  for (const std::string& path : report.kept) lines.push_back("kept: " + displayedPath(path) + ": the real file stays");
  if (!report.consistent) {
    lines.push_back(
        "processes of the session ran meanwhile: each file is whole, but they may not fit together (--stop ends them)");
  }
  if (!report.searched) {
    lines.push_back(
        "the workspace is too large to be searched for links and git configurations: files that the host executes "
        "because "
        "of them are not held back");
  }
  if (dry_run) lines.push_back("digest: " + report.digest);
  return lines;
}

void printCommitLists(const CommitReport& report, bool dry_run) {
  for (const std::string& line : commitLists(report, dry_run)) printNotice(line);
}

namespace {

int perform(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session commit", 1, 0);
  if (!session) return printError(session.error());
  CommitRequest request;
  for (std::size_t i = 1; i < arguments.operands.size(); ++i) request.paths.emplace_back(arguments.operands[i]);
  request.dry_run = arguments.has(kDryRun);
  request.stop = arguments.has(kStop);
  request.discard = arguments.has(kDiscard);
  request.expect = arguments.value(kExpect).value_or("");
  for (const Given& given : arguments.given) {
    if (given.option->name == kOurs.name) request.ours.emplace_back(given.value);
    if (given.option->name == kTheirs.name) request.theirs.emplace_back(given.value);
    if (given.option->name == kMerge.name) request.merge.emplace_back(given.value);
  }
  const auto report = session->commit(request);
  if (!report) return printError(report.error());
  const int failed = print(arguments.has(kJson) ? asJson(*report) : asText(*report));
  if (!arguments.has(kJson)) printCommitLists(*report, request.dry_run);
  if (failed != 0) return request.dry_run ? failed : kIncomplete;
  return report->complete() ? 0 : kIncomplete;
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
        "as a path. A conflict is settled with --ours, --theirs or --merge. The changes are written as one "
        "transaction: if something fails, nothing is written. A commit that was killed is finished first, also with "
        "--dry-run. The exit status is 0 if everything was done, 1 if something was left or the list of changes could "
        "not be printed.",
    .examples =
        "caisson session commit --dry-run fix-login\n"
        "caisson session commit --expect DIGEST fix-login\n"
        "caisson session commit fix-login src test/login_test.py",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID [PATH]..."},
    .perform = perform,
};

}  // namespace caisson::cli
