// `caisson session checkpoint|checkpoints|restore|fork|rebind`: freeze, go back, branch, another real directory.
#include "base/json_writer.h"
#include "base/time_text.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kStop{
    .name = "stop", .help = "Kill the session's processes first. Without --stop the command fails if any are running."};
constexpr Option kStopOptions[] = {kStop};
constexpr OptionGroup kStopGroups[] = {{"Options", kStopOptions}};

constexpr Option kName{.name = "name", .value = "NAME", .help = "A name that works wherever the id does."};
constexpr Option kTtl{
    .name = "ttl", .value = "DUR", .help = "End the fork after so long without a request (default: 1h)."};
constexpr Option kForkOptions[] = {kName, kTtl, kStop};
constexpr OptionGroup kForkGroups[] = {{"Options", kForkOptions}};

constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kListOptions[] = {kJson};
constexpr OptionGroup kListGroups[] = {{"Output", kListOptions}};

WhenBusy whenBusy(const Arguments& arguments) { return arguments.has(kStop) ? WhenBusy::stop : WhenBusy::refuse; }

int checkpoint(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session checkpoint", 1, 2);
  if (!session) return printError(session.error());
  const std::string_view name = arguments.operands.size() > 1 ? arguments.operands[1] : "";
  const auto made = session->checkpoint(name, whenBusy(arguments));
  if (!made) return printError(made.error());
  return print(made->name + "\n");
}

int restore(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session restore", 2, 2);
  if (!session) return printError(session.error());
  if (auto done = session->restore(arguments.operands[1], whenBusy(arguments)); !done) return printError(done.error());
  return 0;
}

int rebind(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session rebind", 2, 2);
  if (!session) return printError(session.error());
  const std::string directory(arguments.operands[1]);
  if (auto done = session->rebind(directory, whenBusy(arguments)); !done) return printError(done.error());
  return 0;
}

int fork(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session fork", 1, 1);
  if (!session) return printError(session.error());
  ForkOptions options;
  options.when_busy = whenBusy(arguments);
  if (const auto name = arguments.value(kName)) options.name = *name;
  if (const auto ttl = arguments.value(kTtl)) {
    const auto seconds = secondsFrom(*ttl, "--ttl");
    if (!seconds) return printError(seconds.error());
    options.ttl_seconds = *seconds;
  }
  const auto other = session->fork(options);
  if (!other) return printError(other.error());
  return print(other->id() + "\n");
}

int checkpoints(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session checkpoints", 1, 1);
  if (!session) return printError(session.error());
  const auto list = session->checkpoints();
  if (!list) return printError(list.error());
  if (!arguments.has(kJson)) {
    std::string text;
    for (const CheckpointInfo& one : *list) text += utcText(one.created) + "  " + safeLine(one.name) + "\n";
    return print(text);
  }
  JsonWriter json;
  json.beginObject().key("checkpoints").beginArray();
  for (const CheckpointInfo& one : *list) {
    json.beginObject().key("name").string(one.name).key("created").number(one.created).end();
  }
  json.end().end();
  return print(json.text() + "\n");
}

}  // namespace

constinit const Verb kSessionCheckpoint{
    .path = "session checkpoint",
    .summary = "Freeze a session's workspace under a name",
    .description =
        "Prints the name; without NAME one is chosen. It takes the same time whatever is in the workspace. The sandbox "
        "is "
        "started anew by the next command: directories in memory begin empty again.",
    .examples = "caisson session checkpoint fix-login before-refactoring",
    .topic = Topic::session,
    .syntax = {.groups = kStopGroups, .operands = "ID [NAME]"},
    .perform = checkpoint,
};

constinit const Verb kSessionRestore{
    .path = "session restore",
    .summary = "Make the workspace what it was at a checkpoint",
    .description = "What was changed since is lost, unless a checkpoint holds it. `begin` is the session's beginning.",
    .topic = Topic::session,
    .syntax = {.groups = kStopGroups, .operands = "ID CHECKPOINT"},
    .perform = restore,
};

constinit const Verb kSessionRebind{
    .path = "session rebind",
    .summary = "Continue a session on another directory",
    .description =
        "A session belongs to the directory that it was created for, not to a path: if another directory, or a link, "
        "is "
        "at that path, its commands are refused, since a sandbox may have put it there. This makes DIR the session's "
        "directory, for example after it was moved, or deleted and cloned again. The session's changes stay; what the "
        "directory had before is not compared.",
    .examples = "caisson session rebind fix-login ~/src/app",
    .topic = Topic::session,
    .syntax = {.groups = kStopGroups, .operands = "ID DIR"},
    .perform = rebind,
};

constinit const Verb kSessionFork{
    .path = "session fork",
    .summary = "Begin a second session where this one is",
    .description = "Prints the new session's id. Neither sees what the other does from then on.",
    .topic = Topic::session,
    .syntax = {.groups = kForkGroups, .operands = "ID"},
    .perform = fork,
};

constinit const Verb kSessionCheckpoints{
    .path = "session checkpoints",
    .summary = "List a session's checkpoints",
    .description =
        "Oldest first, with the time they were made. `begin`, the session's beginning, always exists and is not "
        "listed.",
    .topic = Topic::session,
    .syntax = {.groups = kListGroups, .operands = "ID"},
    .perform = checkpoints,
};

}  // namespace caisson::cli
