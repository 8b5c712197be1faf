// The tool that brings changes to the user's real files. The person is asked, and sees what they agree to; what the
// host would execute later (hooks, tasks, start-up files) is pointed out and never goes without an answer.
#include <algorithm>

#include "base/sha256.h"
#include "mcp/sandbox/approval.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kShownPaths = 25;
constexpr std::size_t kMaxListed = 500;

constexpr Parameter kParameters[] = {
    kSandboxId,
    {.name = "paths",
     .type = ParameterType::texts,
     .description = "Files or directories relative to /workspace (default: everything that changed). What the host "
                    "would execute later, such as git hooks, is committed only if it is named here itself."},
    {.name = "dry_run", .type = ParameterType::boolean, .description = "Only say what would be committed."},
};

constexpr std::string_view kOutput = R"("sandbox_id":{"type":"string"},"committed":{"type":"boolean"},
  "applied":{"type":"array","items":{"type":"object"}},"conflicts":{"type":"array","items":{"type":"object"}},
  "held":{"type":"array","items":{"type":"object"}},"skipped":{"type":"array","items":{"type":"object"}})";

Json listOf(const std::vector<NotCommitted>& entries) {
  Json list = Json::array();
  for (const NotCommitted& entry : entries)
    if (list.size() < kMaxListed) list.push_back({{"path", entry.path}, {"reason", entry.reason}});
  return list;
}

Json describe(const Call& call, const Sandbox& sandbox, const CommitReport& report, bool committed) {
  Json applied = Json::array();
  for (const Change& change : report.applied)
    if (applied.size() < kMaxListed) applied.push_back({{"path", change.path}, {"change", name(change.kind)}});
  return structuredResult(call, {{"sandbox_id", sandbox.id()},
                                 {"committed", committed},
                                 {"applied", std::move(applied)},
                                 {"conflicts", listOf(report.conflicts)},
                                 {"held", listOf(report.held)},
                                 {"skipped", listOf(report.skipped)}});
}

/// What the person agrees to: if it is something else by then, they are asked again.
std::string digestOf(const CommitReport& report) {
  Sha256 digest;
  for (const Change& change : report.applied)
    digest.add(change.path)
        .add(std::string_view("\0", 1))
        .add(name(change.kind))
        .add(std::to_string(change.size) + "\n");
  return hex(digest.finish());
}

bool isAmong(const std::string& path, const std::vector<NotCommitted>& entries) {
  return std::any_of(entries.begin(), entries.end(), [&](const NotCommitted& entry) { return entry.path == path; });
}

/// The question, or nothing if a name in it can't be shown honestly.
std::optional<std::string> question(const CommitReport& planned, const std::vector<NotCommitted>& dangerous,
                                    const std::string& workspace) {
  std::string lines;
  std::string executed;
  std::size_t shown = 0;
  for (const Change& change : planned.applied) {
    if (!showable(change.path)) return std::nullopt;
    if (isAmong(change.path, dangerous)) executed += (executed.empty() ? "" : ", ") + change.path;
    if (++shown <= kShownPaths) lines += "\n- " + std::string(name(change.kind)) + " " + change.path;
  }
  if (!showable(workspace)) return std::nullopt;
  if (shown > kShownPaths) lines += "\n- and " + std::to_string(shown - kShownPaths) + " more";
  std::string text = "Write " + std::to_string(shown) + " changes from the sandbox to " + workspace + "?" + lines;
  if (!executed.empty()) text += "\nCAREFUL: your computer would later execute: " + executed;
  return text;
}

Outcome commit(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  CommitRequest request{.paths = arguments.texts("paths"), .dry_run = true};
  const auto plan = [&](const CommitRequest& what) {
    return sandboxes.with(**sandbox, [&](Session& session) { return session.commit(what); });
  };
  const auto planned = plan(request);
  if (!planned) return failure(call, planned.error());
  if (arguments.flag("dry_run") || planned->applied.empty()) return describe(call, **sandbox, *planned, false);
  const auto everything = plan({.dry_run = true});
  if (!everything) return failure(call, everything.error());
  const bool dangerous = std::any_of(planned->applied.begin(), planned->applied.end(),
                                     [&](const Change& change) { return isAmong(change.path, everything->held); });
  if (dangerous || !sandboxes.settings().commit_without_asking) {
    const auto info = sandboxes.with(**sandbox, [](Session& session) { return session.info(); });
    if (!info) return failure(call, info.error());
    std::string by_hand = "they can run `caisson session commit " + (*sandbox)->id();
    for (const std::string& path : request.paths) by_hand += " " + shellWord(path);
    auto text = question(*planned, everything->held, info->workspace);
    if (!text) return errorResult("a path contains characters that hide what they are; name the other paths");
    Word word = ownersWord(call, {.what = "commit:" + info->workspace,
                                  .sandbox = (*sandbox)->id(),
                                  .message = std::move(*text),
                                  .exactly = digestOf(*planned),
                                  .keep = !dangerous,  // a word given beforehand says nothing about these
                                  .remedy = by_hand + "` themselves; nothing was written"});
    if (auto* needs = std::get_if<NeedsInput>(&word)) return std::move(*needs);
    if (const auto* error = std::get_if<Error>(&word)) return failure(call, *error);
  }
  request.dry_run = false;
  const auto done = plan(request);
  if (!done) return failure(call, done.error());
  return describe(call, **sandbox, *done, true);
}

}  // namespace

constinit const Tool kCommitTool{
    .name = "sandbox_commit",
    .title = "Write changes to the user's files",
    .description =
        "Bring changes of /workspace to the user's real directory. The user is asked first. Files that the user "
        "changed meanwhile are conflicts and left alone; files that the user's computer would execute later are held "
        "back unless named. Use sandbox_diff to see what there is.",
    .parameters = kParameters,
    .output = kOutput,
    .behaviour = {.destructive = true, .open_world = true},
    .perform = commit,
};

}  // namespace caisson::mcp
