// The tool that writes changes to the user's real files. Unless commits were allowed in advance, the user sees the
// whole manifest. The commit is bound to its digest: exactly that is written. Files that the host would execute later
// (hooks, tasks, start-up files) are marked and always need an answer.
#include <algorithm>

#include "api/commit_text.h"
#include "base/deceptive_text.h"
#include "base/path_text.h"
#include "base/shell_quote.h"
#include "mcp/sandbox/approval.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kEntriesPerPage = 100;
constexpr std::size_t kMaxListed = 500;
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

/// The whole manifest as a question: totals and files that the host would execute, then every change, in pages. Nothing
/// if the workspace's name cannot be displayed safely.
std::optional<std::vector<std::string>> question(const CommitReport& planned, const std::string& workspace) {
  if (!isReadable(workspace)) return std::nullopt;
  std::vector<std::string> pages;
  for (std::size_t at = 0; at < planned.applied.size(); ++at) {
    const ManifestEntry& entry = planned.applied[at];
    if (at % kEntriesPerPage == 0) pages.emplace_back();
    pages.back() += "\n- " + commitLine(entry);
  }
  std::string head = "Write " + commitTotals(planned) + " from the sandbox to " + workspace + "? Digest " +
                     planned.digest.substr(0, 16) + ".";
  if (const std::string caution = commitCaution(planned, planned.applied.size()); !caution.empty()) {
    head += "\n" + caution;
  }
  for (std::size_t page = 0; page < pages.size(); ++page) {
    const std::string number = "\nPage " + std::to_string(page + 1) + " of " + std::to_string(pages.size()) + ":";
    pages[page] = head + (pages.size() > 1 ? number : "") + pages[page];
  }
  return pages;
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
  CommitRequest request{.paths = std::move(*paths), .ordinary_files_only = true};
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
      std::string by_hand = "they can run `caisson session commit " + (*sandbox)->id();
      for (const std::string& path : request.paths)
        by_hand += " " + (isReadable(path) ? shellQuoted(path) : displayedPath(path));
      auto pages = question(*planned, info->workspace);
      if (!pages) return errorResult("the name of the workspace contains characters that hide what they are");
      ApprovalOutcome approved = obtainApproval(call,
                                                {.what = "commit:" + info->workspace,
                                                 .sandbox = (*sandbox)->id(),
                                                 .message = pages->front(),
                                                 .more_pages = {pages->begin() + 1, pages->end()},
                                                 .exactly = planned->digest,
                                                 .keep = !unusual,  // an approval in advance does not cover these
                                                 .remedy = by_hand + "` themselves; nothing was written"},
                                                sandboxes.deniedRequests());
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
