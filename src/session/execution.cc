#include "session/execution.h"

#include "session/handle.h"
#include "session/kept_plan.h"
#include "session/runner.h"

namespace caisson::session {

Result<std::optional<RunResult>> execute(const Execution& execution, const ExecRequest& request) {
  const auto& [place, directory, metadata, plan, connection, record, whole, asker, complete] = execution;
  const Recorder recorder{
      .starting = [&] { return record.starting(metadata.id, metadata.policy, plan, request.command, false); },
      .refused = [&](const Violation& violation) { record.callRefused(metadata.id, violation); }};
  SessionWatch watch(place, directory, metadata, plan, whole);
  Aftermath after;
  auto ran = runCommand(plan, request, metadata.id, connection, watch, recorder, asker, after);
  if (!ran || !*ran) return ran;
  RunResult& result = **ran;
  if (result.escape) {
    (void)whole();
    record.escaped(metadata.policy, plan, request.command, after.last, result);
  }
  if (after.lives_on && SessionWatch::needed(plan)) watchWhatLivesOn(place, directory, metadata.id);
  if (complete) complete(result);
  record.ended(result);
  return ran;
}

Result<std::optional<RunResult>> executeByKeptPlan(const Store& store, std::string_view id_or_name,
                                                   const ExecRequest& request) {
  if (request.interactive) return std::nullopt;
  const auto id = store.idOf("session exec", id_or_name);
  if (!id) return std::nullopt;
  const auto directory = store.place().sessions().enter(*id);
  if (!directory) return std::nullopt;
  auto kept = readKeptPlan(*directory);
  if (!kept || (!isId(id_or_name) && kept->name != id_or_name)) return std::nullopt;
  if (auto checked = checkExec(request, kept->policy); !checked) return fail(checked.error());
  auto plan = planByKept(*kept, request.command);
  if (!plan) return fail(plan.error());
  adaptPlan(*plan, request);
  auto connection = Connection::open(*directory);
  if (!connection || !*connection) return std::nullopt;

  Metadata metadata;
  metadata.id = *id;
  metadata.policy = std::move(kept->policy);
  const auto whole = [&]() -> Result<plan::Plan> {
    auto read = readMetadata(*directory);
    if (!read) return fail(read.error());
    metadata = std::move(*read);
    const auto planner = Planner::observe(*directory, metadata);
    if (!planner) return fail(planner.error());
    return planner->plan(metadata, {{"true"}, false});
  };
  Record record;
  return execute({.place = store.place(),
                  .directory = *directory,
                  .metadata = metadata,
                  .plan = *plan,
                  .connection = **connection,
                  .record = record,
                  .whole = whole,
                  .asker = nullptr,
                  .complete = nullptr},
                 request);
}

}  // namespace caisson::session
