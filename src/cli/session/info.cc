// `caisson session info`: everything about one session.
#include <ctime>

#include "base/json_writer.h"
#include "base/time_text.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kOptions[] = {kJson};
constexpr OptionGroup kGroups[] = {{"Output", kOptions}};

struct Details {
  SessionInfo info;
  std::vector<CheckpointInfo> checkpoints;
  std::vector<ExecInfo> commands;
  std::vector<ReplacedByCommit> replaced;
  KeptData kept;
  bool uncommitted = false;
};

std::size_t runningOf(const Details& details) {
  std::size_t running = 0;
  for (const ExecInfo& one : details.commands) running += one.running ? 1 : 0;
  return running;
}

std::string asJson(const Details& details) {
  JsonWriter json;
  json.beginObject();
  writeInfo(json, details.info);
  json.key("network").string(details.info.network).key("allowed_hosts").beginArray();
  for (const std::string& host : details.info.allowed_hosts) json.string(host);
  json.end().key("uncommitted_changes").boolean(details.uncommitted);
  json.key("checkpoints").beginArray();
  for (const CheckpointInfo& one : details.checkpoints) json.string(one.name);
  json.end().key("commits").beginArray();
  for (const ReplacedByCommit& one : details.replaced) {
    json.beginObject().key("number").number(std::uint64_t{one.number}).key("time").number(one.time);
    json.key("changes").number(std::uint64_t{one.changes}).key("kept").number(std::uint64_t{one.objects});
    json.key("bytes").number(one.bytes).key("removed_in").number(one.removed_in).key("undone").boolean(one.undone);
    if (one.interrupted) json.key("interrupted").boolean(true).key("location").string(one.location);
    json.end();
  }
  json.end().key("kept_data").beginObject().key("commits").number(details.kept.commits);
  json.key("quarantined").number(details.kept.quarantined).key("evidence").number(details.kept.evidence);
  json.key("limit").number(details.kept.limit).end();
  json.key("background_commands_running").number(runningOf(details)).end();
  return json.text() + "\n";
}

std::string asText(const Details& details) {
  const SessionInfo& info = details.info;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += std::string(label) + std::string(14 - label.size(), ' ') + safeLine(value) + "\n";
  };
  line("id", info.id);
  if (!info.name.empty()) line("name", info.name);
  line("workspace", info.workspace.empty() ? "none" : info.workspace);
  line("created", utcText(info.created));
  line("state", info.expires_in <= 0 ? "expired" : info.live ? "live" : "idle");
  if (info.expires_in > 0) {
    line("time left",
         durationText(info.expires_in) + ", extended to " + durationText(info.ttl_seconds) + " by each request");
  } else {
    line("removed in", durationText(info.removed_in));
  }
  line("changes", details.uncommitted ? "uncommitted (see: caisson session diff)" : "none that are not committed");
  std::string network = info.network;
  for (const std::string& host : info.allowed_hosts) network += " " + host;
  line("network", network);
  std::string checkpoints;
  for (const CheckpointInfo& one : details.checkpoints) checkpoints += (checkpoints.empty() ? "" : " ") + one.name;
  line("checkpoints", checkpoints.empty() ? "none" : checkpoints);
  for (const ReplacedByCommit& one : details.replaced) {
    if (one.interrupted) {
      line("commit " + std::to_string(one.number), utcText(one.time) + ", interrupted: what it replaced is in " +
                                                       one.location + " for " + durationText(one.removed_in));
      continue;
    }
    line("commit " + std::to_string(one.number), utcText(one.time) + ", " + std::to_string(one.changes) + " changes, " +
                                                     std::to_string(one.objects) + " replaced or deleted (" +
                                                     std::to_string(one.bytes) + " bytes) kept for " +
                                                     durationText(one.removed_in) + (one.undone ? ", undone" : ""));
  }
  const KeptData& kept = details.kept;
  line("kept data", std::to_string(kept.total()) + " of " + std::to_string(kept.limit) + " bytes, of all sessions: " +
                        std::to_string(kept.commits) + " by commits, " + std::to_string(kept.quarantined) +
                        " in quarantine, " + std::to_string(kept.evidence) + " as evidence");
  line("background", std::to_string(runningOf(details)) + " commands running");
  return text;
}

int perform(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session info", 1, 1);
  if (!session) return printError(session.error());
  const auto info = session->info();
  if (!info) return printError(info.error());
  Details details{.info = *info};
  if (auto list = session->checkpoints()) details.checkpoints = *std::move(list);
  if (auto store = SessionStore::open()) {
    if (auto list = store->replaced(info->id)) details.replaced = *std::move(list);
    details.kept = store->keptData();
  }
  if (auto list = session->processes()) details.commands = *std::move(list);
  const auto uncommitted = session->hasUncommittedChanges();
  if (!uncommitted) return printError(uncommitted.error());
  details.uncommitted = *uncommitted;
  return print(arguments.has(kJson) ? asJson(details) : asText(details));
}

}  // namespace

std::string durationText(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole >= 2 * 86400) return std::to_string(whole / 86400) + "d" + std::to_string(whole % 86400 / 3600) + "h";
  return std::to_string(whole / 60) + "m" + std::to_string(whole % 60) + "s";
}

void writeInfo(JsonWriter& json, const SessionInfo& info) {
  json.key("id").string(info.id).key("name").string(info.name);
  json.key("workspace").string(info.workspace).key("created").number(info.created);
  json.key("directory").string(info.directory).key("warnings").beginArray();
  for (const std::string& warning : info.warnings) json.string(warning);
  json.end();
  json.key("ttl_seconds").number(info.ttl_seconds);
  json.key("expires_in").number(info.expires_in).key("live").boolean(info.live);
  if (info.problem.empty()) {
    const bool expired = info.expires_in <= 0;
    json.key("expired").boolean(expired);
    if (expired) json.key("removed_in").number(info.removed_in);
  } else {
    json.key("problem").string(info.problem);
  }
}

constinit const Verb kSessionInfo{
    .path = "session info",
    .summary = "Show everything about one session",
    .description =
        "Its workspace, time, network, checkpoints, background commands, and whether it holds uncommitted changes.",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID"},
    .perform = perform,
};

}  // namespace caisson::cli
