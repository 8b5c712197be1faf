// Checkpoints, forks, differences, commits.
#include <algorithm>

#include "server/app.h"
#include "server/body_paths.h"
#include "server/describe.h"

namespace caisson::server {
namespace {

constexpr Field kStopField{.name = "stop",
                           .type = FieldType::boolean,
                           .description = "Kill running processes first; else 409 if there are any."};
constexpr Field kCheckpointFields[] = {{.name = "name", .description = "Generated if it is not given."}, kStopField};
constexpr Field kRestoreFields[] = {
    {.name = "checkpoint", .required = true, .description = "Its name; begin: the state in which the sandbox began."},
    kStopField};
constexpr Field kForkFields[] = {{.name = "name", .description = "A name for people; at most 128 bytes."},
                                 {.name = "sandbox_timeout",
                                  .type = FieldType::number,
                                  .description = "As for a new sandbox.",
                                  .least = 1,
                                  .most = 7 * 24 * 3600},
                                 kStopField};
constexpr Field kDiffQuery[] = {
    {.name = "checkpoint", .description = "Compare with this one; with the beginning by default."},
    {.name = "patch", .type = FieldType::boolean, .description = "With the content, in git's format."},
    {.name = "limit",
     .type = FieldType::integer,
     .description = "At most so many paths; 1000 by default.",
     .least = 1,
     .most = 100'000},
};
constexpr Field kCommitFields[] = {
    {.name = "paths",
     .type = FieldType::texts,
     .description = "Only these, or what is below them. Files that the host would execute only by their own path."},
    {.name = "dry_run", .type = FieldType::boolean, .description = "Change nothing; the result has the digest."},
    {.name = "expect", .description = "Digest of a dry run: commit exactly that, or nothing. Required unless dry_run."},
    {.name = "stop", .type = FieldType::boolean, .description = "Kill running processes first."},
    {.name = "ours",
     .type = FieldType::texts,
     .description = "Conflicts in which the real file stays: files, or directories for all conflicts in them."},
    {.name = "theirs",
     .type = FieldType::texts,
     .description = "Conflicts in which the sandbox's file wins: files, or directories for all conflicts in them."},
    {.name = "merge",
     .type = FieldType::texts,
     .description = "Conflicts to merge line by line: files, or directories for all conflicts in them."},
    kPathEncoding,
};

bool isDigest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

WhenBusy whenBusy(const Call& call) { return call.flag("stop") ? WhenBusy::stop : WhenBusy::refuse; }

template <class Use>
http::Response onHistory(Call& call, Use use) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  return use(**sandbox);
}

http::Response createCheckpoint(Call& call) {
  return onHistory(call, [&](service::Sandbox& sandbox) {
    const auto made = call.app.sandboxes().with(
        sandbox, [&](Session& session) { return session.checkpoint(call.text("name"), whenBusy(call)); });
    sandbox.forgetHandles();
    if (!made) return problemOf(made.error());
    call.app.publish("checkpoint.created", sandbox, {{"name", made->name}});
    return jsonResponse(201, {{"name", made->name}, {"created", made->created}});
  });
}

http::Response listCheckpoints(Call& call) {
  return onHistory(call, [&](service::Sandbox& sandbox) {
    const auto all = call.app.sandboxes().with(sandbox, [](Session& session) { return session.checkpoints(); });
    if (!all) return problemOf(all.error());
    Json list = Json::array();
    for (const CheckpointInfo& one : *all) list.push_back({{"name", one.name}, {"created", one.created}});
    return jsonResponse(200, {{"checkpoints", std::move(list)}});
  });
}

http::Response restoreCheckpoint(Call& call) {
  return onHistory(call, [&](service::Sandbox& sandbox) {
    const auto restored = call.app.sandboxes().with(
        sandbox, [&](Session& session) { return session.restore(call.text("checkpoint"), whenBusy(call)); });
    sandbox.forgetHandles();
    return restored ? http::Response{.status = 204} : problemOf(restored.error());
  });
}

http::Response forkSandbox(Call& call) {
  if (const std::string flaw = findNameFlaw(call); !flaw.empty()) return problem(400, "invalid_body", flaw);
  return onHistory(call, [&](service::Sandbox& sandbox) {
    const ForkOptions options{.ttl_seconds = call.number("sandbox_timeout", 3600), .when_busy = whenBusy(call)};
    auto forked = call.app.sandboxes().fork(call.caller, sandbox, options, call.text("name"));
    if (!forked) return problemOf(forked.error());
    const auto info = call.app.sandboxes().with(**forked, [](Session& session) { return session.info(); });
    return info ? jsonResponse(201, describeSandbox(**forked, *info)) : problemOf(info.error());
  });
}

http::Response getDiff(Call& call) {
  return onHistory(call, [&](service::Sandbox& sandbox) {
    const std::uint64_t limit = call.queryNumber("limit", 1000);
    JsonList list("changes");
    std::uint64_t count = 0;
    bool more = false;
    const DiffOptions options{.checkpoint = call.query("checkpoint"), .patch = call.queryFlag("patch", false)};
    const auto visited = call.app.sandboxes().with(sandbox, [&](Session& session) {
      return session.diffFiles(options, [&](const FileDiff& diff) {
        more = count >= limit;
        if (more) return false;
        Json one{{"kind", name(diff.kind)},
                 {"type", diff.type.empty() ? diff.old_type : diff.type},
                 {"size", diff.size},
                 {"binary", diff.binary},
                 {"added_lines", diff.added_lines},
                 {"removed_lines", diff.removed_lines}};
        setBytes(one, "path", diff.path);
        if (diff.renamed()) setBytes(one, "old_path", diff.old_path);
        if (options.patch) setBytes(one, "patch", diff.patch);
        if (!diff.omitted.empty()) one["omitted"] = diff.omitted;
        ++count;
        more = !list.add(one);
        return !more;
      });
    });
    if (!visited) return problemOf(visited.error());
    return list.finish(more ? R"("truncated":true)" : R"("truncated":false)");
  });
}

/// Of each list of a commit but `applied`, which has the limit of JsonList.
constexpr std::size_t kMaxCommitList = std::size_t{2} << 20U;

/// Appends a list as JSON, and how many of its entries did not fit in: `"NAME":[...],"NAME_not_listed":COUNT,`.
void addList(std::string& text, const std::string& member, const std::vector<NotCommitted>& entries) {
  const std::size_t start = text.size();
  std::size_t listed = 0;
  text += "\"" + member + "\":[";
  for (const NotCommitted& entry : entries) {
    Json one{{"reason", entry.reason}};
    setBytes(one, "path", entry.path);
    const std::string piece = writeJson(one);
    if (text.size() - start + piece.size() > kMaxCommitList) break;
    if (listed++ > 0) text += ',';
    text += piece;
  }
  text += "],\"" + member + "_not_listed\":" + std::to_string(entries.size() - listed) + ",";
}

/// The first paths that fit into kMaxCommitList.
std::vector<std::string> firstPaths(const std::vector<std::string>& paths) {
  std::vector<std::string> first;
  std::size_t bytes = 0;
  for (const std::string& path : paths) {
    bytes += 2 * path.size() + 4;  // base64 and escapes need more than the path itself
    if (bytes > kMaxCommitList) break;
    first.push_back(path);
  }
  return first;
}

/// Written piece by piece: a sandbox may have changed millions of files. The digest covers all of them.
http::Response commitResponse(const CommitReport& report) {
  JsonList applied("applied");
  std::size_t listed = 0;
  for (const ManifestEntry& entry : report.applied) {
    Json one{{"kind", name(entry.kind)}, {"type", entry.type},     {"size", entry.size},
             {"sha256", entry.sha256},   {"merged", entry.merged}, {"replaces_directory", entry.replaces_directory}};
    setBytes(one, "path", entry.path);
    if (const std::string mode = modeChange(entry); !mode.empty()) one["mode_change"] = mode;
    if (!applied.add(one)) break;
    ++listed;
  }
  std::string others;
  addList(others, "conflicts", report.conflicts);
  addList(others, "held", report.held);
  addList(others, "skipped", report.skipped);
  const std::vector<std::string> kept = firstPaths(report.kept);
  Json rest{{"digest", report.digest},
            {"bytes", report.bytes},
            {"consistent", report.consistent},
            {"searched", report.searched},
            {"applied_not_listed", report.applied.size() - listed},
            {"kept_not_listed", report.kept.size() - kept.size()}};
  setBytes(rest, "kept", kept);
  const std::string members = writeJson(rest);
  return applied.finish(others.append(members, 1, members.size() - 2));
}

/// The request in the body; nothing if one of its paths is invalid.
std::optional<CommitRequest> commitRequest(const Call& call) {
  CommitRequest request{.dry_run = call.flag("dry_run"), .expect = call.text("expect"), .stop = call.flag("stop")};
  request.ordinary_files_only = !call.caller.owner;
  const std::pair<std::string_view, std::vector<std::string>*> lists[] = {
      {"paths", &request.paths}, {"ours", &request.ours}, {"theirs", &request.theirs}, {"merge", &request.merge}};
  for (const auto& [field, list] : lists) {
    auto paths = pathsInBody(call, field);
    if (!paths) return std::nullopt;
    *list = std::move(*paths);
  }
  return request;
}

http::Response commitProblem(Error error) {
  if (error.code == ErrorCode::digest_mismatch) error.hint = "nothing was written; make a dry run again";
  return problemOf(error);
}

/// The content that the owner is asked about: that of a dry run, if it has the digest of the request.
service::ExactContent contentOf(Call& call, service::Sandbox& sandbox, CommitRequest request,
                                const std::string& workspace) {
  request.dry_run = true;
  const auto describe = [&call, &sandbox, request, workspace]() -> Result<Json> {
    const auto planned = call.app.sandboxes().with(sandbox, [&](Session& session) { return session.commit(request); });
    sandbox.forgetHandles();
    if (!planned) return std::unexpected(planned.error());
    return describeForApproval(*planned, workspace);
  };
  return {.digest = request.expect, .describe = describe};
}

http::Response commitChanges(Call& call) {
  return onHistory(call, [&](service::Sandbox& sandbox) {
    const std::optional<CommitRequest> request = commitRequest(call);
    if (!request) return invalidPath();
    const bool dry = request->dry_run;
    if (!dry && !call.has("expect"))
      return problem(400, "invalid_body", "a commit needs the digest of a dry run",
                     "first {\"dry_run\": true}, then {\"expect\": DIGEST}");
    // It is stored with the request for approval, so its length must be bounded.
    if (call.has("expect") && !isDigest(call.text("expect")) && !(dry && call.text("expect").empty()))
      return problem(400, "invalid_body", "field \"expect\": expected the digest of a dry run, 64 hexadecimal digits");
    const auto info = call.app.sandboxes().with(sandbox, [](Session& session) { return session.info(); });
    if (!info) return problemOf(info.error());
    if (info->workspace.empty()) return problem(409, "no_workspace", "the sandbox has no host directory to commit to");
    if (!dry) {
      std::vector<service::PendingApproval> missing;
      const auto approved = call.app.inbox().require(call.caller, sandbox.id(), {"commit:" + info->workspace}, missing,
                                                     contentOf(call, sandbox, *request, info->workspace));
      if (!approved) return commitProblem(approved.error());
      if (!*approved) return approvalNeeded(call, missing);
    }
    const auto report = call.app.sandboxes().with(sandbox, [&](Session& session) { return session.commit(*request); });
    sandbox.forgetHandles();
    if (!report) return commitProblem(report.error());
    if (!dry)
      call.app.publish("commit.applied", sandbox, {{"digest", report->digest}, {"files", report->applied.size()}});
    call.unchanged = dry;
    return commitResponse(*report);
  });
}

constexpr Route kHistoryRoutes[] = {
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/checkpoints",
     .operation = "createCheckpoint",
     .tag = "history",
     .summary = "Freeze the workspace under a name",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kCheckpointFields,
     .status = 201,
     .result = "Checkpoint",
     .lane = http::Lane::transfer,
     .perform = createCheckpoint},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/checkpoints",
     .operation = "listCheckpoints",
     .tag = "history",
     .summary = "List checkpoints, oldest first",
     .result = "CheckpointList",
     .perform = listCheckpoints},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/restore",
     .operation = "restoreCheckpoint",
     .tag = "history",
     .summary = "Return the workspace to a checkpoint",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kRestoreFields,
     .status = 204,
     .lane = http::Lane::transfer,
     .perform = restoreCheckpoint},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/fork",
     .operation = "forkSandbox",
     .tag = "history",
     .summary = "Create a second sandbox with the same files",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kForkFields,
     .status = 201,
     .result = "Sandbox",
     .lane = http::Lane::transfer,
     .perform = forkSandbox},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/diff",
     .operation = "getDiff",
     .tag = "history",
     .summary = "What changed",
     .query = kDiffQuery,
     .result = "Diff",
     .lane = http::Lane::transfer,
     .perform = getDiff},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/commit",
     .operation = "commitChanges",
     .tag = "history",
     .summary = "Write changes to the host directory, as one transaction",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kCommitFields,
     .result = "Commit",
     .lane = http::Lane::transfer,
     .perform = commitChanges},
};

}  // namespace

std::span<const Route> historyRoutes() { return kHistoryRoutes; }

}  // namespace caisson::server
