// Tools for the states of a workspace: keep one, go back to one, branch off, see what changed.
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxChanges = 500;

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
                                          .description = "Time to live of the new sandbox (default 3600).",
                                          .least = 1,
                                          .most = 7 * 24 * 3600},
                                         kStop};
constexpr Parameter kDiffParameters[] = {
    kSandboxId, {.name = "checkpoint", .description = "Compare with this checkpoint (default: with the beginning)."}};

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
  ForkOptions options{.name = arguments.text("name"), .when_busy = whenBusy(arguments)};
  options.ttl_seconds = static_cast<double>(arguments.integer("timeout_seconds").value_or(3600));
  const auto branch = sandboxes.with(**sandbox, [&](Session& session) { return session.fork(options); });
  if (!branch) return failure(call, branch.error());
  sandboxes.adopt(branch->id(), (*sandbox)->stays());
  return structuredResult(
      call,
      {{"sandbox_id", branch->id()}, {"forked_from", (*sandbox)->id()}, {"expires_in_seconds", options.ttl_seconds}});
}

Outcome diff(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto changes =
      sandboxes.with(**sandbox, [&](Session& session) { return session.diff(arguments.text("checkpoint")); });
  if (!changes) return failure(call, changes.error());
  Json list = Json::array();
  for (const Change& change : *changes) {
    if (list.size() == kMaxChanges) break;
    list.push_back(
        {{"path", change.path}, {"change", name(change.kind)}, {"type", change.type}, {"size", change.size}});
  }
  const bool cut = changes->size() > list.size();
  return structuredResult(call, {{"sandbox_id", (*sandbox)->id()},
                                 {"changes", std::move(list)},
                                 {"total_changes", changes->size()},
                                 {"truncated", cut}});
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
        "which is how they differ from the user's own.",
    .parameters = kDiffParameters,
    .output = R"("sandbox_id":{"type":"string"},"changes":{"type":"array","items":{"type":"object"}},
      "total_changes":{"type":"integer"},"truncated":{"type":"boolean"})",
    .behaviour = {.read_only = true, .destructive = false, .idempotent = true},
    .perform = diff,
};

}  // namespace caisson::mcp
