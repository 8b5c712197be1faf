// The tool that writes changes to the user's real files. Unless commits were allowed in advance, the user sees the
// whole manifest. The commit is bound to its digest: exactly that is written. Files that the host would execute later
// (hooks, tasks, start-up files) are marked and always need an answer.
#include <algorithm>

#include "api/commit_text.h"
#include "base/deceptive_text.h"
#include "base/path_text.h"
#include "base/safe_text.h"
#include "base/shell_quote.h"
#include "mcp/sandbox/approval.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kEntriesPerPage = 100;
constexpr std::size_t kBytesPerPage = std::size_t{64} << 10U;
constexpr std::size_t kMaxListed = 500;
constexpr std::size_t kMaxCautions = 20;
constexpr std::size_t kMaxCautionBytes = std::size_t{8} << 10U;
/// Paths in the command that an error suggests.
constexpr std::size_t kMaxSuggestedPaths = 20;
/// How often a commit approved in advance is replanned while processes keep writing.
constexpr int kMaxPlans = 3;

constexpr Parameter kCommitParameters[] = {
    kSandboxId,
    {.name = "paths",
     .type = ParameterType::texts,
     .description = "Files or directories relative to /workspace (default: everything that changed). What the host "
                    "would execute later, such as git hooks, and files of unusual kinds are committed only if they are "
                    "named here themselves."},
    kPathsEncoding,
    {.name = "dry_run", .type = ParameterType::boolean, .description = "Only say what would be committed."},
    {.name = "digest",
     .type = ParameterType::text,
     .description = "The digest of a dry run: if the changes are others by now, nothing is committed."},
};

constexpr std::string_view kOutput = R"("sandbox_id":{"type":"string"},"committed":{"type":"boolean"},
  "digest":{"type":"string"},"changes":{"type":"integer"},"bytes":{"type":"integer"},
  "applied":{"type":"array","items":{"type":"object"}},"conflicts":{"type":"array","items":{"type":"object"}},
  "held":{"type":"array","items":{"type":"object"}},"skipped":{"type":"array","items":{"type":"object"}})";

Json listOf(const std::vector<NotCommitted>& entries) {
  Json list = Json::array();
  for (const NotCommitted& entry : entries)
    if (list.size() < kMaxListed) setBytes(list.emplace_back(Json{{"reason", entry.reason}}), "path", entry.path);
  return list;
}

Json describe(const Call& call, const Sandbox& sandbox, const CommitReport& report, bool committed) {
  Json applied = Json::array();
  for (const ManifestEntry& entry : report.applied) {
    if (applied.size() >= kMaxListed) break;
    Json one{{"change", name(entry.kind)}};
    setBytes(one, "path", entry.path);
    if (!entry.sha256.empty()) one["sha256"] = entry.sha256;
    if (!entry.target.empty()) setBytes(one, "target", entry.target);
    if (entry.replaces_directory) one["replaces_directory"] = true;
    if (const std::string mode = modeChange(entry); !mode.empty()) one["mode_change"] = mode;
    applied.push_back(std::move(one));
  }
  return structuredResult(call, {{"sandbox_id", sandbox.id()},
                                 {"committed", committed},
                                 {"digest", report.digest},
                                 {"changes", report.applied.size()},
                                 {"bytes", report.bytes},
                                 {"applied", std::move(applied)},
                                 {"conflicts", listOf(report.conflicts)},
                                 {"held", listOf(report.held)},
                                 {"skipped", listOf(report.skipped)}});
}

/// One change in the question.
std::string lineOf(const ManifestEntry& entry) {
  std::string line = "\n- " + commitLine(entry);
  if (entry.held_unless_named) line += "; careful: " + safeLine(entry.held_reason);
  return line;
}

/// The caution that fits into a question. The list of changes marks all of them.
std::string shortCaution(const CommitReport& planned) {
  for (std::size_t most = kMaxCautions;; --most) {
    std::string text = commitCaution(planned, most);
    if (text.size() <= kMaxCautionBytes || most == 0) return text;
  }
}

/// The whole manifest as a question: totals and files that the host would execute, then every change, those first. A
/// payload chooses their number, so only one page is built at a time.
class Question {
 public:
  Question(const CommitReport& planned, const std::string& workspace)
      : order_(cautionEntries(planned)),
        head_("Write " + commitTotals(planned) + " from the sandbox to " + workspace + "? Digest " +
              planned.digest.substr(0, 16) + ".") {
    if (!order_.empty()) head_ += "\n" + shortCaution(planned);
    for (const ManifestEntry& entry : planned.applied)
      if (!entry.held_unless_named) order_.push_back(&entry);
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const std::size_t size = lineOf(*order_[at]).size();
      if (starts_.empty() || at - starts_.back() == kEntriesPerPage || bytes + size > kBytesPerPage) {
        starts_.push_back(at);
        bytes = 0;
      }
      bytes += size;
    }
  }
  [[nodiscard]] std::size_t pages() const { return starts_.size(); }
  [[nodiscard]] std::string page(std::size_t number) const {
    std::string text = head_;
    if (pages() > 1) text += "\nPage " + std::to_string(number + 1) + " of " + std::to_string(pages()) + ":";
    const std::size_t end = number + 1 < pages() ? starts_[number + 1] : order_.size();
    for (std::size_t at = starts_[number]; at < end; ++at) text += lineOf(*order_[at]);
    return text;
  }

 private:
  std::vector<const ManifestEntry*> order_;
  std::string head_;
  std::vector<std::size_t> starts_;  ///< of each page, in order_
};

/// The command with which the user can do the same.
std::string byHand(const Sandbox& sandbox, const std::vector<std::string>& paths) {
  std::string text = "they can run `caisson session commit " + sandbox.id();
  if (paths.size() > kMaxSuggestedPaths) return text + " PATH...` themselves; nothing was written";
  for (const std::string& path : paths) text += " " + (isPlainName(path) ? shellQuoted(path) : displayedPath(path));
  return text + "` themselves; nothing was written";
}

/// Asks the user about exactly these changes.
ApprovalOutcome askAbout(Call& call, Sandboxes& sandboxes, const Sandbox& sandbox, const CommitReport& planned,
                         const std::string& workspace, const std::vector<std::string>& paths) {
  if (!isReadable(workspace))
    return plainError(Stage::usage, "sandbox_commit", "the workspace",
                      "its name contains characters that hide what they are", "");
  const Question question(planned, workspace);
  const bool several = question.pages() > 1;
  return obtainApproval(call,
                        {.what = "commit:" + workspace,
                         .sandbox = sandbox.id(),
                         .message = several ? "" : question.page(0),
                         .pages = question.pages(),
                         .page_text = [&](std::size_t number) { return question.page(number); },
                         .exactly = planned.digest,
                         // An approval in advance does not cover unusual files.
                         .keep = cautionEntries(planned).empty(),
                         .remedy = byHand(sandbox, paths)},
                        sandboxes.deniedRequests());
}

Outcome commit(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto shown = sandboxes.with(**sandbox, [](Session& session) { return session.info(); });
  if (!shown) return failure(call, shown.error());
  if (!arguments.flag("dry_run") && !sandboxes.settings().bounds.mayCommitTo(shown->workspace))
    return refuse(call, kCommitTool.name,
                  {"", "the operator of this server lets nothing be written to " + shown->workspace,
                   "use sandbox_diff to show the changes"},
                  {{"sandbox_id", (*sandbox)->id()}});
  auto paths = arguments.paths("paths");
  if (!paths) return errorResult(kInvalidPath);
  CommitRequest request{.paths = std::move(*paths),
                        .ordinary_files_only = true,
                        .excluded = sandboxes.settings().bounds.neverCommittedIn(shown->workspace)};
  const auto run = [&](bool dry_run, const std::string& expect) {
    request.dry_run = dry_run;
    request.expect = expect;
    return sandboxes.with(**sandbox, [&](Session& session) { return session.commit(request); });
  };
  std::optional<Error> failed;
  std::string failed_digest;
  for (int plans = 1;; ++plans) {
    const auto planned = run(true, arguments.text("digest"));
    if (!planned) return failure(call, planned.error());
    if (failed && (planned->digest == failed_digest || plans > kMaxPlans)) return failure(call, *failed);
    if (arguments.flag("dry_run") || planned->applied.empty()) return describe(call, **sandbox, *planned, false);
    const bool unusual = !cautionEntries(*planned).empty();
    bool asked = false;
    if (unusual || !sandboxes.settings().commit_without_asking) {
      const auto info = sandboxes.with(**sandbox, [](Session& session) { return session.info(); });
      if (!info) return failure(call, info.error());
      ApprovalOutcome approved = askAbout(call, sandboxes, **sandbox, *planned, info->workspace, request.paths);
      if (auto* needs = std::get_if<NeedsInput>(&approved)) return std::move(*needs);
      if (const auto* error = std::get_if<Error>(&approved)) return failure(call, *error);
      asked = std::get<approval::Approval>(approved).id.empty();
    }
    // Pass the digest even if the commit was approved in advance: a file that appears now may need its own approval.
    const auto done = run(false, planned->digest);
    if (done) return describe(call, **sandbox, *done, true);
    if (asked) return failure(call, done.error());
    failed = done.error();
    failed_digest = planned->digest;
  }
}

}  // namespace

constinit const Tool kCommitTool{
    .name = "sandbox_commit",
    .title = "Write changes to the user's files",
    .description =
        "Bring changes of /workspace to the user's real directory. The user is asked first, about exactly what is then "
        "written: stop processes that write files before. Files that the user changed meanwhile are conflicts and left "
        "alone; files that the user's computer would execute later, and unusual kinds of files, are held back unless "
        "named. Use sandbox_diff to see what there is.",
    .parameters = kCommitParameters,
    .output = kOutput,
    .behaviour = {.destructive = true, .open_world = true},
    .perform = commit,
};

}  // namespace caisson::mcp
