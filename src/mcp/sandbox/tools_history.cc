// Tools for the states of a workspace: keep one, go back to one, branch off, see what changed.
#include <algorithm>

#include "base/utf8.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxChanges = 500;
/// The patches in one result: what hosts show of it, and more than a model can use at once.
constexpr std::int64_t kUsualPatchBytes = 48'000;
constexpr std::int64_t kMaxPatchBytes = 1 << 20;

constexpr Parameter kCheckpointParameters[] = {
    kSandboxId, {.name = "name", .description = "A name for the checkpoint; chosen for you if left out."}, kStop};
constexpr Parameter kRestoreParameters[] = {
    kSandboxId,
    {.name = "checkpoint",
     .required = true,
     .description = "The name that sandbox_checkpoint returned; `begin` is the state the sandbox started with."},
    kStop};
constexpr Parameter kForkParameters[] = {kSandboxId,
                                         {.name = "name", .description = "A short name for the new sandbox."},
                                         {.name = "timeout_seconds",
                                          .type = ParameterType::integer,
                                          .description = "The new sandbox expires after this many seconds without a "
                                                         "request (default 3600).",
                                          .least = 1,
                                          .most = 7 * 24 * 3600},
                                         kStop};
constexpr Parameter kDiffParameters[] = {
    kSandboxId,
    {.name = "checkpoint", .description = "Compare with this checkpoint (default: with the beginning)."},
    {.name = "patch",
     .type = ParameterType::boolean,
     .description = "Also return the changes inside the files, as `git diff` shows them."},
    {.name = "paths",
     .type = ParameterType::texts,
     .description = "Only these files or directories, relative to /workspace."},
    kPathsEncoding,
    {.name = "max_bytes",
     .type = ParameterType::integer,
     .description = "With patch: at most this many bytes of patches (default 48000).",
     .least = 1,
     .most = kMaxPatchBytes}};

Outcome checkpoint(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto made = sandboxes.with(
      **sandbox, [&](Session& session) { return session.checkpoint(arguments.text("name"), whenBusy(arguments)); });
  if (!made) return failure(call, made.error());
  Json all = Json::array();
  if (const auto list = sandboxes.with(**sandbox, [](Session& session) { return session.checkpoints(); }))
    for (const CheckpointInfo& info : *list) all.push_back(info.name);
  return structuredResult(
      call, {{"sandbox_id", (*sandbox)->id()}, {"checkpoint", made->name}, {"checkpoints", std::move(all)}});
}

Outcome restore(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto restored = sandboxes.with(
      **sandbox, [&](Session& session) { return session.restore(arguments.text("checkpoint"), whenBusy(arguments)); });
  if (!restored) return failure(call, restored.error());
  return structuredResult(call, {{"sandbox_id", (*sandbox)->id()}, {"restored", arguments.text("checkpoint")}});
}

Outcome fork(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  if (auto checked = checkModelsName("sandbox_fork", arguments.text("name")); !checked)
    return failure(call, checked.error());
  ForkOptions options{.name = arguments.text("name"), .when_busy = whenBusy(arguments)};
  options.ttl_seconds = ttlOf(sandboxes, arguments);
  const auto make = [&](SessionStore&) {
    return sandboxes.with(**sandbox, [&](Session& session) { return session.fork(options); });
  };
  const auto branch = sandboxes.create(make, (*sandbox)->stays());
  if (!branch) return failure(call, branch.error());
  return structuredResult(call, {{"sandbox_id", (*branch)->id()},
                                 {"forked_from", (*sandbox)->id()},
                                 {"expires_in_seconds", options.ttl_seconds}});
}

/// Selects the requested paths and all below them. Everything: no paths, or one that is the workspace itself.
class PathFilter {
 public:
  explicit PathFilter(std::vector<std::string> paths) : paths_(std::move(paths)) {
    for (std::string& path : paths_) {
      while (path.ends_with('/')) path.pop_back();
      if (path == "/workspace" || path.starts_with("/workspace/")) path.erase(0, 11);
      while (path.starts_with("./")) path.erase(0, 2);
      if (path.empty()) path = ".";
    }
  }
  [[nodiscard]] bool has(std::string_view path) const {
    return paths_.empty() || std::ranges::any_of(paths_, [&](const std::string& one) {
             return one == "." || (path.starts_with(one) && (path.size() == one.size() || path[one.size()] == '/'));
           });
  }

 private:
  std::vector<std::string> paths_;
};

/// What a diff's result is made of. Patches are whole or left out, so that `git apply` takes what is there.
class DiffResult {
 public:
  explicit DiffResult(std::size_t max_patch_bytes) : max_patch_bytes_(max_patch_bytes) {}
  void add(const Change& change) {
    if (++total_ > kMaxChanges) return;
    Json one{{"change", name(change.kind)}, {"type", change.type}, {"size", change.size}};
    setBytes(one, "path", change.path);
    if (!change.omitted.empty()) one["omitted"] = change.omitted;
    if (const std::string mode = modeChange(change); !mode.empty()) one["mode_change"] = mode;
    changes_.push_back(std::move(one));
  }
  void add(const FileDiff& diff) {
    const bool deleted = diff.kind == ChangeKind::deleted;
    add(Change{diff.path, diff.kind, deleted ? diff.old_type : diff.type, deleted ? 0 : diff.size,
               diff.unread ? diff.omitted : ""});
    if (total_ <= kMaxChanges) {
      Json& one = changes_.back();
      if (diff.renamed()) one["change"] = "renamed";
      if (diff.renamed()) setBytes(one, "old_path", diff.old_path);
      one["added_lines"] = diff.added_lines;
      one["removed_lines"] = diff.removed_lines;
      if (diff.binary) one["binary"] = true;
      if (const std::string mode = modeChange(diff); !mode.empty()) one["mode_change"] = mode;
    }
    if (!diff.omitted.empty()) return leaveOut(diff.path, diff.omitted);
    if (!isUtf8(diff.patch)) return leaveOut(diff.path, "its text is not UTF-8");
    if (diff.patch.size() > max_patch_bytes_)
      return leaveOut(diff.path, "its patch has " + std::to_string(diff.patch.size()) +
                                     " bytes: raise `max_bytes`, or read the file");
    if (patch_.size() + diff.patch.size() > max_patch_bytes_)
      return leaveOut(diff.path, "the result is full: name it in `paths`, or raise `max_bytes`");
    patch_ += diff.patch;
  }
  Json take(const std::string& id, bool patch) {
    const bool cut = total_ > changes_.size();
    Json result{{"sandbox_id", id}, {"changes", std::move(changes_)}, {"total_changes", total_}, {"truncated", cut}};
    std::string note;
    if (cut)
      note = "Only the first " + std::to_string(kMaxChanges) + " changes are listed: name a directory in `paths`.";
    if (left_out_count_ > 0)
      note += (note.empty() ? "" : " ") + std::string("The patch lacks ") + std::to_string(left_out_count_) +
              " of the changed files: left_out has the reasons.";
    if (patch) {
      result["patch"] = std::move(patch_);
      result["left_out"] = std::move(left_out_);
    }
    if (!note.empty()) result["note"] = note;
    return result;
  }

 private:
  void leaveOut(const std::string& path, const std::string& why) {
    ++left_out_count_;
    if (left_out_.size() < kMaxChanges) setBytes(left_out_.emplace_back(Json{{"reason", why}}), "path", path);
  }

  std::size_t max_patch_bytes_;
  std::size_t total_ = 0, left_out_count_ = 0;
  Json changes_ = Json::array(), left_out_ = Json::array();
  std::string patch_;
};

Outcome diff(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  auto paths = arguments.paths("paths");
  if (!paths) return errorResult(kInvalidPath);
  const PathFilter wanted(std::move(*paths));
  const std::string checkpoint = arguments.text("checkpoint");
  const bool patch = arguments.flag("patch");
  DiffResult result(static_cast<std::size_t>(arguments.integer("max_bytes").value_or(kUsualPatchBytes)));
  const auto done = sandboxes.with(**sandbox, [&](Session& session) -> Result<void> {
    if (patch) {
      return session.diffFiles({.checkpoint = checkpoint}, [&](const FileDiff& one) {
        if (wanted.has(one.path)) result.add(one);
        return true;
      });
    }
    const auto changes = session.diff(checkpoint);
    if (!changes) return std::unexpected(changes.error());
    for (const Change& change : *changes) {
      if (wanted.has(change.path)) result.add(change);
    }
    return {};
  });
  if (!done) return failure(call, done.error());
  return structuredResult(call, result.take((*sandbox)->id(), patch));
}

}  // namespace

constinit const Tool kCheckpointTool{
    .name = "sandbox_checkpoint",
    .title = "Keep the state of a workspace",
    .description =
        "Remember the sandbox's /workspace as it is now, to go back to with sandbox_restore. Takes a moment, whatever "
        "its size. Do it before anything risky. /tmp and running processes are not part of it.",
    .parameters = kCheckpointParameters,
    .output = R"("sandbox_id":{"type":"string"},"checkpoint":{"type":"string"},
      "checkpoints":{"type":"array","items":{"type":"string"}})",
    .behaviour = {.destructive = false},
    .perform = checkpoint,
};

constinit const Tool kRestoreTool{
    .name = "sandbox_restore",
    .title = "Go back to a checkpoint",
    .description =
        "Make the sandbox's /workspace what it was at a checkpoint. What was changed since is lost unless it was "
        "checkpointed; other checkpoints stay.",
    .parameters = kRestoreParameters,
    .output = R"("sandbox_id":{"type":"string"},"restored":{"type":"string"})",
    .behaviour = {.destructive = true, .idempotent = true},
    .perform = restore,
};

constinit const Tool kForkTool{
    .name = "sandbox_fork",
    .title = "Branch off a sandbox",
    .description =
        "Make a second sandbox whose /workspace begins as this one's is now; then neither sees what the other does. "
        "For trying two ways at once. Returns its sandbox_id.",
    .parameters = kForkParameters,
    .output =
        R"("sandbox_id":{"type":"string"},"forked_from":{"type":"string"},"expires_in_seconds":{"type":"number"})",
    .behaviour = {.destructive = false},
    .perform = fork,
};

constinit const Tool kDiffTool{
    .name = "sandbox_diff",
    .title = "See what changed",
    .description =
        "The files of /workspace that were added, modified or deleted since a checkpoint, or since the beginning, "
        "which is how they differ from the user's own. With `patch` also what changed inside them, as a unified diff; "
        "binary "
        "files are only named.",
    .parameters = kDiffParameters,
    .output = R"("sandbox_id":{"type":"string"},"changes":{"type":"array","items":{"type":"object"}},
      "total_changes":{"type":"integer"},"truncated":{"type":"boolean"},"patch":{"type":"string"},
      "left_out":{"type":"array","items":{"type":"object"},"description":"Changes that are not in the patch, and why"},
      "note":{"type":"string","description":"What was cut, and how to get it"})",
    .behaviour = {.read_only = true, .destructive = false, .idempotent = true},
    .perform = diff,
};

}  // namespace caisson::mcp
