// `caisson session diff|export`: changes, for users and for `git apply` or `tar`.
#include <unistd.h>

#include <algorithm>

#include "base/json_writer.h"
#include "base/path_text.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kPatch{
    .name = "patch", .letter = 'p', .help = "Print the changes inside the files, as `git diff` does."};
constexpr Option kStat{.name = "stat", .help = "Print how many lines changed in each file."};
constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kDiffOptions[] = {kPatch, kStat, kJson};
constexpr OptionGroup kDiffGroups[] = {{"Output", kDiffOptions}};

constexpr Option kFormat{.name = "format", .value = "patch|tar", .help = "What to write (default: patch)."};
constexpr Option kExportOptions[] = {kFormat};
constexpr OptionGroup kExportGroups[] = {{"Options", kExportOptions}};

constexpr std::size_t kStatNameWidth = 60;
constexpr std::uint64_t kStatGraphWidth = 40;

char letterOf(ChangeKind kind) { return kind == ChangeKind::added ? 'A' : kind == ChangeKind::deleted ? 'D' : 'M'; }

std::string jsonOf(const FileDiff& diff, bool patch) {
  JsonWriter json;
  json.beginObject();
  json.bytes("path", diff.path);
  json.key("change").string(diff.renamed() ? "renamed" : name(diff.kind));
  if (diff.renamed()) json.bytes("old_path", diff.old_path);
  json.key("type").string(diff.type.empty() ? diff.old_type : diff.type).key("size").number(diff.size);
  if (!diff.type.empty()) json.key("mode").number(diff.mode);
  if (!diff.old_type.empty()) {
    json.key("old_type")
        .string(diff.old_type)
        .key("old_size")
        .number(diff.old_size)
        .key("old_mode")
        .number(diff.old_mode);
  }
  json.key("binary").boolean(diff.binary);
  json.key("added_lines").number(diff.added_lines).key("removed_lines").number(diff.removed_lines);
  if (patch) json.bytes("patch", diff.patch);
  if (!diff.omitted.empty()) json.key("omitted").string(diff.omitted);
  json.end();
  return json.text();
}

/// Streams `{"changes":[...]}`: all patches together may be large.
int printJson(Session& session, const DiffOptions& options, bool patch) {
  int failed = print("{\"changes\":[");
  bool first = true;
  const auto done = session.diffFiles(options, [&](const FileDiff& diff) {
    if (failed == 0) failed = print((first ? "" : ",") + jsonOf(diff, patch));
    first = false;
    return failed == 0;
  });
  if (!done) return printError(done.error());
  return failed != 0 ? failed : print("]}\n");
}

std::string coloured(std::string_view patch) {
  std::string out;
  while (!patch.empty()) {
    const std::size_t end = std::min(patch.find('\n'), patch.size());
    const std::string_view line = patch.substr(0, end);
    const char* colour = line.starts_with("@@") ? "\x1b[36m"
                         : line.starts_with("diff --git") || line.starts_with("--- ") || line.starts_with("+++ ")
                             ? "\x1b[1m"
                         : line.starts_with('+') ? "\x1b[32m"
                         : line.starts_with('-') ? "\x1b[31m"
                                                 : "";
    out += colour + safeLines(line) + (*colour != 0 ? "\x1b[0m" : "") + "\n";
    patch.remove_prefix(std::min(end + 1, patch.size()));
  }
  return out;
}

int printPatch(Session& session, const DiffOptions& options) {
  // A terminal interprets escape sequences that a payload wrote into files; a program gets the raw bytes.
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const bool colour = terminal && wantsColour(STDOUT_FILENO);
  int failed = 0;
  const auto done = session.diffFiles(options, [&](const FileDiff& diff) {
    if (diff.unread) printNotice(displayedPath(diff.path) + ": " + diff.omitted);
    // A patch holds no other permission bits than whether a file is executable.
    if (const std::string mode = modeChange(diff); !mode.empty()) printNotice(displayedPath(diff.path) + ": " + mode);
    if (!diff.patch.empty())
      failed = terminal && !colour ? print(diff.patch) : printBytes(colour ? coloured(diff.patch) : diff.patch);
    return failed == 0;
  });
  return done ? failed : printError(done.error());
}

struct StatLine {
  std::string name;
  std::uint64_t added = 0, removed = 0;
  std::string note;  // replaces the counts
  std::string mode;  // follows them
};

std::string statText(const std::vector<StatLine>& lines) {
  std::size_t width = 0;
  std::uint64_t largest = 0, added = 0, removed = 0;
  for (const StatLine& line : lines) {
    width = std::max(width, std::min(line.name.size(), kStatNameWidth));
    largest = std::max(largest, line.added + line.removed);
    added += line.added;
    removed += line.removed;
  }
  const auto scaled = [&](std::uint64_t count) -> std::size_t {
    if (largest <= kStatGraphWidth || count == 0) return count;
    return std::max<std::uint64_t>(1, count * kStatGraphWidth / largest);
  };
  std::string text;
  for (const StatLine& line : lines) {
    text += " " + line.name + std::string(width > line.name.size() ? width - line.name.size() : 0, ' ') + " | ";
    if (line.note.empty()) {
      text += std::to_string(line.added + line.removed) + " " + std::string(scaled(line.added), '+') +
              std::string(scaled(line.removed), '-');
    } else {
      text += line.note;
    }
    text += (line.mode.empty() ? "" : " (" + line.mode + ")") + "\n";
  }
  return text + " " + std::to_string(lines.size()) + (lines.size() == 1 ? " path" : " paths") + " changed, " +
         std::to_string(added) + " lines added(+), " + std::to_string(removed) + " lines removed(-)\n";
}

}  // namespace

Result<std::string> statOf(Session& session, DiffOptions options) {
  options.patch = false;
  std::vector<StatLine> lines;
  const auto done = session.diffFiles(options, [&](const FileDiff& diff) {
    const bool directory = (diff.type.empty() ? diff.old_type : diff.type) == "directory";
    if (directory && diff.omitted.empty()) return true;  // its files are listed
    StatLine line{.name = (diff.renamed() ? displayedPath(diff.old_path) + " => " : "") + displayedPath(diff.path)};
    line.added = diff.added_lines;
    line.removed = diff.removed_lines;
    if (diff.binary) line.note = std::to_string(diff.old_size) + " -> " + std::to_string(diff.size) + " bytes";
    if (!diff.binary && !diff.omitted.empty()) line.note = std::string(name(diff.kind)) + ": " + safeLine(diff.omitted);
    if (diff.omitted.empty()) line.mode = modeChange(diff);  // else it is named there
    lines.push_back(std::move(line));
    return true;
  });
  if (!done) return fail(done.error());
  return statText(lines);
}

int printStat(Session& session, DiffOptions options) {
  const auto text = statOf(session, std::move(options));
  return text ? print(*text) : printError(text.error());
}

namespace {

int listChanges(Session& session, const std::string& checkpoint, bool as_json) {
  const auto changes = session.diff(checkpoint);
  if (!changes) return printError(changes.error());
  for (const Change& change : *changes) {
    if (!change.omitted.empty()) printNotice(displayedPath(change.path) + ": " + change.omitted);
  }
  if (!as_json) {
    std::string text;
    for (const Change& change : *changes) {
      text += std::string(1, letterOf(change.kind)) + " " + displayedPath(change.path) +
              (change.type == "directory" ? "/" : "");
      if (const std::string mode = modeChange(change); !mode.empty()) text += " (" + mode + ")";
      text += "\n";
    }
    return print(text);
  }
  JsonWriter json;
  json.beginObject().key("changes").beginArray();
  for (const Change& change : *changes) {
    json.beginObject();
    json.bytes("path", change.path);
    json.key("change").string(name(change.kind));
    json.key("type").string(change.type).key("size").number(change.size);
    if (!change.omitted.empty()) json.key("omitted").string(change.omitted);
    if (const std::string mode = modeChange(change); !mode.empty()) json.key("mode_change").string(mode);
    json.end();
  }
  json.end().end();
  return print(json.text() + "\n");
}

int diff(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session diff", 1, 2);
  if (!session) return printError(session.error());
  DiffOptions options;
  if (arguments.operands.size() > 1) options.checkpoint = arguments.operands[1];
  options.patch = arguments.has(kPatch);
  if (!arguments.has(kPatch) && !arguments.has(kStat)) {
    return listChanges(*session, options.checkpoint, arguments.has(kJson));
  }
  if (arguments.has(kJson)) return printJson(*session, options, arguments.has(kPatch));
  if (arguments.has(kStat)) {
    if (const int failed = printStat(*session, options); failed != 0 || !arguments.has(kPatch)) return failed;
    if (const int failed = print("\n"); failed != 0) return failed;
  }
  return printPatch(*session, options);
}

int exportPatch(Session& session) {
  int failed = 0;
  bool whole = true;
  const auto done = session.diffFiles({.binary = true}, [&](const FileDiff& diff) {
    if (!diff.omitted.empty()) {
      printNotice("not in the patch: " + displayedPath(diff.path) + ": " + diff.omitted);
      whole = false;
    }
    failed = printBytes(diff.patch);
    return failed == 0;
  });
  if (!done) return printError(done.error());
  if (!whole) printNotice("use --format tar for what a patch cannot hold");
  return failed != 0 ? failed : whole ? 0 : 1;
}

int exportTar(Session& session) {
  int failed = 0;
  const auto report = session.exportTar({}, [&](std::string_view bytes) {
    failed = printBytes(bytes);
    return failed == 0;
  });
  if (!report) return printError(report.error());
  for (const LeftOut& one : report->left_out)
    printNotice("not in the archive: " + displayedPath(one.path) + ": " + one.reason);
  if (!report->deleted.empty()) {
    printNotice(
        std::to_string(report->deleted.size()) +
        " deleted paths are not in the archive, which holds only what exists; `caisson session diff` lists them");
  }
  return failed != 0 ? failed : report->left_out.empty() ? 0 : 1;
}

int exportChanges(const Arguments& arguments) {
  const auto format = arguments.value(kFormat).value_or("patch");
  if (format != "patch" && format != "tar") {
    return printError(usageError("--format", "expected patch or tar", "caisson session export --help"));
  }
  if (::isatty(STDOUT_FILENO) == 1) {
    return printError(usageError("session export", "standard output is a terminal",
                                 "redirect it to a file; `caisson session diff -p` shows changes"));
  }
  auto session = sessionOf(arguments, "session export", 1, 1);
  if (!session) return printError(session.error());
  return format == "tar" ? exportTar(*session) : exportPatch(*session);
}

}  // namespace

constinit const Verb kSessionDiff{
    .path = "session diff",
    .summary = "Show what changed since a checkpoint, or since the beginning",
    .description =
        "A line per path: A added, M modified, D deleted; a deleted directory is one line. With -p the changes inside "
        "the files in git's format, renames included; with --stat the number of lines. On a terminal control and "
        "bidirectional characters are shown escaped; elsewhere `git apply` accepts the output of -p. The content of "
        "binary files is not shown: `caisson session export` writes it. A commit that was killed is finished first, "
        "which standard error says.",
    .examples =
        "caisson session diff fix-login\n"
        "caisson session diff -p fix-login before-refactoring",
    .topic = Topic::session,
    .syntax = {.groups = kDiffGroups, .operands = "ID [CHECKPOINT]"},
    .perform = diff,
};

constinit const Verb kSessionExport{
    .path = "session export",
    .summary = "Write a session's changes as a patch or an archive",
    .description =
        "`patch` is for `git apply` and holds text and binary files, links, renames and deletions. `tar` holds the "
        "added and modified files, with directories, permissions and sparse files, but no deletions. What the format "
        "cannot hold is named on standard error, and the exit status is 1 then.",
    .examples =
        "caisson session export fix-login > fix.patch\n"
        "caisson session export fix-login --format tar | tar -x -C elsewhere",
    .topic = Topic::session,
    .syntax = {.groups = kExportGroups, .operands = "ID"},
    .perform = exportChanges,
};

}  // namespace caisson::cli
