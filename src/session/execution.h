// One command of a session that is planned and connected: put on record, run, watched, its end put on record.
#pragma once

#include <functional>
#include <optional>

#include "caisson/session.h"
#include "plan/plan.h"
#include "session/connection.h"
#include "session/host_asker.h"
#include "session/metadata.h"
#include "session/record.h"
#include "session/store.h"

namespace caisson::session {

struct Execution {
  const Place& place;
  const sys::RootDir& directory;
  const Metadata& metadata;  ///< id and audit at least; the rest may come with `whole`
  const plan::Plan& plan;
  const Connection& connection;
  Record& record;
  /// A plan of the session with its steps: asked for when the command runs longer than a moment, or tries to escape.
  std::function<Result<plan::Plan>()> whole;
  /// Who asks about hosts while it runs; null: nobody.
  HostAsker* asker = nullptr;
  /// Adds to the result before its end is put on record.
  std::function<void(RunResult&)> complete;
};

/// Nothing when pid 1 went away before the command started: then it may be tried again.
Result<std::optional<RunResult>> execute(const Execution& execution, const ExecRequest& request);

/// A command by the plan that is kept with the session: what the command line does again and again. Nothing when there
/// is none that holds, or pid 1 is not there: then it has to be done at length.
Result<std::optional<RunResult>> executeByKeptPlan(const Store& store, std::string_view id_or_name,
                                                   const ExecRequest& request);

}  // namespace caisson::session
